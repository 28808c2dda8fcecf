// Whether the trace is complete, what makes its numbers doubtful, and what it says about itself.

import { h } from '../core/dom.js';
import { store } from '../core/store.js';
import { bytes, count, duration } from '../core/units.js';
import { Panel, section, sentence } from './panel.js';
import { commandLine } from './scoped.js';
import { fileArgument } from './scope.js';
import { dataTable } from './table.js';
import { analysis, dateOf } from './times.js';

/** @type {Record<string, string>} */
const DOUBTS = {
  without_time: 'GPU operations without a start or an end. They are not counted.',
  backwards: 'GPU operations that end before they start. They are counted with no length.',
  calls_without_time: 'Calls with impossible times. They are left out or counted with no length.',
  without_call: 'GPU operations without an API call in the trace. Launch latencies leave them out.',
  before_its_call: 'GPU operations that start before their call. The clocks of CPU and GPU disagree.',
  before_its_call_by: 'The most that an operation starts before its call.',
  lost_records: 'Records that were lost while recording.',
  truncated: 'Places at which a file was truncated.',
  damaged_blocks: 'Parts of the file that cannot be read. `tracesmith repair` saves the rest.',
  unlinked_clocks: 'Clocks that cannot be aligned with the others. Their times are used unchanged.',
  uncertainty: 'The largest possible error between GPU times of different clocks.',
};
const TIMES = new Set(['uncertainty', 'before_its_call_by']);

class Health extends Panel {
  /** @type {(keyof import('../core/store.js').State)[]} */
  watched = ['trace', 'layout', 'layers'];

  question() {
    const base = super.question();
    return base && `${base} ${measured().map(({ label, trace, layout }) => `${label} ${trace} ${layout?.generation}`)}`;
  }

  /** @param {AbortSignal} signal */
  async load(signal) {
    return Promise.all(measured().map((layer) => layerHealth(layer, signal)));
  }
}

/** The layers that were recorded. */
function measured() {
  return store.layers().filter(({ style }) => style !== 'ghost');
}

/** @param {import('../core/layer.js').Layer} layer @param {AbortSignal} signal */
async function layerHealth(layer, signal) {
  const { layout, label } = layer;
  if (!layout) return null;
  /** @type {import('./analysis.d.ts').Doubts} */
  const { doubts } = await analysis('utilization', {}, signal, layer);
  const state = layout.health.good ? 'good' : 'bad';
  const words = layout.health.sentences.length > 0 ? layout.health.sentences : ['no data is known to be missing'];
  const title = (/** @type {string} */ text) => (label ? `${label}: ${text}` : text);
  return [
    h(
      'div',
      { class: 'columns' },
      section(
        title('Health'),
        h(
          'ul',
          { class: `health ${state}` },
          words.map((text) => h('li', {}, sentence(text))),
        ),
        doubtTable(doubts, title('Doubts')),
      ),
      section(title('The trace'), facts(layout, title('Facts about the trace'))),
    ),
    h('div', { class: 'panel-foot' }, commandLine(`tracesmith info ${fileArgument(layer)}`)),
  ];
}

/** What makes numbers doubtful. @param {Record<string, number|boolean>} doubts @param {string} caption */
export function doubtTable(doubts, caption) {
  const rows = Object.entries(doubts).filter(([, value]) => Number(value) > 0);
  const text = (/** @type {[string, number|boolean]} */ [name, value]) =>
    TIMES.has(name) ? duration(Number(value)) : count(Number(value));
  return dataTable({
    caption,
    plain: true,
    rows,
    empty: 'Nothing makes the numbers doubtful.',
    columns: [
      { key: 'value', title: 'Value', align: 'right', value: ([, value]) => Number(value), text },
      { key: 'name', title: 'Doubt', value: ([name]) => DOUBTS[name] ?? name.replaceAll('_', ' '), wide: true },
    ],
  });
}

/** @param {import('../core/answers.d.ts').Layout} layout @param {string} caption */
function facts(layout, caption) {
  /** @type {[string, string][]} */
  const rows = [
    ['file', layout.path],
    ['size', bytes(layout.bytes)],
    ['time span', duration(layout.span_ns)],
    ['first event, in ns', `@${layout.origin_ns}`],
  ];
  for (const [name, value] of Object.entries(layout.metadata))
    rows.push([name, name === 'created' ? dateOf(String(value)) : textOf(value)]);
  return dataTable({
    caption,
    plain: true,
    rows,
    columns: [
      { key: 'name', title: 'Name', value: ([name]) => name, hint: ([name]) => name },
      { key: 'value', title: 'Value', value: ([, value]) => value, wide: true },
    ],
  });
}

/** @param {unknown} value */
function textOf(value) {
  return typeof value === 'string' ? value : JSON.stringify(value);
}

customElements.define('ts-health', Health);
