// The tools above the list of rows: the filter, the grouping, and what brings hidden rows back.

import { fill, h } from '../core/dom.js';
import { store } from '../core/store.js';

/** @param {HTMLElement} element */
export function connectTools(element) {
  const filter = h('input', {
    type: 'search',
    class: 'tl-filter',
    placeholder: 'Filter rows',
    'aria-label': 'Filter rows',
    oninput: () => store.chooseRows({ filter: filter.value }),
  });
  const grouping = h('button', {
    type: 'button',
    class: 'quiet',
    onclick: () => store.chooseRows({ grouping: store.get().rows.grouping === 'device' ? 'process' : 'device' }),
  });
  const hidden = h('button', { type: 'button', class: 'quiet', onclick: () => store.chooseRows({ hidden: [] }) });
  fill(element, filter, grouping, hidden);
  const show = () => {
    const { rows } = store.get();
    if (filter.value !== rows.filter) filter.value = rows.filter;
    grouping.textContent = rows.grouping === 'device' ? 'By GPU' : 'By process';
    grouping.title = 'Groups of rows: by GPU or by process';
    hidden.hidden = rows.hidden.length === 0;
    hidden.textContent = `Show ${rows.hidden.length} hidden`;
  };
  store.subscribe((changed) => changed.has('rows') && show());
  show();
}
