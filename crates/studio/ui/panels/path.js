// The critical path: what determined the total time, its segments in order, and how much slack kernels have.

import { h } from '../core/dom.js';
import { store } from '../core/store.js';
import { duration, moment, percent } from '../core/units.js';
import { shareBar } from './charts.js';
import { fetchSlices } from '../timeline/slices.js';
import { goTo, rowsOf } from './locate.js';
import { mark } from './marked.js';
import { note, section } from './panel.js';
import { ScopedPanel, analyzeLine } from './scoped.js';
import { dataTable } from './table.js';
import { analysis, sinceOrigin } from './times.js';
import { counted, partWords, shortName } from './words.js';

/** @typedef {import('./analysis.d.ts').CriticalPath} Report */
/** @typedef {Report['segments'][number]} Segment */

/** Rows of one request for slices, and slices of a row. */
const MOST_ROWS = 512;
const MOST_SLICES = 4000;
/** The path is outlined again when the window has been still for this long. */
const STILL_MS = 250;

class CriticalPath extends ScopedPanel {
  /** @param {AbortSignal} signal */
  async load(signal) {
    /** @type {Report} */
    const report = await analysis('critical-path', this.range, signal);
    if (report.segments.length === 0)
      return [note('No critical path: no GPU work and no waiting calls in this time range.')];
    const doubtful =
      report.cpu_ahead_ns > 0
        ? note('The path is doubtful: most of it is CPU code that ran while launched work had not started.')
        : null;
    const contradicted =
      report.contradicted > 0
        ? note(
            `${counted(report.contradicted, 'dependency contradicts', 'dependencies contradict')} ` +
              'the recorded times and were ignored.',
          )
        : null;
    return [
      doubtful,
      contradicted,
      h(
        'div',
        { class: 'columns' },
        section(`Critical path: ${duration(report.path_ns)} of ${duration(report.span_ns)}`, pathTotals(report.totals)),
        section('Slack: how much later each kernel could end', slack(report)),
        section('The path in order', segments(report)),
      ),
      h('div', { class: 'panel-foot' }, overlay(report), analyzeLine(' --only critical-path')),
    ];
  }
}

/**
 * What a critical path goes to.
 * @param {import('./analysis.d.ts').PathTotal[]} rows @param {string} [caption]
 */
export function pathTotals(rows, caption = 'Parts of the critical path') {
  return dataTable({
    caption,
    plain: true,
    rows,
    sort: { key: 'total_ns', descending: true },
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
      { key: 'count', title: 'Count', align: 'right', value: (row) => row.count },
      { key: 'part', title: 'Kind', value: (row) => partWords(row.part) },
      {
        key: 'name',
        title: 'Name',
        value: (row) => row.name,
        text: (row) => shortName(row.name),
        hint: (row) => row.name,
        wide: true,
      },
    ],
  });
}

/** @param {Report} report */
function slack({ slack: rows }) {
  return dataTable({
    caption: 'Slack by kernel',
    plain: true,
    rows,
    empty: 'No kernels.',
    columns: [
      {
        key: 'min_slack_ns',
        title: 'Least',
        align: 'right',
        value: (row) => row.min_slack_ns,
        text: (row) => duration(row.min_slack_ns),
      },
      {
        key: 'mean_slack_ns',
        title: 'Mean',
        align: 'right',
        value: (row) => row.mean_slack_ns,
        text: (row) => duration(row.mean_slack_ns),
      },
      { key: 'count', title: 'Count', align: 'right', value: (row) => row.count },
      { key: 'on_path', title: 'Without slack', align: 'right', value: (row) => row.on_path },
      {
        key: 'name',
        title: 'Name',
        value: (row) => row.name,
        text: (row) => shortName(row.name),
        hint: (row) => row.name,
        wide: true,
      },
    ],
  });
}

/** @param {Report} report */
function segments({ segments: rows }) {
  const { layout } = store.get();
  if (!layout) return null;
  const start = (/** @type {Segment} */ one) => sinceOrigin(one.from_ns, layout);
  const length = (/** @type {Segment} */ one) => Number(BigInt(one.to_ns) - BigInt(one.from_ns));
  const open = (/** @type {Segment} */ one) => {
    const place = { from: start(one), to: start(one) + Math.max(1, length(one)) };
    if (one.part === 'work' && one.table) goTo({ table: one.table, start: place.from, end: place.to, name: one.name });
    else store.zoomTo(place, { margin: 1 });
  };
  return dataTable({
    caption: 'Segments of the critical path',
    rows,
    open,
    columns: [
      { key: 'offset_ns', title: 'At', align: 'right', value: start, text: (row) => moment(start(row), 1000) },
      { key: 'length_ns', title: 'Time', align: 'right', value: length, text: (row) => duration(length(row)) },
      { key: 'part', title: 'Kind', value: (row) => partWords(row.part), opens: true },
      {
        key: 'name',
        title: 'Name',
        value: (row) => row.name,
        text: (row) => shortName(row.name),
        hint: (row) => row.name,
        wide: true,
      },
    ],
  });
}

/**
 * A switch that outlines the GPU work of the path in the timeline, as far as the window shows it.
 * @param {Report} report
 */
function overlay(report) {
  const words = h('span', { class: 'faint', role: 'status' });
  const button = h('button', { type: 'button', 'aria-pressed': 'false' }, 'Show in the timeline');
  const isPressed = () => button.getAttribute('aria-pressed') === 'true';
  const show = async () => {
    const spans = isPressed() ? await pathSpans(report) : [];
    if (!isPressed() && spans.length > 0) return;
    mark(spans);
    words.textContent = isPressed() ? `${counted(spans.length, 'operation')} of the path in this window` : '';
  };
  let timer = 0;
  let leave = () => {};
  button.addEventListener('click', () => {
    button.setAttribute('aria-pressed', String(!isPressed()));
    leave();
    if (isPressed()) {
      leave = store.subscribe((changed) => {
        if (changed.has('trace') || !button.isConnected) leave();
        else if (changed.has('window')) {
          clearTimeout(timer);
          timer = window.setTimeout(show, STILL_MS);
        }
      });
    }
    void show();
  });
  return h('span', { class: 'group' }, button, words);
}

/** The slices of the window that are on the path. @param {Report} report */
async function pathSpans(report) {
  const { trace, layout, window } = store.get();
  if (!layout) return [];
  // A segment ends with its op. It begins later than the op where ops of the path overlap.
  const ends = new Set(
    report.segments
      .filter(({ part }) => part === 'work')
      .map((one) => `${Number(BigInt(one.to_ns) - BigInt(layout.origin_ns))} ${one.name}`),
  );
  const rows = rowsOf(['stream']).slice(0, MOST_ROWS);
  const found = await fetchSlices(trace, layout.generation, rows, window.from, window.to, MOST_SLICES);
  const { shapes } = store.get();
  /** @type {import('./marked.js').MarkedSpan[]} */
  const spans = [];
  for (const [row, { start, duration: length, shape }] of found) {
    start.forEach((from, i) => {
      const to = from + length[i];
      if (ends.has(`${to} ${shapes.name(shape[i])}`)) spans.push({ row, from, to, kind: 'critical' });
    });
  }
  return spans;
}

customElements.define('ts-critical-path', CriticalPath);
