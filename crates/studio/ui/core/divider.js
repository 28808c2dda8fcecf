// A divider between two parts of the page, moved with the mouse or with the arrow keys. Its place is remembered.

/**
 * @typedef {object} DividerOptions
 * @property {string} name under which the place is remembered
 * @property {'x' | 'y'} axis `y` for a divider above a part that grows upwards
 * @property {number} initial
 * @property {number} least
 * @property {number} most
 * @property {(event: PointerEvent) => number} value the place that the pointer asks for
 * @property {(value: number) => void} apply
 */

const STEPS = 24;

/** @param {HTMLElement} divider a focusable separator @param {DividerOptions} options */
export function connectDivider(divider, { name, axis, initial, least, most, value, apply }) {
  let place = Number(localStorage.getItem(name) ?? initial);
  const move = (/** @type {number} */ wanted) => {
    place = Math.min(most, Math.max(least, Number.isFinite(wanted) ? wanted : initial));
    divider.setAttribute('aria-valuenow', String(Math.round(place)));
    apply(place);
  };
  divider.setAttribute('aria-valuemin', String(least));
  divider.setAttribute('aria-valuemax', String(most));
  move(place);
  const keep = () => localStorage.setItem(name, String(place));
  divider.addEventListener('pointerdown', (event) => {
    divider.setPointerCapture(event.pointerId);
    event.preventDefault();
  });
  divider.addEventListener('pointermove', (event) => {
    if (divider.hasPointerCapture(event.pointerId)) move(value(event));
  });
  divider.addEventListener('pointerup', keep);
  divider.addEventListener('keydown', (event) => {
    const [more, less] = axis === 'x' ? ['ArrowRight', 'ArrowLeft'] : ['ArrowUp', 'ArrowDown'];
    if (event.key !== more && event.key !== less) return;
    move(place + ((event.key === more ? 1 : -1) * (most - least)) / STEPS);
    keep();
    event.preventDefault();
    event.stopPropagation();
  });
}
