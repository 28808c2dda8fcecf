// The page for opening a trace: recently opened ones, and the folders below the one the server was started in.

import { getJson, isAbort } from '../core/api.js';
import { fill, h } from '../core/dom.js';
import { store } from '../core/store.js';
import { bytes } from '../core/units.js';
import { openTrace } from './actions.js';
import { failure } from './panel.js';
import { recent } from './recent.js';
import { dataTable } from './table.js';

/** @typedef {import('../core/answers.d.ts').FileEntry} FileEntry */

class Open extends HTMLElement {
  #list = h('div', { class: 'open-list' });
  #problem = h('div', {});
  #request = new AbortController();
  #asked = false;

  connectedCallback() {
    store.subscribe((changed) => {
      if (changed.has('session') || changed.has('trace') || changed.has('layout')) this.#draw();
    });
    this.#draw();
  }

  #draw() {
    const { session, trace, layout } = store.get();
    if (!session || (trace >= 0 && layout?.state !== 'failed')) return;
    fill(
      this,
      h(
        'div',
        { class: 'open-page' },
        h('h2', {}, 'Open a trace'),
        h(
          'p',
          { class: 'faint' },
          `Files below ${session.folder}. To open others, start `,
          h('code', {}, 'tracesmith studio FILE…'),
        ),
        this.#problem,
        links('Open now', session.traces, (one) => store.set({ trace: one.id }, { history: 'push' })),
        links(
          'Opened before',
          recent().map((path) => ({ path })),
          (one) => this.#open(one.path),
        ),
        this.#list,
      ),
    );
    if (!this.#asked) this.#folder('');
    this.#asked = true;
  }

  /** @param {string} path */
  async #folder(path) {
    this.#request.abort();
    this.#request = new AbortController();
    try {
      /** @type {import('../core/answers.d.ts').Files} */
      const files = await getJson('files', { path }, { signal: this.#request.signal });
      fill(
        this.#list,
        h('h3', {}, files.path === '' ? 'This folder' : files.path),
        dataTable({
          caption: `Files in ${files.path || 'the folder'}`,
          rows: files.entries,
          columns: columns(),
          empty: 'The folder is empty.',
          tools: files.parent === null ? [] : [this.#parent(files.parent)],
          open: (entry) => this.#entry(files.path, entry),
        }),
      );
    } catch (error) {
      if (!isAbort(error))
        fill(
          this.#list,
          failure(error, () => this.#folder(path)),
        );
    }
  }

  /** @param {string} path */
  #parent(path) {
    return h('button', { type: 'button', onclick: () => this.#folder(path) }, '↑ Parent folder');
  }

  /** @param {string} folder @param {FileEntry} entry */
  #entry(folder, entry) {
    const path = folder === '' ? entry.name : `${folder}/${entry.name}`;
    if (entry.kind === 'folder') this.#folder(path);
    else this.#open(path);
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

/** @returns {import('./table.js').Column<FileEntry>[]} */
function columns() {
  const order = { folder: 0, trace: 1, file: 2 };
  const words = { folder: 'folder', trace: 'trace', file: 'other file' };
  const date = new Intl.DateTimeFormat('en-GB', { dateStyle: 'medium', timeStyle: 'short' });
  return [
    {
      key: 'name',
      title: 'Name',
      value: (entry) => entry.name,
      text: (entry) => (entry.kind === 'folder' ? `${entry.name}/` : entry.name),
      opens: true,
      wide: true,
    },
    { key: 'kind', title: 'Kind', value: (entry) => order[entry.kind], text: (entry) => words[entry.kind] },
    {
      key: 'bytes',
      title: 'Size',
      align: 'right',
      value: (entry) => entry.bytes,
      text: (entry) => (entry.kind === 'folder' ? '' : bytes(entry.bytes)),
    },
    {
      key: 'modified',
      title: 'Changed',
      align: 'right',
      value: (entry) => entry.modified,
      text: (entry) => date.format(new Date(entry.modified * 1000)),
    },
  ];
}

customElements.define('ts-open', Open);
