// Cells of a row, gathered over its tiles for one view and summed up for each pixel: how much of the pixel's time each
// category takes, or the least and the greatest value of a counter.

import { CELLS } from './tiles.js';

/** @typedef {import('./view.js').View} View */
/** @typedef {import('./tiles.js').Tiles} Tiles */
/** @typedef {import('./tiles.js').Cells} Cells */

export const CATEGORIES = 4;
/** How many slices a cell's count stands for: the middle of a power of two. */
const COUNTS = Float64Array.from({ length: 256 }, (_, code) => (code < 2 ? code : 1.5 * 2 ** (code - 1)));

/**
 * The runs of pixels in which most of the time goes to one shape.
 * @param {Tiles} tiles @param {View} view @param {number} row @param {number} shape
 * @returns {{from: number, to: number}[]} from the first pixel to the one after the last
 */
export function runsOf(tiles, view, row, shape) {
  const level = tiles.levelOf(view);
  const size = 2 ** level;
  /** @type {{from: number, to: number}[]} */
  const runs = [];
  const last = Math.floor(view.to / size);
  for (let cell = Math.max(0, Math.floor(view.from / size)); cell <= last; cell += 1) {
    const cells = tiles.get(level, Math.floor(cell / CELLS), row);
    if (cells?.kind !== 'spans' || cells.shapes[cell % CELLS] !== shape) continue;
    const from = Math.floor(view.x(cell * size));
    const to = Math.max(from + 1, Math.ceil(view.x((cell + 1) * size)));
    const before = runs.at(-1);
    if (before && from <= before.to) before.to = to;
    else runs.push({ from, to });
  }
  return runs;
}

/** Buffers that are used again for every row. */
export class CellStrip {
  /** Shares of 255 of each cell. @type {Uint8Array[]} */
  #shares = [];
  /** Values of each cell. @type {Float32Array[]} */
  #values = [];
  #cells = 0;
  #width = 0;
  /** Of the first cell, in cells; and cells in a pixel. */
  #start = 0;
  #step = 1;

  #measured = '';
  /** What a whole cell adds to a pixel. */
  #whole = 0;
  #firsts = new Int32Array(0);
  #lasts = new Int32Array(0);
  #heads = new Float64Array(0);
  #tails = new Float64Array(0);

  /** Summed shares of each pixel, 0 to 1, category on category. @type {Float32Array[]} */
  tops = [];
  /** @type {Float32Array} */
  min = new Float32Array(0);
  /** @type {Float32Array} */
  max = new Float32Array(0);
  /** Slices that start in the view, about. */
  count = 0;
  /** Whether there was no tile for a part of the view. */
  hasHole = false;
  isCounter = false;

  /** Gathers the cells of a row. @param {Tiles} tiles @param {View} view @param {number} row @param {number} span */
  gather(tiles, view, row, span) {
    const level = tiles.levelOf(view);
    const size = 2 ** level;
    const first = Math.max(0, Math.floor(view.from / size));
    const last = Math.min(Math.floor((span - 1) / size), Math.floor(view.to / size));
    this.#reserve(Math.max(0, last - first + 1), view.width);
    this.#start = view.from / size - first;
    this.#step = view.nanosPerPixel / size;
    this.count = 0;
    this.hasHole = false;
    this.isCounter = false;
    for (let cell = first; cell <= last;) {
      const tile = Math.floor(cell / CELLS);
      const end = Math.min(last + 1, (tile + 1) * CELLS);
      this.#copy(tiles, level, row, cell, end, cell - first);
      cell = end;
    }
  }

  /** Sums up the shares of each pixel into `tops`. */
  sumShares() {
    this.#measure();
    for (let k = 0; k < CATEGORIES; k += 1) {
      const below = k > 0 ? this.tops[k - 1] : null;
      this.#sumPlane(this.#shares[k], this.tops[k], below);
    }
  }

  /** Finds the least and the greatest value of each pixel; pixels without a value have NaN. */
  sumValues() {
    const [low, high, last] = this.#values;
    let held = NaN;
    for (let x = 0; x < this.#width; x += 1) {
      const from = Math.max(0, Math.floor(this.#start + x * this.#step));
      const to = Math.min(this.#cells - 1, Math.floor(this.#start + (x + 1) * this.#step - 1e-9));
      let [min, max] = [Infinity, -Infinity];
      for (let cell = from; cell <= to; cell += 1) {
        if (Number.isNaN(last[cell])) continue;
        min = Math.min(min, low[cell]);
        max = Math.max(max, high[cell]);
        held = last[cell];
      }
      const isEmpty = min > max;
      this.min[x] = isEmpty ? held : min;
      this.max[x] = isEmpty ? held : max;
    }
  }

  /** Shares of a pixel by category. @param {number} x */
  sharesAt(x) {
    const tops = this.tops.map((plane) => plane[x]);
    return tops.map((top, k) => top - (k > 0 ? tops[k - 1] : 0));
  }

  /** @param {Uint8Array} shares @param {Float32Array} tops @param {Float32Array | null} below */
  #sumPlane(shares, tops, below) {
    const [firsts, lasts, heads, tails] = [this.#firsts, this.#lasts, this.#heads, this.#tails];
    for (let x = 0; x < this.#width; x += 1) {
      const [first, last] = [firsts[x], lasts[x]];
      let sum = shares[first] * heads[x] + shares[last] * tails[x];
      for (let cell = first + 1; cell < last; cell += 1) sum += shares[cell] * this.#whole;
      tops[x] = below ? below[x] + sum : sum;
    }
  }

  /**
   * Which cells each pixel has a part of, and how much of the pixel the first and the last of them take; the same for
   * all rows.
   */
  #measure() {
    const [start, step, cells] = [this.#start, this.#step, this.#cells];
    const key = `${start} ${step} ${cells} ${this.#width}`;
    if (key === this.#measured) return;
    this.#measured = key;
    this.#whole = 1 / (255 * step);
    for (let x = 0; x < this.#width; x += 1) {
      const from = Math.max(0, start + x * step);
      const to = Math.min(start + (x + 1) * step, cells);
      const first = Math.min(Math.floor(from), Math.max(0, cells - 1));
      const last = Math.min(Math.max(Math.floor(to), first), Math.max(0, cells - 1));
      this.#firsts[x] = first;
      this.#lasts[x] = last;
      const isOne = first === last;
      this.#heads[x] = Math.max(0, (isOne ? to : first + 1) - from) * this.#whole;
      this.#tails[x] = isOne ? 0 : (to - last) * this.#whole;
    }
  }

  /**
   * Copies cells of one tile, or those of the nearest coarser tile that is there.
   * @param {Tiles} tiles
   * @param {number} level
   * @param {number} row
   * @param {number} from
   * @param {number} to
   * @param {number} at
   */
  #copy(tiles, level, row, from, to, at) {
    for (let up = 0; level + up <= tiles.top; up += 1) {
      const factor = 2 ** up;
      const tile = Math.floor(from / (CELLS * factor));
      const cells = tiles.get(level + up, tile, row);
      if (!cells) continue;
      const offset = tile * CELLS;
      this.isCounter = cells.kind === 'counter';
      if (up === 0) this.#copySame(cells, from - offset, to - offset, at);
      else this.#copyCoarser(cells, from, to, at, factor, offset);
      return;
    }
    this.hasHole = true;
    const planes = [...this.#shares, ...this.#values];
    for (const plane of planes) plane.fill(0, at, at + to - from);
    this.#values[2].fill(NaN, at, at + to - from);
  }

  /** @param {Cells} cells @param {number} from @param {number} to @param {number} at */
  #copySame(cells, from, to, at) {
    if (cells.kind === 'counter') {
      [cells.min, cells.max, cells.last].forEach((plane, k) => this.#values[k].set(plane.subarray(from, to), at));
      return;
    }
    cells.shares.forEach((plane, k) => this.#shares[k].set(plane.subarray(from, to), at));
    for (let cell = from; cell < to; cell += 1) this.count += COUNTS[cells.counts[cell]];
  }

  /**
   * @param {Cells} cells @param {number} from @param {number} to @param {number} at
   * @param {number} factor @param {number} offset
   */
  #copyCoarser(cells, from, to, at, factor, offset) {
    for (let cell = from; cell < to;) {
      const source = Math.floor(cell / factor);
      const end = Math.min(to, (source + 1) * factor);
      const [a, b, index] = [at + cell - from, at + end - from, source - offset];
      if (cells.kind === 'counter') {
        [cells.min, cells.max, cells.last].forEach((plane, k) => this.#values[k].fill(plane[index], a, b));
      } else {
        cells.shares.forEach((plane, k) => this.#shares[k].fill(plane[index], a, b));
        this.count += (COUNTS[cells.counts[index]] * (end - cell)) / factor;
      }
      cell = end;
    }
  }

  /** @param {number} cells @param {number} width */
  #reserve(cells, width) {
    this.#cells = cells;
    if ((this.#shares[0]?.length ?? -1) < cells) {
      this.#shares = Array.from({ length: CATEGORIES }, () => new Uint8Array(cells + 64));
      this.#values = Array.from({ length: 3 }, () => new Float32Array(cells + 64));
    }
    if (width === this.#width) return;
    this.#width = width;
    this.#measured = '';
    [this.#firsts, this.#lasts] = [new Int32Array(width), new Int32Array(width)];
    [this.#heads, this.#tails] = [new Float64Array(width), new Float64Array(width)];
    this.tops = Array.from({ length: CATEGORIES }, () => new Float32Array(width));
    this.min = new Float32Array(width);
    this.max = new Float32Array(width);
  }
}
