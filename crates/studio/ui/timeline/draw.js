// Draws the rows of one frame: cells where slices are too many to be told apart, slices with names where they are not.

import { duration } from '../core/units.js';
import { CellStrip, runsOf } from './cells.js';
import { InkTable } from './inks.js';
import { Labels } from './labels.js';
import { Painter } from './paint.js';
import { PADDING } from './rows.js';
import { firstEndingAfter } from './slices.js';
import { CATEGORY_HEIGHTS, Strips } from './strips.js';
import { ticks, tickStep } from './ticks.js';

/** @typedef {import('./rows.js').Item} Item */
/** @typedef {import('../core/answers.d.ts').Track} Track */
/** @typedef {import('./slices.js').SliceColumns} SliceColumns */
/** @typedef {{x: number, width: number, y: number, height: number, text: string, ink: string}} Label */
/** @typedef {{columns: SliceColumns, from: number}[]} Blocks */
/**
 * @typedef {object} Scene
 * @property {import('./view.js').View} view
 * @property {import('./rows.js').RowList} rows
 * @property {number} scroll CSS pixels
 * @property {number} ratio device pixels for a CSS pixel
 * @property {import('./tiles.js').Tiles} tiles
 * @property {import('./slices.js').Slices} slices
 * @property {import('../core/shapes.js').ShapeTable} shapes
 * @property {number} span
 * @property {import('../core/store.js').Span[]} steps
 * @property {number | null} highlight
 */
/** @typedef {{rows: number[], sliceRows: number[], holes: number}} Drawn what the frame showed and what it lacks */

const LABEL_WIDTH = 30;
const LABEL_HEIGHT = 11;
/** Of the line under the places of a highlighted shape. */
const RUN_HEIGHT = 6;
const MAX_LABELS = 2000;
const LABEL_ROOM = 5;
/** A row shows slices when they have this many pixels on average, and asks for them a little before. */
const PIXELS_PER_SLICE = 5;
const ASK_EARLY = 2.5;
export const TICK_PIXELS = 110;
const STEP_PIXELS = 40;

/** The canvas of the rows. */
export class Picture {
  #canvas;
  #context;
  #strip = new CellStrip();
  #painter = new Painter();
  #strips = new Strips();
  #labels;
  /** @type {InkTable | null} */
  #inks = null;
  #grid = new Uint8Array(0);
  /** @type {Label[]} */
  #texts = [];
  /** Rows that show slices now. @type {Set<number>} */
  sliceRows = new Set();

  /** @param {HTMLCanvasElement} canvas */
  constructor(canvas) {
    this.#canvas = canvas;
    const context = canvas.getContext('2d', { alpha: false, willReadFrequently: true });
    if (!context) throw new Error('this browser has no canvas');
    this.#context = context;
    this.#labels = new Labels(context);
  }

  /** @param {Scene} scene @returns {Drawn} */
  draw(scene) {
    const { view, rows, shapes, ratio, highlight } = scene;
    if (!this.#inks?.isFor(shapes, highlight)) this.#inks = new InkTable(shapes, highlight);
    this.sliceRows = new Set();
    /** @type {Drawn} */
    const drawn = { rows: [], sliceRows: [], holes: 0 };
    const { width, height } = this.#canvas;
    this.#context.fillStyle = this.#inks.css('paper');
    this.#context.fillRect(0, 0, width, height);
    this.#drawGrid(view, ratio);
    const pinned = rows.pinnedHeight;
    this.#drawItems(scene, rows.items, pinned - scene.scroll, pinned, drawn);
    if (pinned > 0) {
      this.#context.fillStyle = this.#inks.css('paper');
      this.#context.fillRect(0, 0, width, Math.round(pinned * ratio));
      this.#drawItems(scene, rows.pinned, 0, 0, drawn);
      this.#context.fillStyle = this.#inks.css('soft');
      this.#context.fillRect(0, Math.round(pinned * ratio) - 1, width, 1);
    }
    this.#drawSteps(scene);
    drawn.rows = [...new Set(drawn.rows)].sort((a, b) => a - b);
    drawn.sliceRows = [...new Set(drawn.sliceRows)].sort((a, b) => a - b);
    return drawn;
  }

  /**
   * Shares of a pixel column of a row by category, as last gathered for that row.
   * @param {Scene} scene
   * @param {number} row
   * @param {number} x
   */
  sharesAt(scene, row, x) {
    this.#strip.gather(scene.tiles, scene.view, row, scene.span);
    this.#strip.sumShares();
    return this.#strip.sharesAt(x);
  }

  /**
   * Least and greatest value of a pixel column of a counter.
   * @param {Scene} scene
   * @param {number} row
   * @param {number} x
   */
  valuesAt(scene, row, x) {
    this.#strip.gather(scene.tiles, scene.view, row, scene.span);
    this.#strip.sumValues();
    return { min: this.#strip.min[x], max: this.#strip.max[x] };
  }

  /** @param {Scene['view']} view @param {number} ratio */
  #drawGrid(view, ratio) {
    const { width, height } = this.#canvas;
    if (this.#grid.length !== width) this.#grid = new Uint8Array(width);
    this.#grid.fill(0);
    this.#context.fillStyle = /** @type {InkTable} */ (this.#inks).css('grid');
    for (const time of ticks(view.from, view.to, tickStep(view.nanosPerPixel, TICK_PIXELS * ratio))) {
      const x = Math.round(view.x(time));
      if (x < 0 || x >= width) continue;
      this.#grid[x] = 1;
      this.#context.fillRect(x, 0, 1, height);
    }
  }

  /**
   * @param {Scene} scene
   * @param {Item[]} items
   * @param {number} offset
   * @param {number} least CSS pixels that must be passed
   * @param {Drawn} drawn
   */
  #drawItems(scene, items, offset, least, drawn) {
    const { ratio } = scene;
    this.#strips.begin(this.#canvas.width);
    this.#texts = [];
    const bottom = this.#canvas.height / ratio;
    for (const item of items) {
      const top = item.y + offset;
      if (top + item.height <= least || top >= bottom) continue;
      this.#drawItem(scene, item, top, drawn);
    }
    this.#strips.end(this.#context);
    this.#drawLabels(ratio);
  }

  /** @param {Scene} scene @param {Item} item @param {number} top @param {Drawn} drawn */
  #drawItem(scene, item, top, drawn) {
    const inks = /** @type {InkTable} */ (this.#inks);
    const { ratio } = scene;
    const y = Math.round(top * ratio);
    if (item.isGroup) {
      this.#context.fillStyle = inks.css('surface');
      this.#context.fillRect(0, y, this.#canvas.width, Math.round((top + item.height) * ratio) - y);
    }
    this.#context.fillStyle = inks.css('line');
    this.#context.fillRect(0, y, this.#canvas.width, 1);
    const { track } = item;
    if (!track) return;
    const lanes = Array.from({ length: track.rows }, (_, lane) => track.first_row + lane);
    drawn.rows.push(...lanes);
    const isCounter = track.kind === 'counter' || track.kind === 'memory';
    const blocks = isCounter || track.slices === 0 ? null : this.#slicesOf(scene, lanes);
    lanes.forEach((row, lane) => {
      const from = Math.round((top + PADDING + lane * item.laneHeight) * ratio);
      const to = Math.round((top + PADDING + (lane + 1) * item.laneHeight) * ratio);
      const height = Math.max(1, to - from - (item.laneHeight >= 10 ? Math.round(ratio) : 0));
      if (blocks) this.#drawSlices(scene, track, row, blocks[lane], from, height);
      else this.#drawCells(scene, track, row, from, height, drawn);
    });
  }

  /**
   * The slices of all lanes, if they are here and few enough.
   * @param {Scene} scene
   * @param {number[]} lanes
   * @returns {Blocks[] | null}
   */
  #slicesOf({ view, slices }, lanes) {
    const most = view.width / PIXELS_PER_SLICE;
    const all = [];
    for (const row of lanes) {
      const blocks = slices.get(view, row);
      if (!blocks || countIn(blocks, view.from, view.to) > most) return null;
      all.push(blocks);
    }
    return all;
  }

  /**
   * @param {Scene} scene
   * @param {Track} track
   * @param {number} row
   * @param {Blocks} blocks
   * @param {number} y
   * @param {number} height
   */
  #drawSlices(scene, track, row, blocks, y, height) {
    const inks = /** @type {InkTable} */ (this.#inks);
    const { view, ratio, shapes } = scene;
    this.sliceRows.add(row);
    const least = LABEL_WIDTH * ratio;
    this.#strips.lane(blocks, view, y, height, inks.slices(track), (x, width, shape, nanos, category) => {
      const own = height * CATEGORY_HEIGHTS[category];
      if (own < LABEL_HEIGHT * ratio || width < least || this.#texts.length >= MAX_LABELS) return;
      const room = width - 2 * LABEL_ROOM * ratio;
      const name = shapes.shortName(shape);
      const time = duration(nanos);
      const withTime = `${name} · ${time}`;
      const text = this.#labels.width(withTime) <= room ? withTime : name;
      this.#texts.push({ x, width, y: y + height - own, height: own, text, ink: inks.textOn(track, shape) });
    });
  }

  /**
   * @param {Scene} scene
   * @param {Track} track
   * @param {number} row
   * @param {number} y
   * @param {number} height
   * @param {Drawn} drawn
   */
  #drawCells(scene, track, row, y, height, drawn) {
    const { view, tiles, span, ratio } = scene;
    const strip = this.#strip;
    strip.gather(tiles, view, row, span);
    if (strip.hasHole) drawn.holes += 1;
    const inks = /** @type {InkTable} */ (this.#inks).track(track);
    let image;
    if (track.kind === 'counter' || track.kind === 'memory') {
      strip.sumValues();
      const min = Math.min(0, track.min ?? 0);
      const scale = { min, max: Math.max(track.max ?? 1, min + 1e-9), thickness: Math.max(1, Math.round(1.5 * ratio)) };
      image = this.#painter.counter(strip, view.width, height, inks, this.#grid, scale);
    } else {
      if (track.slices > 0 && strip.count <= (view.width / PIXELS_PER_SLICE) * ASK_EARLY) drawn.sliceRows.push(row);
      strip.sumShares();
      image = this.#painter.heights(strip, view.width, height, inks, this.#grid);
    }
    this.#context.putImageData(image, 0, y);
    if (scene.highlight !== null && track.slices > 0) this.#drawRuns(scene, row, scene.highlight, y, height);
  }

  /**
   * Where most of the time of a row of cells goes to the highlighted shape.
   * @param {Scene} scene
   * @param {number} row
   * @param {number} shape
   * @param {number} y
   * @param {number} height
   */
  #drawRuns({ tiles, view, ratio }, row, shape, y, height) {
    this.#context.fillStyle = /** @type {InkTable} */ (this.#inks).css('accent');
    const part = Math.min(height, Math.round(RUN_HEIGHT * ratio));
    for (const { from, to } of runsOf(tiles, view, row, shape))
      this.#context.fillRect(from, y + height - part, to - from, part);
  }

  /** @param {number} ratio */
  #drawLabels(ratio) {
    const context = this.#context;
    this.#labels.use(`${11 * ratio}px system-ui, "DejaVu Sans", sans-serif`);
    context.textBaseline = 'middle';
    context.textAlign = 'left';
    for (const { x, width, y, height, text, ink } of this.#texts) {
      const shown = this.#labels.fit(text, width - 2 * LABEL_ROOM * ratio);
      if (!shown) continue;
      context.fillStyle = ink;
      context.fillText(shown, x + LABEL_ROOM * ratio, y + height / 2 + ratio * 0.5);
    }
  }

  /** Lines where steps begin, while they are far enough apart. @param {Scene} scene */
  #drawSteps({ view, steps, ratio }) {
    const first = steps.findIndex(({ to }) => to > view.from);
    const seen = first < 0 ? [] : steps.slice(first).filter(({ from }) => from <= view.to);
    const shortest = seen.reduce((least, { from, to }) => Math.min(least, view.x(to) - view.x(from)), Infinity);
    if (shortest < STEP_PIXELS * ratio) return;
    this.#context.fillStyle = /** @type {InkTable} */ (this.#inks).css('soft', 0.35);
    for (const { from } of seen) {
      this.#context.fillRect(Math.round(view.x(from)), 0, 1, this.#canvas.height);
    }
  }
}

/** Slices of a row in a time range. @param {Blocks} blocks @param {number} from @param {number} to */
export function countIn(blocks, from, to) {
  let count = 0;
  for (const { columns, from: least } of blocks) {
    let [low, high] = [firstEndingAfter(columns, from), columns.start.length];
    const first = low;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (columns.start[middle] >= to) high = middle;
      else low = middle + 1;
    }
    count += low - first;
    if (least > from && first < low && columns.start[first] < least) count -= 1;
  }
  return count;
}
