// A trace that is being recorded: the window follows its end, until the person looks elsewhere. Then the picture stands
// still, and the layouts that come meanwhile are passed over.

import { placeOf } from './layer.js';
import { store } from './store.js';

/** @typedef {import('./answers.d.ts').Layout} Layout */
/** @typedef {import('./store.js').Span} Span */
/** @typedef {import('./store.js').State} State */

/** Panels ask again after this time while the trace grows, and sooner while it is short. */
const ANSWERS_MS = 5000;
const FIRST_ANSWERS_MS = 500;
const SHARE_OF_SPAN = 1 / 4;
/** A window that ends so near to the end of the trace ends with it. */
const EDGE_SHARE = 0.001;

let nextAnswers = 0;
/** Whether the window is moved by what is here. */
let isMoving = false;

/** Whether somebody adds to the trace now. @param {Layout | null} layout */
export function isRecording(layout) {
  return layout?.live?.state === 'recording';
}

/** Whether a new layout is to be passed over, because the picture stands still. @param {Layout} next */
export function isHeld(next) {
  const { layout, following } = store.get();
  const hasPicture = layout !== null && layout.tracks.length > 0;
  return isRecording(next) && isRecording(layout) && !following && hasPicture;
}

/** Starts to follow if the window ends where the trace ends. */
export function watchEdge() {
  store.subscribe((changed) => {
    const { layout, window, following } = store.get();
    if (!layout || isMoving || !changed.has('window') || !isRecording(layout)) return;
    const atEdge = isAtEdge(window, layout.span_ns);
    if (atEdge !== following) store.set({ following: atEdge, behind: 0 }, { history: 'none' });
  });
}

/** Follows the end of the trace from now on, or stops. */
export function toggleFollowing() {
  const { layout, following, window, behind } = store.get();
  if (!layout || !isRecording(layout)) return;
  if (following) {
    store.set({ following: false, behind: 0 }, { history: 'none' });
    store.announce('Paused');
    return;
  }
  const span = layout.span_ns;
  const length = Math.min(window.to - window.from, span);
  move({ following: true, behind, window: { from: span - length, to: span } });
  store.announce('Following the recording');
}

/** Changes the state without being taken for the person. @param {Partial<State>} change */
export function move(change) {
  isMoving = true;
  try {
    store.set(change, { history: 'none' });
  } finally {
    isMoving = false;
  }
}

/** Whether both are of one opening of the file: then shapes keep numbers. @param {Layout} a @param {Layout} b */
export function isSameReading(a, b) {
  const stamp = (/** @type {Layout} */ { generation }) => generation.slice(0, generation.lastIndexOf('-'));
  return stamp(a) === stamp(b);
}

/** Whether rows, shapes and times mean the same in both layouts. @param {Layout} before @param {Layout} next */
export function continues(before, next) {
  return isSameReading(before, next) && before.origin_ns === next.origin_ns && before.tracks.length > 0;
}

/**
 * From when on a layout differs from that of a generation.
 * @param {string} generation @param {Layout} next
 */
export function changedFrom(generation, next) {
  const changes = next.live?.changes ?? [];
  const at = changes.findIndex((change) => change.generation === generation);
  return at < 0 ? 0 : Math.min(Infinity, ...changes.slice(at + 1).map(({ from_ns }) => from_ns));
}

/**
 * The row that has the key of a row of the layout before. Rows of other layers stay what they are.
 * @param {Layout} before @param {Layout} next @param {number} row
 */
function sameRow(before, next, row) {
  if (placeOf(row) !== 0) return row;
  const track = before.tracks.find(({ first_row, rows }) => row >= first_row && row < first_row + rows);
  const now = next.tracks.find(({ key }) => key === track?.key);
  const lane = row - (track?.first_row ?? 0);
  return now && lane < now.rows ? now.first_row + lane : null;
}

/**
 * What becomes of the state when a layout takes the place of the one before.
 * @param {Readonly<State>} state @param {Layout} before @param {Layout} next
 * @returns {Partial<State>}
 */
export function carriedOver(state, before, next) {
  const shift = Number(BigInt(before.origin_ns) - BigInt(next.origin_ns));
  const row = (/** @type {number} */ number) => sameRow(before, next, number);
  /** @type {Partial<State>} */
  const change = { window: windowAfter(state, before, next, shift), behind: 0 };
  if (shift !== 0) change.marks = state.marks.map((mark) => mark + shift);
  if (state.selection) {
    const { selection } = state;
    const place = row(selection.row);
    if (place === null || !isSameReading(before, next)) change.selection = null;
    else if (place !== selection.row || shift !== 0)
      change.selection = { ...selection, row: place, start: selection.start + shift };
  }
  if (state.area) {
    const { rows, from, to } = state.area;
    const places = rows.map(row);
    if (shift !== 0 || places.some((place, i) => place !== rows[i]))
      change.area = { rows: places.filter((place) => place !== null), from: from + shift, to: to + shift };
  }
  if (!isRecording(next)) change.following = false;
  return change;
}

/**
 * The generation that panels ask about: while a trace grows they do not ask for each one.
 * @param {Layout} next
 */
export function answersFor(next) {
  const now = performance.now();
  const { answers } = store.get();
  if (isRecording(next) && answers !== '' && now < nextAnswers) return answers;
  nextAnswers = now + Math.min(ANSWERS_MS, FIRST_ANSWERS_MS + (next.span_ns / 1e6) * SHARE_OF_SPAN);
  return next.generation;
}

/** @param {Readonly<State>} state @param {Layout} before @param {Layout} next @param {number} shift @returns {Span} */
function windowAfter({ window, following }, before, next, shift) {
  const isWhole = window.from <= 0 && isAtEdge(window, before.span_ns);
  const span = next.span_ns;
  if (before.tracks.length === 0 || (following && isWhole)) return { from: 0, to: span };
  if (following) return { from: Math.max(0, span - (window.to - window.from)), to: span };
  if (shift === 0) return window;
  return { from: Math.max(0, window.from + shift), to: Math.min(span, window.to + shift) };
}

/** @param {Span} window @param {number} span */
function isAtEdge({ from, to }, span) {
  return span - to <= (to - from) * EDGE_SHARE;
}
