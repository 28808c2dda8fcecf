// What the details show while nothing is selected: what was recorded, where the time of the GPUs goes, how to begin.

import { h } from '../core/dom.js';
import { store } from '../core/store.js';
import { bytes, count, duration, percent } from '../core/units.js';
import { shareBar } from './charts.js';
import { sliceAt } from './locate.js';
import { section } from './panel.js';
import { dataTable } from './table.js';
import { analysis, dateOf, sinceOrigin } from './times.js';
import { counted, shortName } from './words.js';

/** @typedef {import('./analysis.d.ts').KernelRow} KernelRow */

const SHOWN = 6;

/** @param {AbortSignal} signal */
export async function overview(signal) {
  const { layout } = store.get();
  if (!layout) return [];
  /** @type {import('./analysis.d.ts').Kernels} */
  const kernels = await analysis('kernels', { by: 'short', limit: SHOWN }, signal);
  return [
    h(
      'div',
      { class: 'details-columns overview' },
      section('This trace', facts(layout)),
      kernels.count > 0
        ? section(`GPU time: ${counted(kernels.count, 'kernel')}, ${duration(kernels.total_ns)}`, top(kernels))
        : null,
      section('Where to begin', begin()),
    ),
  ];
}

/** @param {import('../core/answers.d.ts').Layout} layout */
function facts({ metadata, groups, span_ns, bytes: size }) {
  const text = (/** @type {string} */ name) => (metadata[name] === undefined ? '' : String(metadata[name]));
  const [devices, processes] = ['device', 'process'].map((wanted) =>
    groups.filter(({ kind }) => kind === wanted).map(({ label }) => label),
  );
  /** @type {[string, string][]} */
  const rows = [
    ['command', text('command')],
    ['recorded', dateOf(text('created'))],
    [devices.length === 1 ? 'GPU' : 'GPUs', listed(devices)],
    [processes.length === 1 ? 'process' : 'processes', listed(processes)],
    ['length', `${duration(span_ns)}, ${bytes(size)}`],
  ];
  return [
    h(
      'dl',
      { class: 'facts' },
      rows.filter(([, value]) => value !== '').map(([name, value]) => [h('dt', {}, name), h('dd', {}, value)]),
    ),
    h('button', { type: 'button', class: 'link', onclick: () => store.openTab('health') }, 'All facts'),
  ];
}

/** @param {string[]} labels */
function listed(labels) {
  return labels.length > 3 ? `${labels.slice(0, 2).join(', ')} and ${labels.length - 2} more` : labels.join(', ');
}

/** @param {import('./analysis.d.ts').Kernels} kernels */
function top({ rows, total_ns }) {
  const open = async (/** @type {KernelRow} */ row) => {
    const { layout } = store.get();
    const slice = layout && (await sliceAt('kernels', sinceOrigin(row.longest_start_ns, layout), row.name));
    if (slice) store.select(slice, { reveal: true });
  };
  return [
    dataTable({
      caption: 'Kernels with the most time',
      plain: true,
      rows: rows.slice(0, SHOWN),
      open,
      columns: [
        {
          key: 'share',
          title: 'Share',
          align: 'right',
          value: (row) => row.total_ns,
          cell: (row) => shareBar(percent(row.total_ns / Math.max(1, total_ns)), row.total_ns / Math.max(1, total_ns)),
        },
        { key: 'count', title: 'Count', align: 'right', value: (row) => row.count, text: (row) => count(row.count) },
        {
          key: 'name',
          title: 'Name',
          value: (row) => row.name,
          text: (row) => shortName(row.name),
          hint: (row) => row.name,
          opens: true,
          wide: true,
        },
      ],
    }),
    h('button', { type: 'button', class: 'link', onclick: () => store.openTab('kernels') }, 'All kernels'),
  ];
}

function begin() {
  /** @type {[string, string][]} */
  const ways = [
    ['Click', 'an event or an idle gap: what it is, and what caused it'],
    ['Drag', 'in the rows or on the ruler: totals of a part'],
    ['W A S D', 'zoom and move; Ctrl+wheel zooms at the pointer'],
    ['/', 'search names, stacks and markers'],
    ['?', 'all keys'],
  ];
  return h(
    'dl',
    { class: 'facts ways' },
    ways.map(([key, meaning]) => [
      h(
        'dt',
        {},
        key.split(' ').map((one) => h('kbd', {}, one)),
      ),
      h('dd', {}, meaning),
    ]),
  );
}
