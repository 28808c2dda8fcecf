// Idle time: causes for each GPU, the code that GPUs waited for, and the longest gaps.

import { causeWords } from '../core/causes.js';
import { causeColor, css } from '../core/colors.js';
import { h } from '../core/dom.js';
import { duration, moment, percent } from '../core/units.js';
import { shareBar, stackedBar, swatch } from './charts.js';
import { showEvidence } from './evidence.js';
import { section } from './panel.js';
import { ScopedPanel, analyzeLine } from './scoped.js';
import { dataTable } from './table.js';
import { analysis } from './times.js';
import { shortName } from './words.js';

/** @typedef {import('./analysis.d.ts').Idle['devices'][number]} DeviceIdle */
/** @typedef {import('./analysis.d.ts').Gap} Gap */

class IdleTime extends ScopedPanel {
  /** @param {AbortSignal} signal */
  async load(signal) {
    const [idle, host] = await Promise.all([
      /** @type {Promise<import('./analysis.d.ts').Idle>} */ (analysis('idle', this.range, signal)),
      /** @type {Promise<import('./analysis.d.ts').Host>} */ (analysis('host', this.range, signal)),
    ]);
    if (idle.devices.length === 0) return [h('p', { class: 'faint' }, 'No GPU work in this time range.')];
    return [
      h('div', { class: 'columns' }, ...idle.devices.map(device), ...code(host.idle)),
      h('div', { class: 'panel-foot' }, analyzeLine(' --only idle')),
    ];
  }
}

/** @param {DeviceIdle} idle */
function device(idle) {
  const parts = idle.causes.map((total, i) => ({
    share: total.share,
    color: css(causeColor(total.cause, i)),
    text: `${causeWords(total.cause)} ${percent(total.share)}`,
  }));
  const longest = Math.max(...idle.causes.map((total) => total.share), 1e-9);
  const bar = stackedBar(parts, `Idle time of ${idle.name} by cause: ${parts.map((part) => part.text).join(', ')}`);
  const causes = dataTable({
    caption: `Causes of idle time of ${idle.name}`,
    plain: true,
    rows: idle.causes,
    sort: { key: 'total_ns', descending: true },
    open: (total) => biggest(idle, total.cause),
    columns: [
      {
        key: 'share',
        title: 'Share',
        align: 'right',
        value: (row) => row.share,
        cell: (row) => shareBar(percent(row.share), row.share / longest),
      },
      {
        key: 'total_ns',
        title: 'Time',
        align: 'right',
        value: (row) => row.total_ns,
        text: (row) => duration(row.total_ns),
      },
      { key: 'gaps', title: 'Gaps', align: 'right', value: (row) => row.gaps },
      {
        key: 'cause',
        title: 'Cause',
        value: (row) => causeWords(row.cause),
        cell: (row) =>
          h('span', {}, swatch(css(causeColor(row.cause, idle.causes.indexOf(row)))), causeWords(row.cause)),
        opens: true,
        wide: true,
      },
    ],
  });
  return section(
    `${idle.name}: idle ${duration(idle.idle_ns)} of ${duration(idle.span_ns)}`,
    bar,
    causes,
    h('h4', {}, 'Longest gaps'),
    gaps(idle),
  );
}

/** @param {DeviceIdle} idle */
function gaps(idle) {
  return dataTable({
    caption: `Longest gaps of ${idle.name}`,
    plain: true,
    rows: idle.longest,
    open: showGap,
    columns: [
      {
        key: 'offset_ns',
        title: 'At',
        align: 'right',
        value: (gap) => gap.offset_ns,
        text: (gap) => moment(gap.offset_ns, 1000),
      },
      { key: 'length_ns', title: 'Length', align: 'right', value: length, text: (gap) => duration(length(gap)) },
      {
        key: 'cause_ns',
        title: 'Of the cause',
        align: 'right',
        value: (gap) => gap.cause_ns,
        text: (gap) => duration(gap.cause_ns),
      },
      { key: 'cause', title: 'Main cause', value: (gap) => causeWords(gap.cause) },
      {
        key: 'next',
        title: 'Ended by',
        value: (gap) => gap.next,
        text: (gap) => shortName(gap.next),
        hint: (gap) => gap.next,
        opens: true,
        wide: true,
      },
    ],
  });
}

/** The CPU code that GPUs waited for. @param {import('./analysis.d.ts').HostPlaces} places */
function code(places) {
  const lists = /** @type {[string, import('./analysis.d.ts').Place[]][]} */ ([
    ['Line of the next CUDA call', places.lines],
    ['NVTX or framework range', places.ranges],
    ['Operator', places.operators],
    ['Function', places.functions],
  ]);
  const filled = lists.filter(([, rows]) => rows.length > 0);
  if (filled.length === 0) {
    return [
      section(
        'CPU code that GPUs waited for',
        h(
          'p',
          { class: 'faint' },
          'Not known: the trace has no operators, no NVTX ranges and no ' +
            'stacks. Record with `tracesmith profile`, which captures stacks.',
        ),
      ),
    ];
  }
  const tables = filled.map(([title, rows]) =>
    dataTable({
      caption: `CPU code that GPUs waited for, by ${title.toLowerCase()}`,
      plain: true,
      rows,
      columns: [
        {
          key: 'share',
          title: 'Share',
          align: 'right',
          value: (row) => row.share,
          cell: (row) => shareBar(percent(row.share), row.share),
        },
        {
          key: 'total_ns',
          title: 'Time',
          align: 'right',
          value: (row) => row.total_ns,
          text: (row) => duration(row.total_ns),
        },
        { key: 'name', title, value: (row) => row.name, hint: (row) => row.name, wide: true },
      ],
    }),
  );
  return [section(`CPU code that GPUs waited for: ${duration(places.total_ns)}`, ...tables)];
}

/** Shows the gap with the largest part of a cause. @param {DeviceIdle} idle @param {string} cause */
function biggest(idle, cause) {
  const gap = idle.by_cause.find((one) => one.cause === cause) ?? idle.longest.find((one) => one.cause === cause);
  if (gap) showGap(gap);
}

/** @param {Gap} gap */
function showGap(gap) {
  showEvidence({
    what: `idle before ${gap.next}`,
    table: gap.next_table,
    row: gap.next_row,
    start_ns: gap.from_ns,
    offset_ns: gap.offset_ns,
    end_ns: gap.to_ns,
    cause_ns: gap.cause_ns,
  });
}

/** @param {Gap} gap */
function length(gap) {
  return Number(BigInt(gap.to_ns) - BigInt(gap.from_ns));
}

customElements.define('ts-idle', IdleTime);
