// The recorded calls as a list. The chosen one is the call of the kernel that is selected on the timeline, and the
// other way round.

import { h } from '../core/dom.js';
import { duration } from '../core/units.js';
import { shortName } from '../panels/words.js';
import { ReplayPart } from './part.js';
import { showOnTimeline } from './timeline-link.js';

/** @typedef {import('./answers.d.ts').Call} Call */

const ROW_HEIGHT = 24;
const BEYOND = 12;
const PAGE = 12;

class ReplayCalls extends ReplayPart {
  #body = h('div', { class: 'replay-calls-body' });
  #list = h('div', {
    class: 'replay-calls',
    role: 'listbox',
    tabindex: '0',
    'aria-label': 'Recorded calls',
  });
  /** @type {Call[]} */
  #drawn = [];
  #first = -1;
  #chosen = -1;

  build() {
    this.#list.addEventListener('scroll', () => this.#rows(), { passive: true });
    this.#list.addEventListener('keydown', (event) => this.#key(event));
    this.#list.addEventListener('click', (event) => {
      const row = /** @type {HTMLElement} */ (event.target).closest('[role=option]');
      if (row instanceof HTMLElement) this.#select(Number(row.dataset.number));
    });
    this.#list.append(this.#body);
    this.append(this.#list);
    new ResizeObserver(() => this.#rows()).observe(this.#list);
  }

  draw() {
    const { calls, call } = this.model;
    const isOther = this.#drawn !== calls;
    this.#drawn = calls;
    // A list box without an option is none.
    this.#list.setAttribute('role', calls.length > 0 ? 'listbox' : 'group');
    this.#body.style.height = `${calls.length * ROW_HEIGHT}px`;
    const number = call?.number ?? -1;
    if (number !== this.#chosen || isOther) {
      this.#chosen = number;
      this.#first = -1;
      this.#reveal(call ? calls.indexOf(call) : 0);
    }
    this.#rows();
  }

  /** @param {number} at */
  #reveal(at) {
    const [top, height] = [at * ROW_HEIGHT, this.#list.clientHeight];
    if (top < this.#list.scrollTop || top + ROW_HEIGHT > this.#list.scrollTop + height)
      this.#list.scrollTop = Math.max(0, top - height / 2);
  }

  /** Draws the visible rows. */
  #rows() {
    const { calls } = this.model;
    const first = Math.max(0, Math.floor(this.#list.scrollTop / ROW_HEIGHT) - BEYOND);
    const shown = Math.ceil(Math.max(this.#list.clientHeight, 200) / ROW_HEIGHT) + 2 * BEYOND;
    if (first === this.#first && this.#body.childElementCount === Math.min(shown, calls.length - first)) return;
    this.#first = first;
    this.#body.replaceChildren(...calls.slice(first, first + shown).map((call, i) => this.#row(call, first + i)));
    const chosen = calls.findIndex((call) => call.number === this.#chosen);
    if (chosen >= first && chosen < first + shown)
      this.#list.setAttribute('aria-activedescendant', `replay-call-${this.#chosen}`);
    else this.#list.removeAttribute('aria-activedescendant');
  }

  /** @param {Call} call @param {number} at */
  #row(call, at) {
    const isChosen = call.number === this.#chosen;
    const isKernel = call.kind === 'launch';
    const row = h(
      'div',
      {
        class: `replay-call${isChosen ? ' chosen' : ''}${isKernel ? '' : ' other'}`,
        role: 'option',
        id: `replay-call-${call.number}`,
        'aria-selected': String(isChosen),
        'aria-posinset': at + 1,
        'aria-setsize': this.model.calls.length,
        'data-number': call.number,
        title: call.what,
      },
      h('span', { class: 'number' }, `#${call.number}`),
      h('span', { class: 'name' }, isKernel ? shortName(call.name) : `${call.kind} ${call.what}`),
      h('span', { class: 'time' }, call.recorded_ns === null ? '' : duration(call.recorded_ns)),
    );
    row.style.top = `${at * ROW_HEIGHT}px`;
    return row;
  }

  /** @param {number} number */
  #select(number) {
    this.model.select(number);
    const call = this.model.call;
    if (call) showOnTimeline(this.model, call);
  }

  /** @param {KeyboardEvent} event */
  #key(event) {
    if (event.altKey || event.ctrlKey || event.metaKey) return;
    const { calls, call } = this.model;
    const at = call ? calls.indexOf(call) : 0;
    const next = {
      ArrowDown: at + 1,
      ArrowUp: at - 1,
      PageDown: at + PAGE,
      PageUp: at - PAGE,
      Home: 0,
      End: calls.length - 1,
      Enter: at,
    }[event.key];
    if (next === undefined) return;
    event.preventDefault();
    event.stopPropagation();
    const target = calls[Math.min(Math.max(next, 0), calls.length - 1)];
    if (target) this.#select(target.number);
  }
}

customElements.define('ts-replay-calls', ReplayCalls);
