// The box beside the pointer: what is there.

import { fill, h } from '../core/dom.js';
import { store } from '../core/store.js';
import { duration, moment, percent, quantity } from '../core/units.js';

/** @typedef {import('./timeline.js').Timeline} Timeline */

const GAP = 14;
const MAX_NAME = 300;

/** One box, shown and hidden. */
export class Tooltip {
  element = h('div', { class: 'tl-tip', 'aria-hidden': 'true', hidden: true });
  #x = 0;
  #y = 0;

  /** @param {HTMLElement} timeline */
  constructor(timeline) {
    timeline.addEventListener(
      'pointermove',
      (event) => {
        const { left, top } = timeline.getBoundingClientRect();
        this.#x = event.clientX - left;
        this.#y = event.clientY - top;
      },
      { capture: true },
    );
  }

  hide() {
    this.element.hidden = true;
  }

  /** Shows what is under the pointer. @param {Timeline} timeline */
  show(timeline) {
    const { hover } = store.get();
    const track = hover && hover.row >= 0 ? timeline.rows.trackOfRow(hover.row) : null;
    if (!hover || !track || timeline.classList.contains('is-panning')) {
      this.hide();
      return;
    }
    const { slice } = hover;
    const { shapes, label } = store.layerOf(hover.row);
    const home = timeline.rows.homes.get(track.group) ?? '';
    const where = [label, track.label, home].filter(Boolean).join(' · ');
    const lines = slice
      ? [
          h('strong', {}, shorten(shapes.name(slice.shape))),
          h('span', {}, `${duration(slice.duration)} · at ${moment(slice.start, timeline.view.nanosPerPixel)}`),
        ]
      : this.#cells(timeline, track, hover.row, hover.time);
    if (lines.length === 0) {
      this.hide();
      return;
    }
    fill(this.element, ...lines, h('span', { class: 'tl-tip-row' }, where));
    this.element.hidden = false;
    const { clientWidth, clientHeight } = timeline;
    const { offsetWidth, offsetHeight } = this.element;
    const left = this.#x + GAP + offsetWidth > clientWidth ? this.#x - GAP - offsetWidth : this.#x + GAP;
    const top = Math.min(this.#y + GAP, clientHeight - offsetHeight - 4);
    this.element.style.transform = `translate(${Math.max(4, left)}px, ${Math.max(4, top)}px)`;
  }

  /**
   * @param {Timeline} timeline
   * @param {import('../core/answers.d.ts').Track} track
   * @param {number} row
   * @param {number} time
   */
  #cells(timeline, track, row, time) {
    if (timeline.showsSlices(row)) return [];
    const x = Math.floor(timeline.view.x(time));
    const cell = timeline.cellAt(row, x);
    if (!Array.isArray(cell)) {
      if (Number.isNaN(cell.max)) return [];
      const [low, high] = [quantity(cell.min, track.unit), quantity(cell.max, track.unit)];
      return [h('strong', {}, low === high ? high : `${low} to ${high}`)];
    }
    const parts = track.categories.map((name, k) => [name, cell[k] ?? 0]).filter(([, share]) => Number(share) > 0.0005);
    if (parts.length === 0) return track.kind === 'device' ? [h('strong', {}, 'idle')] : [];
    return [
      ...parts.map(([name, share]) => h('span', {}, `${percent(Math.min(1, Number(share)))} ${name}`)),
      h('span', { class: 'tl-tip-row' }, `in the ${duration(timeline.view.nanosPerPixel)} under the pointer`),
    ];
  }
}

/** @param {string} name */
function shorten(name) {
  return name.length > MAX_NAME ? `${name.slice(0, MAX_NAME)}…` : name;
}
