// Memcpys and memsets by direction and kinds of memory, with their speed and the limit of the link.

import { h } from '../core/dom.js';
import { store } from '../core/store.js';
import { bytes, count, duration, percent } from '../core/units.js';
import { shareBar } from './charts.js';
import { goTo } from './locate.js';
import { note } from './panel.js';
import { ScopedPanel, analyzeLine } from './scoped.js';
import { dataTable } from './table.js';
import { analysis, sinceOrigin } from './times.js';

/** @typedef {import('./analysis.d.ts').CopyRow} CopyRow */

class Copies extends ScopedPanel {
  /** @param {AbortSignal} signal */
  async load(signal) {
    /** @type {import('./analysis.d.ts').Copies} */
    const { rows } = await analysis('copies', this.range, signal);
    const pageable = rows.filter((row) => row.is_pageable);
    return [
      pageable.length > 0
        ? note(
            'Some memcpys use pageable host memory, which is slow ' +
              'and holds up the CPU. Marked rows: use pinned memory.',
          )
        : null,
      dataTable({
        caption: 'Memcpys and memsets',
        rows,
        columns: columns(rows),
        sort: { key: 'total_ns', descending: true },
        open,
        marked: (row) => row.is_pageable,
        empty: 'No memcpys and no memsets in this time range.',
      }),
      h('div', { class: 'panel-foot' }, analyzeLine(' --only copies')),
    ];
  }
}

/** @param {CopyRow[]} rows @returns {import('./table.js').Column<CopyRow>[]} */
function columns(rows) {
  const longest = Math.max(...rows.map((row) => row.total_ns), 1);
  const rate = (/** @type {number|null} */ value) => (value === null ? '' : `${value.toFixed(1)} GB/s`);
  const limit = (/** @type {CopyRow} */ row) => {
    const { peak_gigabytes_per_second: peak, gigabytes_per_second: speed } = row;
    return peak === null || speed === null ? 'unknown' : `${rate(peak)} (${percent(speed / peak)})`;
  };
  return [
    {
      key: 'total_ns',
      title: 'Total',
      align: 'right',
      value: (row) => row.total_ns,
      cell: (row) => shareBar(duration(row.total_ns), row.total_ns / longest),
    },
    { key: 'count', title: 'Count', align: 'right', value: (row) => row.count, text: (row) => count(row.count) },
    { key: 'small', title: 'Small', align: 'right', value: (row) => row.small },
    { key: 'bytes', title: 'Bytes', align: 'right', value: (row) => row.bytes, text: (row) => bytes(row.bytes) },
    {
      key: 'gigabytes_per_second',
      title: 'Speed',
      align: 'right',
      value: (row) => row.gigabytes_per_second,
      text: (row) => rate(row.gigabytes_per_second),
    },
    {
      key: 'best_gigabytes_per_second',
      title: 'Fastest',
      align: 'right',
      value: (row) => row.best_gigabytes_per_second,
      text: (row) => rate(row.best_gigabytes_per_second),
    },
    {
      key: 'peak_gigabytes_per_second',
      title: 'Limit',
      align: 'right',
      value: (row) => row.peak_gigabytes_per_second,
      text: limit,
      hint: (row) => (row.peak_of ? `limited by ${row.peak_of}` : ''),
    },
    {
      key: 'max_ns',
      title: 'Longest',
      align: 'right',
      value: (row) => row.max_ns,
      text: (row) => duration(row.max_ns),
    },
    { key: 'direction', title: 'Direction', value: (row) => row.direction, opens: true },
    { key: 'source', title: 'From', value: (row) => row.source },
    { key: 'destination', title: 'To', value: (row) => row.destination },
    { key: 'device_name', title: 'GPU', value: (row) => row.device_name, wide: true },
  ];
}

/** Shows the longest copy of a row. @param {CopyRow} row */
function open(row) {
  const { layout } = store.get();
  if (!layout) return;
  const start = sinceOrigin(row.longest_start_ns, layout);
  goTo({ table: row.direction === 'set' ? 'sets' : 'copies', start, end: start + row.max_ns, name: row.direction });
}

customElements.define('ts-copies', Copies);
