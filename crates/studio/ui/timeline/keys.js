// The keyboard: moving, selecting, marks, steps, and the keys that open the panels' parts.

import { getJson } from '../core/api.js';
import { nudge } from '../core/compare.js';
import { toggleFollowing } from '../core/live.js';
import { addNote, chooseNote } from '../core/notes.js';
import { store } from '../core/store.js';
import { openGoTo } from './go-to.js';
import { zoomAround } from './pointer.js';
import { openEvents } from './events-table.js';

/** @typedef {import('./timeline.js').Timeline} Timeline */
/** @typedef {import('../core/answers.d.ts').Slice} Slice */
/** @typedef {HTMLElement & {open?: (prefix: string) => void, toggle?: () => void}} PanelElement */

const ZOOM_STEP = 1.3;
const PAN_STEP = 0.12;
const STEP_MARGIN = 0.02;
/** How far a second trace moves, as a share of the window. */
const NUDGE = 0.01;

/** @param {Timeline} timeline */
export function connectKeys(timeline) {
  /** @type {Record<string, () => void>} */
  const actions = {
    w: () => zoom(timeline, 1 / ZOOM_STEP),
    s: () => zoom(timeline, ZOOM_STEP),
    a: () => pan(-PAN_STEP),
    d: () => pan(PAN_STEP),
    Home: () => store.zoomTo(store.extent(), { margin: 0 }),
    f: focus,
    '.': () => neighbor(timeline, 'next', 'any'),
    ',': () => neighbor(timeline, 'previous', 'any'),
    n: () => neighbor(timeline, 'next', 'same'),
    p: () => neighbor(timeline, 'previous', 'same'),
    m: mark,
    t: () => chooseNote(addNote(pointedTime())),
    g: openGoTo,
    ']': () => step(1),
    '[': () => step(-1),
    c: () => store.openTab('critical-path'),
    i: () => store.openTab('idle'),
    e: () => openEvents(timeline),
    o: () => panel('ts-ghost').toggle?.(),
    '<': () => nudge(-NUDGE),
    '>': () => nudge(NUDGE),
    l: toggleFollowing,
    '/': () => panel('ts-search').open?.('/'),
    ':': () => panel('ts-search').open?.(':'),
    '?': () => panel('ts-keys').toggle?.(),
    Escape: clear,
  };
  document.addEventListener('keydown', (event) => {
    if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey || isTyping(event)) return;
    const action = actions[event.key.length === 1 ? event.key.toLowerCase() : event.key];
    if (!action || store.get().layout?.state !== 'ready') return;
    event.preventDefault();
    action();
  });
}

/** Whether the key belongs to a field, an open dialog, or to a button that it presses. @param {KeyboardEvent} event */
function isTyping(event) {
  const element = event.target;
  if (!(element instanceof HTMLElement)) return false;
  if (document.querySelector('dialog[open]')) return true;
  return element.isContentEditable || ['INPUT', 'TEXTAREA', 'SELECT'].includes(element.tagName);
}

/**
 * Around the end of a recording that is followed, else around the pointer if it is over the rows, else around the
 * selection if it is seen, else around the middle.
 * @param {Timeline} timeline
 * @param {number} factor
 */
function zoom(timeline, factor) {
  const { hover, selection, window, following } = store.get();
  const shown = selection && store.shown(selection);
  const selected = shown ? (shown.from + shown.to) / 2 : NaN;
  const isSeen = selected >= window.from && selected <= window.to;
  // A window that follows a recording goes on to end where it ends.
  const edge = following ? window.to : undefined;
  const time = edge ?? hover?.time ?? (isSeen ? selected : (window.from + window.to) / 2);
  zoomAround(timeline, timeline.view.x(time) / timeline.ratio, factor, false);
}

/** @param {number} share of the window */
function pan(share) {
  const { from, to } = store.get().window;
  const shift = (to - from) * share;
  store.set({ window: store.clamp({ from: from + shift, to: to + shift }) });
}

/** Zooms to the selection or the area. */
function focus() {
  const { selection, area } = store.get();
  if (selection) store.zoomToSlice(selection, { margin: 0.5 });
  else if (area) store.zoomTo(area, { margin: 0.05 });
}

/**
 * Selects the next or the previous slice of the row, of any shape or of the same.
 * @param {Timeline} timeline @param {'next' | 'previous'} direction @param {'any' | 'same'} which
 */
async function neighbor(timeline, direction, which) {
  const { selection, window } = store.get();
  const at = selection ?? firstRow(timeline, window.from);
  if (!at) return;
  const layer = store.layerOf(at.row);
  const shape = which === 'same' && selection ? selection.shape : null;
  /** @type {Slice | null} */
  const slice = await getJson(`t/${layer.trace}/neighbor`, {
    row: layer.local(at.row),
    time: at.start,
    direction,
    shape,
  }).catch(() => null);
  if (slice) store.select(layer.placed(slice), { reveal: true, history: 'replace' });
  else store.announce(direction === 'next' ? 'No later event' : 'No earlier event');
}

/**
 * Where to begin without a selection: the first row in view that has slices.
 * @param {Timeline} timeline
 * @param {number} time
 */
function firstRow(timeline, time) {
  const item = timeline.rows
    .all()
    .find(({ track, isGroup }) => !isGroup && track && track.slices > 0 && track.kind !== 'idle');
  return item?.track ? { row: item.track.first_row, start: Math.max(0, Math.floor(time) - 1) } : null;
}

/** The time at the pointer, else of the selection, else of the middle. */
function pointedTime() {
  const { hover, selection, window } = store.get();
  return Math.round(hover?.time ?? (selection && store.shown(selection).from) ?? (window.from + window.to) / 2);
}

/** Sets a mark at the pointer, the selection or the middle, or takes the one there away. */
function mark() {
  const { marks, window } = store.get();
  const time = pointedTime();
  const near = (window.to - window.from) / 200;
  const others = marks.filter((other) => Math.abs(other - time) > near);
  store.set(
    { marks: others.length < marks.length ? others : [...marks, time].sort((a, b) => a - b) },
    { history: 'push' },
  );
}

/** Goes to the next or the previous step. @param {1 | -1} direction */
function step(direction) {
  const { steps, window } = store.get();
  const middle = (window.from + window.to) / 2;
  const at = steps.findIndex(({ to }) => to > middle);
  const isInside = at >= 0 && steps[at].from <= middle;
  const isWhole = isInside && window.to - window.from < 1.5 * (steps[at].to - steps[at].from);
  const next = at < 0 ? steps.length - 1 : isWhole ? at + direction : isInside ? at : at + Math.min(0, direction);
  const target = steps[Math.min(Math.max(next, 0), steps.length - 1)];
  if (target) store.zoomTo(target, { margin: STEP_MARGIN });
  else store.announce('This trace has no steps');
}

/** Takes the selection and the area away. */
function clear() {
  const { selection, area } = store.get();
  if (selection || area) store.set({ selection: null, area: null }, { history: 'push' });
}

/** @param {string} name @returns {PanelElement} */
function panel(name) {
  return /** @type {PanelElement} */ (document.querySelector(name) ?? document.createElement('div'));
}
