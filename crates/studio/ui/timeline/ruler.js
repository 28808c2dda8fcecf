// The ruler: times, the trace's steps, marks, and the ends of the selected area. Dragging over it selects a time range.

import { duration, moment } from '../core/units.js';
import { store } from '../core/store.js';
import { TICK_PIXELS } from './draw.js';
import { Labels } from './labels.js';
import { ticks, tickStep } from './ticks.js';

/** @typedef {import('./view.js').View} View */
/** @typedef {import('./inks.js').InkTable} InkTable */

export const RULER_HEIGHT = 44;
const STEPS_TOP = 26;
const DRAG_PIXELS = 4;
const STEP_LABEL_PIXELS = 26;

/** The canvas above the rows. */
export class Ruler {
  #canvas;
  #context;
  #labels;
  #view;
  #ratio = 1;
  /** @type {{x: number, time: number, moved: boolean} | null} */
  #drag = null;

  /** @param {HTMLCanvasElement} canvas @param {View} view */
  constructor(canvas, view) {
    this.#canvas = canvas;
    this.#view = view;
    const context = canvas.getContext('2d', { alpha: false });
    if (!context) throw new Error('this browser has no canvas');
    this.#context = context;
    this.#labels = new Labels(context);
    canvas.addEventListener('pointerdown', (event) => this.#pressed(event));
    canvas.addEventListener('pointermove', (event) => this.#moved(event));
    canvas.addEventListener('pointerup', (event) => this.#released(event));
    canvas.addEventListener('dblclick', () => store.zoomTo(store.extent(), { margin: 0 }));
  }

  /** @param {number} ratio @param {InkTable} inks */
  draw(ratio, inks) {
    this.#ratio = ratio;
    const { marks, area, steps } = store.get();
    const context = this.#context;
    const view = this.#view;
    const width = this.#canvas.width / ratio;
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    context.fillStyle = inks.css('surface');
    context.fillRect(0, 0, width, RULER_HEIGHT);
    this.#labels.use('11px system-ui, "DejaVu Sans", sans-serif');
    context.textBaseline = 'middle';
    const step = tickStep(view.nanosPerPixel, TICK_PIXELS * ratio);
    for (const time of ticks(view.from, view.to, step)) {
      const x = Math.round(view.x(time)) / ratio;
      context.fillStyle = inks.css('line');
      context.fillRect(x, steps.length > 0 ? 6 : 20, 1, RULER_HEIGHT);
      context.fillStyle = inks.css('soft');
      context.fillText(moment(time, step), x + 5, 13);
    }
    this.#drawSteps(width, inks);
    if (area) {
      const [left, right] = [view.x(area.from) / ratio, view.x(area.to) / ratio];
      context.fillStyle = inks.css('accent', 0.2);
      context.fillRect(left, 0, right - left, RULER_HEIGHT);
      this.#drawLength(left, right, area.to - area.from, inks);
    }
    context.fillStyle = inks.css('evidence');
    for (const mark of marks) {
      const x = view.x(mark) / ratio;
      context.beginPath();
      context.moveTo(x - 5, 0);
      context.lineTo(x + 5, 0);
      context.lineTo(x, 9);
      context.fill();
    }
    context.fillStyle = inks.css('line');
    context.fillRect(0, RULER_HEIGHT - 1, width, 1);
  }

  /** @param {number} width @param {InkTable} inks */
  #drawSteps(width, inks) {
    const { steps } = store.get();
    const context = this.#context;
    const view = this.#view;
    steps.forEach(({ from, to }, number) => {
      if (to < view.from || from > view.to) return;
      const left = Math.max(-1, Math.round(view.x(from)) / this.#ratio);
      const right = Math.min(width + 1, Math.round(view.x(to)) / this.#ratio);
      context.fillStyle = inks.css(number % 2 === 0 ? 'line' : 'grid');
      context.fillRect(left, STEPS_TOP, Math.max(1, right - left - 1), RULER_HEIGHT - STEPS_TOP - 3);
      if (right - left < STEP_LABEL_PIXELS) return;
      const label = store.get().stepNames[number] ?? `step ${number}`;
      const text = this.#labels.fit(label, right - left - 8);
      context.fillStyle = inks.css('ink');
      context.fillText(text, left + 5, (STEPS_TOP + RULER_HEIGHT - 3) / 2 + 0.5);
    });
  }

  /** @param {number} left @param {number} right @param {number} nanos @param {InkTable} inks */
  #drawLength(left, right, nanos, inks) {
    const text = duration(nanos);
    const width = this.#labels.width(text) + 12;
    const middle = Math.min(Math.max((left + right) / 2, width / 2), this.#canvas.width / this.#ratio - width / 2);
    this.#context.fillStyle = inks.css('accent');
    this.#context.fillRect(middle - width / 2, 3, width, 19);
    this.#context.fillStyle = inks.css('paper');
    this.#context.fillText(text, middle - width / 2 + 6, 13);
  }

  /** @param {PointerEvent} event */
  #time(event) {
    const x = event.clientX - this.#canvas.getBoundingClientRect().left;
    const { from, to } = store.extent();
    return Math.min(Math.max(this.#view.time(x * this.#ratio), from), to);
  }

  /** @param {PointerEvent} event */
  #pressed(event) {
    if (event.button !== 0) return;
    this.#canvas.setPointerCapture(event.pointerId);
    this.#drag = { x: event.clientX, time: this.#time(event), moved: false };
  }

  /** @param {PointerEvent} event */
  #moved(event) {
    const drag = this.#drag;
    if (!drag) return;
    drag.moved ||= Math.abs(event.clientX - drag.x) >= DRAG_PIXELS;
    if (!drag.moved) return;
    const time = this.#time(event);
    store.selectArea({ rows: [], from: Math.min(time, drag.time), to: Math.max(time, drag.time) }, { history: 'none' });
  }

  /** @param {PointerEvent} event */
  #released(event) {
    const drag = this.#drag;
    this.#drag = null;
    if (!drag) return;
    const { area, steps } = store.get();
    if (drag.moved && area) {
      store.selectArea({ ...area }, { history: 'push' });
      return;
    }
    const y = event.clientY - this.#canvas.getBoundingClientRect().top;
    const step = steps.find(({ from, to }) => drag.time >= from && drag.time < to);
    if (y >= STEPS_TOP && step) store.zoomTo(step, { margin: 0.02 });
    else store.selectArea(null);
  }
}
