// The list of rows beside the canvas: a real tree in the page, for the keyboard and for screen readers, with buttons to
// fold, pin and hide.

import { fill, h } from '../core/dom.js';
import { store } from '../core/store.js';
import { count, quantity } from '../core/units.js';

/** @typedef {import('./rows.js').Item} Item */
/** @typedef {import('./rows.js').RowList} RowList */

/** @type {Record<string, string>} */
const KINDS = {
  device: 'all streams of the device',
  idle: 'idle time by cause',
  stream: 'stream',
  waits: 'waits',
  markers: 'ranges',
  host: 'operators and functions',
  calls: 'calls',
  counter: 'counter',
  memory: 'memory',
  collective: 'collectives',
};

/** The tree of one timeline. */
export class Tree {
  #pins;
  #list;
  /** @type {HTMLElement[]} */
  #elements = [];
  /** What is shown, without facts, which grow with a trace. */
  #shown = '';
  /** Key of the item that the keyboard is at. */
  #current = '';

  /** @param {HTMLElement} root an element with the role `tree` */
  constructor(root) {
    this.#pins = h('div', { class: 'tl-pins', role: 'group', 'aria-label': 'Pinned rows' });
    this.#list = h('div', { class: 'tl-list', role: 'group', 'aria-label': 'Rows' });
    fill(root, this.#pins, this.#list);
    root.addEventListener('keydown', (event) => this.#pressed(event));
    root.addEventListener('focusin', (event) => this.#focused(event));
  }

  /** @param {RowList} rows */
  show(rows) {
    const items = rows.all();
    const shown = JSON.stringify(items.map(shape));
    if (shown === this.#shown) {
      // The elements stay, so that a click that has begun ends where it began.
      items.forEach((item, i) => showFact(this.#elements[i], item));
      return;
    }
    this.#shown = shown;
    const had = this.#elements.find((element) => element === document.activeElement)?.dataset.key;
    fill(this.#pins, ...rows.pinned.map((item) => this.#element(item)));
    fill(this.#list, ...rows.items.map((item) => this.#element(item)));
    this.#pins.hidden = rows.pinned.length === 0;
    this.#elements = /** @type {HTMLElement[]} */ ([...this.#pins.children, ...this.#list.children]);
    const current = this.#elements.find(({ dataset }) => dataset.key === this.#current) ?? this.#elements[0];
    if (current) current.tabIndex = 0;
    if (had !== undefined) current?.focus({ preventScroll: true });
  }

  /** Marks the item of the selection. @param {string | null} key */
  select(key) {
    for (const element of this.#elements) element.setAttribute('aria-selected', String(element.dataset.key === key));
  }

  /** @param {Item} item */
  #element(item) {
    const { track, isGroup, isFolded, isPinned, key, label } = item;
    const canFold = isGroup || (track !== null && track.rows > 1 && !isPinned);
    const actions = isGroup
      ? [this.#button('Hide', '×', () => hide(key))]
      : [
          this.#button(isPinned ? 'Unpin' : 'Pin to the top', isPinned ? '▾' : '▴', () => pin(key)),
          this.#button('Hide', '×', () => hide(key)),
        ];
    const layer = layerOf(item);
    const fact = factOf(item);
    return h(
      'div',
      {
        role: 'treeitem',
        class: `tl-item ${isGroup ? 'tl-group' : 'tl-track'}`,
        'aria-level': isGroup || isPinned ? 1 : 2,
        'aria-expanded': canFold ? !isFolded : null,
        'aria-selected': 'false',
        'aria-label': spoken(item),
        'data-key': key,
        'data-layer': layer && layer.style !== 'solid' ? layer.key : null,
        'data-kind': track && !isGroup ? track.kind : 'group',
        tabindex: -1,
        title: label,
        style: { height: `${item.height}px` },
        onclick: (/** @type {MouseEvent} */ event) => {
          if (canFold && !(event.target instanceof HTMLButtonElement)) fold(key);
        },
      },
      h('span', { class: 'tl-twisty', 'aria-hidden': 'true' }, canFold ? (isFolded ? '▸' : '▾') : ''),
      // With the space that separates it from the name where the text is read.
      layer?.label ? h('span', { class: 'tl-layer' }, `${layer.label} `) : null,
      h('span', { class: 'tl-name' }, label),
      fact && item.height >= 34 && !isPinned ? h('span', { class: 'tl-fact', 'data-fact': fact }) : null,
      h('span', { class: 'tl-actions' }, ...actions),
    );
  }

  /** @param {string} title @param {string} sign @param {() => void} onclick */
  #button(title, sign, onclick) {
    return h('button', { type: 'button', class: 'quiet', tabindex: -1, title, 'aria-label': title, onclick }, sign);
  }

  /** @param {FocusEvent} event */
  #focused(event) {
    const element = event.target instanceof Element ? event.target.closest('[role=treeitem]') : null;
    if (!(element instanceof HTMLElement)) return;
    for (const other of this.#elements) other.tabIndex = other === element ? 0 : -1;
    this.#current = element.dataset.key ?? '';
  }

  /** @param {KeyboardEvent} event */
  #pressed(event) {
    const at = this.#elements.findIndex((element) => element === event.target);
    if (at < 0 || event.ctrlKey || event.metaKey || event.altKey) return;
    const element = this.#elements[at];
    const key = element.dataset.key ?? '';
    const expanded = element.getAttribute('aria-expanded');
    /** @type {Record<string, () => void>} */
    const actions = {
      ArrowDown: () => this.#elements[at + 1]?.focus(),
      ArrowUp: () => this.#elements[at - 1]?.focus(),
      Home: () => this.#elements[0]?.focus(),
      End: () => this.#elements.at(-1)?.focus(),
      ArrowLeft: () => (expanded === 'true' ? fold(key) : this.#parent(at)?.focus()),
      ArrowRight: () => (expanded === 'false' ? fold(key) : this.#elements[at + 1]?.focus()),
      Enter: () => expanded !== null && fold(key),
      ' ': () => element.dataset.kind !== 'group' && pin(key),
      Delete: () => hide(key),
    };
    const action = actions[event.key];
    if (!action) return;
    action();
    event.preventDefault();
    event.stopPropagation();
  }

  /** @param {number} at */
  #parent(at) {
    return this.#elements.slice(0, at).findLast((element) => element.getAttribute('aria-level') === '1');
  }
}

/** What decides how the element of an item looks. @param {Item} item */
function shape(item) {
  const { key, label, height, isGroup, isFolded, isPinned, track } = item;
  const hasFact = factOf(item) !== '';
  return [key, label, height, isGroup, isFolded, isPinned, hasFact, track ? [track.kind, track.rows] : null];
}

/** @param {Item} item */
function factOf(item) {
  return item.isGroup ? '' : trackFact(item);
}

/** The name of an item for those who hear it. @param {Item} item */
function spoken(item) {
  const { isGroup, label, track } = item;
  const layer = layerOf(item);
  const name = layer?.label ? `${layer.label} ${label}` : label;
  return [name, isGroup ? '' : KINDS[track?.kind ?? ''], factOf(item)].filter(Boolean).join(', ');
}

/** The layer of a track. @param {Item} item */
function layerOf({ track, isGroup }) {
  return track && !isGroup ? store.layerOf(track.first_row) : null;
}

/** @param {HTMLElement} element @param {Item} item */
function showFact(element, item) {
  element.setAttribute('aria-label', spoken(item));
  element.querySelector('.tl-fact')?.setAttribute('data-fact', factOf(item));
}

/** A line of facts for a high row. @param {Item} item */
function trackFact({ track }) {
  if (!track) return '';
  if (track.kind === 'counter' || track.kind === 'memory') return `up to ${quantity(track.max ?? 0, track.unit)}`;
  if (track.slices === 0) return '';
  const noun = track.kind === 'idle' ? 'gap' : 'event';
  return `${count(track.slices)} ${noun}${track.slices === 1 ? '' : 's'}`;
}

/** @param {string} key */
function fold(key) {
  store.chooseRows({ folded: toggled(store.get().rows.folded, key) });
}

/** @param {string} key */
function pin(key) {
  store.chooseRows({ pinned: toggled(store.get().rows.pinned, key) });
}

/** @param {string} key */
function hide(key) {
  const { hidden, pinned } = store.get().rows;
  store.chooseRows({ hidden: [...hidden, key], pinned: pinned.filter((other) => other !== key) });
}

/** @param {string[]} keys @param {string} key */
function toggled(keys, key) {
  return keys.includes(key) ? keys.filter((other) => other !== key) : [...keys, key];
}
