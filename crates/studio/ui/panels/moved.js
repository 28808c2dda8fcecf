// Where the selected event is measured, and where it is predicted with the changes of the what-if tab.

import { h } from '../core/dom.js';
import { store } from '../core/store.js';
import { duration, moment } from '../core/units.js';

/** @typedef {import('../core/answers.d.ts').Moved} Moved */
/** @typedef {import('../core/answers.d.ts').Slice} Slice */

/**
 * A table of both times, and a button that selects the event in the other timeline.
 * @param {Moved} moved @param {boolean} isPredicted the event is selected in the predicted timeline
 */
export function movedFacts({ measured, predicted }, isPredicted) {
  const line = (/** @type {string} */ what, /** @type {string[]} */ texts) =>
    h(
      'tr',
      {},
      h('th', { scope: 'row' }, what),
      texts.map((text) => h('td', { class: 'number' }, text)),
    );
  const head = ['Start', 'Time'].map((text) => h('th', { scope: 'col', class: 'number' }, text));
  const times = (/** @type {Slice} */ { start, duration: length }) => [moment(start, 1), duration(length)];
  const [shift, growth] = [predicted.start - measured.start, predicted.duration - measured.duration];
  const other = isPredicted ? measured : predicted;
  return h(
    'div',
    {},
    h(
      'table',
      { class: 'data figures moved' },
      h('caption', { class: 'unseen' }, 'Measured and predicted times of this event'),
      h('thead', {}, h('tr', {}, h('td', {}), head)),
      h(
        'tbody',
        {},
        line('Measured', times(measured)),
        line('Predicted', times(predicted)),
        line('Difference', [signed(shift), signed(growth)]),
      ),
    ),
    h(
      'button',
      { type: 'button', 'data-focus': 'other', onclick: () => store.select(slice(other), { reveal: true }) },
      isPredicted ? 'Select the measured event' : 'Select the predicted event',
    ),
  );
}

/** @param {Slice} event @returns {Slice} */
function slice({ row, start, duration: length, shape }) {
  return { row, start, duration: length, shape };
}

/** @param {number} nanos */
function signed(nanos) {
  if (nanos === 0) return 'none';
  return `${nanos > 0 ? '+' : '−'}${duration(Math.abs(nanos))}`;
}
