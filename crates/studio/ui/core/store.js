// The state of the page. It is the only thing that the timeline and the panels share: both read it, change it and
// listen to it.

/** @typedef {{from: number, to: number}} Span  ns after the origin */
/** @typedef {import('./answers.d.ts').Slice} Slice */
/** @typedef {{rows: number[], from: number, to: number}} Area  `rows` is empty for a time range of all rows */
/** @typedef {{row: number, time: number, slice: Slice | null}} Hover */
/** @typedef {import('./align.js').Compare} Compare */
/** @typedef {'device' | 'process'} Grouping */
/**
 * @typedef {object} RowChoices  which rows are shown, and how; tracks and groups by their keys
 * @property {string[]} pinned
 * @property {string[]} hidden
 * @property {string[]} folded groups and tracks of which only the head is shown
 * @property {string} filter
 * @property {Grouping} grouping
 */
/**
 * @typedef {object} State
 * @property {number} trace number of the open trace, -1 without one
 * @property {import('./answers.d.ts').Session | null} session
 * @property {import('./answers.d.ts').Layout | null} layout
 * @property {import('./shapes.js').ShapeTable} shapes
 * @property {Span} window the time range that the timeline shows, or moves to
 * @property {Slice | null} selection
 * @property {Area | null} area
 * @property {Hover | null} hover
 * @property {number[]} marks
 * @property {string} tab
 * @property {Readonly<Record<string, string>>} panel choices inside the panels, by short names
 * @property {RowChoices} rows
 * @property {Span[]} steps the trace's steps, when they are known
 * @property {string[]} stepNames
 * @property {Layer[]} layers what is shown with the open trace on the same timeline
 * @property {Compare | null} compare the trace that the open one is compared with
 * @property {number} scroll CSS pixels above the first row that is seen
 * @property {{row: number, serial: number} | null} reveal a row to scroll into view
 * @property {import('./api.js').Connection} connection
 * @property {boolean} following whether the window follows a trace that is being recorded
 * @property {number} behind ns that a recording has gone on while the picture stood still
 * @property {string} answers the generation that panels ask about
 * @property {string} problem why the picture may be wrong, or empty
 * @property {string} announcement last thing that the live region reports
 */
/** @typedef {{history?: 'push' | 'replace' | 'none'}} SetOptions */
/** @typedef {(changed: Set<keyof State>, options: SetOptions) => void} Listener */

import { aligned, stepAt } from './align.js';
import { Layer, placeOf } from './layer.js';
import { ShapeTable } from './shapes.js';

/** The shortest window: 50 ns over the whole width. */
const MIN_SPAN_NS = 50;

/** One observable state. */
class Store {
  /** @type {State} */
  #state = {
    trace: -1,
    session: null,
    layout: null,
    shapes: new ShapeTable([]),
    window: { from: 0, to: 1 },
    selection: null,
    area: null,
    hover: null,
    marks: [],
    tab: 'details',
    panel: {},
    rows: { pinned: [], hidden: [], folded: [], filter: '', grouping: 'device' },
    steps: [],
    stepNames: [],
    layers: [],
    compare: null,
    scroll: 0,
    reveal: null,
    following: false,
    behind: 0,
    answers: '',
    connection: 'online',
    problem: '',
    announcement: '',
  };
  /** @type {Set<Listener>} */
  #listeners = new Set();
  /** The layers of the state that they were made for. @type {{state: State | null, layers: Layer[]}} */
  #made = { state: null, layers: [] };

  /** The state; do not change it in place. @returns {Readonly<State>} */
  get() {
    return this.#state;
  }

  /**
   * Changes parts of the state. `push` makes a step that the Back button undoes, `none` leaves the address alone.
   * @param {Partial<State>} partial
   * @param {SetOptions} [options]
   */
  set(partial, options = {}) {
    /** @type {Set<keyof State>} */
    const changed = new Set();
    for (const name of /** @type {(keyof State)[]} */ (Object.keys(partial))) {
      if (!Object.is(this.#state[name], partial[name])) changed.add(name);
    }
    if (changed.size === 0) return;
    this.#state = { ...this.#state, ...partial };
    const follows = aligned(this.#state, changed);
    this.#state = { ...this.#state, ...follows };
    for (const name of /** @type {(keyof State)[]} */ (Object.keys(follows))) changed.add(name);
    for (const listener of [...this.#listeners]) listener(changed, options);
  }

  /**
   * Calls `listener` after each change, with the names of what changed.
   * @param {Listener} listener
   * @returns {() => void} ends it
   */
  subscribe(listener) {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /** Length of the open trace in ns. */
  span() {
    return Math.max(1, this.#state.layout?.span_ns ?? 1);
  }

  /** All layers in their order, the open trace first. @returns {Layer[]} */
  layers() {
    if (this.#made.state === this.#state) return this.#made.layers;
    const { trace, layout, shapes, steps, stepNames, layers } = this.#state;
    const label = layers.some(({ key }) => key === 'b') ? 'A' : '';
    const first = new Layer({ key: 'a', trace, label, layout, shapes, steps, stepNames });
    this.#made = { state: this.#state, layers: [first, ...layers] };
    return this.#made.layers;
  }

  /** The layer that has a row. @param {number} row @returns {Layer} */
  layerOf(row) {
    const layers = this.layers();
    return layers.find(({ place }) => place === placeOf(row)) ?? layers[0];
  }

  /** The time range that all layers lie in. @returns {Span} */
  extent() {
    const extents = this.layers().map(({ extent }) => extent);
    return { from: Math.min(...extents.map(({ from }) => from)), to: Math.max(...extents.map(({ to }) => to)) };
  }

  /**
   * The time range of a slice on the timeline.
   * @param {{row: number, start: number, duration: number}} slice
   * @returns {Span}
   */
  shown({ row, start, duration }) {
    const from = this.layerOf(row).shown(start);
    return { from, to: from + duration };
  }

  /**
   * Moves the window to a time range, with `margin` of its length on both sides.
   * @param {Span} span
   * @param {{margin?: number, history?: 'push' | 'replace' | 'none'}} [options]
   */
  zoomTo(span, { margin = 0.1, history = 'push' } = {}) {
    const room = (span.to - span.from) * margin;
    this.set({ window: this.clamp({ from: span.from - room, to: span.to + room }) }, { history });
  }

  /**
   * Moves the window to a slice, with `margin` of its length on both sides.
   * @param {{row: number, start: number, duration: number}} slice
   * @param {{margin?: number, history?: 'push' | 'replace' | 'none'}} [options]
   */
  zoomToSlice(slice, { margin = 1, history = 'push' } = {}) {
    const compare = this.#alignedAt(slice);
    if (compare) this.set({ compare }, { history: 'none' });
    const { from, to } = this.shown({ ...slice, duration: Math.max(1, slice.duration) });
    const room = (to - from) * margin;
    const window = this.clamp({ from: from - room, to: to + room });
    this.set({ window, ...(compare ? { compare: { ...compare } } : {}) }, { history });
  }

  /**
   * Selects a slice. `reveal` also moves the window and scrolls, if the slice cannot be seen.
   * @param {Slice | null} slice
   * @param {{reveal?: boolean, history?: 'push' | 'replace'}} [options]
   */
  select(slice, { reveal = false, history = 'push' } = {}) {
    /** @type {Partial<State>} */
    const change = { selection: slice };
    if (slice) change.area = null;
    if (slice && reveal) {
      change.reveal = { row: slice.row, serial: (this.#state.reveal?.serial ?? 0) + 1 };
      const isSeen = this.#isSeen(slice);
      const compare = isSeen ? null : this.#alignedAt(slice);
      if (compare) {
        this.set({ compare }, { history: 'none' });
        change.compare = { ...compare };
      }
      if (!isSeen) change.window = this.#windowWith(slice);
    }
    this.set(change, { history });
  }

  /** @param {Area | null} area @param {SetOptions} [options] */
  selectArea(area, options = { history: 'push' }) {
    this.set({ area, selection: area ? null : this.#state.selection }, options);
  }

  /** Opens a tab of the panel. @param {string} name */
  openTab(name) {
    this.set({ tab: name }, { history: 'replace' });
  }

  /** Changes the choice of rows. @param {Partial<RowChoices>} choices */
  chooseRows(choices) {
    this.set({ rows: { ...this.#state.rows, ...choices } }, { history: 'replace' });
  }

  /** Reports something in the live region. @param {string} text */
  announce(text) {
    this.set({ announcement: text }, { history: 'none' });
  }

  /**
   * The window nearest to `span` that lies around the trace and is not too short.
   * @param {Span} span
   * @returns {Span}
   */
  clamp({ from, to }) {
    const extent = this.extent();
    const whole = extent.to - extent.from;
    const length = Math.min(Math.max(to - from, Math.min(MIN_SPAN_NS, whole)), whole);
    const middle = (from + to) / 2;
    const start = Math.min(Math.max(middle - length / 2, extent.from), extent.to - length);
    return { from: roundTime(start), to: roundTime(start + length) };
  }

  /** Whether a slice lies in the window, at a readable size. @param {Slice} slice */
  #isSeen(slice) {
    const { from, to } = this.#state.window;
    const shown = this.shown(slice);
    return shown.from >= from && shown.to <= to && slice.duration / (to - from) > 0.005;
  }

  /**
   * The comparison by the step that a slice of the second trace is in, so that it is near the same step of the first
   * when the window moves there. Null if nothing changes.
   * @param {{row: number, start: number}} slice
   * @returns {Compare | null}
   */
  #alignedAt({ row, start }) {
    const { compare } = this.#state;
    const { key, steps } = this.layerOf(row);
    if (key !== 'b' || compare?.align !== 'steps' || steps.length === 0) return null;
    return { ...compare, step: stepAt(steps, start) };
  }

  /** A window that shows `slice` at a readable size. @param {Slice} slice @returns {Span} */
  #windowWith(slice) {
    const { from, to } = this.#state.window;
    const { from: start, to: end } = this.shown(slice);
    const share = slice.duration / (to - from);
    if (share > 0.005 && share < 0.8) {
      const half = (to - from) / 2;
      return this.clamp({ from: (start + end) / 2 - half, to: (start + end) / 2 + half });
    }
    const room = Math.max(slice.duration * 2, MIN_SPAN_NS);
    return this.clamp({ from: start - room, to: end + room });
  }
}

/**
 * Times have three digits after the nanosecond, as in the address: what is read from there is what was.
 * @param {number} ns
 */
export function roundTime(ns) {
  return Math.round(ns * 1000) / 1000;
}

export const store = new Store();
