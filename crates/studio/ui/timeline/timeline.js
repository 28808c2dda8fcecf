// The timeline: the list of rows, the ruler, the picture of the rows and what lies above it.

import { connectDivider } from '../core/divider.js';
import { onTheme } from '../core/colors.js';
import { fill, h } from '../core/dom.js';
import { isLoading } from '../core/layers.js';
import { store } from '../core/store.js';
import { connectAnnouncements } from './announce.js';
import { Picture } from './draw.js';
import { connectKeys } from './keys.js';
import { keepSelection } from './kept-selection.js';
import { Overlay, pageInks } from './overlay.js';
import { connectPointer } from './pointer.js';
import { PADDING, RowList } from './rows.js';
import { Ruler, rulerHeight } from './ruler.js';
import { mergedTracks } from './merge.js';
import { Sources } from './sources.js';
import { Tooltip } from './tooltip.js';
import { connectTools } from './tools.js';
import { Tree } from './tree.js';
import { View } from './view.js';

/** @typedef {import('./overlay.js').Arrow} Arrow */
/** @typedef {import('./overlay.js').RowSpan} RowSpan */
/** @typedef {import('./overlay.js').Place} Place */
/** @typedef {import('./draw.js').Scene} Scene */
/** @typedef {import('./rows.js').Item} Item */
/** @typedef {import('../core/layer.js').LayerKey} LayerKey */
/**
 * @typedef {object} Highlight  a shape of the open trace, which is drawn strongly
 * @property {number} shape -1 for one that the open trace does not have
 * @property {Partial<Record<LayerKey, number>>} [also] shapes of other layers; without it, those with the same name
 */

/** @type {import('./rows.js').Tracks} */
const NO_LAYOUT = { tracks: [], groups: [], homes: new Map() };
const KEPT_TIMES = 600;

/** `<ts-timeline>` */
export class Timeline extends HTMLElement {
  view = new View();
  rows = new RowList(NO_LAYOUT, store.get().rows);
  sources = new Sources(() => this.redraw());
  /** Frames drawn, milliseconds of the last ones, and frames in which a row lacked a part of its picture. */
  stats = { frames: 0, times: /** @type {number[]} */ ([]), holes: 0 };
  overlayCanvas = h('canvas', { class: 'tl-overlay', 'aria-hidden': 'true' });
  #rowsCanvas = h('canvas', { class: 'tl-canvas', 'aria-hidden': 'true' });
  #rulerCanvas = h('canvas', { class: 'tl-ruler', 'aria-hidden': 'true' });
  #tools = h('div', { class: 'tl-tools' });
  #treeElement = h('div', { class: 'tl-tree', role: 'tree', 'aria-label': 'Rows of the timeline' });
  #sticky = h('div', { class: 'tl-sticky' }, this.#rowsCanvas, this.overlayCanvas);
  #content = h('div', { class: 'tl-content' }, this.#treeElement, this.#sticky);
  #body = h('div', { class: 'tl-body', tabindex: -1 }, this.#content);
  #divider = h('div', {
    class: 'tl-divider',
    role: 'separator',
    'aria-orientation': 'vertical',
    'aria-label': 'Width of the list of rows',
    tabindex: 0,
  });
  #empty = h('p', { class: 'tl-empty' });
  #picture = new Picture(this.#rowsCanvas);
  #overlay = new Overlay(this.overlayCanvas);
  #ruler = new Ruler(this.#rulerCanvas, this.view);
  #tree = new Tree(this.#treeElement);
  #tooltip = new Tooltip(this);
  #ratio = 1;
  #request = 0;
  #rulerHeight = 0;
  #isPictureOld = true;
  #hasHoles = true;
  /** Whether no frame of the trace was drawn yet. */
  #isNew = true;
  /** @type {Arrow[]} */
  #arrows = [];
  /** @type {RowSpan[]} */
  #spans = [];
  /** @type {Highlight | null} */
  #highlight = null;
  /** Layouts of the layers whose rows are shown. @type {(import('../core/answers.d.ts').Layout | null)[]} */
  #arranged = [];

  connectedCallback() {
    fill(this, this.#tools, this.#rulerCanvas, this.#body, this.#divider, this.#empty, this.#tooltip.element);
    connectTools(this.#tools);
    connectPointer(this);
    connectKeys(this);
    connectAnnouncements(this);
    keepSelection();
    connectDivider(this.#divider, {
      name: 'tracesmith-labels',
      axis: 'x',
      initial: 230,
      least: 90,
      most: 520,
      value: (event) => event.clientX - this.getBoundingClientRect().left,
      apply: (width) => this.style.setProperty('--labels', `${width}px`),
    });
    new ResizeObserver(() => this.#resize()).observe(this.#body);
    this.#body.addEventListener('scroll', () => this.#scrolled());
    document.addEventListener('visibilitychange', () => (document.hidden ? this.#pause() : this.redraw()));
    onTheme(() => this.redraw());
    store.subscribe((changed) => this.#changed(changed));
    this.#changed(new Set(['layout', 'window', 'rows']));
  }

  /** Arrows between moments of rows; they replace the ones before. @param {Arrow[]} arrows */
  setArrows(arrows) {
    this.#arrows = arrows;
    this.#draw();
  }

  /** Time ranges of rows that are outlined; they replace the ones before. @param {RowSpan[]} spans */
  setSpans(spans) {
    this.#spans = spans;
    this.#draw();
  }

  /**
   * Draws the slices of a shape strongly and all others faintly, or all alike.
   * @param {Highlight | null} highlight
   */
  setHighlight(highlight) {
    this.#highlight = highlight;
    this.redraw();
  }

  /** The shape of a layer that is drawn strongly. @param {import('../core/layer.js').Layer} layer */
  #highlightIn({ key, shapes }) {
    if (!this.#highlight) return null;
    const { shape, also } = this.#highlight;
    if (key === 'a') return shape;
    return also ? (also[key] ?? -1) : shapes.find(store.get().shapes.name(shape));
  }

  /** Tiles of the open trace. */
  get tiles() {
    return this.sources.at(0).tiles;
  }

  /** Slices of the open trace. */
  get slices() {
    return this.sources.at(0).slices;
  }

  /** Whether the picture is complete and does not change by itself. */
  get isSettled() {
    const { layout, compare, layers } = store.get();
    if (this.#isNew || layout?.state !== 'ready' || isLoading()) return false;
    if (compare && !layers.some(({ key }) => key === 'b')) return false;
    return this.#request === 0 && !this.view.isMoving && this.sources.isIdle && !this.#hasHoles;
  }

  /** The outlined time ranges. */
  get spans() {
    return this.#spans;
  }

  get ratio() {
    return this.#ratio;
  }

  /** Pixels of the canvas above the rows that scroll. */
  get scrolled() {
    return this.#body.scrollTop;
  }

  /** What is drawn. @returns {Scene} */
  get scene() {
    const { view, rows } = this;
    const layers = store.layers().map((layer) => ({
      layer,
      view: view.shifted(layer.offset),
      ...this.sources.at(layer.place),
      span: Math.max(1, layer.layout?.span_ns ?? 1),
      highlight: this.#highlightIn(layer),
    }));
    return { view, rows, layers, scroll: this.scrolled, ratio: this.#ratio };
  }

  /** Whether a row shows slices now, and not cells. @param {number} row */
  showsSlices(row) {
    return this.#picture.sliceRows.has(row);
  }

  /**
   * Where the lane of a row is, in CSS pixels from the top of the canvas.
   * @param {number} row
   * @returns {Place | null}
   */
  place(row) {
    const track = this.rows.trackOfRow(row);
    const item = this.rows.itemOfRow(row) ?? (track && this.rows.headOf(track));
    if (!item) return null;
    const top = item.isPinned ? item.y : item.y + this.rows.pinnedHeight - this.scrolled;
    if (item.isGroup || !item.track) return { top: top + PADDING, height: item.height - 2 * PADDING };
    const lane = row - item.track.first_row;
    const gap = item.laneHeight >= 10 ? 1 : 0;
    return { top: top + PADDING + lane * item.laneHeight, height: item.laneHeight - gap };
  }

  /**
   * The item at a height of the canvas, and where it begins.
   * @param {number} y
   * @returns {{item: Item, top: number} | null}
   */
  itemAt(y) {
    const { pinnedHeight } = this.rows;
    const pinned = this.rows.pinned.find((item) => y >= item.y && y < item.y + item.height);
    if (pinned) return { item: pinned, top: pinned.y };
    if (y < pinnedHeight) return null;
    const item = this.rows.itemAt(y - pinnedHeight + this.scrolled);
    return item && { item, top: item.y + pinnedHeight - this.scrolled };
  }

  /**
   * Shares of the categories, or the values, that the picture shows in a pixel.
   * @param {number} row
   * @param {number} x device pixels
   */
  cellAt(row, x) {
    const track = this.rows.trackOfRow(row);
    const isCounter = track?.kind === 'counter' || track?.kind === 'memory';
    return isCounter ? this.#picture.valuesAt(this.scene, row, x) : this.#picture.sharesAt(this.scene, row, x);
  }

  /** Draws everything again in the next frame. */
  redraw() {
    this.#isPictureOld = true;
    this.#draw();
  }

  #draw() {
    if (this.#request === 0) this.#request = requestAnimationFrame((now) => this.#frame(now));
  }

  /** @param {number} now */
  #frame(now) {
    this.#request = 0;
    if (this.view.isMoving) {
      this.view.step(now);
      this.#isPictureOld = true;
    }
    const { layout, shapes } = store.get();
    if (layout?.state !== 'ready' || this.#rowsCanvas.width === 0) return;
    const inks = pageInks(shapes);
    if (this.#isPictureOld) {
      this.#isPictureOld = false;
      this.#drawPicture();
      this.#ruler.draw(this.#ratio, inks);
      this.dispatchEvent(new CustomEvent('viewchange'));
    }
    const { rows, view } = this;
    this.#overlay.draw({
      view,
      inks,
      ratio: this.#ratio,
      pinned: rows.pinnedHeight,
      place: (row) => this.place(row),
      state: store.get(),
      arrows: this.#arrows,
      spans: this.#spans,
      shown: (row, time) => store.layerOf(row).shown(time),
      isSelecting: this.classList.contains('is-selecting'),
    });
    if (this.view.isMoving) this.#draw();
  }

  #drawPicture() {
    // New content takes the place of the old picture when its first tile is here.
    const visible = this.#visibleRows();
    if (this.stats.frames > 0 && !this.#isNew && !this.tiles.isGrowing && !this.sources.hasTop(visible)) {
      this.#hasHoles = true;
      this.sources.wantTiles(this.view, visible);
      return;
    }
    this.#isNew = false;
    const began = performance.now();
    const { rows, sliceRows, holes } = this.#picture.draw(this.scene);
    const { stats } = this;
    stats.times.push(performance.now() - began);
    if (stats.times.length > KEPT_TIMES) stats.times.shift();
    stats.frames += 1;
    if (holes > 0) stats.holes += 1;
    this.#hasHoles = holes > 0;
    this.sources.wantTiles(this.view, rows);
    this.sources.wantSlices(this.view, sliceRows);
  }

  /** Rows whose item can be seen. */
  #visibleRows() {
    const bottom = this.#body.clientHeight;
    const rows = new Set();
    for (const { track, isPinned, y, height } of this.rows.all()) {
      const top = isPinned ? y : y + this.rows.pinnedHeight - this.scrolled;
      if (!track || top >= bottom || top + height <= 0) continue;
      for (let lane = 0; lane < track.rows; lane += 1) rows.add(track.first_row + lane);
    }
    return [...rows].sort((a, b) => a - b);
  }

  #pause() {
    this.sources.pause();
  }

  #resize() {
    this.#ratio = devicePixelRatio;
    const width = this.#sticky.clientWidth;
    const height = this.#body.clientHeight;
    this.#content.style.minHeight = `${height}px`;
    this.#sticky.style.height = `${height}px`;
    size(this.#rowsCanvas, width, height, this.#ratio);
    size(this.overlayCanvas, width, height, this.#ratio);
    this.#rulerHeight = rulerHeight();
    this.style.setProperty('--ruler', `${this.#rulerHeight}px`);
    size(this.#rulerCanvas, width, this.#rulerHeight, this.#ratio);
    this.view.width = Math.max(1, this.#rowsCanvas.width);
    this.#isPictureOld = true;
    // In the same frame, because a canvas is empty after its size was set.
    if (this.#request !== 0) cancelAnimationFrame(this.#request);
    this.#frame(performance.now());
  }

  #scrolled() {
    store.set({ scroll: this.#body.scrollTop });
    this.#tooltip.hide();
    this.redraw();
  }

  /** @param {Set<keyof import('../core/store.js').State>} changed */
  #changed(changed) {
    const { layout, shapes, window, rows, selection, reveal, scroll } = store.get();
    const hasMoreRows = changed.has('layout') || changed.has('layers');
    if (hasMoreRows && layout?.state === 'ready') this.sources.open(store.layers(), { isNew: this.#isNew });
    const layouts = store.layers().map((layer) => layer.layout);
    const isSame = layouts.length === this.#arranged.length && layouts.every((one, i) => one === this.#arranged[i]);
    if (changed.has('layout') || changed.has('rows') || !isSame) {
      this.#arranged = layouts;
      this.#arrange(layout?.state === 'ready' ? mergedTracks(store.layers(), rows.grouping) : NO_LAYOUT, rows);
    }
    // The first picture of a trace does not fly in from another one's window.
    if (changed.has('window') || this.#isNew) {
      if (this.#isNew) this.view.jump(window);
      else this.view.moveTo(window);
    }
    if (changed.has('trace')) {
      this.#isNew = true;
      this.#arrows = [];
      this.#spans = [];
      this.#highlight = null;
    }
    if (changed.has('selection'))
      this.#tree.select(selection ? (this.rows.itemOfRow(selection.row)?.key ?? null) : null);
    if (changed.has('reveal') && reveal) this.#reveal(reveal.row);
    else if (changed.has('scroll') && Math.abs(this.#body.scrollTop - scroll) > 1) this.#body.scrollTop = scroll;
    if (changed.has('hover')) this.#tooltip.show(this);
    if (rulerHeight() !== this.#rulerHeight) this.#resize();
    const others = /** @type {const} */ (['layout', 'rows', 'window', 'steps', 'marks', 'area', 'shapes', 'layers']);
    if (changed.has('shapes') && shapes.length > 0) this.#isPictureOld = true;
    if (others.some((name) => changed.has(name))) this.redraw();
    else this.#draw();
  }

  /** @param {import('./rows.js').Tracks} layout @param {import('../core/store.js').RowChoices} choices */
  #arrange(layout, choices) {
    this.rows = new RowList(layout, choices);
    this.#content.style.height = `${this.rows.height + this.rows.pinnedHeight}px`;
    this.#tree.show(this.rows);
    const isEmpty = layout !== NO_LAYOUT && this.rows.items.length === 0;
    this.#empty.hidden = !isEmpty;
    this.#empty.textContent = layout.tracks.length === 0 ? 'This trace has no rows.' : 'No row matches the filter.';
  }

  /** Scrolls to a row. @param {number} row */
  #reveal(row) {
    const track = this.rows.trackOfRow(row);
    const { folded, hidden } = store.get().rows;
    const group = (track && this.rows.headOf(track)?.key) ?? `@${track?.group}`;
    if (folded.includes(group) || hidden.includes(track?.key ?? '')) {
      store.chooseRows({
        folded: folded.filter((key) => key !== group),
        hidden: hidden.filter((key) => key !== track?.key),
      });
    }
    const item = this.rows.itemOfRow(row);
    if (!item || item.isPinned) return;
    const room = this.#body.clientHeight - this.rows.pinnedHeight;
    if (item.y < this.scrolled || item.y + item.height > this.scrolled + room) {
      this.#body.scrollTop = Math.max(0, item.y + item.height / 2 - room / 2);
    }
  }
}

/** @param {HTMLCanvasElement} canvas @param {number} width @param {number} height @param {number} ratio */
function size(canvas, width, height, ratio) {
  canvas.width = Math.round(width * ratio);
  canvas.height = Math.round(height * ratio);
  canvas.style.width = `${width}px`;
  canvas.style.height = `${height}px`;
}

customElements.define('ts-timeline', Timeline);
