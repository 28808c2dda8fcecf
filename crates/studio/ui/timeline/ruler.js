// The ruler: times, the trace's steps, marks, and the ends of the selected area. Dragging over it selects a time range.

import { duration, moment } from '../core/units.js';
import { chooseNote } from '../core/notes.js';
import { store } from '../core/store.js';
import { TICK_PIXELS } from './draw.js';
import { drawFlags, flagAt, flagTitle } from './flags.js';
import { Labels } from './labels.js';
import { ticks, tickStep } from './ticks.js';

/** @typedef {import('./view.js').View} View */
/** @typedef {import('./inks.js').InkTable} InkTable */
/** @typedef {import('../core/layer.js').Layer} Layer */

const HEAD_HEIGHT = 26;
/** Of the steps of one layer. */
const STRIP_HEIGHT = 18;
const DRAG_PIXELS = 4;
const STEP_LABEL_PIXELS = 26;
const LABEL_PADDING = 5;

/** The layers whose steps the ruler shows: the open trace, and others that have steps. */
function shownLayers() {
  return store.layers().filter(({ place, steps }) => place === 0 || steps.length > 0);
}

/** Of the ruler, in CSS pixels. */
export function rulerHeight() {
  return HEAD_HEIGHT + STRIP_HEIGHT * shownLayers().length;
}

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
    const { marks, area } = store.get();
    const height = rulerHeight();
    const context = this.#context;
    const view = this.#view;
    const width = this.#canvas.width / ratio;
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    context.fillStyle = inks.css('surface');
    context.fillRect(0, 0, width, height);
    this.#labels.use('11px system-ui, "DejaVu Sans", sans-serif');
    context.textBaseline = 'middle';
    const layers = shownLayers();
    const hasSteps = layers.some(({ steps }) => steps.length > 0);
    const step = tickStep(view.nanosPerPixel, TICK_PIXELS * ratio);
    const length = area ? this.#lengthBox(area.from, area.to) : null;
    for (const time of ticks(view.from, view.to, step)) {
      const x = Math.round(view.x(time)) / ratio;
      context.fillStyle = inks.css('line');
      context.fillRect(x, hasSteps ? 6 : 20, 1, height);
      context.fillStyle = inks.css('soft');
      const label = moment(time, step);
      const end = x + 5 + this.#labels.width(label);
      const isCovered = length && end > length.left && x + 5 < length.left + length.width;
      if (end < width && !isCovered) context.fillText(label, x + 5, 13);
    }
    // Several layers have their labels at the left.
    const widest = Math.max(...layers.map(({ label }) => this.#labels.width(label)));
    const room = layers.length > 1 ? widest + 2 * LABEL_PADDING : 0;
    layers.forEach((layer, line) => this.#drawSteps(layer, line, room, inks));
    if (area && length) {
      const [left, right] = [view.x(area.from) / ratio, view.x(area.to) / ratio];
      context.fillStyle = inks.css('accent', 0.2);
      context.fillRect(left, 0, right - left, height);
      context.fillStyle = inks.css('accent');
      context.fillRect(length.left, 3, length.width, 19);
      context.fillStyle = inks.css('paper');
      context.fillText(length.text, length.left + 6, 13);
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
    drawFlags(context, view, ratio, inks);
    context.fillStyle = inks.css('line');
    context.fillRect(0, height - 1, width, 1);
  }

  /**
   * The steps of a layer, with its label at the left.
   * @param {Layer} layer @param {number} line @param {number} first room for the label @param {InkTable} inks
   */
  #drawSteps({ steps, stepNames, offset, label }, line, first, inks) {
    const context = this.#context;
    const view = this.#view.shifted(offset);
    const width = this.#canvas.width / this.#ratio;
    const top = HEAD_HEIGHT + line * STRIP_HEIGHT;
    const middle = top + (STRIP_HEIGHT - 3) / 2 + 0.5;
    steps.forEach(({ from, to }, number) => {
      if (to < view.from || from > view.to) return;
      const left = Math.max(-1, Math.round(view.x(from)) / this.#ratio);
      const right = Math.min(width + 1, Math.round(view.x(to)) / this.#ratio);
      context.fillStyle = inks.css(number % 2 === 0 ? 'line' : 'grid');
      context.fillRect(left, top, Math.max(1, right - left - 1), STRIP_HEIGHT - 3);
      const room = right - Math.max(left, first);
      if (room < STEP_LABEL_PIXELS) return;
      const text = this.#labels.fit(stepNames[number] ?? `step ${number}`, room - 8);
      context.fillStyle = inks.css('ink');
      context.fillText(text, Math.max(left, first) + 5, middle);
    });
    if (first === 0) return;
    context.fillStyle = inks.css('surface');
    context.fillRect(0, top, first, STRIP_HEIGHT - 3);
    context.fillStyle = inks.css('ink');
    context.fillText(label, LABEL_PADDING, middle);
  }

  /** Where the length of the selected area is written. @param {number} from @param {number} to */
  #lengthBox(from, to) {
    const text = duration(to - from);
    const width = this.#labels.width(text) + 12;
    const middle = (this.#view.x(from) + this.#view.x(to)) / 2 / this.#ratio;
    const left = Math.min(Math.max(middle - width / 2, 0), this.#canvas.width / this.#ratio - width);
    return { text, width, left };
  }

  /** @param {PointerEvent} event */
  #time(event) {
    const x = event.clientX - this.#canvas.getBoundingClientRect().left;
    const { from, to } = store.extent();
    return Math.min(Math.max(this.#view.time(x * this.#ratio), from), to);
  }

  /** The note whose flag is under the pointer. @param {PointerEvent} event */
  #flag(event) {
    const { left, top } = this.#canvas.getBoundingClientRect();
    return flagAt(this.#view, this.#ratio, event.clientX - left, event.clientY - top);
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
    if (!drag) {
      const title = flagTitle(this.#flag(event));
      if (this.#canvas.title !== title) this.#canvas.title = title;
      return;
    }
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
    const { area } = store.get();
    if (drag.moved && area) {
      store.selectArea({ ...area }, { history: 'push' });
      return;
    }
    const flag = this.#flag(event);
    if (flag) {
      chooseNote(flag);
      return;
    }
    const y = event.clientY - this.#canvas.getBoundingClientRect().top;
    const layer = shownLayers()[Math.floor((y - HEAD_HEIGHT) / STRIP_HEIGHT)];
    const own = layer?.own(drag.time) ?? 0;
    const step = layer?.steps.find(({ from, to }) => own >= from && own < to);
    if (layer && step)
      store.zoomToSlice({ row: layer.row(0), start: step.from, duration: step.to - step.from }, { margin: 0.02 });
    else store.selectArea(null);
  }
}
