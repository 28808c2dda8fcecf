// A divider that sets the height of the panel below it, with the mouse and with the arrow keys.

const HEIGHT_NAME = 'tracesmith-dock';
const DEFAULT_PERCENT = 34;

/**
 * @param {HTMLElement} divider a focusable separator
 * @param {HTMLElement} page the grid whose `--dock` is the height of the panel
 */
export function connectDivider(divider, page) {
  let percent = Number(localStorage.getItem(HEIGHT_NAME) ?? DEFAULT_PERCENT);
  const apply = () => {
    percent = Math.min(80, Math.max(5, percent));
    page.style.setProperty('--dock', `${percent}%`);
    divider.setAttribute('aria-valuenow', String(Math.round(percent)));
    localStorage.setItem(HEIGHT_NAME, String(percent));
  };
  apply();
  divider.addEventListener('pointerdown', (event) => {
    divider.setPointerCapture(event.pointerId);
    event.preventDefault();
  });
  divider.addEventListener('pointermove', (event) => {
    if (!divider.hasPointerCapture(event.pointerId)) return;
    const { bottom, height } = page.getBoundingClientRect();
    percent = ((bottom - event.clientY) / height) * 100;
    apply();
  });
  divider.addEventListener('keydown', (event) => {
    const step = event.key === 'ArrowUp' ? 3 : event.key === 'ArrowDown' ? -3 : 0;
    if (step === 0) return;
    percent += step;
    apply();
    event.preventDefault();
    event.stopPropagation();
  });
}
