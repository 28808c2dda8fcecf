// Launches: how long calls take, how long work waits, how full queues are, and where the GPU waited for every launch.

import { h } from '../core/dom.js';
import { store } from '../core/store.js';
import { count, duration, moment, percent } from '../core/units.js';
import { series } from './charts.js';
import { section } from './panel.js';
import { ScopedPanel, analyzeLine } from './scoped.js';
import { dataTable } from './table.js';
import { analysis, sinceOrigin } from './times.js';
import { counted } from './words.js';

/** @typedef {import('./analysis.d.ts').Launches} Report */

class Launches extends ScopedPanel {
  /** @param {AbortSignal} signal */
  async load(signal) {
    /** @type {Report} */
    const report = await analysis('launches', this.range, signal);
    if (report.call.count === 0)
      return [h('p', { class: 'faint' }, 'No launch call and its work are both in this time range.')];
    return [
      h(
        'div',
        { class: 'columns' },
        section(
          `${counted(report.call.count, 'call')} that launched kernels, graphs, memcpys or memsets`,
          times(report),
          ...sentences(report),
        ),
        ...report.queues.map(queue),
        section('Where the GPU waited for every launch', bound(report)),
      ),
      h('div', { class: 'panel-foot' }, analyzeLine(' --only launches')),
    ];
  }
}

/** @param {Report} report */
function times(report) {
  const rows = [
    { name: 'duration of the call', of: report.call },
    { name: 'call start to GPU start', of: report.latency },
    { name: 'call end to GPU start', of: report.delay },
  ];
  const keys = /** @type {const} */ (['mean_ns', 'p50_ns', 'p95_ns', 'p99_ns', 'max_ns']);
  const numbers = keys.map((key) => ({
    key,
    title: key.slice(0, -3),
    align: /** @type {'right'} */ ('right'),
    value: (/** @type {typeof rows[number]} */ row) => row.of[key],
    text: (/** @type {typeof rows[number]} */ row) => duration(row.of[key]),
  }));
  return dataTable({
    caption: 'Times of launches',
    plain: true,
    rows,
    columns: [...numbers, { key: 'name', title: 'Time', value: (row) => row.name, wide: true }],
  });
}

/** @param {Report} report */
function sentences({ short_kernels: short, graph_launches, graph_kernels }) {
  const lines = [];
  if (short && short.count > 0) {
    const text =
      `${count(short.count)} of ${count(short.launched)} kernels outside graphs ` +
      `(${percent(short.share)}) took less time than the call that launched them.`;
    const { worst_start_ns: start, worst_end_ns: end } = short;
    const worst =
      start === null || end === null
        ? null
        : h('button', { type: 'button', class: 'link', onclick: () => zoom(start, end) }, 'Show the worst');
    lines.push(h('p', {}, `${text} `, worst));
  }
  if (graph_launches > 0)
    lines.push(
      h(
        'p',
        {},
        `${counted(graph_kernels, 'kernel')} came from ` +
          `${counted(graph_launches, 'graph launch', 'graph launches')}, which count as one launch each.`,
      ),
    );
  return lines;
}

/** @param {Report['queues'][number]} one */
function queue(one) {
  const { layout } = store.get();
  if (!layout) return null;
  const points = one.series.map((point) => ({ time: sinceOrigin(point.start_ns, layout), value: point.max }));
  const [first, last] = [points[0]?.time ?? 0, points.at(-1)?.time ?? layout.span_ns];
  // Each point stands for the same time, also the last one.
  const span = { from: first, to: last + (last - first) / Math.max(1, points.length - 1) };
  const text =
    `On average ${one.mean.toFixed(1)} GPU operations queued, at most ` +
    `${count(one.max)}. The queue was empty ${percent(one.empty_share)} of the time.`;
  return section(
    `Queue of ${one.name}`,
    h('p', {}, text),
    series({ points, span, most: one.max, label: `Queued operations over time, at most ${one.max}` }),
  );
}

/** @param {Report} report */
function bound({ launch_bound: rows }) {
  return dataTable({
    caption: 'Launch-bound intervals',
    plain: true,
    rows,
    empty: 'Nowhere in this time range.',
    open: (row) => zoom(row.from_ns, row.to_ns),
    columns: [
      {
        key: 'offset_ns',
        title: 'At',
        align: 'right',
        value: (row) => row.offset_ns,
        text: (row) => moment(row.offset_ns, 1000),
      },
      {
        key: 'length_ns',
        title: 'Length',
        align: 'right',
        value: (row) => Number(BigInt(row.to_ns) - BigInt(row.from_ns)),
        text: (row) => duration(Number(BigInt(row.to_ns) - BigInt(row.from_ns))),
      },
      {
        key: 'idle_ns',
        title: 'GPU idle',
        align: 'right',
        value: (row) => row.idle_ns,
        text: (row) => duration(row.idle_ns),
      },
      { key: 'ops', title: 'Launches', align: 'right', value: (row) => row.ops },
      { key: 'device_name', title: 'GPU', value: (row) => row.device_name, opens: true, wide: true },
    ],
  });
}

/** @param {import('./analysis.d.ts').Nanos} from @param {import('./analysis.d.ts').Nanos} to */
function zoom(from, to) {
  const { layout } = store.get();
  if (layout) store.zoomTo({ from: sinceOrigin(from, layout), to: sinceOrigin(to, layout) });
}

customElements.define('ts-launches', Launches);
