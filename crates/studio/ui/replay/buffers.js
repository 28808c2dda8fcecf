// The buffers of the chosen call, with what the call changed in each.

import { fill, h } from '../core/dom.js';
import { bytes, count } from '../core/units.js';
import { ReplayPart } from './part.js';

/** @typedef {import('./answers.d.ts').BufferEntry} BufferEntry */

class ReplayBuffers extends ReplayPart {
  #list = h('div', { class: 'replay-buffer-list', role: 'listbox', tabindex: '0', 'aria-label': 'Buffers of the call' });
  #what = h('p', { class: 'replay-what' });
  #drawn = '';

  build() {
    this.#list.addEventListener('keydown', (event) => this.#key(event));
    this.append(this.#what, this.#list);
  }

  draw() {
    const { buffers, buffer, changed, call } = this.model;
    const key = JSON.stringify([call?.number, buffers, buffer?.address, [...(changed?.keys() ?? [])]]);
    if (key === this.#drawn) return;
    this.#drawn = key;
    fill(this.#what, call ? [h('b', {}, `#${call.number} ${call.kind}`), ` ${call.what || call.name} · stream ${call.stream}`] : null);
    const chosen = buffer ? `replay-buffer-${buffer.address}` : '';
    if (chosen) this.#list.setAttribute('aria-activedescendant', chosen);
    else this.#list.removeAttribute('aria-activedescendant');
    if (buffers.length === 0) fill(this.#list, h('p', { class: 'faint' }, call ? 'This call uses no buffer.' : ''));
    else
      fill(
        this.#list,
        buffers.map((one) => this.#row(one)),
      );
  }

  /** @param {BufferEntry} buffer */
  #row(buffer) {
    const isChosen = buffer.address === this.model.buffer?.address;
    const change = this.model.changed?.get(buffer.address);
    return h(
      'div',
      {
        class: `replay-buffer${isChosen ? ' chosen' : ''}`,
        role: 'option',
        id: `replay-buffer-${buffer.address}`,
        'aria-selected': String(isChosen),
        onclick: () => this.model.selectBuffer(buffer.address),
      },
      h('span', { class: 'role' }, roleOf(buffer)),
      h('code', {}, buffer.variable || buffer.address),
      h('span', { class: 'faint' }, `${bytes(buffer.bytes)} ${buffer.memory}`),
      change ? h('span', { class: 'changed' }, `${count(change.different_bytes)} B changed`) : null,
    );
  }

  /** @param {KeyboardEvent} event */
  #key(event) {
    const { buffers, buffer } = this.model;
    const at = buffers.findIndex((one) => one.address === buffer?.address);
    const next = { ArrowDown: at + 1, ArrowUp: at - 1, Home: 0, End: buffers.length - 1 }[event.key];
    if (next === undefined || event.altKey || event.ctrlKey || event.metaKey) return;
    event.preventDefault();
    event.stopPropagation();
    const target = buffers[Math.min(Math.max(next, 0), buffers.length - 1)];
    if (target) this.model.selectBuffer(target.address);
  }
}

/** How the call refers to it. @param {BufferEntry} buffer */
function roleOf({ role, argument, offset, pointer, address }) {
  const inside = pointer && pointer !== address ? ` + ${Number(BigInt(pointer) - BigInt(address))}` : '';
  if (role === 'parameter') return `${argument === null || argument === undefined ? `at ${offset}` : `arg ${argument}`}${inside}`;
  return `${role ?? 'not an argument'}${inside}`;
}

customElements.define('ts-replay-buffers', ReplayBuffers);
