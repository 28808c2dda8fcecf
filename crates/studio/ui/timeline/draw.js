// Draws the rows of one frame: cells where slices are too many to be told apart, slices with names where they are not.

import { placeOf } from '../core/layer.js';
import { duration } from '../core/units.js';
import { CellStrip, runsOf } from './cells.js';
import { InkTable } from './inks.js';
import { Labels } from './labels.js';
import { Painter } from './paint.js';
import { drawHatches, drawSteps } from './layer-lines.js';
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
 * @typedef {object} SceneLayer
 * @property {import('../core/layer.js').Layer} layer
 * @property {import('./view.js').View} view in the layer's own times
 * @property {import('./tiles.js').Tiles} tiles
 * @property {import('./slices.js').Slices} slices
 * @property {number} span
 * @property {number | null} highlight a shape of this layer
 */
/**
 * @typedef {object} Scene
 * @property {import('./view.js').View} view
 * @property {import('./rows.js').RowList} rows
 * @property {number} scroll CSS pixels
 * @property {number} ratio device pixels for a CSS pixel
 * @property {SceneLayer[]} layers the open trace first
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

/** The canvas of the rows. */
export class Picture {
  #canvas;
  #context;
  #strip = new CellStrip();
  #painter = new Painter();
  #strips = new Strips();
  #labels;
  /** Inks of the layers by their place. @type {Map<number, InkTable>} */
  #inks = new Map();
  #grid = new Uint8Array(0);
  /** @type {Label[]} */
  #texts = [];
  /** Rows of layers that are not measured. @type {{y: number, height: number}[]} */
  #hatched = [];
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
    const { view, rows, ratio } = scene;
    for (const { layer, highlight } of scene.layers) {
      if (!this.#inks.get(layer.place)?.isFor(layer.shapes, highlight, layer.style))
        this.#inks.set(layer.place, new InkTable(layer.shapes, highlight, layer.style));
    }
    const inks = this.#inksAt(0);
    // Before anything is measured: a canvas that was resized has lost its font.
    this.#labels.use(`${11 * ratio}px system-ui, "DejaVu Sans", sans-serif`);
    this.sliceRows = new Set();
    /** @type {Drawn} */
    const drawn = { rows: [], sliceRows: [], holes: 0 };
    const { width, height } = this.#canvas;
    this.#context.fillStyle = inks.css('paper');
    this.#context.fillRect(0, 0, width, height);
    this.#drawGrid(view, ratio);
    const pinned = rows.pinnedHeight;
    this.#drawItems(scene, rows.items, pinned - scene.scroll, pinned, drawn);
    if (pinned > 0) {
      this.#context.fillStyle = inks.css('paper');
      this.#context.fillRect(0, 0, width, Math.round(pinned * ratio));
      this.#drawItems(scene, rows.pinned, 0, 0, drawn);
      this.#context.fillStyle = inks.css('soft');
      this.#context.fillRect(0, Math.round(pinned * ratio) - 1, width, 1);
    }
    drawSteps(this.#context, scene, (place) => this.#inksAt(place).css('soft', 0.45));
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
    this.#gather(scene, row);
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
    this.#gather(scene, row);
    this.#strip.sumValues();
    return { min: this.#strip.min[x], max: this.#strip.max[x] };
  }

  /** @param {Scene} scene @param {number} row */
  #gather(scene, row) {
    const { tiles, view, span, layer } = layerAt(scene, row);
    this.#strip.gather(tiles, view, layer.local(row), span);
  }

  /** @param {number} place */
  #inksAt(place) {
    return /** @type {InkTable} */ (this.#inks.get(place));
  }

  /** @param {Scene['view']} view @param {number} ratio */
  #drawGrid(view, ratio) {
    const { width, height } = this.#canvas;
    if (this.#grid.length !== width) this.#grid = new Uint8Array(width);
    this.#grid.fill(0);
    this.#context.fillStyle = this.#inksAt(0).css('grid');
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
    this.#hatched = [];
    const bottom = this.#canvas.height / ratio;
    for (const item of items) {
      const top = item.y + offset;
      if (top + item.height <= least || top >= bottom) continue;
      this.#drawItem(scene, item, top, drawn);
    }
    this.#strips.end(this.#context);
    const ghost = [...this.#inks.values()].find(({ style }) => style === 'ghost');
    if (ghost) drawHatches(this.#context, this.#hatched, ghost.css('paper'));
    this.#drawLabels(ratio);
  }

  /** @param {Scene} scene @param {Item} item @param {number} top @param {Drawn} drawn */
  #drawItem(scene, item, top, drawn) {
    const { ratio } = scene;
    const { track } = item;
    const shown = layerAt(scene, track?.first_row ?? 0);
    const inks = this.#inksAt(shown.layer.place);
    const y = Math.round(top * ratio);
    const bottom = Math.round((top + item.height) * ratio);
    if (item.isGroup) {
      this.#context.fillStyle = inks.css('surface');
      this.#context.fillRect(0, y, this.#canvas.width, bottom - y);
    } else if (shown.layer.style !== 'solid') {
      this.#drawPaper(inks, y, bottom - y);
    }
    this.#context.fillStyle = inks.css('line');
    this.#context.fillRect(0, y, this.#canvas.width, 1);
    if (!track) return;
    if (shown.layer.style === 'ghost') this.#hatched.push({ y, height: bottom - y });
    const lanes = Array.from({ length: track.rows }, (_, lane) => track.first_row + lane);
    drawn.rows.push(...lanes);
    const isCounter = track.kind === 'counter' || track.kind === 'memory';
    const blocks = isCounter || track.slices === 0 ? null : this.#slicesOf(shown, lanes);
    lanes.forEach((row, lane) => {
      const from = Math.round((top + PADDING + lane * item.laneHeight) * ratio);
      const to = Math.round((top + PADDING + (lane + 1) * item.laneHeight) * ratio);
      const height = Math.max(1, to - from - (item.laneHeight >= 10 ? Math.round(ratio) : 0));
      if (blocks) this.#drawSlices(shown, track, row, blocks[lane], from, height, ratio);
      else this.#drawCells(shown, track, row, from, height, ratio, drawn);
    });
  }

  /**
   * The background of rows of a layer that has another one than the open trace.
   * @param {InkTable} inks @param {number} y @param {number} height
   */
  #drawPaper(inks, y, height) {
    this.#context.fillStyle = inks.css('paper');
    this.#context.fillRect(0, y, this.#canvas.width, height);
    this.#context.fillStyle = inks.css('grid');
    this.#grid.forEach((isLine, x) => isLine && this.#context.fillRect(x, y, 1, height));
  }

  /**
   * The slices of all lanes, if they are here and few enough.
   * @param {SceneLayer} shown
   * @param {number[]} lanes
   * @returns {Blocks[] | null}
   */
  #slicesOf({ view, slices, layer }, lanes) {
    const most = view.width / PIXELS_PER_SLICE;
    const all = [];
    for (const row of lanes) {
      const blocks = slices.get(view, layer.local(row));
      if (!blocks || countIn(blocks, view.from, view.to) > most) return null;
      all.push(blocks);
    }
    return all;
  }

  /**
   * @param {SceneLayer} shown
   * @param {Track} track
   * @param {number} row
   * @param {Blocks} blocks
   * @param {number} y
   * @param {number} height
   * @param {number} ratio
   */
  #drawSlices({ view, layer }, track, row, blocks, y, height, ratio) {
    const inks = this.#inksAt(layer.place);
    const { shapes } = layer;
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
   * @param {SceneLayer} shown
   * @param {Track} track
   * @param {number} row
   * @param {number} y
   * @param {number} height
   * @param {number} ratio
   * @param {Drawn} drawn
   */
  #drawCells(shown, track, row, y, height, ratio, drawn) {
    const { view, tiles, span, layer, highlight } = shown;
    const strip = this.#strip;
    strip.gather(tiles, view, layer.local(row), span);
    if (strip.hasHole) drawn.holes += 1;
    const inks = this.#inksAt(layer.place).track(track);
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
    if (highlight !== null && track.slices > 0) this.#drawRuns(shown, layer.local(row), highlight, y, height, ratio);
  }

  /**
   * Where most of the time of a row of cells goes to the highlighted shape.
   * @param {SceneLayer} shown
   * @param {number} row as the layer counts it
   * @param {number} shape
   * @param {number} y
   * @param {number} height
   * @param {number} ratio
   */
  #drawRuns({ tiles, view }, row, shape, y, height, ratio) {
    this.#context.fillStyle = this.#inksAt(0).css('accent');
    const part = Math.min(height, Math.round(RUN_HEIGHT * ratio));
    for (const { from, to } of runsOf(tiles, view, row, shape))
      this.#context.fillRect(from, y + height - part, to - from, part);
  }

  /** @param {number} ratio */
  #drawLabels(ratio) {
    const context = this.#context;
    context.textBaseline = 'middle';
    context.textAlign = 'left';
    for (const { x, width, y, height, text, ink } of this.#texts) {
      const shown = this.#labels.fit(text, width - 2 * LABEL_ROOM * ratio);
      if (!shown) continue;
      context.fillStyle = ink;
      context.fillText(shown, x + LABEL_ROOM * ratio, y + height / 2 + ratio * 0.5);
    }
  }
}

/** The layer of a row. @param {Scene} scene @param {number} row @returns {SceneLayer} */
function layerAt({ layers }, row) {
  return layers.find(({ layer }) => layer.place === placeOf(row)) ?? layers[0];
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
