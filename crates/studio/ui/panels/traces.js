// Which trace is shown, if several are open, and the way to open another one.

import { fill, h } from '../core/dom.js';
import { store } from '../core/store.js';

const DRAWN = /** @type {const} */ (['session', 'trace', 'layout', 'compare']);

class Traces extends HTMLElement {
  #shown = '';

  connectedCallback() {
    store.subscribe((changed) => {
      if (DRAWN.some((name) => changed.has(name))) this.#draw();
    });
    this.#draw();
  }

  #draw() {
    const { session, trace, layout, compare } = store.get();
    const shown = JSON.stringify([session?.traces, trace, layout?.name, layout?.path, compare]);
    // A list that is open stays open while a trace grows.
    if (shown === this.#shown) return;
    this.#shown = shown;
    if (!session || trace < 0) {
      fill(this);
      return;
    }
    const open = h(
      'button',
      {
        type: 'button',
        class: 'quiet',
        title: 'Open another trace',
        onclick: () => store.set({ trace: -1, layout: null }, { history: 'none' }),
      },
      'Open…',
    );
    if (session.traces.length < 2) {
      fill(
        this,
        h('span', { class: 'trace-name', title: layout?.path ?? '' }, layout?.name ?? session.traces[0]?.name ?? ''),
        open,
      );
      return;
    }
    const onchange = (/** @type {Event} */ event) =>
      store.set(
        { trace: Number(/** @type {HTMLSelectElement} */ (event.target).value), selection: null, area: null },
        { history: 'push' },
      );
    const options = session.traces.map(({ id, name, state }) =>
      h(
        'option',
        { value: String(id), selected: id === trace },
        state === 'failed' ? `${name} (cannot be read)` : name,
      ),
    );
    const badge = compare ? h('span', { class: 'tl-layer', 'aria-hidden': 'true' }, 'A') : null;
    fill(this, badge, h('select', { 'aria-label': 'Trace', onchange }, options), open);
  }
}

customElements.define('ts-traces', Traces);
