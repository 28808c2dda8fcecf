// Paints one row of cells into pixels: heights stacked by category, or the area under a counter. Plain integer writes
// into one image a row: far faster than a rectangle for each column, and the same on every machine.

import { CATEGORIES } from './cells.js';

/** @typedef {import('./cells.js').CellStrip} CellStrip */

/**
 * The opaque colours of a row, as 32-bit pixels.
 * @typedef {object} Inks
 * @property {number} paper
 * @property {number} grid for columns that have a grid line
 * @property {number[]} categories
 * @property {number[]} patterns second colour of each category's pattern
 */

/** Images by their height, for one width. */
export class Painter {
  /** @type {Map<number, {image: ImageData, pixels: Int32Array}>} */
  #images = new Map();
  #width = 0;
  /** Heights of the categories of each column, in pixels from the bottom. */
  #tops = Array.from({ length: CATEGORIES }, () => new Uint16Array(0));

  /**
   * Columns with heights stacked by category. A column with anything in it has at least one pixel.
   * @param {CellStrip} strip @param {number} width @param {number} height @param {Inks} inks @param {Uint8Array} grid
   */
  heights(strip, width, height, inks, grid) {
    const { image, pixels } = this.#image(width, height);
    const [t0, t1, t2, t3] = this.#tops;
    const [s0, s1, s2, s3] = strip.tops;
    for (let x = 0; x < width; x += 1) {
      const all = s3[x];
      if (all <= 0) {
        t0[x] = t1[x] = t2[x] = t3[x] = 0;
        continue;
      }
      const top = Math.max(1, Math.min(height, Math.round(all * height)));
      t3[x] = top;
      t2[x] = s2[x] >= all ? top : Math.min(top, Math.round(s2[x] * height));
      t1[x] = s1[x] >= all ? top : Math.min(t2[x], Math.round(s1[x] * height));
      t0[x] = s0[x] >= all ? top : Math.min(t1[x], Math.round(s0[x] * height));
    }
    this.#clear(pixels, width, height, inks, grid);
    // Locals as 32-bit integers: a loop over them needs no conversions.
    const [c0, c1, c2, c3] = inks.categories.map((ink) => ink | 0);
    const [, p1, p2, p3] = inks.patterns.map((ink) => ink | 0);
    for (let x = 0; x < width; x += 1) {
      let y = height - 1;
      let at = y * width + x;
      for (const end = height - t0[x]; y >= end; y -= 1, at -= width) pixels[at] = c0;
      for (const end = height - t1[x]; y >= end; y -= 1, at -= width) pixels[at] = ((x + y) & 7) < 2 ? p1 : c1;
      for (const end = height - t2[x]; y >= end; y -= 1, at -= width) pixels[at] = (y & 3) === 0 ? p2 : c2;
      for (const end = height - t3[x]; y >= end; y -= 1, at -= width)
        pixels[at] = (x & 3) === 0 && (y & 3) === 0 ? p3 : c3;
    }
    return image;
  }

  /**
   * The area under a counter, with a line at its values.
   * @param {CellStrip} strip @param {number} width @param {number} height @param {Inks} inks @param {Uint8Array} grid
   * @param {{min: number, max: number, thickness: number}} scale
   */
  counter(strip, width, height, inks, grid, { min, max, thickness }) {
    const { image, pixels } = this.#image(width, height);
    this.#clear(pixels, width, height, inks, grid);
    const [line, area] = inks.categories.map((ink) => ink | 0);
    const factor = max > min ? (height - thickness) / (max - min) : 0;
    for (let x = 0; x < width; x += 1) {
      if (Number.isNaN(strip.max[x])) continue;
      const top = Math.max(0, Math.round(height - thickness - (strip.max[x] - min) * factor));
      const bottom = Math.min(height, Math.max(Math.round(height - (strip.min[x] - min) * factor), top + thickness));
      let at = top * width + x;
      for (let y = top; y < bottom; y += 1, at += width) pixels[at] = line;
      for (let y = bottom; y < height; y += 1, at += width) pixels[at] = area;
    }
    return image;
  }

  /**
   * @param {Int32Array} pixels
   * @param {number} width
   * @param {number} height
   * @param {Inks} inks
   * @param {Uint8Array} grid
   */
  #clear(pixels, width, height, inks, grid) {
    pixels.fill(inks.paper | 0);
    const line = inks.grid | 0;
    for (let x = 0; x < width; x += 1) {
      if (grid[x] === 0) continue;
      for (let y = 0; y < height; y += 1) pixels[y * width + x] = line;
    }
  }

  /** @param {number} width @param {number} height */
  #image(width, height) {
    if (width !== this.#width) {
      this.#images.clear();
      this.#width = width;
      this.#tops = this.#tops.map(() => new Uint16Array(width));
    }
    let found = this.#images.get(height);
    if (!found) {
      const image = new ImageData(width, height);
      found = { image, pixels: new Int32Array(image.data.buffer) };
      this.#images.set(height, found);
    }
    return found;
  }
}

/** A colour as an opaque pixel. @param {import('../core/colors.js').Rgb} color */
export function pixelOf([red, green, blue]) {
  return (0xff000000 | (blue << 16) | (green << 8) | red) >>> 0;
}

/**
 * A colour between two, `share` of the way.
 * @param {import('../core/colors.js').Rgb} a
 * @param {import('../core/colors.js').Rgb} b
 * @param {number} share
 */
export function mix(a, b, share) {
  return /** @type {import('../core/colors.js').Rgb} */ (
    /** @type {unknown} */ (a.map((part, i) => Math.round(part + (b[i] - part) * share)))
  );
}
