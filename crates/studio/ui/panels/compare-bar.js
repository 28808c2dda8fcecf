// The second trace in the head of the page: which one it is, how it is aligned, swap and end.

import { stepAt } from '../core/align.js';
import { align, compareWith, endCompare, swap } from '../core/compare.js';
import { fill, h } from '../core/dom.js';
import { store } from '../core/store.js';
import { duration, parseTime } from '../core/units.js';
import { openFile } from './actions.js';
import { FileList } from './files.js';
import { failure } from './panel.js';

/** @typedef {import('../core/align.js').Alignment} Alignment */
/** @typedef {import('../core/align.js').Compare} Compare */

const DRAWN = /** @type {const} */ (['session', 'trace', 'layout', 'compare', 'layers']);
const OPEN_FILE = 'file';

/** `<ts-compare>` */
class CompareBar extends HTMLElement {
  connectedCallback() {
    store.subscribe((changed) => {
      if (DRAWN.some((name) => changed.has(name))) this.#draw();
    });
    this.#draw();
  }

  #draw() {
    const { session, trace, layout, compare } = store.get();
    this.hidden = !session || trace < 0 || layout?.state !== 'ready';
    if (this.hidden) {
      fill(this);
      return;
    }
    const name = this.contains(document.activeElement)
      ? /** @type {HTMLElement} */ (document.activeElement).dataset.focus
      : undefined;
    fill(this, compare ? chosen(compare) : select(-1));
    // What had the focus keeps it; a comparison that begins or ends leaves it on the choice of the trace.
    const place = name && (this.querySelector(`[data-focus="${name}"]`) ?? this.querySelector('select'));
    if (place instanceof HTMLElement) place.focus();
  }
}

/** The choice of the second trace. @param {number} current */
function select(current) {
  const { session, trace } = store.get();
  const onchange = (/** @type {Event} */ event) => {
    const element = /** @type {HTMLSelectElement} */ (event.target);
    const { value } = element;
    element.value = String(current);
    if (value === OPEN_FILE) chooseFile();
    else compareWith(Number(value));
  };
  const all = session?.traces ?? [];
  const others = all.filter(({ id, state }) => id !== trace && (state !== 'failed' || id === current));
  return h(
    'select',
    { 'aria-label': 'Compare with', 'data-focus': 'trace', onchange },
    current < 0 ? h('option', { value: '-1', selected: true }, 'Compare with…') : null,
    others.map(({ id, name }) => h('option', { value: String(id), selected: id === current }, name)),
    h('option', { value: OPEN_FILE }, 'Another file…'),
  );
}

/** The controls of a comparison. @param {Compare} compare */
function chosen(compare) {
  return [
    h('span', { class: 'tl-layer is-b', 'aria-hidden': 'true' }, 'B'),
    select(compare.trace),
    alignment(compare),
    compare.align === 'manual' ? shift(compare) : null,
    button('swap', 'Swap', 'Make B the first trace, and A the second', swap),
    button('end', 'End', 'Show only A', endCompare),
  ];
}

/** @param {string} name @param {string} text @param {string} title @param {() => void} onclick */
function button(name, text, title, onclick) {
  return h('button', { type: 'button', class: 'quiet', 'data-focus': name, title, onclick }, text);
}

/** @param {Compare} compare */
function alignment(compare) {
  const { layers, window, steps } = store.get();
  const b = layers.find(({ key }) => key === 'b');
  const common = Math.min(steps.length, b?.steps.length ?? 0);
  const inView = Math.min(stepAt(steps, (window.from + window.to) / 2), common - 1);
  const kept = compare.align === 'step' ? Math.min(compare.step ?? 0, common - 1) : inView;
  /** @type {[Alignment, string][]} */
  const choices = [
    ['steps', 'Align by steps'],
    ['step', `Align at step ${kept}`],
    ['start', 'Align starts'],
    ['manual', 'Align by hand'],
  ];
  const possible = choices.filter(([name]) => common > 0 || name === compare.align || !name.startsWith('step'));
  const onchange = (/** @type {Event} */ event) => {
    const chosenName = /** @type {Alignment} */ (/** @type {HTMLSelectElement} */ (event.target).value);
    align({
      align: chosenName,
      ...(chosenName === 'step' ? { step: kept } : {}),
      ...(chosenName === 'manual' ? { offset: b?.offset ?? 0 } : {}),
    });
  };
  return h(
    'select',
    { 'aria-label': 'How B is aligned with A', 'data-focus': 'align', onchange },
    possible.map(([value, text]) => h('option', { value, selected: value === compare.align }, text)),
  );
}

/** How much later B is shown. @param {Compare} compare */
function shift({ offset }) {
  const onchange = (/** @type {Event} */ event) => {
    const input = /** @type {HTMLInputElement} */ (event.target);
    const [, sign, text] = /^\s*([-+]?)(.*)$/.exec(input.value.replace('−', '-')) ?? [];
    const time = parseTime(text ?? '');
    input.setAttribute('aria-invalid', String(time === null));
    if (time === null) store.announce(`“${input.value}” is not a time.`);
    else align({ offset: (sign === '-' ? -1 : 1) * Math.round(time) });
  };
  const [value, title] = [duration(offset), 'How much later B is shown: 1.5ms, -200us. Keys: < and >'];
  return h('input', {
    type: 'text',
    class: 'compare-shift',
    'aria-label': 'Shift of B',
    'data-focus': 'shift',
    value,
    title,
    onchange,
  });
}

/** Asks for a file, opens it and compares with it. */
function chooseFile() {
  const problem = h('div', {});
  const choose = async (/** @type {string} */ path) => {
    fill(problem);
    try {
      compareWith(await openFile(path));
      dialog.close();
    } catch (error) {
      fill(
        problem,
        failure(error, () => choose(path)),
      );
    }
  };
  const files = new FileList(choose);
  const dialog = h(
    'dialog',
    { class: 'dialog dialog-wide', 'aria-label': 'Compare with a file' },
    h('h2', {}, 'Compare with a file'),
    problem,
    files.element,
    h('div', { class: 'dialog-actions' }, h('button', { type: 'button', onclick: () => dialog.close() }, 'Cancel')),
  );
  dialog.addEventListener('close', () => dialog.remove());
  document.body.append(dialog);
  dialog.showModal();
  files.show('');
}

customElements.define('ts-compare', CompareBar);
