// The button in the head that leads to the recordings of this server, and what happens when one begins.

import { getJson } from '../core/api.js';
import { fill, h } from '../core/dom.js';
import { onRecordings, refreshRecordings } from '../core/recordings.js';
import { store } from '../core/store.js';

/** @typedef {import('../core/answers.d.ts').Recording} Recording */

/** Recordings that this page has started and not shown yet. @type {Set<number>} */
const wanted = new Set();

/** `<ts-recorded>`: there only if pages may record. */
class Recorded extends HTMLElement {
  #running = 0;

  connectedCallback() {
    store.subscribe((changed) => {
      if (!changed.has('session')) return;
      this.#draw();
      if (store.get().session?.records) void refreshRecordings();
    });
    onRecordings((recordings) => this.#changed(recordings));
    this.#draw();
  }

  /** @param {Recording[]} recordings */
  #changed(recordings) {
    this.#running = recordings.filter(({ state }) => ['starting', 'recording'].includes(state)).length;
    this.#draw();
    for (const { id, trace } of recordings) {
      if (trace === null || !wanted.delete(id)) continue;
      /** @type {HTMLDialogElement | null} */ (document.querySelector('ts-record dialog'))?.close();
      void openNumber(trace);
    }
  }

  #draw() {
    if (!store.get().session?.records) {
      fill(this);
      return;
    }
    const text = this.#running > 0 ? `Recording (${this.#running})` : 'Record…';
    const isOpen = this.textContent === text;
    if (isOpen) return;
    const onclick = () => /** @type {HTMLElement & {open: () => void}} */ (document.querySelector('ts-record')).open();
    fill(this, h('button', { type: 'button', class: 'quiet', onclick }, text));
  }
}

/** Shows a recording as soon as there is something of it. @param {number} id */
export function showWhenOpen(id) {
  wanted.add(id);
}

/** Shows a trace that the server has opened. @param {number} trace */
export async function openNumber(trace) {
  /** @type {import('../core/answers.d.ts').Session} */
  const session = await getJson('session');
  store.set({ session, trace, selection: null, area: null }, { history: 'push' });
}

customElements.define('ts-recorded', Recorded);
