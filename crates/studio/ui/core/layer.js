// A layer of the timeline: the open trace (`a`), or what is shown with it, such as a second trace (`b`) or a
// prediction (`ghost`). Each has its own layout, shapes, tiles and slices, and its rows are placed beneath the matching
// rows of `a`.
//
// Rows of the page are numbers. Those of the layer at place n begin at n * LAYER_ROWS; the server counts them from 0.
// A slice has the times of its own layer. The window, areas, marks and the pointer have times of the timeline, which
// are those of `a`.

import { ShapeTable } from './shapes.js';

/** @typedef {import('./answers.d.ts').Layout} Layout */
/** @typedef {import('./store.js').Span} Span */
/** @typedef {'a' | 'b' | 'ghost'} LayerKey */
/** @typedef {'solid' | 'tinted' | 'ghost'} LayerStyle how its rows are drawn */
/**
 * @typedef {object} LayerParts
 * @property {LayerKey} key
 * @property {number} trace its number at the server
 * @property {string} label in front of the names of its rows
 * @property {LayerStyle} [style]
 * @property {number} [offset] ns from its own times to those of the timeline
 * @property {Layout | null} [layout]
 * @property {ShapeTable} [shapes]
 * @property {Span[]} [steps] in its own times
 * @property {string[]} [stepNames]
 */

export const LAYER_ROWS = 2 ** 20;
/** The places of the layers, which is their order below a row of `a`. @type {Record<LayerKey, number>} */
const PLACES = { a: 0, b: 1, ghost: 2 };
const NO_SHAPES = new ShapeTable([]);

/** The place of the layer that has a row. @param {number} row */
export function placeOf(row) {
  return Math.floor(Math.max(0, row) / LAYER_ROWS);
}

/** One layer. It never changes; another one replaces it. */
export class Layer {
  /** @param {LayerParts} parts */
  constructor({ key, trace, label, style = 'solid', offset = 0, layout = null, shapes, steps = [], stepNames = [] }) {
    this.key = key;
    this.place = PLACES[key];
    this.trace = trace;
    this.label = label;
    this.style = style;
    this.offset = offset;
    this.layout = layout;
    this.shapes = shapes ?? NO_SHAPES;
    this.steps = steps;
    this.stepNames = stepNames;
  }

  /** This layer with some parts changed. @param {Partial<LayerParts>} parts */
  with(parts) {
    return new Layer({ ...this, ...parts });
  }

  /** Whether it can be drawn. */
  get isReady() {
    return this.layout?.state === 'ready';
  }

  /** The row as the server counts it. @param {number} row */
  local(row) {
    return row - this.place * LAYER_ROWS;
  }

  /** The row as the page counts it. @param {number} local */
  row(local) {
    return local + this.place * LAYER_ROWS;
  }

  /** A slice, or another thing with a row, that the server answered. @template {{row: number}} T @param {T} answer */
  placed(answer) {
    return { ...answer, row: this.row(answer.row) };
  }

  /** A time of this layer, on the timeline. @param {number} time */
  shown(time) {
    return time + this.offset;
  }

  /** A time of the timeline, in this layer. @param {number} time */
  own(time) {
    return time - this.offset;
  }

  /** Its beginning and end on the timeline. @returns {Span} */
  get extent() {
    return { from: this.offset, to: this.offset + Math.max(1, this.layout?.span_ns ?? 1) };
  }
}
