// The folders below the one the server was started in, for choosing a file.

import { getJson, isAbort } from '../core/api.js';
import { fill, h } from '../core/dom.js';
import { bytes } from '../core/units.js';
import { failure } from './panel.js';
import { dataTable } from './table.js';

/** @typedef {import('../core/answers.d.ts').FileEntry} FileEntry */

/** A list of files, in which folders can be opened. */
export class FileList {
  element = h('div', { class: 'open-list' });
  #request = new AbortController();
  #choose;

  /** @param {(path: string) => void} choose gets the path of a file */
  constructor(choose) {
    this.#choose = choose;
  }

  /** Shows a folder. @param {string} path */
  async show(path) {
    this.#request.abort();
    this.#request = new AbortController();
    try {
      /** @type {import('../core/answers.d.ts').Files} */
      const files = await getJson('files', { path }, { signal: this.#request.signal });
      fill(
        this.element,
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
          this.element,
          failure(error, () => this.show(path)),
        );
    }
  }

  /** @param {string} path */
  #parent(path) {
    return h('button', { type: 'button', onclick: () => this.show(path) }, '↑ Parent folder');
  }

  /** @param {string} folder @param {FileEntry} entry */
  #entry(folder, entry) {
    const path = folder === '' ? entry.name : `${folder}/${entry.name}`;
    if (entry.kind === 'folder') this.show(path);
    else this.#choose(path);
  }
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
