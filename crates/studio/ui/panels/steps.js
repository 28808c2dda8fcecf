// The steps of the program as bars: a long bar is a slow step. A bar or a row leads to its step.

import { h } from '../core/dom.js';
import { store } from '../core/store.js';
import { duration, moment, percent } from '../core/units.js';
import { s } from './charts.js';
import { Panel, note } from './panel.js';
import { commandLine } from './scoped.js';
import { fileArgument } from './scope.js';
import { dataTable } from './table.js';
import { analysis } from './times.js';
import { counted } from './words.js';

/** @typedef {import('./analysis.d.ts').Step} Step */

/** A step counts as odd from this many medians on, as for the finding `uneven_steps`. */
const ODD_FROM = 1.5;

class Steps extends Panel {
  /** @param {AbortSignal} signal */
  async load(signal) {
    /** @type {import('./analysis.d.ts').Steps} */
    const report = await analysis('steps', {}, signal);
    if (report.steps.length === 0) {
      return [note('No steps were found. Mark them with NVTX ranges such as "step 3", or use torch.profiler.')];
    }
    const { settled } = report;
    const words =
      `${counted(report.steps.length, 'step')} ${sourceWords(report.source)}. Mean ${duration(settled.mean_ns)}, ` +
      `median ${duration(settled.p50_ns)}, shortest ${duration(settled.min_ns)}, ` +
      `longest ${duration(settled.max_ns)}, without warm-up and cut-off steps.`;
    return [
      h('p', {}, words),
      bars(report),
      table(report),
      h('div', { class: 'panel-foot' }, commandLine(`tracesmith analyze ${fileArgument()} --only steps`)),
    ];
  }
}

/** @param {import('./analysis.d.ts').Steps['source']} source */
function sourceWords({ kind, name, anchor, kernels, is_nvtx }) {
  if (kind === 'pattern') return `from a repeating pattern of ${kernels} GPU operations, starting with ${anchor}`;
  if (kind === 'markers') return `from ${is_nvtx ? 'NVTX ranges' : 'ranges'} named ${name}`;
  return `from ${kind === 'data_loader' ? 'the data loader' : 'the optimizer'}${name ? ` ${name}` : ''}`;
}

/** @param {Step} step */
function length(step) {
  return Number(BigInt(step.end_ns) - BigInt(step.start_ns));
}

/** @param {Step} step @param {number} median */
function kindOf(step, median) {
  if (step.is_warm_up) return 'warm-up';
  if (step.is_cut_off) return 'cut off';
  return median > 0 && length(step) > ODD_FROM * median ? 'odd' : '';
}

/** @param {import('./analysis.d.ts').Steps} report */
function bars({ steps, settled }) {
  const most = Math.max(...steps.map(length), 1);
  const width = 1000 / steps.length;
  const boxes = steps.map((step, i) => {
    const height = Math.max(1.5, (length(step) / most) * 96);
    const kind = kindOf(step, settled.p50_ns);
    const text = `Step ${i}, ${step.name}: ${duration(length(step))}${kind ? `, ${kind}` : ''}`;
    const name = `step-bar ${kind.replace(' ', '-')}`;
    const box = s(
      'rect',
      {
        x: (i * width + width * 0.08).toFixed(2),
        width: (width * 0.84).toFixed(2),
        y: (100 - height).toFixed(2),
        height: height.toFixed(2),
        class: name,
      },
      s('title', {}, text),
    );
    box.addEventListener('click', () => go(step));
    return box;
  });
  const y = (100 - (settled.p50_ns / most) * 96).toFixed(2);
  const median = settled.count > 0 ? [s('line', { x1: 0, x2: 1000, y1: y, y2: y, class: 'median' })] : [];
  const label = `Duration of each step; the line is the median, ${duration(settled.p50_ns)}`;
  return s(
    'svg',
    { class: 'step-bars', viewBox: '0 0 1000 100', preserveAspectRatio: 'none', role: 'img', 'aria-label': label },
    ...boxes,
    ...median,
  );
}

/** @param {import('./analysis.d.ts').Steps} report */
function table({ steps, settled }) {
  const busy = (/** @type {Step} */ step) => {
    const span = step.devices.reduce((sum, device) => sum + device.span_ns, 0);
    return span > 0 ? step.devices.reduce((sum, device) => sum + device.busy_ns, 0) / span : null;
  };
  return dataTable({
    caption: 'Steps',
    rows: steps,
    open: go,
    marked: (step) => kindOf(step, settled.p50_ns) === 'odd',
    columns: [
      { key: 'step', title: 'Step', align: 'right', value: (step) => steps.indexOf(step) },
      {
        key: 'offset_ns',
        title: 'At',
        align: 'right',
        value: (step) => step.offset_ns,
        text: (step) => moment(step.offset_ns, 1000),
      },
      { key: 'duration_ns', title: 'Duration', align: 'right', value: length, text: (step) => duration(length(step)) },
      { key: 'busy', title: 'GPU busy', align: 'right', value: busy, text: (step) => percent(busy(step) ?? NaN) },
      { key: 'ops', title: 'Operations', align: 'right', value: (step) => step.ops },
      { key: 'kind', title: 'Remark', value: (step) => kindOf(step, settled.p50_ns) },
      { key: 'name', title: 'Name', value: (step) => step.name, opens: true, wide: true },
    ],
  });
}

/** @param {Step} step */
function go(step) {
  store.zoomTo({ from: step.offset_ns, to: step.offset_ns + length(step) }, { margin: 0.02 });
}

customElements.define('ts-steps', Steps);
