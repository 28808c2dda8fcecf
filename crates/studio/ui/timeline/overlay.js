// What lies above the rows: selection, area, marks, spans of evidence, arrows, and the pointer. Drawn on a canvas of
// its
// own, so that moving the pointer does not draw the rows again.

import { css, theme } from '../core/colors.js';
import { drawFlagLines } from './flags.js';
import { InkTable } from './inks.js';

/** @typedef {import('../core/store.js').Span} Span */
/** @typedef {{row: number, time: number}} Point  in the times of the row's layer */
/** @typedef {{from: Point, to: Point, kind: string}} Arrow */
/** @typedef {'evidence' | 'critical' | 'ghost' | 'pair'} SpanKind */
/** @typedef {{row: number, from: number, to: number, kind: SpanKind}} RowSpan  row -1: all rows */
/** @typedef {{top: number, height: number}} Place CSS pixels from the top of the canvas */
/**
 * @typedef {object} OverlayScene
 * @property {import('./view.js').View} view
 * @property {number} ratio
 * @property {number} pinned height of the pinned rows
 * @property {(row: number) => Place | null} place where a row is, also outside of the canvas
 * @property {Readonly<import('../core/store.js').State>} state
 * @property {Arrow[]} arrows
 * @property {RowSpan[]} spans
 * @property {import('./inks.js').InkTable} inks
 * @property {boolean} isSelecting
 * @property {(row: number, time: number) => number} shown a time of the row's layer on the timeline
 */

/** @type {Record<string, Record<'light' | 'dark', import('../core/colors.js').Rgb>>} */
const ARROWS = {
  launch: { light: [11, 98, 196], dark: [109, 179, 255] },
  waited_for: { light: [179, 60, 10], dark: [255, 160, 110] },
  waited_by: { light: [120, 40, 140], dark: [214, 150, 240] },
  moved: { light: [85, 96, 112], dark: [159, 171, 187] },
};
const HEAD = 7;
const LEAST_WIDTH = 2;

/** The canvas above the rows. */
export class Overlay {
  #canvas;
  #context;

  /** @param {HTMLCanvasElement} canvas */
  constructor(canvas) {
    this.#canvas = canvas;
    const context = canvas.getContext('2d');
    if (!context) throw new Error('this browser has no canvas');
    this.#context = context;
  }

  /** @param {OverlayScene} scene */
  draw(scene) {
    const { ratio, view, state } = scene;
    const context = this.#context;
    context.setTransform(1, 0, 0, 1, 0, 0);
    context.clearRect(0, 0, this.#canvas.width, this.#canvas.height);
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    if (state.area) this.#drawArea(scene, state.area);
    for (const span of scene.spans) {
      const [from, to] = [span.from, span.to].map((time) => scene.shown(span.row, time));
      if (to > view.from && from < view.to) this.#drawSpan(scene, { ...span, from, to });
    }
    if (state.selection) this.#drawSelection(scene, state.selection);
    for (const arrow of scene.arrows) this.#drawArrow(scene, arrow);
    context.fillStyle = scene.inks.css('evidence');
    for (const mark of state.marks) this.#line(scene, mark);
    drawFlagLines(context, scene, this.#canvas.height / ratio);
    if (state.hover && !scene.isSelecting) {
      context.fillStyle = scene.inks.css('ink', 0.28);
      this.#line(scene, state.hover.time);
    }
  }

  /** @param {OverlayScene} scene @param {number} time */
  #line({ view, ratio }, time) {
    const x = Math.round(view.x(time)) / ratio;
    if (x >= 0 && x <= this.#canvas.width / ratio) this.#context.fillRect(x, 0, 1, this.#canvas.height / ratio);
  }

  /** @param {OverlayScene} scene @param {import('../core/store.js').Area} area */
  #drawArea(scene, area) {
    const { view, ratio, inks } = scene;
    const [left, right] = [view.x(area.from) / ratio, view.x(area.to) / ratio];
    const context = this.#context;
    const [width, height] = [this.#canvas.width / ratio, this.#canvas.height / ratio];
    context.fillStyle = inks.css('ink', 0.06);
    context.fillRect(0, 0, Math.max(0, left), height);
    context.fillRect(right, 0, Math.max(0, width - right), height);
    context.fillStyle = inks.css('accent');
    context.fillRect(left, 0, 1, height);
    context.fillRect(right - 1, 0, 1, height);
    context.fillStyle = inks.css('accent', 0.16);
    if (area.rows.length === 0) {
      context.fillRect(left, 0, right - left, height);
      return;
    }
    for (const row of area.rows) {
      const place = scene.place(row);
      if (place) context.fillRect(left, place.top, right - left, place.height);
    }
  }

  /** @param {OverlayScene} scene @param {RowSpan} span */
  #drawSpan(scene, { row, from, to, kind }) {
    const { view, ratio, inks } = scene;
    const context = this.#context;
    const left = Math.max(-4, view.x(from) / ratio);
    const right = Math.min(this.#canvas.width / ratio + 4, view.x(to) / ratio);
    const width = Math.max(LEAST_WIDTH, right - left);
    const place = row < 0 ? { top: 0, height: this.#canvas.height / ratio } : scene.place(row);
    if (!place || place.top + place.height < 0 || place.top > this.#canvas.height / ratio) return;
    if (kind === 'critical') {
      context.fillStyle = inks.css('critical');
      context.fillRect(left, place.top + place.height - 3, width, 3);
      return;
    }
    const ink = /** @type {const} */ ({ evidence: 'evidence', ghost: 'soft', pair: 'ink' })[kind];
    context.fillStyle = inks.css(ink, kind === 'pair' ? 0 : 0.12);
    context.fillRect(left, place.top, width, place.height);
    context.strokeStyle = inks.css(ink);
    context.lineWidth = kind === 'pair' ? 2 : 1.5;
    context.setLineDash(kind === 'ghost' ? [4, 3] : []);
    context.strokeRect(left + 0.5, place.top + 0.5, Math.max(1, width - 1), place.height - 1);
    context.setLineDash([]);
  }

  /** @param {OverlayScene} scene @param {import('../core/store.js').Slice} slice */
  #drawSelection(scene, { row, start, duration }) {
    const { view, ratio, inks, pinned } = scene;
    const place = scene.place(row);
    if (!place || place.top + place.height < 0) return;
    const from = scene.shown(row, start);
    const left = Math.max(-3, view.x(from) / ratio);
    const right = Math.min(this.#canvas.width / ratio + 3, view.x(from + duration) / ratio);
    const width = Math.max(LEAST_WIDTH, right - left);
    const context = this.#context;
    if (place.top < pinned && place.top + place.height > pinned) return;
    context.lineWidth = 2;
    context.strokeStyle = inks.css('paper');
    context.strokeRect(left - 2, place.top - 2, width + 4, place.height + 4);
    context.strokeStyle = inks.css('ink');
    context.strokeRect(left, place.top, width, place.height);
  }

  /** @param {OverlayScene} scene @param {Arrow} arrow */
  #drawArrow({ view, ratio, place, shown }, { from, to, kind }) {
    const [start, end] = [place(from.row), place(to.row)];
    if (!start || !end) return;
    const [x0, x1] = [from, to].map(({ row, time }) => view.x(shown(row, time)) / ratio);
    const [y0, y1] = [start.top + start.height / 2, end.top + end.height / 2];
    const context = this.#context;
    const bend = Math.min(90, Math.max(18, Math.abs(x1 - x0) / 2));
    const color = css((ARROWS[kind] ?? ARROWS.launch)[theme()]);
    context.strokeStyle = color;
    context.fillStyle = color;
    context.lineWidth = 1.6;
    context.setLineDash(kind === 'moved' ? [4, 3] : []);
    context.beginPath();
    context.moveTo(x0, y0);
    context.bezierCurveTo(x0 + bend, y0, x1 - bend, y1, x1 - HEAD, y1);
    context.stroke();
    context.setLineDash([]);
    context.beginPath();
    context.arc(x0, y0, 2.5, 0, 2 * Math.PI);
    context.moveTo(x1, y1);
    context.lineTo(x1 - HEAD, y1 - HEAD / 2);
    context.lineTo(x1 - HEAD, y1 + HEAD / 2);
    context.fill();
  }
}

/**
 * Inks without a trace, for what is drawn in the colours of the page only.
 * @param {import('../core/shapes.js').ShapeTable} shapes
 */
export function pageInks(shapes) {
  return new InkTable(shapes, null);
}
