// The kernels by name, shape, line or range. A row leads to its runs on the timeline.

import { fill, h } from '../core/dom.js';
import { store } from '../core/store.js';
import { count, duration, percent } from '../core/units.js';
import { shareBar } from './charts.js';
import { chooseChanges, chosenChanges } from './changes.js';
import { choose, chosen } from './choices.js';
import { otherRun, shapeOf, sliceAt } from './locate.js';
import { note } from './panel.js';
import { exactly } from './pattern.js';
import { ScopedPanel, analyzeLine } from './scoped.js';
import { dataTable } from './table.js';
import { analysis, sinceOrigin } from './times.js';
import { counted, shortName } from './words.js';

/** @typedef {import('./analysis.d.ts').KernelRow} KernelRow */

const KEYS = /** @type {const} */ ([
  ['name', 'name'],
  ['short', 'short name'],
  ['shape', 'grid and block'],
  ['line', 'source line'],
  ['nvtx', 'NVTX range'],
  ['operator', 'operator'],
  ['process', 'process'],
  ['rank', 'rank'],
  ['step', 'step'],
]);

/** The first factor that the what-if tab tries on a kernel. */
const TRIED_FACTOR = 0.5;

class Kernels extends ScopedPanel {
  /** @type {HTMLElement} */
  #runs = h('span', { class: 'runs' });

  choices() {
    return chosen('by', 'name');
  }

  /** @param {AbortSignal} signal */
  async load(signal) {
    const by = chosen('by', 'name');
    /** @type {import('./analysis.d.ts').Kernels} */
    const report = await analysis('kernels', { ...this.range, by }, signal);
    this.#runs.replaceChildren();
    const tools = [h('label', {}, 'Group by ', bySelect(by)), this.#runs];
    const all = `${counted(report.count, 'kernel')} with ${duration(report.total_ns)} of GPU time`;
    return [
      report.places_problem ? note(`Operators and ranges could not be read: ${report.places_problem}.`) : null,
      dataTable({
        caption: 'Kernels',
        columns: columns(report),
        rows: report.rows,
        sort: { key: 'total_ns', descending: true },
        open: (row) => this.#open(row),
        tools,
        empty: 'No kernels in this time range.',
      }),
      h(
        'div',
        { class: 'panel-foot' },
        h('span', { class: 'faint' }, all),
        analyzeLine(` --only kernels${by === 'name' ? '' : ` --by ${by}`}`),
      ),
    ];
  }

  /** Goes to the longest run of a row, and offers the others. @param {KernelRow} row */
  async #open(row) {
    const { layout, shapes } = store.get();
    if (!layout) return;
    const start = sinceOrigin(row.longest_start_ns, layout);
    const slice = await sliceAt('kernels', start, row.name);
    if (!slice) {
      store.zoomTo({ from: start, to: start + row.max_ns }, { margin: 1 });
      this.#runs.replaceChildren('The timeline has no single slice for this row.');
      return;
    }
    store.select(slice, { reveal: true });
    const shape = shapeOf(row.name) ?? slice.shape;
    timeline()?.setHighlight({ shape });
    const go = async (/** @type {'next'|'previous'} */ direction) => {
      const at = store.get().selection ?? slice;
      const next = await otherRun(shape, at.row, at.start, direction);
      if (next) store.select(next, { reveal: true });
      else store.announce(`There is no ${direction} run of this kernel.`);
    };
    fill(
      this.#runs,
      h('button', { type: 'button', onclick: () => go('previous') }, '‹ Previous run'),
      h('button', { type: 'button', onclick: () => go('next') }, 'Next run ›'),
      h('button', { type: 'button', onclick: () => this.#clear() }, 'Clear highlight'),
      chosen('by', 'name') === 'name' ? whatIfButton(row.name) : null,
      h(
        'span',
        { class: 'faint ellipsis', title: shapes.name(shape) },
        `longest run of ${shapes.shortName(shape)}`,
      ),
    );
  }

  #clear() {
    timeline()?.setHighlight(null);
    this.#runs.replaceChildren();
  }
}

/** @param {string} name */
function whatIfButton(name) {
  const title = 'Simulate that this kernel takes half the time';
  return h('button', { type: 'button', title, onclick: () => whatIfFaster(name) }, `What if × ${TRIED_FACTOR}?`);
}

/** Simulates a shorter time of a kernel instead of what was chosen for it. @param {string} name */
function whatIfFaster(name) {
  const changes = chosenChanges();
  const pattern = exactly(name);
  const others = changes.scales.filter((scale) => scale.pattern !== pattern);
  chooseChanges({ ...changes, scales: [...others, { pattern, factor: TRIED_FACTOR }] });
  store.openTab('what-if');
}

/**
 * The timeline's highlight, if the page has a timeline.
 * @returns {(HTMLElement & {setHighlight: (choice: {shape: number}|null) => void})|null}
 */
function timeline() {
  return document.querySelector('ts-timeline');
}

/** @param {string} by */
function bySelect(by) {
  const onchange = (/** @type {Event} */ event) =>
    choose({ by: /** @type {HTMLSelectElement} */ (event.target).value });
  return h(
    'select',
    { onchange, 'data-focus': 'by' },
    KEYS.map(([value, text]) => h('option', { value, selected: value === by }, text)),
  );
}

/** @param {import('./analysis.d.ts').Kernels} report @returns {import('./table.js').Column<KernelRow>[]} */
function columns(report) {
  const longest = Math.max(...report.rows.map((row) => row.share), 1e-9);
  const names = shownNames(report.rows);
  const time = (/** @type {keyof KernelRow & `${string}_ns`} */ key, /** @type {string} */ title) =>
    /** @type {import('./table.js').Column<KernelRow>} */ ({
      key,
      title,
      align: 'right',
      value: (row) => Number(row[key]),
      text: (row) => duration(Number(row[key])),
    });
  const step = report.steps > 0 ? [stepColumn()] : [];
  return [
    {
      key: 'share',
      title: 'Share',
      align: 'right',
      value: (row) => row.share,
      cell: (row) => shareBar(percent(row.share), row.share / longest),
    },
    time('total_ns', 'Total'),
    { key: 'count', title: 'Count', align: 'right', value: (row) => row.count, text: (row) => count(row.count) },
    time('mean_ns', 'Mean'),
    time('min_ns', 'Min'),
    time('p50_ns', 'p50'),
    time('p95_ns', 'p95'),
    time('max_ns', 'Max'),
    ...step,
    { key: 'class', title: 'Class', value: (row) => row.class },
    {
      key: 'name',
      title: report.by === 'name' ? 'Name' : 'Group',
      value: (row) => row.name,
      text: (row) => names.get(row.name) ?? row.name,
      hint: (row) => row.name,
      opens: true,
      wide: true,
    },
  ];
}

/** Short names, or whole ones where several kernels have the same short name. @param {KernelRow[]} rows */
function shownNames(rows) {
  /** @type {Map<string, number>} */
  const uses = new Map();
  for (const { name } of rows) uses.set(shortName(name), (uses.get(shortName(name)) ?? 0) + 1);
  return new Map(rows.map(({ name }) => [name, uses.get(shortName(name)) === 1 ? shortName(name) : name]));
}

/** @returns {import('./table.js').Column<KernelRow>} */
function stepColumn() {
  const spread = (/** @type {KernelRow} */ row) => (row.step_spread === null ? '' : ` ± ${percent(row.step_spread)}`);
  return {
    key: 'step_ns',
    title: 'Per step',
    align: 'right',
    value: (row) => row.step_ns,
    text: (row) => (row.step_ns === null ? '' : duration(row.step_ns) + spread(row)),
  };
}

customElements.define('ts-kernels', Kernels);
