// The runs of a kernel in both traces of a comparison: both are shown on the timeline, in the same step.

import { getJson } from '../core/api.js';
import { stepAt } from '../core/align.js';
import { store } from '../core/store.js';
import { rowsOf } from './locate.js';
import { mark } from './marked.js';

/** @typedef {import('../core/layer.js').Layer} Layer */
/** @typedef {import('../core/answers.d.ts').Slice} Slice */
/** @typedef {import('./diff.d.ts').KernelDiff} KernelDiff */
/** @typedef {import('../timeline/timeline.js').Timeline} Timeline */

/** Rows that are asked at once. */
const ROWS_AT_ONCE = 64;
/** The kernel that was chosen last. */
let latest = 0;

/**
 * Selects a run of a kernel in the first trace, outlines its partner in the second, and moves to both. Runs of the step
 * in view are preferred.
 * @param {KernelDiff} kernel
 * @param {import('./diff.d.ts').Diff['by']} by
 */
export async function showPair({ name, renamed_to, fate }, by) {
  const [a, b] = ['a', 'b'].map((key) => store.layers().find((layer) => layer.key === key));
  if (!a || !b) return;
  latest += 1;
  const turn = latest;
  const shapes = {
    a: fate === 'new' ? -1 : shapeOf(a, name, by),
    b: fate === 'gone' ? -1 : shapeOf(b, renamed_to ?? name, by),
  };
  timeline()?.setHighlight({ shape: shapes.a, also: { b: shapes.b } });
  const step = stepInView(a, b);
  const [first, second] = await Promise.all([runOf(a, shapes.a, step), runOf(b, shapes.b, step)]);
  // Another kernel may have been chosen meanwhile, or other traces.
  const layers = store.layers();
  const isThere = [a, b].every(({ key, trace }) => layers.some((one) => one.key === key && one.trace === trace));
  if (turn !== latest || !isThere) return;
  const chosen = first ?? second;
  if (!chosen) {
    store.announce(`The timeline has no single slice for ${name}.`);
    return;
  }
  moveTo(chosen, [first, second].filter((slice) => slice !== null), step);
  const partner = first && second;
  mark(partner ? [{ row: partner.row, from: partner.start, to: partner.start + partner.duration, kind: 'pair' }] : []);
  const where = [first && 'A', second && 'B'].filter(Boolean).join(' and ');
  store.announce(`${name} is shown in ${where}.`);
}

/** Draws all kernels alike again. */
export function clearPair() {
  timeline()?.setHighlight(null);
  mark([]);
}

/** @param {Layer} layer @param {string} name @param {import('./diff.d.ts').Diff['by']} by */
function shapeOf({ shapes }, name, by) {
  if (by === 'name') return shapes.find(name);
  for (let shape = 0; shape < shapes.length; shape += 1) if (shapes.shortName(shape) === name) return shape;
  return -1;
}

/** The step in the middle of the window, that both traces have; -1 without steps. @param {Layer} a @param {Layer} b */
function stepInView(a, b) {
  const { window } = store.get();
  const common = Math.min(a.steps.length, b.steps.length);
  return Math.min(stepAt(a.steps, (window.from + window.to) / 2), common - 1);
}

/**
 * The first run of a shape from the beginning of a step on, else the first of the trace.
 * @param {Layer} layer @param {number} shape @param {number} step
 * @returns {Promise<Slice | null>}
 */
async function runOf(layer, shape, step) {
  if (shape < 0) return null;
  const from = layer.steps[step]?.from ?? layer.own(store.get().window.from);
  return (await firstRun(layer, shape, from)) ?? (await firstRun(layer, shape, 0));
}

/** @param {Layer} layer @param {number} shape @param {number} time @returns {Promise<Slice | null>} */
async function firstRun(layer, shape, time) {
  const rows = rowsOf(['stream'], layer);
  /** @type {Slice[]} */
  const found = [];
  for (let first = 0; first < rows.length; first += ROWS_AT_ONCE) {
    const answers = rows.slice(first, first + ROWS_AT_ONCE).map((row) => {
      const before = Math.floor(time) - 1;
      return getJson(`t/${layer.trace}/neighbor`, { row: layer.local(row), time: before, direction: 'next', shape });
    });
    const slices = /** @type {(Slice | null)[]} */ (await Promise.all(answers)).filter((slice) => slice !== null);
    found.push(...slices.map((slice) => layer.placed(slice)));
  }
  return found.sort((a, b) => a.start - b.start || a.row - b.row)[0] ?? null;
}

/**
 * Selects a run, and moves the window to both, aligned by their step.
 * @param {Slice} selection @param {Slice[]} slices @param {number} step
 */
function moveTo(selection, slices, step) {
  const { compare, reveal } = store.get();
  const chosen = compare?.align === 'steps' && step >= 0 ? { ...compare, step } : compare;
  store.set({ compare: chosen }, { history: 'none' });
  const spans = slices.map((slice) => store.shown(slice));
  const from = Math.min(...spans.map((span) => span.from));
  const to = Math.max(...spans.map((span) => span.to));
  const room = Math.max(1, to - from);
  const window = store.clamp({ from: from - room, to: to + room });
  store.set(
    {
      window,
      compare: chosen && { ...chosen },
      selection,
      area: null,
      reveal: { row: selection.row, serial: (reveal?.serial ?? 0) + 1 },
    },
    { history: 'push' },
  );
}

/** @returns {Timeline | null} */
function timeline() {
  return document.querySelector('ts-timeline');
}
