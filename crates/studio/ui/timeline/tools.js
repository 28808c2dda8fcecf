// The tools above the list of rows: the filter, the grouping, and what brings hidden rows back.

import { fill, h } from '../core/dom.js';
import { store } from '../core/store.js';

/** @typedef {import('../core/store.js').Grouping} Grouping */

/** @type {[Grouping, string][]} */
const GROUPINGS = [
  ['device', 'By GPU'],
  ['process', 'By process'],
  ['rank', 'By rank'],
];

/** @param {HTMLElement} element */
export function connectTools(element) {
  const filter = h('input', {
    type: 'search',
    class: 'tl-filter',
    placeholder: 'Filter rows',
    'aria-label': 'Filter rows',
    oninput: () => store.chooseRows({ filter: filter.value }),
  });
  const grouping = h('select', {
    class: 'tl-grouping',
    'aria-label': 'Group rows',
    onchange: () => store.chooseRows({ grouping: /** @type {Grouping} */ (grouping.value) }),
  });
  const hidden = h('button', { type: 'button', class: 'quiet', onclick: () => store.chooseRows({ hidden: [] }) });
  fill(element, filter, grouping, hidden);
  const show = () => {
    const { rows } = store.get();
    if (filter.value !== rows.filter) filter.value = rows.filter;
    // Only a distributed job has ranks.
    const groups = store.layers().flatMap(({ layout }) => layout?.groups ?? []);
    const hasRanks = groups.some(({ rank }) => rank !== undefined);
    const offered = GROUPINGS.filter(([name]) => name !== 'rank' || hasRanks || rows.grouping === 'rank');
    fill(
      grouping,
      offered.map(([value, title]) => h('option', { value, selected: value === rows.grouping }, title)),
    );
    hidden.hidden = rows.hidden.length === 0;
    hidden.textContent = `${rows.hidden.length} hidden`;
    hidden.title = 'Show all rows again';
  };
  const shown = /** @type {const} */ (['rows', 'layout', 'layers']);
  store.subscribe((changed) => shown.some((name) => changed.has(name)) && show());
  show();
}
