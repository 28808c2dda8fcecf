// The time range that the tabs look at: the whole trace, the window of the timeline, or what is selected.

import { h } from '../core/dom.js';
import { store } from '../core/store.js';
import { duration, moment } from '../core/units.js';
import { choose, chosen } from './choices.js';
import { timeArgument } from './times.js';

/** @typedef {'whole'|'window'|'selection'} Scope */

/** @returns {Scope} */
export function scope() {
  const name = chosen('scope', 'whole');
  return name === 'window' || name === 'selection' ? name : 'whole';
}

/**
 * The chosen time range in whole nanoseconds; null for the whole trace.
 * @returns {import('../core/store.js').Span|null}
 */
export function scopeSpan() {
  const { window, layout } = store.get();
  if (!layout || scope() === 'whole') return null;
  if (scope() === 'selection') return selectedSpan();
  const from = Math.max(0, Math.floor(window.from));
  const to = Math.min(layout.span_ns, Math.ceil(window.to));
  return from === 0 && to >= layout.span_ns ? null : { from, to };
}

/** The time range of the selected area or event; null without one. @returns {import('../core/store.js').Span|null} */
export function selectedSpan() {
  const { area, selection } = store.get();
  if (area) return { from: Math.floor(area.from), to: Math.ceil(area.to) };
  if (selection) return store.shown({ ...selection, duration: Math.max(1, selection.duration) });
  return null;
}

/** The same as a part of a request. @returns {{from?: number, to?: number}} */
export function scopeQuery() {
  const span = scopeSpan();
  return span ? { from: span.from, to: span.to } : {};
}

/** Parts of the state that change the chosen range. @type {(keyof import('../core/store.js').State)[]} */
export const SCOPE_WATCHED = ['trace', 'layout', 'window', 'area', 'selection', 'panel'];

/** The options of a command for a time range. @param {import('../core/store.js').Span|null} span */
export function rangeOptions(span) {
  return span ? ` --from ${timeArgument(span.from)} --to ${timeArgument(span.to)}` : '';
}

/** The file of the open trace, or of another one on the timeline, as a word of a shell. */
export function fileArgument(layer = store.layers()[0]) {
  return quoted(layer.layout?.path ?? 'FILE');
}

/** A word of a shell. @param {string} text */
export function quoted(text) {
  return /^[\w./:=@%+,-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`;
}

/** The switch between the ranges, with the range in words. */
export class ScopeSwitch extends HTMLElement {
  /** @type {() => void} */
  #leave = () => {};

  connectedCallback() {
    this.#leave = store.subscribe((changed) => {
      if (SCOPE_WATCHED.some((key) => changed.has(key))) this.draw();
    });
    this.draw();
  }

  disconnectedCallback() {
    this.#leave();
  }

  draw() {
    const current = scope();
    const names = /** @type {[Scope, string][]} */ ([
      ['whole', 'Whole trace'],
      ['window', 'Window'],
      ['selection', 'Selection'],
    ]);
    const hadFocus = this.contains(document.activeElement);
    const buttons = names.map(([name, text]) => {
      const missing = name === 'selection' && !selectedSpan();
      const pressed = String(name === current);
      const onclick = () => choose({ scope: name === 'whole' ? '' : name });
      return h(
        'button',
        { type: 'button', 'aria-pressed': pressed, disabled: missing && name !== current, onclick },
        text,
      );
    });
    const span = scopeSpan();
    const words = span
      ? `${moment(span.from, 1000)} to ${moment(span.to, 1000)} (${duration(span.to - span.from)})`
      : '';
    const text = current === 'selection' && !span ? 'nothing is selected: the whole trace' : words;
    this.replaceChildren(
      h('div', { class: 'switch', role: 'group', 'aria-label': 'Time range of the tabs' }, buttons),
      h('span', { class: 'faint' }, text),
    );
    if (hadFocus) /** @type {HTMLElement|null} */ (this.querySelector('[aria-pressed=true]'))?.focus();
  }
}

customElements.define('ts-scope', ScopeSwitch);
