// How long each stream, context and GPU was idle, pending, waiting and running.

import { getJson } from '../core/api.js';
import { h } from '../core/dom.js';
import { store } from '../core/store.js';
import { duration, percent } from '../core/units.js';
import { categoryColor, css } from '../core/colors.js';
import { stackedBar, swatch } from './charts.js';
import { Panel } from './panel.js';
import { commandLine } from './scoped.js';
import { fileArgument } from './scope.js';
import { analysis } from './times.js';
import { dataTable } from './table.js';

/** States in the order in which a context counts them, with the category whose colour they have. */
const STATES = /** @type {const} */ ([
  ['running', 'compute', 'an operation runs'],
  ['waiting', 'communication', 'the next operation is launched, and waits for another stream'],
  ['pending', 'wait', 'the next operation is launched and has not started'],
  ['idle', 'call', 'nothing is launched'],
  ['finished', 'range', 'the last operation has ended'],
]);

/** @typedef {Record<string, string|number|null>} Line */

class States extends Panel {
  /** @param {AbortSignal} signal */
  async load(signal) {
    const [{ columns, rows }, { devices }] = await Promise.all([
      /** @type {Promise<import('../core/answers.d.ts').Table>} */ (
        getJson(`t/${store.get().trace}/table/states`, {}, { signal })
      ),
      /** @type {Promise<import('./analysis.d.ts').Utilization>} */ (analysis('utilization', {}, signal)),
    ]);
    const names = new Map(devices.map(({ device, name }) => [device, name]));
    const lines = rows.map((row) => /** @type {Line} */ (Object.fromEntries(columns.map((name, i) => [name, row[i]]))));
    const legend = h(
      'p',
      { class: 'legend' },
      STATES.map(([state, , meaning]) => h('span', { title: meaning }, swatch(color(state)), `${state}: ${meaning} `)),
    );
    const command = commandLine(`tracesmith states ${fileArgument()}`);
    return [
      legend,
      dataTable({
        caption: 'States',
        rows: lines,
        columns: columnsOf(names),
        empty: 'No GPU work in this time range.',
      }),
      h('div', { class: 'panel-foot' }, command),
    ];
  }
}

/** @param {Map<number, string>} names @returns {import('./table.js').Column<Line>[]} */
function columnsOf(names) {
  const times = STATES.map(([state]) => {
    const value = (/** @type {Line} */ line) => Number(line[`${state}_ns`] ?? 0);
    const text = (/** @type {Line} */ line) =>
      value(line) === 0 ? '' : `${duration(value(line))} (${percent(value(line) / total(line))})`;
    return /** @type {import('./table.js').Column<Line>} */ ({
      key: `${state}_ns`,
      title: state,
      align: 'right',
      value,
      text,
    });
  });
  return [
    { key: 'object', title: 'Object', value: (line) => objectName(line, names) },
    { key: 'share', title: 'Shares', value: () => '', cell: (line) => bar(line) },
    ...times,
    { key: 'intervals', title: 'Changes', align: 'right', value: (line) => line.intervals ?? null },
  ];
}

/** @param {Line} line @param {Map<number, string>} names of GPUs */
function objectName(line, names) {
  if (line.kind === 'device') return names.get(Number(line.device)) ?? `GPU #${line.device}`;
  const group = store.get().layout?.groups.find(({ id }) => id === `process:${line.process}`);
  const of = `${group?.label ?? `process #${line.process}`}, context ${line.context}`;
  return line.kind === 'stream' ? `stream ${line.stream} of ${of}` : of;
}

/** @param {Line} line */
function total(line) {
  return Math.max(
    1,
    STATES.reduce((sum, [state]) => sum + Number(line[`${state}_ns`] ?? 0), 0),
  );
}

/** @param {Line} line */
function bar(line) {
  const parts = STATES.map(([state]) => ({
    share: Number(line[`${state}_ns`] ?? 0) / total(line),
    color: color(state),
    text: state,
  }));
  return stackedBar(parts, parts.map((part) => `${part.text} ${percent(part.share)}`).join(', '));
}

/** @param {string} state */
function color(state) {
  const category = STATES.find(([one]) => one === state)?.[1] ?? 'other';
  return css(categoryColor('stream', category));
}

customElements.define('ts-states', States);
