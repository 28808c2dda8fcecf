// Slices as strips: every lane becomes a line of pixels in one image, which is then stretched over the height of the
// lane. The picture costs the pixels it has, however many slices there are.

import { firstEndingAfter } from './slices.js';

/** @typedef {import('./view.js').View} View */
/** @typedef {import('./slices.js').SliceColumns} SliceColumns */
/** @typedef {{pixel: number, edge: number, soft: number, category: number}} SliceInk */
/** @typedef {{line: number, y: number, height: number}} Stretch */

/** Narrower slices share their pixels with others. */
export const OWN_PIXELS = 5;
/** Height of a slice by its category, as a share of the lane: told apart without colours. */
export const CATEGORY_HEIGHTS = [1, 1, 0.76, 0.58];
const BASE_LINE = 3;
const FIRST_LINES = 64;
/** What covers little of a pixel is still seen. */
const FAINTEST = 0.18;

/** The strips of one frame. */
export class Strips {
  #width = 0;
  #image = new ImageData(1, 1);
  #pixels = new Uint32Array(1);
  #canvas = new OffscreenCanvas(1, 1);
  #context = this.#canvas.getContext('2d', { willReadFrequently: true });
  #lines = 0;
  /** @type {Stretch[]} */
  #stretches = [];
  /** @type {Float32Array} */
  #cover = new Float32Array(0);
  /** @type {Uint32Array} */
  #best = new Uint32Array(0);
  /** @type {Float32Array} */
  #bestCover = new Float32Array(0);

  /** Starts a frame. @param {number} width */
  begin(width) {
    if (width !== this.#width) {
      this.#width = width;
      this.#lines = 0;
      this.#cover = new Float32Array(width);
      this.#best = new Uint32Array(width);
      this.#bestCover = new Float32Array(width);
      this.#resize(FIRST_LINES);
    }
    this.#pixels.fill(0, 0, this.#lines * width);
    this.#lines = 0;
    this.#stretches = [];
  }

  /**
   * Adds a lane. `wide` gets every slice that has pixels of its own.
   * @param {{columns: SliceColumns, from: number}[]} blocks
   * @param {View} view
   * @param {number} y @param {number} height
   * @param {(shape: number) => SliceInk} inkOf
   * @param {(x: number, width: number, shape: number, duration: number, category: number) => void} wide
   */
  lane(blocks, view, y, height, inkOf, wide) {
    const { width } = view;
    /** @type {(number | undefined)[]} */
    const lines = [];
    const lineOf = (/** @type {number} */ category) => (lines[category] ??= this.#line(y, height, category));
    let hasNarrow = false;
    const perPixel = view.nanosPerPixel;
    for (const { columns, from } of blocks) {
      const { start, duration, shape } = columns;
      for (let i = firstEndingAfter(columns, view.from); i < start.length && start[i] < view.to; i += 1) {
        if (start[i] < from) continue;
        const [left, right] = [view.x(start[i]), view.x(start[i] + duration[i])];
        const ink = inkOf(shape[i]);
        if (duration[i] < OWN_PIXELS * perPixel) {
          hasNarrow = true;
          this.#addNarrow(left, right, ink.soft);
          continue;
        }
        const x0 = Math.max(0, Math.round(left));
        const x1 = Math.min(width, Math.max(x0 + 1, Math.round(right)));
        const base = lineOf(ink.category) * width;
        this.#pixels.fill(ink.pixel, base + x0, base + x1);
        if (left >= 0 && x0 < width) this.#pixels[base + x0] = ink.edge;
        if (ink.category === 1 && height > 3 * BASE_LINE) {
          const foot = (lines[CATEGORY_HEIGHTS.length] ??= this.#foot(y, height)) * width;
          this.#pixels.fill(ink.edge, foot + x0, foot + x1);
        }
        wide(x0, x1 - x0, shape[i], duration[i], ink.category);
      }
    }
    if (hasNarrow) this.#flushNarrow(this.#line(y, height, 0));
  }

  /** Draws all lanes. @param {CanvasRenderingContext2D} target */
  end(target) {
    if (this.#lines === 0 || !this.#context) return;
    this.#context.putImageData(this.#image, 0, 0, 0, 0, this.#width, this.#lines);
    target.imageSmoothingEnabled = false;
    for (const { line, y, height } of this.#stretches) {
      target.drawImage(this.#canvas, 0, line, this.#width, 1, 0, y, this.#width, height);
    }
  }

  /** @param {number} left @param {number} right @param {number} pixel */
  #addNarrow(left, right, pixel) {
    const first = Math.max(0, Math.floor(left));
    const last = Math.min(this.#width - 1, Math.floor(right));
    for (let x = first; x <= last; x += 1) {
      const part = Math.min(right, x + 1) - Math.max(left, x);
      this.#cover[x] += part;
      if (part >= this.#bestCover[x]) {
        this.#bestCover[x] = part;
        this.#best[x] = pixel;
      }
    }
  }

  /** Writes narrow slices: what covers a pixel in part is paler. @param {number} line */
  #flushNarrow(line) {
    const base = line * this.#width;
    for (let x = 0; x < this.#width; x += 1) {
      const color = this.#best[x];
      if (color === 0) continue;
      const alpha = Math.round(255 * Math.min(1, Math.max(FAINTEST, this.#cover[x])));
      this.#pixels[base + x] = ((color & 0xffffff) | (alpha << 24)) >>> 0;
    }
    this.#cover.fill(0);
    this.#best.fill(0);
    this.#bestCover.fill(0);
  }

  /**
   * A line that is stretched over a lane's height for that category.
   * @param {number} y
   * @param {number} height
   * @param {number} category
   */
  #line(y, height, category) {
    const part = Math.max(1, Math.round(height * CATEGORY_HEIGHTS[category]));
    return this.#stretch(y + height - part, part);
  }

  /** The dark foot of slices of the second category. @param {number} y @param {number} height */
  #foot(y, height) {
    return this.#stretch(y + height - BASE_LINE, BASE_LINE);
  }

  /** @param {number} y @param {number} height */
  #stretch(y, height) {
    const line = this.#lines;
    this.#lines += 1;
    if (this.#lines > this.#image.height) this.#resize(2 * this.#lines);
    this.#stretches.push({ line, y, height });
    return line;
  }

  /** @param {number} lines */
  #resize(lines) {
    const old = this.#pixels;
    this.#image = new ImageData(this.#width, lines);
    this.#pixels = new Uint32Array(this.#image.data.buffer);
    this.#pixels.set(old.subarray(0, Math.min(old.length, this.#lines * this.#width)));
    this.#canvas.width = this.#width;
    this.#canvas.height = lines;
  }
}
