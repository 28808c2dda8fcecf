// Statistics of a buffer: limits, NaN and infinities, and a histogram.

import { h } from '../core/dom.js';
import { count } from '../core/units.js';
import { histogram } from '../panels/charts.js';
import { rounded, widthOf } from './numbers.js';

/** @typedef {import('./model.js').ReplayModel} ReplayModel */
/** @typedef {import('./memory.js').View} View */

const BINS = 48;

/** @param {ReplayModel} model @param {View} view */
export async function statistics(model, view) {
  const { address, type, at, bytes } = view;
  if (bytes < widthOf(type)) return [h('p', { class: 'note' }, `The buffer is smaller than one element of ${type}.`)];
  /** @type {import('./answers.d.ts').Statistics} */
  const found = await model.ask('Reading the buffer', { do: 'stats', address, bytes, type, at, bins: BINS });
  /** @type {[string, string, string][]} */
  const facts = [
    ['elements', 'Elements', count(found.elements)],
    ['nan', 'NaN', count(found.nan)],
    ['infinite', 'Infinite', `${count(found.positive_infinity)} positive, ${count(found.negative_infinity)} negative`],
    ['zero', 'Zero', count(found.zero)],
    ['min', 'Smallest', rounded(found.min)],
    ['max', 'Largest', rounded(found.max)],
    ['mean', 'Mean', rounded(found.mean)],
  ];
  const list = h(
    'dl',
    { class: 'facts' },
    facts.map(([name, title, text]) => [h('dt', {}, title), h('dd', { 'data-fact': name }, text)]),
  );
  const limits = `from ${rounded(found.min)} to ${rounded(found.max)}`;
  const label = `Histogram of ${count(found.finite)} finite elements ${limits}`;
  const bins = found.histogram.map((bin) => ({ from_ns: bin.from, to_ns: bin.to, count: bin.count }));
  const rows = found.histogram
    .filter((bin) => bin.count > 0)
    .map((bin) =>
      h('tr', {}, h('td', {}, rounded(bin.from)), h('td', {}, rounded(bin.to)), h('td', {}, count(bin.count))),
    );
  const picture =
    bins.length === 0
      ? h('p', { class: 'note' }, 'No element is finite.')
      : h(
          'figure',
          { class: 'replay-histogram' },
          histogram(bins, null, label),
          h('figcaption', { class: 'faint' }, h('span', {}, rounded(found.min)), h('span', {}, rounded(found.max))),
          h(
            'details',
            {},
            h('summary', {}, 'The histogram as a table'),
            h(
              'table',
              { class: 'replay-values' },
              h(
                'thead',
                {},
                h(
                  'tr',
                  {},
                  ['From', 'To', 'Elements'].map((text) => h('th', { scope: 'col' }, text)),
                ),
              ),
              h('tbody', {}, rows),
            ),
          ),
        );
  const warning =
    found.nan + found.positive_infinity + found.negative_infinity > 0
      ? h(
          'p',
          { class: 'replay-odd', role: 'status' },
          `${count(found.elements - found.finite)} elements are not finite.`,
        )
      : null;
  return [warning, h('div', { class: 'replay-statistics' }, list, picture)];
}
