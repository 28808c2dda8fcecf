// Memory of each pool over time, who held it at the peak, and what was never freed.

import { h } from '../core/dom.js';
import { store } from '../core/store.js';
import { bytes, count, duration, moment, percent } from '../core/units.js';
import { series, shareBar } from './charts.js';
import { note, section } from './panel.js';
import { ScopedPanel, analyzeLine } from './scoped.js';
import { scopeSpan } from './scope.js';
import { dataTable } from './table.js';
import { analysis, sinceOrigin } from './times.js';
import { counted } from './words.js';

/** @typedef {import('./analysis.d.ts').Pool} Pool */
/** @typedef {import('./analysis.d.ts').Holder} Holder */

class Memory extends ScopedPanel {
  /** @param {AbortSignal} signal */
  async load(signal) {
    /** @type {import('./analysis.d.ts').Memory} */
    const report = await analysis('memory', this.range, signal);
    const command = h('div', { class: 'panel-foot' }, analyzeLine(' --only memory'));
    if (report.pools.length === 0) {
      return [
        note(
          'The trace has no allocations. ',
          h('code', {}, 'tracesmith profile'),
          ' records them, unless ',
          h('code', {}, '--kinds'),
          ' leaves out ',
          h('code', {}, 'memory'),
          '.',
        ),
        command,
      ];
    }
    const freed =
      report.double_frees.length > 0
        ? note(
            `${counted(report.double_frees.length, 'free')} of memory that was already ` +
              `freed: ${report.double_frees.map((free) => free.stack).join(', ')}.`,
          )
        : null;
    return [freed, h('div', { class: 'pools' }, report.pools.map(pool)), command];
  }
}

/** @param {Pool} pool */
function pool(pool) {
  const { layout } = store.get();
  if (!layout) return null;
  const of = pool.rank === null ? `process ${pool.pid}` : `rank ${pool.rank}`;
  const title = `${[pool.device_name, `${pool.memory} memory`, pool.allocator].filter(Boolean).join(', ')} of ${of}`;
  const peakAt = pool.peak_at_ns === null ? null : sinceOrigin(pool.peak_at_ns, layout);
  const points = pool.series.map((point) => ({ time: sinceOrigin(point.time_ns, layout), value: point.bytes }));
  const span = scopeSpan() ?? { from: 0, to: layout.span_ns };
  const label = `Memory of ${title} over time. The peak is ${bytes(pool.peak_bytes)}`;
  const facts = [
    `${count(pool.allocations)} allocations and ${count(pool.frees)} frees of ${bytes(pool.allocated_bytes)}.`,
    pool.live_bytes > 0
      ? `${bytes(pool.live_bytes)} are still in use at the end, ${bytes(pool.kept_bytes)} of them kept on purpose.`
      : 'Everything was freed.',
    pool.reserved_peak_bytes === null ? '' : `At most ${bytes(pool.reserved_peak_bytes)} were reserved.`,
    pool.fragmentation === null ? '' : `${percent(pool.fragmentation)} of that was unused.`,
  ];
  const peak = h(
    'button',
    {
      type: 'button',
      class: 'link',
      disabled: peakAt === null,
      onclick: () => peakAt !== null && store.zoomTo({ from: peakAt - 1e6, to: peakAt + 1e6 }),
    },
    `Peak ${bytes(pool.peak_bytes)}${peakAt === null ? '' : ` at ${moment(peakAt, 1000)}`}`,
  );
  return section(
    title,
    series({ points, span, most: pool.peak_bytes, label, mark: peakAt }),
    h('p', {}, peak, ` ${facts.filter(Boolean).join(' ')}`),
    ...code(title, pool),
  );
}

/** The code that allocated, where stacks tell. @param {string} title @param {Pool} pool */
function code(title, pool) {
  if (pool.holders.length === 0 && pool.never_freed.length === 0 && pool.churn.length === 0)
    return [h('p', { class: 'faint' }, 'The allocations have no stacks, so the code that made them is not known.')];
  return [
    h(
      'div',
      { class: 'columns' },
      h(
        'div',
        {},
        h('h4', {}, 'In use at the peak'),
        holders(`In use at the peak of ${title}`, pool.holders, pool.peak_bytes),
      ),
      h('div', {}, h('h4', {}, 'Never freed'), holders(`Never freed of ${title}`, pool.never_freed, pool.live_bytes)),
      pool.churn.length > 0
        ? h('div', {}, h('h4', {}, 'Allocated and freed again and again'), churn(title, pool))
        : null,
    ),
  ];
}

/** @param {string} caption @param {Holder[]} rows @param {number} all */
function holders(caption, rows, all) {
  const zoom = (/** @type {Holder} */ row) => {
    const { layout } = store.get();
    const first = layout ? sinceOrigin(row.first_ns, layout) : 0;
    store.zoomTo({ from: first - 1e6, to: first + 1e6 });
  };
  return dataTable({
    caption,
    plain: true,
    rows,
    open: zoom,
    empty: 'Nothing.',
    columns: [
      {
        key: 'bytes',
        title: 'Bytes',
        align: 'right',
        value: (row) => row.bytes,
        cell: (row) => shareBar(bytes(row.bytes), all > 0 ? row.bytes / all : 0),
      },
      { key: 'count', title: 'Count', align: 'right', value: (row) => row.count },
      {
        key: 'late',
        title: 'Late',
        align: 'right',
        value: (row) => row.late,
        hint: () => 'allocations in the second half of the trace',
      },
      { key: 'kept_by', title: 'Kept by', value: (row) => row.kept_by },
      {
        key: 'stack',
        title: 'Line of code',
        value: (row) => row.stack,
        hint: (row) => row.stack,
        opens: true,
        wide: true,
      },
    ],
  });
}

/** @param {string} title @param {Pool} pool */
function churn(title, pool) {
  return dataTable({
    caption: `Allocated and freed repeatedly, of ${title}`,
    plain: true,
    rows: pool.churn,
    columns: [
      { key: 'count', title: 'Count', align: 'right', value: (row) => row.count },
      { key: 'bytes', title: 'Bytes', align: 'right', value: (row) => row.bytes, text: (row) => bytes(row.bytes) },
      {
        key: 'held_ns',
        title: 'Time in use',
        align: 'right',
        value: (row) => row.held_ns,
        text: (row) => duration(row.held_ns),
      },
      { key: 'stack', title: 'Line of code', value: (row) => row.stack, wide: true },
    ],
  });
}

customElements.define('ts-memory', Memory);
