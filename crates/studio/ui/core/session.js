// Opens traces: the session, the layout and the shapes of a trace, and changes that the server reports.

import { connectAddress, laterOfAddress, stateOfAddress, traceOfAddress } from './address.js';
import { ApiError, connectionState, getJson, isAbort, onConnection, onStale, readEvents } from './api.js';
import { connectCompare } from './compare.js';
import { abortLayers, renewLayers, showLayer } from './layers.js';
import { answersFor, carriedOver, continues, isHeld, isRecording, isSameReading, move, watchEdge } from './live.js';
import { refreshRecordings } from './recordings.js';
import { ShapeTable } from './shapes.js';
import { loadSteps } from './steps.js';
import { store } from './store.js';

/** @typedef {import('./answers.d.ts').Layout} Layout */

const POLL_MS = 250;
const STREAM_AGAIN_MS = 2000;
/** A server that opened a browser ends some minutes after the last request. */
const KEEP_ALIVE_MS = 60_000;
const REMEMBERED = 'tracesmith-rows:';

/** Cancels what is being loaded when another trace is opened. */
let loading = new AbortController();
/** What the address says about rows that are not there yet. */
let later = laterOfAddress('');

/** Gets the session, opens the trace that the address names or the first, and follows changes. */
export async function start() {
  connectAddress();
  connectCompare(applyLater);
  watchEdge();
  onConnection((connection) => {
    store.set({ connection });
    if (connection === 'online') refresh();
  });
  onStale(() => {
    // One question is enough for all the answers that were refused together.
    if (store.get().problem === '') followAll();
  });
  addEventListener('popstate', () => applyAddress());
  addEventListener('hashchange', () => applyAddress());
  store.subscribe((changed) => {
    if (changed.has('trace')) load();
    if (changed.has('rows')) remember();
    if (changed.has('following')) void catchUp();
  });
  await getSession();
  followEvents();
}

/** The session, and its first trace unless one is open. */
async function getSession() {
  try {
    /** @type {import('./answers.d.ts').Session} */
    const session = await getJson('session');
    const wanted = traceOfAddress();
    const found = session.traces.find(({ id }) => id === wanted) ?? session.traces[0];
    store.set({ session });
    if (store.get().trace < 0 && found) store.set({ trace: found.id }, { history: 'none' });
  } catch (error) {
    report(error);
  }
}

/** After the server came back: what it holds may have changed. */
async function refresh() {
  if (store.get().trace < 0) await getSession();
  else await followAll();
}

/** Asks again how the open trace and the other layers are. */
async function followAll() {
  await follow();
  await Promise.all(store.get().layers.map((layer) => showLayer(layer))).catch(report);
}

/** Opens the trace of the state from the beginning. */
async function load() {
  abortLayers();
  // At once: the layout of one trace does not belong to the number of another.
  const nothing = { layout: null, shapes: new ShapeTable([]), steps: [], stepNames: [], layers: [], compare: null };
  store.set({ ...nothing, problem: '', following: false, answers: '' }, { history: 'none' });
  await follow();
}

/** Loads the layout of the open trace, again and again while it is being read, then its shapes. */
async function follow() {
  loading.abort();
  loading = new AbortController();
  const { signal } = loading;
  const { trace } = store.get();
  if (trace < 0) return;
  try {
    for (;;) {
      /** @type {Layout} */
      const layout = await getJson(`t/${trace}/layout`, {}, { signal });
      if (layout.state === 'ready') {
        await show(layout, signal);
        return;
      }
      store.set({ layout }, { history: 'none' });
      if (layout.state === 'failed') return;
      await new Promise((resolve) => setTimeout(resolve, POLL_MS));
      if (signal.aborted) return;
    }
  } catch (error) {
    if (!isAbort(error)) report(error);
  }
}

/** @param {Layout} layout @param {AbortSignal} signal */
async function show(layout, signal) {
  const { trace } = store.get();
  const before = store.get().layout;
  const isGrown = before?.state === 'ready' && before.live !== undefined && continues(before, layout);
  const known = isGrown ? store.get().shapes : new ShapeTable([]);
  /** @type {import('./answers.d.ts').Shape[]} */
  const more = await getJson(`t/${trace}/shapes`, { from: known.length }, { signal });
  if (signal.aborted) return;
  const shapes = more.length > 0 ? known.with(more) : known;
  const answers = answersFor(layout);
  if (answers !== store.get().answers) loadSteps(trace, layout, signal);
  if (before?.state === 'ready') {
    const carried = before.live || !isSameReading(before, layout) ? carriedOver(store.get(), before, layout) : {};
    move({ layout, shapes, answers, problem: '', ...carried });
    if (isRecording(before) && !isRecording(layout)) store.announce('The recording has ended');
    return;
  }
  store.set({ layout, shapes, answers, rows: remembered(layout) }, { history: 'none' });
  const named = traceOfAddress();
  if (named === null || named === trace) await applyAddress();
  else
    store.set(
      { window: store.firstWindow(), selection: null, area: null, marks: [], scroll: 0 },
      { history: 'push' },
    );
}

/** Makes the state what the address says. */
async function applyAddress() {
  const { layout, trace } = store.get();
  const named = traceOfAddress();
  if (named !== null && named !== trace && store.get().session?.traces.some(({ id }) => id === named)) {
    store.set({ trace: named, selection: null, area: null }, { history: 'none' });
    return;
  }
  if (layout?.state !== 'ready') return;
  const { change, pending } = stateOfAddress(layout);
  const { selection } = store.get();
  const isSame = selection && pending && selection.row === pending.row && selection.start === pending.start;
  store.set({ ...change, selection: isSame ? selection : null }, { history: 'none' });
  later = laterOfAddress();
  if (change.compare && store.get().layers.some(({ key }) => key === 'b')) await applyLater();
  if (pending && !isSame) await choose(pending);
}

/** What the address says about rows of a further layer, which is there now. */
export async function applyLater() {
  const { area, pending } = later();
  if (!area && !pending) return;
  later = laterOfAddress('');
  if (area) store.set({ area }, { history: 'none' });
  if (pending) await choose(pending);
}

/** Selects the slice that starts there. @param {{row: number, start: number}} pending */
async function choose(pending) {
  const { trace, selection } = store.get();
  const layer = store.layerOf(pending.row);
  try {
    const at = pointAfter({ ...pending, row: layer.local(pending.row) });
    /** @type {import('./answers.d.ts').Slice | null} */
    const slice = await getJson(`t/${layer.trace}/neighbor`, { ...at, direction: 'previous' });
    // Another trace may have been opened meanwhile, or another event selected.
    const isStill = store.get().trace === trace && store.get().selection === selection;
    const isThere = store.layerOf(pending.row).trace === layer.trace;
    if (slice?.start === pending.start && isStill && isThere)
      store.set({ selection: layer.placed(slice) }, { history: 'none' });
  } catch (error) {
    report(error);
  }
}

/** The slice before the moment just after a start is the slice itself. @param {{row: number, start: number}} at */
function pointAfter({ row, start }) {
  return { row, time: start + 1 };
}

/** Reads the server's events while the tab is visible. A hidden tab only shows now and then that it is still there. */
async function followEvents() {
  let seen = Date.now();
  for (;;) {
    if (document.hidden || connectionState() !== 'online') {
      await new Promise((resolve) => setTimeout(resolve, STREAM_AGAIN_MS));
      if (document.hidden && Date.now() - seen > KEEP_ALIVE_MS) {
        seen = Date.now();
        await getJson('session').catch(() => undefined);
      }
      continue;
    }
    const stream = new AbortController();
    const onHidden = () => document.hidden && stream.abort();
    document.addEventListener('visibilitychange', onHidden);
    try {
      await readEvents(noted, stream.signal);
    } catch (error) {
      if (error instanceof ApiError && error.status === 404) return;
    } finally {
      document.removeEventListener('visibilitychange', onHidden);
    }
    await new Promise((resolve) => setTimeout(resolve, STREAM_AGAIN_MS));
  }
}

/** @param {import('./answers.d.ts').ServerEvent} event */
function noted(event) {
  if ('trace' in event) void changed(event);
  else if ('recording' in event) void refreshRecordings();
}

/** Whether a change is being looked at, and whether another one came meanwhile. */
const looking = { now: false, again: false };

/** @param {{trace: number, generation: string, state: string}} event */
async function changed({ trace, generation, state }) {
  const { layout } = store.get();
  if (state === 'ready') renewLayers(trace, generation).catch(report);
  if (trace !== store.get().trace || !layout || layout.state !== 'ready') return;
  if (layout.generation === generation && layout.state === state) return;
  // One at a time: a page that is slow goes on with the last one.
  looking.again = looking.now;
  if (looking.now) return;
  looking.now = true;
  try {
    do {
      looking.again = false;
      await look(store.get().trace);
    } while (looking.again);
  } catch (error) {
    if (!isAbort(error)) report(error);
  } finally {
    looking.now = false;
  }
}

/** @param {number} trace */
async function look(trace) {
  const { signal } = loading;
  /** @type {Layout} */
  const next = await getJson(`t/${trace}/layout`, {}, { signal });
  if (signal.aborted) return;
  const { layout } = store.get();
  // The file is read again, from the beginning.
  if (next.state !== 'ready') await follow();
  else if (layout && isHeld(next)) store.set({ behind: next.span_ns - layout.span_ns }, { history: 'none' });
  else await show(next, signal);
}

/** The picture of a recording has been still and moves again. */
async function catchUp() {
  const { trace, layout, following } = store.get();
  if (!following || trace < 0 || !isRecording(layout)) return;
  await changed({ trace, generation: '', state: 'ready' });
}

/** The choice of rows of that trace, kept by its path and size. @param {Layout} layout */
function remembered(layout) {
  const { rows } = store.get();
  const text = localStorage.getItem(REMEMBERED + traceName(layout));
  const none = { pinned: [], hidden: [], folded: [], filter: '', grouping: rows.grouping };
  try {
    return { ...none, ...(text ? JSON.parse(text) : {}) };
  } catch {
    return none;
  }
}

function remember() {
  const { layout, rows } = store.get();
  if (layout?.state === 'ready') localStorage.setItem(REMEMBERED + traceName(layout), JSON.stringify(rows));
}

/** @param {Layout} layout */
function traceName({ path, bytes, live }) {
  // A file that grows has no size.
  return live ? path : `${path}:${bytes}`;
}

/** @param {unknown} error */
function report(error) {
  if (!(error instanceof Error)) throw error;
  const hint = error instanceof ApiError && error.hint ? ` ${sentence(error.hint)}` : '';
  store.set({ problem: sentence(error.message) + hint }, { history: 'none' });
}

/** With a capital at the start and a point at the end. @param {string} text */
export function sentence(text) {
  return `${text.charAt(0).toUpperCase()}${text.slice(1)}${/[.!?]$/.test(text) ? '' : '.'}`;
}
