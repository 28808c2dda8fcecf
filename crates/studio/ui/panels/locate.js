// Where rows of tables are on the timeline. Answers name a row and its time; the timeline knows slices by track and
// start.

import { getJson } from '../core/api.js';
import { store } from '../core/store.js';
import { fetchSlices } from '../timeline/slices.js';
import { TRACKS_OF_TABLE } from './words.js';

/** @typedef {import('../core/answers.d.ts').Slice} Slice */
/** @typedef {import('../core/answers.d.ts').TrackKind} TrackKind */
/** @typedef {import('../core/layer.js').Layer} Layer */

/** Rows that are asked for a neighbour at once. */
const ROWS_AT_ONCE = 64;
/** Rows of one request for slices. */
const ROWS_AN_ANSWER = 512;
/** Slices of one row at one moment: one, and those without a length. */
const AT_A_MOMENT = 16;

/** The rows of tracks of some kinds. @param {TrackKind[]} kinds @param {Layer} [layer] */
export function rowsOf(kinds, layer = store.layers()[0]) {
  const tracks = layer.layout?.tracks ?? [];
  return tracks
    .filter((track) => kinds.includes(track.kind))
    .flatMap((track) => Array.from({ length: track.rows }, (_, i) => layer.row(track.first_row + i)));
}

/** The track of a row. @param {number} row */
export function trackOf(row) {
  const layer = store.layerOf(row);
  const local = layer.local(row);
  return (
    layer.layout?.tracks.find((track) => local >= track.first_row && local < track.first_row + track.rows) ?? null
  );
}

/**
 * The slice of a table that starts at this time. Null if the timeline has none.
 * @param {string} table
 * @param {number} start
 * @param {string} name
 * @param {Layer} [layer]
 * @returns {Promise<Slice|null>}
 */
export async function sliceAt(table, start, name, layer = store.layers()[0]) {
  const { trace, layout, shapes } = layer;
  const rows = rowsOf(TRACKS_OF_TABLE[table] ?? ['stream'], layer).map((row) => layer.local(row));
  /** @type {Slice[]} */
  const exact = [];
  for (let first = 0; first < rows.length; first += ROWS_AN_ANSWER) {
    const some = rows.slice(first, first + ROWS_AN_ANSWER);
    const found = await fetchSlices(trace, layout?.generation ?? '', some, start, start + 1, AT_A_MOMENT);
    for (const [row, slices] of found) {
      slices.start.forEach((begin, i) => {
        const slice = { row: layer.row(row), start, duration: slices.duration[i], shape: slices.shape[i] };
        if (begin === start) exact.push(slice);
      });
    }
  }
  const named = exact.find(({ shape }) => shapes.name(shape) === name || shapes.shortName(shape) === name);
  return named ?? (exact.length === 1 ? exact[0] : null);
}

/**
 * Zooms to a moment of a table's row, and selects it if the timeline has it.
 * @param {{table: string, start: number, end: number, name: string}} place
 */
export async function goTo({ table, start, end, name }) {
  store.zoomTo({ from: start, to: Math.max(end, start + 1) }, { margin: 1 });
  const slice = await sliceAt(table, start, name);
  if (slice) store.select(slice, { reveal: true, history: 'replace' });
  else store.announce(`Moved to ${name}. The timeline has no single slice for it.`);
}

/**
 * The next or previous run of a shape on any row of its kind of track.
 * @param {number} shape
 * @param {number} row
 * @param {number} time
 * @param {'next'|'previous'} direction
 */
export async function otherRun(shape, row, time, direction) {
  const kind = trackOf(row)?.kind ?? 'stream';
  const layer = store.layerOf(row);
  const found = await neighbors(layer, rowsOf([kind], layer), time, direction, shape);
  const sign = direction === 'next' ? 1 : -1;
  found.sort((a, b) => sign * (a.start - b.start) || sign * (a.row - b.row));
  return found[0] ?? null;
}

/** The shape of a name, in the kinds of tracks that hold it. @param {string} name */
export function shapeOf(name) {
  const { shapes } = store.get();
  for (let shape = 0; shape < shapes.length; shape += 1) if (shapes.name(shape) === name) return shape;
  return null;
}

/**
 * The neighbour of a moment in each row.
 * @param {Layer} layer
 * @param {number[]} rows
 * @param {number} time
 * @param {'next'|'previous'} direction
 * @param {number} shape
 * @returns {Promise<Slice[]>}
 */
async function neighbors(layer, rows, time, direction, shape) {
  const { trace } = layer;
  const found = [];
  for (let first = 0; first < rows.length; first += ROWS_AT_ONCE) {
    const some = rows.slice(first, first + ROWS_AT_ONCE);
    const ask = (/** @type {number} */ row) => ({ row: layer.local(row), time, direction, shape });
    const answers = some.map((row) => getJson(`t/${trace}/neighbor`, ask(row)));
    const slices = /** @type {(Slice|null)[]} */ (await Promise.all(answers)).filter((slice) => slice !== null);
    found.push(...slices.map((slice) => layer.placed(slice)));
  }
  return found;
}
