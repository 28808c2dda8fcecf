// Tiles: 1,024 cells of a level for each row, as the server summed them up. What is not there yet is drawn from the
// next coarser level that is, so the picture never has holes once the coarsest tile is there.

import { getBinary } from '../core/api.js';
import { BlockCache, rowRanges } from './blocks.js';

/** @typedef {import('./view.js').View} View */
/** @typedef {import('./blocks.js').Wish} Wish */
/** @typedef {{kind: 'spans', shapes: Uint16Array, shares: Uint8Array[], counts: Uint8Array}} SpanCells */
/** @typedef {{kind: 'counter', min: Float32Array, max: Float32Array, last: Float32Array}} CounterCells */
/** @typedef {SpanCells | CounterCells} Cells */

export const CELLS = 1024;
const TILE_BITS = 10;
const BUDGET = 64 * 1024 * 1024;
const HEAD_BYTES = 32;
/** Rows in one request for the coarsest tile. */
const ROWS_AT_ONCE = 128;

/** The tiles of one trace. */
export class Tiles {
  #trace = 0;
  #generation = '';
  #top = 0;
  #isGrowing = false;
  /** @type {number[]} */
  #allRows = [];
  /** @type {BlockCache<Cells>} */
  #cache;

  /** @param {() => void} onArrival */
  constructor(onArrival) {
    this.#cache = new BlockCache(BUDGET, {
      fetch: (wish, signal) => this.#fetch(wish, signal),
      bytes: (cells) => (cells.kind === 'spans' ? 8 : 12) * CELLS,
      onArrival,
    });
  }

  /** The level of which one tile covers the whole trace. */
  get top() {
    return this.#top;
  }

  get isIdle() {
    return this.#cache.isIdle;
  }

  get bytes() {
    return this.#cache.bytes;
  }

  /** Whether what is shown stays until what is new has come. */
  get isGrowing() {
    return this.#isGrowing;
  }

  /**
   * @param {number} trace @param {string} generation @param {number} span @param {number} rows
   * @param {number | null} from the moment from which on the content differs from what was open before; null: in all
   */
  open(trace, generation, span, rows, from = null) {
    if (trace === this.#trace && generation === this.#generation) return;
    this.#isGrowing = from !== null;
    if (from === null) this.#cache.clear();
    else this.#cache.age(from, TILE_BITS);
    this.#trace = trace;
    this.#generation = generation;
    this.#top = Math.max(0, Math.ceil(Math.log2(span / CELLS)));
    this.#allRows = Array.from({ length: rows }, (_, row) => row);
    this.#cache.keep(this.#top, 0);
  }

  /** Forgets everything: the trace is not shown any more. */
  close() {
    this.#cache.clear();
    this.#generation = '';
  }

  /** The level that has one to two cells a pixel. @param {View} view */
  levelOf(view) {
    return Math.min(this.#top, Math.max(0, Math.floor(Math.log2(view.nanosPerPixel))));
  }

  /** The cells of a row in a tile. @param {number} level @param {number} tile @param {number} row */
  get(level, tile, row) {
    return this.#cache.get(level, tile, row);
  }

  /** Whether the coarsest tile of these rows is here. @param {number[]} rows */
  hasTop(rows) {
    return rows.every((row) => this.#cache.get(this.#top, 0, row) !== undefined);
  }

  /**
   * Asks for what the view needs: visible tiles, the coarsest tile of all rows, then a tile on either side.
   * @param {View} view @param {number[]} rows in order @param {number} span
   */
  want(view, rows, span) {
    const level = this.levelOf(view);
    const size = CELLS * 2 ** level;
    const last = Math.floor((span - 1) / size);
    const [from, to] = [Math.floor(view.from / size), Math.floor(view.to / size)].map((tile) =>
      Math.min(Math.max(tile, 0), last),
    );
    /** @type {Wish[]} */
    const wishes = [{ level: this.#top, index: 0, rows }];
    for (let tile = from; tile <= to; tile += 1) wishes.push({ level, index: tile, rows });
    const middle = (view.from + view.to) / 2 / size - 0.5;
    wishes.sort(
      (a, b) =>
        (a.level === this.#top ? 0 : Math.abs(a.index - middle)) -
        (b.level === this.#top ? 0 : Math.abs(b.index - middle)),
    );
    for (let first = 0; first < this.#allRows.length; first += ROWS_AT_ONCE) {
      wishes.push({ level: this.#top, index: 0, rows: this.#allRows.slice(first, first + ROWS_AT_ONCE) });
    }
    if (from > 0) wishes.push({ level, index: from - 1, rows });
    if (to < last) wishes.push({ level, index: to + 1, rows });
    for (const wish of wishes) this.#cache.touch(wish.level, wish.index);
    this.#cache.want(wishes);
  }

  pause() {
    this.#cache.pause();
  }

  /** @param {Wish} wish @param {AbortSignal} signal */
  async #fetch({ level, index, rows }, signal) {
    const path = `t/${this.#trace}/${this.#generation}/tiles`;
    const query = { level, first: index, count: 1, rows: rowRanges(rows) };
    return decodeTiles(await getBinary(path, query, { signal }));
  }
}

/** Decodes an answer with one tile for each row. @param {ArrayBuffer} buffer @returns {Map<number, Cells>} */
export function decodeTiles(buffer) {
  const view = new DataView(buffer);
  if (buffer.byteLength < HEAD_BYTES || view.getUint32(0, false) !== 0x5453544c || view.getUint16(4, true) !== 1) {
    throw new Error('the server sent tiles that this page does not know; reload the page');
  }
  const n = view.getUint32(12, true) * view.getUint32(20, true);
  const rows = view.getUint32(16, true);
  /** @type {Map<number, Cells>} */
  const result = new Map();
  let at = HEAD_BYTES;
  for (let i = 0; i < rows; i += 1) {
    const row = view.getUint32(at, true);
    const isCounter = view.getUint8(at + 4) === 1;
    at += 8;
    // Copies, so that a row can be forgotten without the others.
    const plane = (/** @type {number} */ offset, /** @type {number} */ bytes) =>
      buffer.slice(at + offset, at + offset + bytes);
    if (isCounter) {
      const [min, max, last] = [0, 1, 2].map((part) => new Float32Array(plane(part * 4 * n, 4 * n)));
      result.set(row, { kind: 'counter', min, max, last });
      at += 12 * n;
    } else {
      const shares = [2, 3, 4, 5].map((part) => new Uint8Array(plane(part * n, n)));
      result.set(row, {
        kind: 'spans',
        shapes: new Uint16Array(plane(0, 2 * n)),
        shares,
        counts: new Uint8Array(plane(6 * n, n)),
      });
      at += 8 * n;
    }
  }
  return result;
}
