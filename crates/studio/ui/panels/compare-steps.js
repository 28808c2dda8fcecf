// The steps of both traces of a comparison, side by side. A row leads to its step in both.

import { align } from '../core/compare.js';
import { store } from '../core/store.js';
import { duration } from '../core/units.js';
import { section } from './panel.js';
import { fromTo } from './significance.js';
import { dataTable } from './table.js';

/** @typedef {import('../core/layer.js').Layer} Layer */

/** The steps side by side; nothing without steps. @param {Layer} a @param {Layer} b */
export function stepsOfBoth(a, b) {
  const length = Math.max(a.steps.length, b.steps.length);
  if (length === 0) return null;
  const time = (/** @type {Layer} */ layer) => (/** @type {number} */ step) => {
    const span = layer.steps[step];
    return span ? span.to - span.from : null;
  };
  const text = (/** @type {number | null} */ nanos) => (nanos === null ? '–' : duration(nanos));
  const common = Math.min(a.steps.length, b.steps.length);
  return section(
    `Steps: ${a.steps.length} and ${b.steps.length}`,
    dataTable({
      caption: 'Steps of both traces',
      rows: Array.from({ length }, (_, step) => step),
      open: (step) => goToStep(step, a, b),
      columns: [
        { key: 'step', title: 'Step', align: 'right', value: (step) => step },
        { key: 'a_ns', title: 'A', align: 'right', value: time(a), text: (step) => text(time(a)(step)) },
        { key: 'b_ns', title: 'B', align: 'right', value: time(b), text: (step) => text(time(b)(step)) },
        {
          key: 'remark',
          title: 'Remark',
          value: (step) => (step < common ? '' : `only in ${a.steps[step] ? 'A' : 'B'}`),
        },
        {
          key: 'name',
          title: 'Name',
          value: (step) => fromTo(a.stepNames[step] ?? '–', b.stepNames[step] ?? '–'),
          opens: true,
          wide: true,
        },
      ],
    }),
  );
}

/**
 * Shows a step of both, with the beginnings at the same place.
 * @param {number} step @param {Layer} a @param {Layer} b
 */
function goToStep(step, a, b) {
  const { compare } = store.get();
  const isCommon = a.steps[step] && b.steps[step];
  if (isCommon && compare && compare.align !== 'start' && compare.align !== 'manual') align({ step });
  const spans = store
    .layers()
    .filter(({ steps: known }) => known[step])
    .map(({ steps: known, offset }) => ({ from: known[step].from + offset, to: known[step].to + offset }));
  const from = Math.min(...spans.map((span) => span.from));
  const to = Math.max(...spans.map((span) => span.to));
  const room = (to - from) * 0.02;
  const { compare: now } = store.get();
  const window = store.clamp({ from: from - room, to: to + room });
  store.set({ window, compare: now && { ...now } }, { history: 'push' });
}
