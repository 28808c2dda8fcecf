// Slices of the visible rows, where they are few enough to be drawn one by one. They arrive in blocks of a power of
// two of time, at least as long as the view.

import { getBinary } from '../core/api.js';
import { BlockCache, rowRanges } from './blocks.js';

/** @typedef {import('./view.js').View} View */
/** @typedef {import('./blocks.js').Wish} Wish */
/** @typedef {import('../core/answers.d.ts').Slice} Slice */
/**
 * Slices of a row in order; the first may begin before the block.
 * @typedef {{start: Float64Array, duration: Float64Array, shape: Uint32Array, hasMore: boolean}} SliceColumns
 */

const BUDGET = 48 * 1024 * 1024;
const LIMIT = 8000;
const HEAD_BYTES = 16;
/** How many levels above the view's a block may serve it. */
const COARSER = 3;

/** The slices of one trace. */
export class Slices {
  #trace = 0;
  #generation = '';
  /** @type {BlockCache<SliceColumns>} */
  #cache;

  /** @param {() => void} onArrival */
  constructor(onArrival) {
    this.#cache = new BlockCache(BUDGET, {
      fetch: (wish, signal) => this.#fetch(wish, signal),
      bytes: ({ start }) => start.length * 20 + 100,
      onArrival,
    });
  }

  get isIdle() {
    return this.#cache.isIdle;
  }

  /** @param {number} trace @param {string} generation @param {number | null} from as that of tiles */
  open(trace, generation, from = null) {
    if (trace === this.#trace && generation === this.#generation) return;
    if (from === null) this.#cache.clear();
    else this.#cache.age(from, 0);
    this.#trace = trace;
    this.#generation = generation;
  }

  /** Forgets everything: the trace is not shown any more. */
  close() {
    this.#cache.clear();
    this.#generation = '';
  }

  /** The level of blocks for a view. @param {View} view */
  levelOf(view) {
    return Math.max(6, Math.ceil(Math.log2(view.to - view.from)));
  }

  /**
   * The slices of a row that a view needs, block by block, or null while some are missing or too many.
   * @param {View} view @param {number} row
   * @returns {{columns: SliceColumns, from: number}[] | null} slices that start before `from` are in the block before
   */
  get(view, row) {
    const finest = this.levelOf(view);
    for (let level = finest; level <= finest + COARSER; level += 1) {
      const size = 2 ** level;
      const first = Math.max(0, Math.floor(view.from / size));
      const last = Math.max(first, Math.ceil(view.to / size) - 1);
      const blocks = [];
      for (let index = first; index <= last; index += 1) {
        const columns = this.#cache.get(level, index, row);
        if (!columns || columns.hasMore) break;
        blocks.push({ columns, from: index === first ? -Infinity : index * size });
      }
      if (blocks.length !== last - first + 1) continue;
      for (let index = first; index <= last; index += 1) this.#cache.touch(level, index);
      return blocks;
    }
    return null;
  }

  /**
   * Asks for the blocks of these rows, the ones in view first, then those of the next zoom step out.
   * @param {View} view
   * @param {number[]} rows
   */
  want(view, rows) {
    if (rows.length === 0) {
      this.#cache.pause();
      return;
    }
    const level = this.levelOf(view);
    /** @type {Wish[]} */
    const wishes = [];
    for (const wanted of [level, level + 1]) {
      const size = 2 ** wanted;
      const last = Math.ceil(view.to / size) - 1;
      for (let index = Math.max(0, Math.floor(view.from / size)); index <= last; index += 1) {
        wishes.push({ level: wanted, index, rows });
      }
    }
    this.#cache.want(wishes);
  }

  /**
   * The slice of a row at a time, if the slices are here.
   * @param {View} view
   * @param {number} row
   * @param {number} time
   * @param {number} slack ns on either side, for short slices
   * @returns {Slice | null}
   */
  at(view, row, time, slack) {
    /** @type {Slice | null} */
    let best = null;
    let bestDistance = slack;
    for (const { columns } of this.get(view, row) ?? []) {
      const { start, duration, shape } = columns;
      for (let i = firstEndingAfter(columns, time - slack); i < start.length && start[i] <= time + slack; i += 1) {
        const distance = Math.max(start[i] - time, time - start[i] - duration[i], 0);
        if (distance > bestDistance || (best && distance === bestDistance)) continue;
        best = { row, start: start[i], duration: duration[i], shape: shape[i] };
        bestDistance = distance;
      }
    }
    return best;
  }

  pause() {
    this.#cache.pause();
  }

  /** @param {Wish} wish @param {AbortSignal} signal */
  async #fetch({ level, index, rows }, signal) {
    const size = 2 ** level;
    const query = { rows: rowRanges(rows), from: index * size, to: (index + 1) * size, limit: LIMIT };
    return decodeSlices(await getBinary(`t/${this.#trace}/${this.#generation}/slices`, query, { signal }));
  }
}

/**
 * Slices of rows in a time range, straight from the server.
 * @param {number} trace @param {string} generation @param {number[]} rows @param {number} from @param {number} to
 * @param {number} limit for each row
 */
export async function fetchSlices(trace, generation, rows, from, to, limit) {
  const query = { rows: rowRanges(rows), from: Math.floor(from), to: Math.ceil(to), limit };
  return decodeSlices(await getBinary(`t/${trace}/${generation}/slices`, query));
}

/** Index of the first slice that ends after `time`. @param {SliceColumns} columns @param {number} time */
export function firstEndingAfter({ start, duration }, time) {
  let [low, high] = [0, start.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (start[middle] + duration[middle] > time) high = middle;
    else low = middle + 1;
  }
  return low;
}

/** @param {ArrayBuffer} buffer @returns {Map<number, SliceColumns>} */
export function decodeSlices(buffer) {
  const view = new DataView(buffer);
  if (buffer.byteLength < HEAD_BYTES || view.getUint32(0, false) !== 0x5453534c || view.getUint16(4, true) !== 1) {
    throw new Error('the server sent slices that this page does not know; reload the page');
  }
  /** @type {Map<number, SliceColumns>} */
  const result = new Map();
  let at = HEAD_BYTES;
  for (let i = view.getUint32(8, true); i > 0; i -= 1) {
    const n = view.getUint32(at + 4, true);
    result.set(view.getUint32(at, true), {
      hasMore: (view.getUint32(at + 8, true) & 1) === 1,
      start: new Float64Array(buffer.slice(at + 16, at + 16 + 8 * n)),
      duration: new Float64Array(buffer.slice(at + 16 + 8 * n, at + 16 + 16 * n)),
      shape: new Uint32Array(buffer.slice(at + 16 + 16 * n, at + 16 + 20 * n)),
    });
    at += 16 + 20 * n + ((4 * n) % 8);
  }
  return result;
}
