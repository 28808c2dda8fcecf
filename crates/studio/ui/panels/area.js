// A selected area or time range: totals, kernels, a flame graph, and the commands that print the same or cut it out.

import { getJson, postJson } from '../core/api.js';
import { h } from '../core/dom.js';
import { store } from '../core/store.js';
import { bytes, count, duration, moment, percent } from '../core/units.js';
import { shareBar } from './charts.js';
import { rowRanges } from '../timeline/blocks.js';
import { FlameGraph, amount } from './flame-graph.js';
import { rowsOf } from './locate.js';
import { failure, section } from './panel.js';
import { commandLine } from './scoped.js';
import { fileArgument, rangeOptions } from './scope.js';
import { dataTable } from './table.js';
import { counted, shortName } from './words.js';

/** @typedef {import('../core/store.js').Area} Area */
/** @typedef {import('../core/layer.js').Layer} Layer */
/** @typedef {import('../core/answers.d.ts').AreaTotals} AreaTotals */

/** @param {Area} area @param {AbortSignal} signal */
export async function areaDetails(area, signal) {
  const span = { from: Math.floor(area.from), to: Math.ceil(area.to) };
  const isMeant = (/** @type {Layer} */ layer) => area.rows.some((row) => store.layerOf(row) === layer);
  const layers = store.layers().filter((layer) => (area.rows.length > 0 ? isMeant(layer) : layer.style !== 'ghost'));
  const parts = await Promise.all(layers.map((layer) => layerDetails(layer, area, span, signal)));
  const length = Math.max(1, span.to - span.from);
  const words =
    `${duration(length)} from ${moment(span.from, 1000)} to ` +
    `${moment(span.to, 1000)}${area.rows.length > 0 ? `, ${counted(area.rows.length, 'row')}` : ', all rows'}`;
  const head = h(
    'div',
    { class: 'details-head' },
    h('h2', { class: 'name' }, area.rows.length > 0 ? 'Selected area' : 'Selected time'),
    h('span', { class: 'figure' }, words),
    h('button', { type: 'button', onclick: () => store.zoomTo(span, { margin: 0 }) }, 'Zoom'),
    h('button', { type: 'button', onclick: showExport }, 'Export…'),
    h('button', { type: 'button', onclick: () => store.selectArea(null) }, 'Clear'),
  );
  return [head, h('div', { class: 'columns' }, parts)];
}

/**
 * What is selected of one trace.
 * @param {Layer} layer @param {Area} area @param {import('../core/store.js').Span} shown @param {AbortSignal} signal
 */
async function layerDetails(layer, area, shown, signal) {
  const whole = layer.layout?.span_ns ?? 0;
  const own = (/** @type {number} */ time) => Math.round(Math.min(Math.max(layer.own(time), 0), whole));
  const span = { from: own(shown.from), to: own(shown.to) };
  const title = (/** @type {string} */ text) => (layer.label ? `${layer.label}: ${text}` : text);
  if (span.to <= span.from) return section(title('nothing'), h('p', { class: 'faint' }, 'Outside of this trace.'));
  // A time range of all rows has the work of GPUs: host ranges and gaps would count the same time again.
  const rows = area.rows.length > 0 ? area.rows : rowsOf(['stream'], layer);
  const local = rows.filter((row) => store.layerOf(row) === layer).map((row) => layer.local(row));
  /** @type {AreaTotals} */
  const totals = await getJson(
    `t/${layer.trace}/area`,
    { rows: rowRanges(local.sort((a, b) => a - b)), ...span },
    { signal },
  );
  const what = area.rows.length > 0 ? 'Selected rows' : 'GPU work';
  const total = `${duration(totals.busy_ns)} in ${counted(totals.shapes.length, 'name')}`;
  return [
    section(title(`${what}: ${total}`), table(totals, layer)),
    section(title('Flame graph'), flame(layer.trace, span)),
    section(
      title('The same on the command line'),
      commandLine(`tracesmith analyze ${fileArgument(layer)}${rangeOptions(span)}`),
    ),
    h(
      'section',
      { class: 'block export', tabindex: '-1' },
      h('h3', {}, title('Export as a new trace')),
      cut(layer, span),
    ),
  ];
}

/** The part that cuts is after the tables. @param {Event} event */
function showExport({ target }) {
  const panel = /** @type {HTMLElement} */ (target).closest('.tab-page');
  const part = /** @type {HTMLElement|null} */ (panel?.querySelector('.export') ?? null);
  part?.scrollIntoView({ block: 'nearest' });
  /** @type {HTMLElement|null} */ (part?.querySelector('input') ?? part)?.focus();
}

/** @param {AreaTotals} totals @param {Layer} layer */
function table({ shapes, busy_ns }, layer) {
  return dataTable({
    caption: 'Names in the selection',
    rows: shapes,
    sort: { key: 'busy_ns', descending: true },
    empty: 'Nothing runs here.',
    open: (row) => highlight(layer, row.shape),
    columns: [
      {
        key: 'busy_ns',
        title: 'Time',
        align: 'right',
        value: (row) => row.busy_ns,
        cell: (row) => shareBar(duration(row.busy_ns), row.busy_ns / Math.max(1, busy_ns)),
      },
      {
        key: 'share',
        title: 'Share',
        align: 'right',
        value: (row) => row.busy_ns / Math.max(1, busy_ns),
        text: (row) => percent(row.busy_ns / Math.max(1, busy_ns)),
      },
      { key: 'count', title: 'Count', align: 'right', value: (row) => row.count, text: (row) => count(row.count) },
      {
        key: 'mean_ns',
        title: 'Mean',
        align: 'right',
        value: (row) => row.busy_ns / Math.max(1, row.count),
        text: (row) => duration(row.busy_ns / Math.max(1, row.count)),
      },
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
  });
}

/**
 * Draws a shape of a layer strongly, and the one of that name in the open trace.
 * @param {Layer} layer @param {number} shape
 */
function highlight({ key, shapes }, shape) {
  /** @type {import('../timeline/timeline.js').Timeline | null} */
  const timeline = document.querySelector('ts-timeline');
  const own = key === 'a' ? shape : store.get().shapes.find(shapes.name(shape));
  timeline?.setHighlight(key === 'a' ? { shape } : { shape: own, also: { [key]: shape } });
}

/** @param {number} trace @param {import('../core/store.js').Span} span */
function flame(trace, span) {
  const place = h('div', {}, h('p', { class: 'faint' }, 'Working…'));
  const load = async () => {
    try {
      /** @type {import('../core/answers.d.ts').Flame} */
      const flame = await getJson(`t/${trace}/flame`, { ...span, by: 'time' });
      if (flame.total === 0) {
        place.replaceChildren(h('p', { class: 'faint' }, 'No launch of GPU work is in this time range.'));
        return;
      }
      const graph = new FlameGraph();
      place.replaceChildren(
        h(
          'p',
          { class: 'faint' },
          `GPU time by the code that launched it, ${amount(flame.total, flame.unit)} in all rows.`,
        ),
        graph,
      );
      graph.show(flame);
    } catch (error) {
      place.replaceChildren(failure(error, load));
    }
  };
  load();
  return place;
}

/** Cutting writes a file, which needs --control. @param {Layer} layer @param {import('../core/store.js').Span} span */
function cut(layer, span) {
  const command = commandLine(`tracesmith cut ${fileArgument(layer)}${rangeOptions(span)} -o part.sbt`);
  if (!store.get().session?.control)
    return [command, h('p', { class: 'faint' }, 'Start `tracesmith studio --control` to write files from this page.')];
  const name = h('input', { type: 'text', value: 'part.sbt', 'aria-label': 'File to write' });
  const result = h('span', { role: 'status' });
  const onsubmit = async (/** @type {Event} */ event) => {
    event.preventDefault();
    result.replaceChildren('Writing…');
    try {
      /** @type {{path: string, bytes: number}} */
      const written = await postJson(`t/${layer.trace}/cut`, { ...span, path: name.value });
      result.replaceChildren(`Wrote ${bytes(written.bytes)} to ${written.path}.`);
    } catch (error) {
      result.replaceChildren(failure(error, () => result.replaceChildren()));
      result.scrollIntoView({ block: 'nearest' });
    }
  };
  return [
    command,
    h('form', { class: 'tools', onsubmit }, name, h('button', { type: 'submit' }, 'Cut to file'), result),
  ];
}
