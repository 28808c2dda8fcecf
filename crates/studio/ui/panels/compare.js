// The comparison of two traces as `tracesmith diff` prints it: times, idle causes, copies, memory, kernels and steps.

import { getJson } from '../core/api.js';
import { h } from '../core/dom.js';
import { store } from '../core/store.js';
import { bytes, duration } from '../core/units.js';
import { causeWords } from '../core/causes.js';
import { choose, chosen } from './choices.js';
import { stepsOfBoth } from './compare-steps.js';
import { doubtTable } from './health.js';
import { clearPair, showPair } from './pair.js';
import { Panel, note, section } from './panel.js';
import { quoted } from './scope.js';
import { commandLine } from './scoped.js';
import { changeCell, changeText, fromTo, meanCount, signedPercent, verdict } from './significance.js';
import { dataTable } from './table.js';
import { counted, shortName } from './words.js';

/** @typedef {import('./diff.d.ts').Diff} Diff */
/** @typedef {import('./diff.d.ts').Compared} Compared */
/** @typedef {import('./diff.d.ts').KernelDiff} KernelDiff */
/** @typedef {import('../core/layer.js').Layer} Layer */
/**
 * @template R
 * @typedef {import('./table.js').Column<R>} Column
 */

const CERTAIN = 'Where Significance is empty, the change is more than chance.';

class Comparison extends Panel {
  /** @type {(keyof import('../core/store.js').State)[]} */
  watched = ['trace', 'layout', 'layers', 'compare', 'panel'];

  question() {
    const base = super.question();
    const [, b] = pair();
    return base && b ? `${base} ${b.trace} ${b.layout?.generation} ${matchedBy()}` : null;
  }

  nothing() {
    const { layout, compare } = store.get();
    if (layout?.state !== 'ready') return super.nothing();
    return [
      note(
        compare
          ? 'The second trace is being read.'
          : 'Choose a second trace with “Compare with…” at the top. Its rows appear beneath those of this trace, ' +
              'aligned by steps, and this tab shows what `tracesmith diff` prints.',
      ),
    ];
  }

  /** @param {AbortSignal} signal */
  async load(signal) {
    const [a, b] = pair();
    if (!a || !b) return this.nothing();
    const by = matchedBy();
    /** @type {Diff} */
    const report = await getJson('diff', { a: a.trace, b: b.trace, by }, { signal });
    const files = [a, b].map(({ layout }) => quoted(layout?.path ?? 'FILE')).join(' ');
    return [
      h('p', {}, `A is ${a.layout?.name}, B is ${b.layout?.name}. Times ${unitWords(report)}. ${CERTAIN}`),
      h('div', { class: 'columns' }, times(report), runs(report)),
      kernels(report),
      h('div', { class: 'columns' }, idle(report), copies(report), memory(report)),
      stepsOfBoth(a, b),
      h('div', { class: 'columns' }, doubts('A', report.doubts_a), doubts('B', report.doubts_b)),
      h('div', { class: 'panel-foot' }, commandLine(`tracesmith diff ${files}${by === 'short' ? ' --by short' : ''}`)),
    ];
  }
}

/** Both traces, if they can be seen. */
function pair() {
  const layers = store.layers();
  return /** @type {const} */ ([layers[0], layers.find(({ key }) => key === 'b')]);
}

/** @returns {Diff['by']} */
function matchedBy() {
  return chosen('match', 'name') === 'short' ? 'short' : 'name';
}

/** @param {Diff} report */
function unitWords({ unit, steps_a, steps_b, has_enough_steps }) {
  if (unit === 'trace') return 'are of the whole traces: at least one has fewer than two steps';
  const few = has_enough_steps ? '' : ' (too few to be certain of a change: record at least 5 each)';
  return `are per step, the mean of ${steps_a} and ${steps_b} steps${few}`;
}

/** @param {Diff} report */
function times(report) {
  const rows = [
    { ...report.time, name: 'time' },
    { ...report.busy, name: 'GPU busy' },
  ];
  return section('Times', plain('Times', rows, [...timeColumns(report), nameColumn((row) => row.name)]));
}

/** @param {Diff} report */
function runs({ runs: rows }) {
  if (rows.length === 0) {
    const same = 'Both have the same GPU, versions, command, ranks and number of steps, as far as recorded.';
    return section('Runs', h('p', { class: 'faint' }, same));
  }
  const value = (/** @type {string} */ text) => text || 'not known';
  return section(
    'Runs',
    plain('What differs between the runs', rows, [
      { key: 'what', title: 'What', value: (row) => row.what },
      { key: 'a', title: 'A', value: (row) => value(row.a), hint: (row) => row.a },
      { key: 'b', title: 'B', value: (row) => value(row.b), hint: (row) => row.b },
    ]),
  );
}

/** @param {Diff} report */
function idle(report) {
  const rows = report.idle.filter(isShown);
  if (rows.length === 0) return null;
  /** @type {Column<Diff['idle'][number]>[]} */
  const columns = [...timeColumns(report), nameColumn((row) => causeWords(row.cause))];
  return section('GPU idle time by cause', plain('GPU idle time by cause', rows, columns));
}

/** @param {Diff} report */
function copies(report) {
  const rows = report.copies.filter((row) => isShown(row) || row.a_bytes !== row.b_bytes);
  if (rows.length === 0) return null;
  /** @type {Column<Diff['copies'][number]>[]} */
  const columns = [
    ...timeColumns(report),
    countColumn(),
    {
      key: 'b_bytes',
      title: 'Bytes',
      align: 'right',
      value: (row) => row.b_bytes,
      text: (row) => fromTo(bytes(Math.round(row.a_bytes)), bytes(Math.round(row.b_bytes))),
    },
    nameColumn((row) => row.direction),
  ];
  return section('Copies', plain('Copies', rows, columns));
}

/** @param {Diff} report */
function memory({ memory: all }) {
  const rows = all.filter(({ a_bytes, b_bytes }) => a_bytes !== b_bytes);
  if (rows.length === 0) return null;
  const size = (/** @type {number | null} */ value) => (value === null ? 'not recorded' : bytes(value));
  /** @param {Diff['memory'][number]} row */
  const change = ({ a_bytes: a, b_bytes: b }) => {
    if (a === null || b === null) return '';
    const share = a === 0 ? '' : ` (${signedPercent((b - a) / a)})`;
    return `${b > a ? '+' : '-'}${bytes(Math.abs(b - a))}${share}`;
  };
  return section(
    'Peak device memory',
    plain('Peak device memory', rows, [
      { key: 'a_bytes', title: 'A', align: 'right', value: (row) => row.a_bytes, text: (row) => size(row.a_bytes) },
      { key: 'b_bytes', title: 'B', align: 'right', value: (row) => row.b_bytes, text: (row) => size(row.b_bytes) },
      { key: 'change', title: 'Change', align: 'right', value: change },
      nameColumn((row) => (row.allocator ? `${row.process}, ${row.allocator}` : row.process)),
    ]),
  );
}

/** @param {Diff} report */
function kernels(report) {
  const onchange = (/** @type {Event} */ event) => {
    const { value } = /** @type {HTMLSelectElement} */ (event.target);
    choose({ match: value === 'name' ? '' : value });
  };
  const options = /** @type {const} */ ([
    ['name', 'name'],
    ['short', 'short name'],
  ]).map(([value, text]) => h('option', { value, selected: value === report.by }, text));
  const match = h('select', { onchange, 'data-focus': 'match' }, options);
  const clear = h('button', { type: 'button', onclick: clearPair }, 'Clear highlight');
  const changed = report.kernels.filter((row) => isShown(row) || row.fate === 'renamed').length;
  /** @type {Column<KernelDiff>[]} */
  const columns = [
    ...timeColumns(report),
    countColumn(),
    nameColumn((row) => (row.renamed_to === null ? row.name : `${row.name} → ${row.renamed_to}`)),
  ];
  const name = columns[columns.length - 1];
  name.text = (row) => [row.name, row.renamed_to ?? ''].filter(Boolean).map(shortName).join(' → ');
  name.hint = (row) => String(name.value(row));
  name.opens = true;
  return section(
    `Kernels: ${changed} of ${counted(report.kernels.length, 'kernel')} changed`,
    dataTable({
      caption: 'Kernels of both traces',
      rows: report.kernels,
      columns,
      open: (row) => showPair(row, report.by),
      tools: [h('label', {}, 'Match by ', match), clear],
      empty: 'Neither trace has kernels.',
    }),
  );
}

/**
 * What makes the numbers of a trace doubtful.
 * @param {string} label @param {Diff['doubts_a']} found
 */
function doubts(label, found) {
  if (!Object.values(found).some((value) => Number(value) > 0)) return null;
  return section(`Doubts about ${label}`, doubtTable(found, `Doubts about ${label}`));
}

/** Changes of less than a nanosecond are not shown. @param {Compared} row */
function isShown(row) {
  return Math.abs(row.change_ns) >= 1;
}

/** @template {Compared} R @param {Diff} report @returns {Column<R>[]} */
function timeColumns(report) {
  const time = (/** @type {'a_ns' | 'b_ns'} */ key, /** @type {string} */ title) =>
    /** @type {Column<R>} */ ({
      key,
      title,
      align: 'right',
      value: (row) => row[key],
      text: (row) => duration(Math.trunc(row[key])),
    });
  return [
    time('a_ns', 'A'),
    time('b_ns', 'B'),
    {
      key: 'change_ns',
      title: 'Change',
      align: 'right',
      value: (row) => row.change_ns,
      cell: changeCell,
      hint: changeText,
    },
    { key: 'significance', title: 'Significance', value: (row) => noteOf(report, row) },
  ];
}

/** The remark of a row as `diff` prints it. @param {Diff} report @param {Compared & {fate?: KernelDiff['fate']}} row */
function noteOf(report, row) {
  const words = verdict(report, row);
  if (row.fate === 'new' || row.fate === 'gone') return row.fate;
  if (row.fate === 'renamed') return words ? `renamed; ${words}` : 'renamed';
  return words;
}

/** @template {{count_a: number, count_b: number}} R @returns {Column<R>} */
function countColumn() {
  return {
    key: 'count_b',
    title: 'Launches',
    align: 'right',
    value: (row) => row.count_b,
    text: (row) => fromTo(meanCount(row.count_a), meanCount(row.count_b)),
  };
}

/** @template R @param {(row: R) => string} value @returns {Column<R>} */
function nameColumn(value) {
  return { key: 'name', title: 'Name', value, wide: true };
}

/** @template R @param {string} caption @param {R[]} rows @param {Column<R>[]} columns */
function plain(caption, rows, columns) {
  return dataTable({ caption, rows, columns, plain: true });
}

customElements.define('ts-comparison', Comparison);
