// The form of the what-if tab: which changes are simulated.

import { h } from '../core/dom.js';
import { chooseChanges, isEmpty, scaleOf } from './changes.js';

/** @typedef {import('./changes.js').Changes} Changes */

/** The choices, which change what is simulated. @param {Changes} changes */
export function changesForm(changes) {
  const set = (/** @type {Partial<Changes>} */ part) => chooseChanges({ ...changes, ...part });
  const scales = changes.scales.map((scale, i) =>
    h(
      'li',
      {},
      h('code', {}, `${scale.pattern} × ${scale.factor}`),
      h(
        'button',
        {
          type: 'button',
          class: 'quiet',
          'aria-label': `Remove ${scale.pattern}`,
          onclick: () => set({ scales: changes.scales.filter((_, j) => j !== i) }),
        },
        '×',
      ),
    ),
  );
  const pattern = h('input', {
    type: 'text',
    placeholder: 'flash*',
    'aria-label': 'Pattern of kernel names',
    'data-focus': 'pattern',
  });
  const factor = h('input', { type: 'number', min: '0', step: '0.1', value: '0.5', 'aria-label': 'Factor' });
  const onsubmit = (/** @type {Event} */ event) => {
    event.preventDefault();
    const scale = scaleOf(`${pattern.value}=${factor.value}`);
    if (scale) set({ scales: [...changes.scales, scale] });
    else pattern.focus();
  };
  const checked = (/** @type {Event} */ event) => /** @type {HTMLInputElement} */ (event.target).checked;
  const text = (/** @type {Event} */ event) => /** @type {HTMLInputElement} */ (event.target).value.trim();
  const streams = [
    ['', 'as recorded'],
    ['1', '1'],
    ['2', '2'],
    ['4', '4'],
    ['8', '8'],
    ['unlimited', 'unlimited'],
  ];
  return h(
    'form',
    { class: 'what-if', onsubmit },
    h('ul', { class: 'scales' }, scales),
    h('p', {}, 'Kernels ', pattern, ' take ', factor, ' times as long ', h('button', { type: 'submit' }, 'Add')),
    h(
      'p',
      {},
      h(
        'label',
        {},
        h('input', {
          type: 'checkbox',
          checked: changes.copiesHidden,
          'data-focus': 'copies',
          onchange: (/** @type {Event} */ event) => set({ copiesHidden: checked(event) }),
        }),
        ' Copies are hidden: memcpys and memsets take no time',
      ),
    ),
    h(
      'p',
      {},
      h(
        'label',
        {},
        h('input', {
          type: 'checkbox',
          checked: changes.withoutSync,
          'data-focus': 'sync',
          onchange: (/** @type {Event} */ event) => set({ withoutSync: checked(event) }),
        }),
        ' The CPU does not wait for the GPU',
      ),
      ' in ',
      h('input', {
        type: 'text',
        placeholder: 'all functions and lines',
        value: changes.syncPattern,
        'aria-label': 'Pattern of functions or lines that do not wait',
        onchange: (/** @type {Event} */ event) => set({ withoutSync: true, syncPattern: text(event) }),
      }),
    ),
    h(
      'p',
      {},
      h(
        'label',
        {},
        'Streams of each GPU: ',
        h(
          'select',
          { 'data-focus': 'streams', onchange: (/** @type {Event} */ event) => set({ streams: text(event) }) },
          streams.map(([value, words]) => h('option', { value, selected: value === changes.streams }, words)),
        ),
      ),
    ),
    isEmpty(changes)
      ? null
      : h(
          'button',
          {
            type: 'button',
            onclick: () =>
              chooseChanges({ scales: [], copiesHidden: false, withoutSync: false, syncPattern: '', streams: '' }),
          },
          'Remove all changes',
        ),
  );
}
