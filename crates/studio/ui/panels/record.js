// Recording a program from the page: which one, how much, and into which file. What is running can be stopped here.

import { getJson, isAbort, postJson } from '../core/api.js';
import { fill, h } from '../core/dom.js';
import { onRecordings, refreshRecordings } from '../core/recordings.js';
import { store } from '../core/store.js';
import { duration } from '../core/units.js';
import { failure } from './panel.js';
import { openNumber, showWhenOpen } from './recorded.js';

/** @typedef {import('../core/answers.d.ts').Recordable} Recordable */
/** @typedef {import('../core/answers.d.ts').Recording} Recording */

const LEVELS = { standard: 'standard', light: 'light: kernels, copies and counters', full: 'full: all calls' };
const STACKS = { '': 'as the level has them', 'native,python': 'native and Python', python: 'Python', none: 'none' };
const STATES = {
  starting: 'starting',
  recording: 'recording',
  closing: 'completing the file',
  done: 'complete',
  failed: 'failed',
};

class RecordDialog extends HTMLElement {
  #dialog = h('dialog', { class: 'dialog record', 'aria-labelledby': 'record-title' });
  #processes = h('select', { id: 'record-pid', required: true });
  #path = h('input', { id: 'record-path', required: true, spellcheck: false, autocomplete: 'off' });
  #duration = h('input', { id: 'record-duration', placeholder: 'until stopped, or 10s', autocomplete: 'off' });
  #level = choice('record-level', LEVELS);
  #stacks = choice('record-stacks', STACKS);
  #replay = h('input', { id: 'record-replay', type: 'checkbox' });
  #start = h('button', { type: 'submit', class: 'primary' }, 'Record');
  #none = h('p', { class: 'soft' });
  #problem = h('div', {});
  #list = h('div', { 'aria-live': 'polite' });

  connectedCallback() {
    const form = h(
      'form',
      { method: 'dialog', onsubmit: (/** @type {Event} */ event) => this.#submit(event) },
      field('Process', 'record-pid', this.#processes),
      this.#none,
      field('File', 'record-path', this.#path),
      field('Stop after', 'record-duration', this.#duration),
      field('Level', 'record-level', this.#level),
      field('Stacks', 'record-stacks', this.#stacks),
      h('label', { class: 'check', for: 'record-replay' }, this.#replay, 'Also record what a replay needs'),
      this.#problem,
      h(
        'div',
        { class: 'dialog-actions' },
        h('button', { type: 'button', onclick: () => this.#find() }, 'Look again'),
        h('button', { type: 'button', onclick: () => this.#dialog.close() }, 'Close'),
        this.#start,
      ),
    );
    fill(this.#dialog, h('h2', { id: 'record-title' }, 'Record a program'), form, this.#list);
    this.#dialog.addEventListener('keydown', (event) => event.stopPropagation());
    this.#processes.addEventListener('change', () => this.#nameFile());
    fill(this, this.#dialog);
    onRecordings((recordings) => this.#show(recordings));
  }

  /** Opens the dialog. */
  open() {
    fill(this.#problem);
    void refreshRecordings();
    void this.#find();
    if (!this.#dialog.open) this.#dialog.showModal();
  }

  /** Lists the processes that can be recorded now. */
  async #find() {
    try {
      /** @type {Recordable[]} */
      const processes = await getJson('processes');
      const chosen = this.#processes.value;
      fill(
        this.#processes,
        processes.map(({ pid, command }) =>
          h('option', { value: String(pid), selected: String(pid) === chosen }, `${pid} ${shortCommand(command)}`),
        ),
      );
      this.#none.hidden = processes.length > 0;
      this.#none.textContent =
        'No running program can be recorded. Start it with the variables that `tracesmith env` prints.';
      this.#start.disabled = processes.length === 0;
      this.#nameFile();
    } catch (error) {
      if (!isAbort(error)) this.#fail(error);
    }
  }

  /** Suggests a file, unless the person has written another name. */
  #nameFile() {
    const isOwn = this.#path.value !== '' && !/^record-\d+(-\d+)?\.sbt$/.test(this.#path.value);
    if (isOwn || this.#processes.value === '') return;
    this.#path.value = `record-${this.#processes.value}-${Math.round(Date.now() / 1000)}.sbt`;
  }

  /** @param {Event} event */
  async #submit(event) {
    event.preventDefault();
    fill(this.#problem);
    const optional = (/** @type {string} */ text) => text.trim() || undefined;
    try {
      /** @type {Recording} */
      const { id } = await postJson('recordings', {
        pid: Number(this.#processes.value),
        path: this.#path.value,
        duration: optional(this.#duration.value),
        level: this.#level.value,
        stacks: optional(this.#stacks.value),
        replay: this.#replay.checked,
      });
      showWhenOpen(id);
      await refreshRecordings();
    } catch (error) {
      this.#fail(error);
    }
  }

  /** @param {unknown} error */
  #fail(error) {
    fill(
      this.#problem,
      failure(error, () => {
        fill(this.#problem);
        void this.#find();
      }),
    );
  }

  /** @param {Recording[]} recordings */
  #show(recordings) {
    fill(this.#list, recordings.length > 0 ? recordings.toReversed().map(line) : null);
  }
}

/** A command line without the folder of the program. @param {string} command */
function shortCommand(command) {
  return command.replace(/^\S*\//, '').slice(0, 120);
}

/** A recording, and what can be done with it. @param {Recording} recording */
function line(recording) {
  const { id, pid, path, state, trace, error, hint, report, seconds } = recording;
  const kernels = report?.rows.kernels;
  const facts = [
    STATES[state],
    ['starting', 'recording'].includes(state) ? `for ${duration(Math.round(seconds) * 1e9)}` : '',
    kernels === undefined ? '' : `${kernels} kernels`,
    report && !report.whole ? 'incomplete' : '',
    error ?? '',
    hint ? `Hint: ${hint}` : '',
  ];
  return h(
    'div',
    { class: `recording is-${state}` },
    h('span', { class: 'recording-what' }, `${path} · process ${pid} · ${facts.filter(Boolean).join(' · ')}`),
    ['starting', 'recording'].includes(state)
      ? h('button', { type: 'button', onclick: () => stop(id) }, 'Stop')
      : null,
    trace === null || trace === store.get().trace
      ? null
      : h('button', { type: 'button', onclick: () => openNumber(trace) }, 'Show'),
  );
}

/** @param {number} id */
async function stop(id) {
  await postJson(`recordings/${id}/stop`, {}).catch(() => undefined);
  await refreshRecordings();
}

/** @param {string} text @param {string} id @param {HTMLElement} control */
function field(text, id, control) {
  return h('label', { for: id }, text, control);
}

/** @param {string} id @param {Record<string, string>} values */
function choice(id, values) {
  return h(
    'select',
    { id },
    Object.entries(values).map(([value, text]) => h('option', { value }, text)),
  );
}

customElements.define('ts-record', RecordDialog);
