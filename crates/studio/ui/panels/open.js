// The page for opening a trace: recently opened ones, and the folders below the one the server was started in.

import { fill, h } from '../core/dom.js';
import { store } from '../core/store.js';
import { openTrace } from './actions.js';
import { FileList } from './files.js';
import { failure } from './panel.js';
import { recent } from './recent.js';

class Open extends HTMLElement {
  #files = new FileList((path) => this.#open(path));
  #problem = h('div', {});
  #asked = false;

  connectedCallback() {
    store.subscribe((changed) => {
      if (changed.has('session') || changed.has('trace')) this.#draw();
    });
    this.#draw();
  }

  #draw() {
    const { session, trace } = store.get();
    if (!session || trace >= 0) return;
    fill(
      this,
      h(
        'div',
        { class: 'open-page' },
        h('h2', {}, 'Open a trace'),
        h(
          'p',
          { class: 'faint' },
          `Files below ${session.folder}. \`tracesmith studio FILE…\` opens files at the start.`,
        ),
        this.#problem,
        links('Open now', session.traces, (one) => store.set({ trace: one.id }, { history: 'push' })),
        links(
          'Opened before',
          recent().map((path) => ({ path })),
          (one) => this.#open(one.path),
        ),
        this.#files.element,
      ),
    );
    if (!this.#asked) this.#files.show('');
    this.#asked = true;
  }

  /** @param {string} path */
  async #open(path) {
    fill(this.#problem);
    try {
      await openTrace(path);
    } catch (error) {
      fill(
        this.#problem,
        failure(error, () => this.#open(path)),
      );
    }
  }
}

/**
 * Traces that one click opens.
 * @template {{path: string}} T
 * @param {string} title
 * @param {T[]} traces
 * @param {(trace: T) => void} open
 */
function links(title, traces, open) {
  if (traces.length === 0) return null;
  const lines = traces.map((one) =>
    h('li', {}, h('button', { type: 'button', class: 'link', onclick: () => open(one) }, one.path)),
  );
  return h('section', { class: 'block' }, h('h3', {}, title), h('ul', { class: 'recent' }, lines));
}

customElements.define('ts-open', Open);
