// Where a second trace lies on the timeline: step k at the same place as step k of the open trace, or both starts at
// the same place, or at a distance that somebody chose.

/** @typedef {import('./store.js').Span} Span */
/** @typedef {import('./store.js').State} State */
/** @typedef {import('./layer.js').Layer} Layer */
/** @typedef {'steps' | 'step' | 'start' | 'manual'} Alignment */
/**
 * @typedef {object} Compare  the second trace, and how it is aligned
 * @property {number} trace its number at the server
 * @property {Alignment} align `steps`: by the step in the middle of the window; `step`: by a chosen one
 * @property {number | null} step the step by which it is aligned; null until the window decides
 * @property {number} offset ns, for `manual`
 */

/** A comparison as it begins. @param {number} trace @returns {Compare} */
export function newCompare(trace) {
  return { trace, align: 'steps', step: null, offset: 0 };
}

/** The step that a time is in, or the last one before it. @param {Span[]} steps @param {number} time */
export function stepAt(steps, time) {
  let [low, high] = [0, steps.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (steps[middle].from <= time) low = middle + 1;
    else high = middle;
  }
  return Math.max(0, low - 1);
}

/** How many steps both have. @param {Span[]} a @param {Span[]} b */
export function commonSteps(a, b) {
  return Math.min(a.length, b.length);
}

/**
 * What follows from a change of the state: the step in the middle of the window, and the offset of the second trace.
 * @param {Readonly<State>} state
 * @param {Set<keyof State>} changed
 * @returns {Partial<State>}
 */
export function aligned(state, changed) {
  const layer = state.layers.find(({ key }) => key === 'b');
  if (!state.compare || !layer?.isReady) return {};
  const compare = followed(state, layer, changed);
  const offset = offsetOf(compare, state.steps, layer.steps);
  /** @type {Partial<State>} */
  const change = {};
  if (compare !== state.compare) change.compare = compare;
  if (offset !== layer.offset)
    change.layers = state.layers.map((other) => (other === layer ? other.with({ offset }) : other));
  return change;
}

/**
 * The comparison by the step in the middle of a window that moved. A step that is chosen together with a window stays.
 * @param {Readonly<State>} state @param {Layer} layer @param {Set<keyof State>} changed
 * @returns {Compare}
 */
function followed({ compare, window, steps }, { steps: others }, changed) {
  const known = /** @type {Compare} */ (compare);
  const isStill = known.align !== 'steps' || changed.has('compare') || !changed.has('window');
  if (known.step !== null && isStill) return known;
  const step = Math.min(stepAt(steps, (window.from + window.to) / 2), Math.max(0, commonSteps(steps, others) - 1));
  return step === known.step ? known : { ...known, step };
}

/** @param {Compare} compare @param {Span[]} a @param {Span[]} b */
function offsetOf({ align, step, offset }, a, b) {
  if (align === 'manual') return offset;
  const common = commonSteps(a, b);
  if (align === 'start' || common === 0) return 0;
  const at = Math.min(step ?? 0, common - 1);
  return a[at].from - b[at].from;
}
