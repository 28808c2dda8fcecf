// How the selected run compares with the other runs of the same name.

import { h } from '../core/dom.js';
import { count, duration } from '../core/units.js';
import { histogram } from './charts.js';

/** @param {import('../core/answers.d.ts').Runs} runs @param {number} length of this run */
export function runsOf(runs, length) {
  const rank =
    length >= runs.p95_ns
      ? 'among the slowest 5 %'
      : length > runs.p50_ns
        ? 'slower than the median'
        : length === runs.p50_ns
          ? 'the median'
          : 'faster than the median';
  const label =
    `Runs by duration, from ${duration(runs.min_ns)} to ` +
    `${duration(runs.max_ns)}. This one took ${duration(length)}`;
  const figures = /** @type {[string, string][]} */ ([
    ['runs', count(runs.count)],
    ['total', duration(runs.total_ns)],
    ['mean', duration(runs.mean_ns)],
    ['min', duration(runs.min_ns)],
    ['p50', duration(runs.p50_ns)],
    ['p95', duration(runs.p95_ns)],
    ['max', duration(runs.max_ns)],
  ]);
  return h(
    'div',
    { class: 'runs-panel' },
    h(
      'dl',
      { class: 'facts in-line' },
      figures.map(([name, value]) => h('div', {}, h('dt', {}, name), h('dd', {}, value))),
    ),
    histogram(runs.bins, length, label),
    h(
      'div',
      { class: 'axis' },
      h('span', {}, duration(runs.min_ns)),
      h('span', {}, 'duration, logarithmic'),
      h('span', {}, duration(runs.max_ns)),
    ),
    h('p', {}, h('span', { class: 'mark-word' }, 'This one: '), `${duration(length)}, ${rank}.`),
  );
}
