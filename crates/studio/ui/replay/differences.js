// What a call changed in the chosen buffer, or what differs from the recorded end: the first elements, and the ranges.

import { h } from '../core/dom.js';
import { count } from '../core/units.js';
import { rounded } from './numbers.js';

/** @typedef {import('./model.js').ReplayModel} ReplayModel */
/** @typedef {import('./memory.js').View} View */
/** @typedef {import('./answers.d.ts').Difference} Difference */

const ELEMENTS = 64;

/** @param {ReplayModel} model @param {View} view */
export async function differences(model, view) {
  const { address, bytes, type, at, other } = view;
  if (!other) {
    const text = model.isLive
      ? 'Choose what to compare with: the memory before this call, or the recording.'
      : 'Choose the recorded start or end to compare with. What a call changes is known only after a replay on a GPU.';
    return [h('p', { class: 'note' }, text)];
  }
  /** @type {Difference} */
  const found = await model.ask('Comparing', {
    do: 'diff',
    address,
    bytes,
    from: other,
    to: at,
    type,
    elements: ELEMENTS,
    ranges: ELEMENTS,
  });
  return differenceOf(found, (index) => view.showElement(index));
}

/**
 * A difference in words and as a table. Each element leads to its place in the buffer.
 * @param {Difference} found
 * @param {(index: number) => void} open
 */
export function differenceOf(found, open) {
  if (found.different_bytes === 0) return [h('p', { class: 'note' }, `All ${count(found.bytes)} bytes are the same.`)];
  const words =
    `${count(found.different_elements)} of ${count(found.elements)} elements differ ` +
    `(${count(found.different_bytes)} bytes, in ${count(found.range_count)} ranges). ` +
    `Largest difference: ${rounded(found.largest)}.`;
  const rows = found.first.map(({ index, old, new: now }) =>
    h(
      'tr',
      {},
      h('td', {}, h('button', { type: 'button', class: 'link', onclick: () => open(index) }, count(index))),
      h('td', {}, h('del', {}, old)),
      h('td', {}, h('ins', {}, now)),
    ),
  );
  const heads = ['Element', 'Before', 'After'].map((text) => h('th', { scope: 'col' }, text));
  const rest = found.different_elements - found.first.length;
  return [
    h('p', { 'data-fact': 'different' }, words),
    h(
      'div',
      { class: 'replay-scroll', tabindex: '0', role: 'region', 'aria-label': 'Elements that differ' },
      h('table', { class: 'replay-values replay-changes' }, h('thead', {}, h('tr', {}, heads)), h('tbody', {}, rows)),
    ),
    rest > 0 ? h('p', { class: 'faint' }, `and ${count(rest)} more`) : null,
  ];
}
