// The minimap: the whole trace, one line for each device, with its steps, and the window as a handle to drag.

import { onTheme } from '../core/colors.js';
import { fill, h } from '../core/dom.js';
import { store } from '../core/store.js';
import { duration, moment } from '../core/units.js';
import { CellStrip } from './cells.js';
import { InkTable } from './inks.js';
import { Painter } from './paint.js';
import { View } from './view.js';

/** @typedef {import('./timeline.js').Timeline} Timeline */
/** @typedef {import('../core/store.js').Span} Span */
/** @typedef {import('../core/answers.d.ts').Track} Track */
/** @typedef {{mode: 'move' | 'from' | 'to' | 'new', start: number, window: Span}} Drag */

const LINES_HEIGHT = 44;
const STEPS_HEIGHT = 12;
const MOST_LINES = 8;
const LEAST_HANDLE = 8;
const EDGE = 6;
const KEY_SHARE = 0.1;
const DRAWN = /** @type {const} */ (['window', 'layout', 'layers', 'steps', 'marks']);

/** `<ts-minimap>` */
class Minimap extends HTMLElement {
  #canvas = h('canvas', { class: 'map-canvas', 'aria-hidden': 'true' });
  #handle = h('div', {
    class: 'map-handle',
    role: 'slider',
    tabindex: 0,
    'aria-label': 'Window on the whole trace',
    'aria-orientation': 'horizontal',
  });
  #label = h('div', { class: 'map-label', 'aria-hidden': 'true' });
  #area = h('div', { class: 'map-area' }, this.#canvas, this.#handle);
  #context = this.#canvas.getContext('2d', { alpha: false });
  #view = new View();
  #strip = new CellStrip();
  #painter = new Painter();
  #request = 0;
  /** @type {Drag | null} */
  #drag = null;

  connectedCallback() {
    fill(this, this.#label, this.#area);
    new ResizeObserver(() => this.#draw()).observe(this.#area);
    const timeline = this.#timeline;
    timeline?.addEventListener('viewchange', () => this.#later());
    store.subscribe((changed) => {
      if (DRAWN.some((name) => changed.has(name))) this.#later();
    });
    onTheme(() => this.#later());
    this.#area.addEventListener('pointerdown', (event) => this.#pressed(event));
    this.#area.addEventListener('pointermove', (event) => this.#moved(event));
    this.#area.addEventListener('pointerup', (event) => this.#released(event));
    this.#area.addEventListener('pointercancel', () => (this.#drag = null));
    this.#handle.addEventListener('keydown', (event) => this.#key(event));
  }

  /** @returns {Timeline | null} */
  get #timeline() {
    return document.querySelector('ts-timeline');
  }

  #later() {
    this.#request ||= requestAnimationFrame(() => this.#draw());
  }

  #draw() {
    this.#request = 0;
    const { layout, shapes, window } = store.get();
    const extent = store.extent();
    const context = this.#context;
    if (layout?.state !== 'ready' || !context) return;
    const ratio = devicePixelRatio;
    const width = Math.round(this.#area.clientWidth * ratio);
    const height = Math.round((LINES_HEIGHT + STEPS_HEIGHT) * ratio);
    if (width === 0) return;
    if (this.#canvas.width !== width || this.#canvas.height !== height) {
      this.#canvas.width = width;
      this.#canvas.height = height;
    }
    this.#view.width = width;
    this.#view.jump(extent);
    const inks = new InkTable(shapes, null);
    context.fillStyle = inks.css('paper');
    context.fillRect(0, 0, width, height);
    this.#drawLines(context, inks, width, ratio);
    this.#drawSteps(context, inks, ratio);
    this.#placeHandle(window, extent);
    this.#label.textContent = duration(extent.to - extent.from);
  }

  /** @param {CanvasRenderingContext2D} context @param {InkTable} inks @param {number} width @param {number} ratio */
  #drawLines(context, inks, width, ratio) {
    const timeline = this.#timeline;
    if (!timeline) return;
    const layers = store.layers();
    const most = Math.ceil(MOST_LINES / layers.length);
    const lines = layers.flatMap((layer) =>
      shownTracks(layer.layout?.tracks ?? [])
        .slice(0, most)
        .map((track) => ({ layer, track })),
    );
    const grid = new Uint8Array(width);
    lines.forEach(({ layer, track }, line) => {
      const top = Math.round((line * LINES_HEIGHT * ratio) / lines.length);
      const bottom = Math.round(((line + 1) * LINES_HEIGHT * ratio) / lines.length);
      const { tiles } = timeline.sources.at(layer.place);
      const own = layer.style === 'solid' ? inks : new InkTable(layer.shapes, null, layer.style);
      this.#strip.gather(tiles, this.#view.shifted(layer.offset), track.first_row, layer.layout?.span_ns ?? 1);
      this.#strip.sumShares();
      const image = this.#painter.heights(this.#strip, width, Math.max(1, bottom - top - 1), own.track(track), grid);
      context.putImageData(image, 0, top);
    });
  }

  /** @param {CanvasRenderingContext2D} context @param {InkTable} inks @param {number} ratio */
  #drawSteps(context, inks, ratio) {
    const { steps, marks } = store.get();
    const top = Math.round(LINES_HEIGHT * ratio);
    steps.forEach(({ from, to }, number) => {
      const left = Math.round(this.#view.x(from));
      const right = Math.round(this.#view.x(to));
      context.fillStyle = inks.css(number % 2 === 0 ? 'line' : 'soft', number % 2 === 0 ? 1 : 0.35);
      context.fillRect(left, top, Math.max(1, right - left), Math.round((STEPS_HEIGHT - 2) * ratio));
    });
    context.fillStyle = inks.css('evidence');
    for (const mark of marks)
      context.fillRect(Math.round(this.#view.x(mark)), 0, Math.round(ratio), this.#canvas.height);
  }

  /** @param {Span} window @param {Span} extent */
  #placeHandle(window, extent) {
    const width = this.#area.clientWidth;
    const span = extent.to - extent.from;
    const left = ((window.from - extent.from) / span) * width;
    const wide = Math.max(LEAST_HANDLE, ((window.to - window.from) / span) * width);
    this.#handle.style.left = `${Math.min(left, width - wide)}px`;
    this.#handle.style.width = `${wide}px`;
    this.#handle.setAttribute('aria-valuemin', '0');
    this.#handle.setAttribute('aria-valuemax', '100');
    const middle = (window.from + window.to) / 2 - extent.from;
    this.#handle.setAttribute('aria-valuenow', String(Math.round((middle / span) * 100)));
    const step = Math.max(1, (window.to - window.from) / 1000);
    this.#handle.setAttribute('aria-valuetext', `${moment(window.from, step)} to ${moment(window.to, step)}`);
  }

  /** @param {PointerEvent} event */
  #time(event) {
    const { left, width } = this.#area.getBoundingClientRect();
    const { from, to } = store.extent();
    return from + Math.min(1, Math.max(0, (event.clientX - left) / width)) * (to - from);
  }

  /** @param {PointerEvent} event */
  #pressed(event) {
    if (event.button !== 0 || store.get().layout?.state !== 'ready') return;
    this.#area.setPointerCapture(event.pointerId);
    const { left, right } = this.#handle.getBoundingClientRect();
    const x = event.clientX;
    const isInside = x >= left && x <= right;
    // A handle that covers everything cannot be moved: dragging in it chooses a new window.
    const canMove = right - left < this.#area.clientWidth - 2 * EDGE;
    const mode =
      isInside && canMove
        ? x < left + EDGE && right - left > 3 * EDGE
          ? 'from'
          : x > right - EDGE && right - left > 3 * EDGE
            ? 'to'
            : 'move'
        : 'new';
    this.#drag = { mode, start: this.#time(event), window: store.get().window };
  }

  /** @param {PointerEvent} event */
  #moved(event) {
    const drag = this.#drag;
    if (!drag) return;
    const time = this.#time(event);
    const shift = time - drag.start;
    const { from, to } = drag.window;
    if (drag.mode === 'new' && Math.abs(shift) < store.span() / 500) return;
    const windows = {
      move: { from: from + shift, to: to + shift },
      from: { from: Math.min(from + shift, to), to },
      to: { from, to: Math.max(to + shift, from) },
      new: { from: Math.min(time, drag.start), to: Math.max(time, drag.start) },
    };
    store.set({ window: store.clamp(windows[drag.mode]) });
  }

  /** @param {PointerEvent} event */
  #released(event) {
    const drag = this.#drag;
    this.#drag = null;
    if (!drag) return;
    const time = this.#time(event);
    if (drag.mode !== 'new' || Math.abs(time - drag.start) >= store.span() / 500) return;
    const half = (drag.window.to - drag.window.from) / 2;
    store.zoomTo({ from: time - half, to: time + half }, { margin: 0 });
  }

  /** @param {KeyboardEvent} event */
  #key(event) {
    const { from, to } = store.get().window;
    const part = (to - from) * KEY_SHARE;
    /** @type {Record<string, Span>} */
    const windows = {
      ArrowLeft: { from: from - part, to: to - part },
      ArrowRight: { from: from + part, to: to + part },
      ArrowUp: { from: from + part, to: to - part },
      ArrowDown: { from: from - part, to: to + part },
      PageUp: { from: from - part / KEY_SHARE, to: from },
      PageDown: { from: to, to: to + part / KEY_SHARE },
    };
    const window = windows[event.key];
    if (!window) return;
    event.preventDefault();
    store.set({ window: store.clamp(window) });
  }
}

/** The tracks of the lines: the devices, or what there is. @param {Track[]} tracks */
function shownTracks(tracks) {
  const devices = tracks.filter(({ kind }) => kind === 'device');
  const others = tracks.filter(({ kind, slices }) => slices > 0 && kind !== 'counter' && kind !== 'memory');
  return devices.length > 0 ? devices : others.slice(0, 2);
}

customElements.define('ts-minimap', Minimap);
