// The buffers of the chosen call, with what the call changed in each.

import { fill, h } from '../core/dom.js';
import { bytes, count } from '../core/units.js';
import { offsetOf, pointerOf } from './model.js';
import { ReplayPart } from './part.js';

/** @typedef {import('./answers.d.ts').BufferEntry} BufferEntry */

class ReplayBuffers extends ReplayPart {
  #list = h('div', {
    class: 'replay-buffer-list',
    role: 'listbox',
    tabindex: '0',
    'aria-label': 'Buffers of the call',
  });
  #what = h('p', { class: 'replay-what' });
  #drawn = '';

  build() {
    this.#list.addEventListener('keydown', (event) => this.#key(event));
    this.append(this.#what, this.#list);
  }

  draw() {
    const { buffers, buffer, changed, call } = this.model;
    const key = JSON.stringify([call?.number, buffers, buffer && pointerOf(buffer), [...(changed?.keys() ?? [])]]);
    if (key === this.#drawn) return;
    this.#drawn = key;
    fill(
      this.#what,
      call
        ? [h('b', {}, `#${call.number} ${call.kind}`), ` ${call.what || call.name} · ${streamWords(call.stream)}`]
        : null,
    );
    const chosen = buffer ? `replay-buffer-${pointerOf(buffer)}` : '';
    if (chosen) this.#list.setAttribute('aria-activedescendant', chosen);
    else this.#list.removeAttribute('aria-activedescendant');
    // A list box without an option is none.
    const isEmpty = buffers.length === 0;
    this.#list.setAttribute('role', isEmpty ? 'group' : 'listbox');
    this.#list.tabIndex = isEmpty ? -1 : 0;
    if (isEmpty) fill(this.#list, h('p', { class: 'faint' }, call ? 'This call uses no buffer.' : ''));
    else
      fill(
        this.#list,
        buffers.map((one) => this.#row(one)),
      );
  }

  /** @param {BufferEntry} buffer */
  #row(buffer) {
    const pointer = pointerOf(buffer);
    const isChosen = buffer === this.model.buffer;
    const change = this.model.changeOf(buffer);
    const size = offsetOf(buffer) > 0 ? `at ${bytes(offsetOf(buffer))} of ${bytes(buffer.bytes)}` : bytes(buffer.bytes);
    return h(
      'div',
      {
        class: `replay-buffer${isChosen ? ' chosen' : ''}`,
        role: 'option',
        id: `replay-buffer-${pointer}`,
        'aria-selected': String(isChosen),
        onclick: () => this.model.selectBuffer(pointer),
      },
      h('span', { class: 'role' }, roleOf(buffer)),
      h('code', {}, buffer.variable || pointer),
      h('span', { class: 'faint' }, `${size} ${buffer.memory}`),
      change ? h('span', { class: 'changed' }, `${change.isAll ? '' : '≥ '}${count(change.bytes)} B changed`) : null,
    );
  }

  /** @param {KeyboardEvent} event */
  #key(event) {
    const { buffers, buffer } = this.model;
    const at = buffers.findIndex((one) => one === buffer);
    const next = { ArrowDown: at + 1, ArrowUp: at - 1, Home: 0, End: buffers.length - 1 }[event.key];
    if (next === undefined || event.altKey || event.ctrlKey || event.metaKey) return;
    event.preventDefault();
    event.stopPropagation();
    const target = buffers[Math.min(Math.max(next, 0), buffers.length - 1)];
    if (target) this.model.selectBuffer(pointerOf(target));
  }
}

/** The stream as the program named it: a handle, or none. @param {string} stream */
function streamWords(stream) {
  return stream === '0x0' ? 'default stream' : `stream ${stream}`;
}

/** How the call refers to it. @param {BufferEntry} buffer */
function roleOf({ role, argument, offset }) {
  if (role !== 'parameter') return role ?? 'not an argument';
  return argument === null || argument === undefined ? `parameters + ${offset}` : `arg ${argument}`;
}

customElements.define('ts-replay-buffers', ReplayBuffers);
