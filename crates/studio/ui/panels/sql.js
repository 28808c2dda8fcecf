// Questions in SQL: an editor with history, the result as a table, and errors in words.

import { ApiError, postJson } from '../core/api.js';
import { h } from '../core/dom.js';
import { store } from '../core/store.js';
import { count } from '../core/units.js';
import { answerTable } from './answer-table.js';
import { choose, chosen } from './choices.js';
import { Panel, note } from './panel.js';
import { commandLine } from './scoped.js';
import { fileArgument, quoted } from './scope.js';
import { counted } from './words.js';

const HISTORY = 'tracesmith-sql';
const KEPT_QUERIES = 30;
const LIMIT = 10000;

/** @type {[string, string][]} */
const EXAMPLES = [
  [
    'Kernels by total time',
    'select name, count(*) as runs, sum(duration) as total_ns\nfrom ' +
      'kernels group by name order by total_ns desc limit 20',
  ],
  [
    'Longest waits of the CPU',
    "select name, start, duration from api_calls\nwhere name like '%Synchronize%' order by duration desc limit 20",
  ],
  [
    'Bytes copied by direction',
    'select direction, count(*) as copies, sum(bytes) as bytes, ' +
      'sum(duration) as total_ns\nfrom copies group by direction',
  ],
  ['Statistics of kernels', 'select * from kernel_stats() limit 20'],
];

class Sql extends Panel {
  /** @type {(keyof import('../core/store.js').State)[]} */
  watched = ['trace', 'layout', 'panel'];
  #editor = h('textarea', {
    rows: '4',
    spellcheck: 'false',
    'aria-label': 'SQL query',
    'data-focus': 'query',
    placeholder: 'select name, count(*) from kernels group by name',
    onkeydown: (/** @type {KeyboardEvent} */ event) => this.#key(event),
  });

  question() {
    const { trace, layout } = store.get();
    return layout?.state === 'ready' ? `${trace} ${chosen('sql', '')}` : null;
  }

  /** @param {AbortSignal} signal */
  async load(signal) {
    const query = chosen('sql', '');
    if (query) this.#editor.value = query;
    const head = h(
      'div',
      { class: 'sql-head' },
      this.#editor,
      h(
        'div',
        { class: 'sql-tools' },
        h('button', { type: 'button', class: 'primary', title: 'Ctrl+Enter', onclick: () => this.#run() }, 'Run'),
        h('button', { type: 'button', onclick: () => this.#stop() }, 'Stop'),
        choice('Examples', EXAMPLES, ask),
        choice(
          'History',
          history().map((text) => /** @type {[string, string]} */ ([text.replace(/\s+/g, ' ').slice(0, 80), text])),
          ask,
        ),
      ),
    );
    if (!query)
      return [
        head,
        note('Write a query, or choose an example. docs/reference/sql.md lists all tables, views and functions.'),
      ];
    return [head, await answer(query, signal)];
  }

  #run() {
    const query = this.#editor.value.trim();
    if (query === '') return;
    if (query === chosen('sql', '')) this.again();
    else ask(query);
  }

  #stop() {
    choose({ sql: '' });
  }

  /** @param {KeyboardEvent} event */
  #key(event) {
    if (event.key === 'Enter' && (event.ctrlKey || event.metaKey)) this.#run();
    event.stopPropagation();
  }
}

/** Shows and runs a query. @param {string} query */
function ask(query) {
  remember(query);
  choose({ sql: query });
}

/** @param {string} query @param {AbortSignal} signal */
async function answer(query, signal) {
  try {
    /** @type {import('../core/answers.d.ts').SqlResult} */
    const { columns, rows, truncated, ms } = await postJson(
      `t/${store.get().trace}/sql`,
      { query, limit: LIMIT },
      { signal },
    );
    const words = `${counted(rows.length, 'row')} in ${ms.toFixed(1)} ms`;
    return [
      truncated ? note(`Only the first ${count(LIMIT)} rows are shown. The command prints all.`) : null,
      answerTable(
        'Result of the query',
        columns.map((column) => column.name),
        rows,
        { empty: 'The query has no rows.' },
      ),
      h(
        'div',
        { class: 'panel-foot' },
        h('span', { class: 'faint', role: 'status' }, words),
        commandLine(`tracesmith sql ${fileArgument()} ${quoted(query.replace(/\s+/g, ' '))}`),
      ),
    ];
  } catch (error) {
    if (error instanceof ApiError && error.status !== 0) return [wrong(error)];
    throw error;
  }
}

/** @param {ApiError} error */
function wrong(error) {
  return h(
    'div',
    { class: 'problem', role: 'alert' },
    h('pre', {}, error.message),
    error.hint ? h('p', { class: 'faint' }, `Hint: ${error.hint}`) : null,
  );
}

/** @param {string} title @param {[string, string][]} options @param {(text: string) => void} chosen */
function choice(title, options, chosen) {
  const select = h(
    'select',
    { 'aria-label': title },
    h('option', { value: '' }, title),
    options.map(([words, text]) => h('option', { value: text }, words)),
  );
  select.addEventListener('change', () => {
    if (select.value) chosen(select.value);
    select.value = '';
  });
  return select;
}

/** @returns {string[]} */
function history() {
  try {
    const kept = JSON.parse(localStorage.getItem(HISTORY) ?? '[]');
    return Array.isArray(kept) ? kept.filter((text) => typeof text === 'string') : [];
  } catch {
    return [];
  }
}

/** @param {string} query */
function remember(query) {
  localStorage.setItem(
    HISTORY,
    JSON.stringify([query, ...history().filter((text) => text !== query)].slice(0, KEPT_QUERIES)),
  );
}

customElements.define('ts-sql', Sql);
