// The box that asks for a time to go to.

import { h } from '../core/dom.js';
import { store } from '../core/store.js';
import { moment, parseTime } from '../core/units.js';

/** Opens the box. */
export function openGoTo() {
  const { window } = store.get();
  const input = h('input', {
    id: 'go-to-time',
    autocomplete: 'off',
    spellcheck: 'false',
    'aria-describedby': 'go-to-help',
    value: moment(Math.round((window.from + window.to) / 2), 1000).replaceAll('\u202f', ''),
  });
  const problem = h('p', { class: 'problem', role: 'alert' });
  const form = h(
    'form',
    { method: 'dialog' },
    h('label', { for: 'go-to-time' }, 'Go to time'),
    input,
    h('p', { id: 'go-to-help', class: 'soft' }, 'After the start of the trace: 1.5ms, 200us, 3s. A range: 1ms..2ms.'),
    problem,
    h(
      'div',
      { class: 'dialog-actions' },
      h('button', { type: 'submit' }, 'Go'),
      h('button', { type: 'button', onclick: () => dialog.close() }, 'Cancel'),
    ),
  );
  const dialog = h('dialog', { class: 'dialog', 'aria-label': 'Go to time' }, form);
  form.addEventListener('submit', (event) => {
    const parts = input.value.split('..').map(parseTime);
    if (parts.some((time) => time === null)) {
      event.preventDefault();
      problem.textContent = `“${input.value}” is not a time.`;
      return;
    }
    go(/** @type {number[]} */ (parts));
  });
  dialog.addEventListener('close', () => dialog.remove());
  document.body.append(dialog);
  dialog.showModal();
  input.select();
}

/** @param {number[]} times one time, or the two ends of a range */
function go([from, to]) {
  const { window } = store.get();
  if (to !== undefined && to > from) {
    store.zoomTo({ from, to }, { margin: 0 });
    return;
  }
  const half = (window.to - window.from) / 2;
  store.zoomTo({ from: from - half, to: from + half }, { margin: 0 });
}
