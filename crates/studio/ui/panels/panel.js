// The base of all panels: it asks for an answer when the panel is shown and its question has changed, shows progress
// and errors, and cancels requests that nobody waits for any more.

import { ApiError, isAbort } from '../core/api.js';
import { fill, h } from '../core/dom.js';
import { isRecording } from '../core/live.js';
import { store } from '../core/store.js';

/** A window that moves is asked for when it has been still for this long. */
const STILL_MS = 250;
/** Answers that come sooner show no progress. */
const PROGRESS_AFTER_MS = 150;

/**
 * A custom element with an answer in it. A subclass says what it asks (`question`) and how the answer looks (`load`).
 * @abstract
 */
export class Panel extends HTMLElement {
  /** Parts of the state that can change the question. @type {(keyof import('../core/store.js').State)[]} */
  watched = ['trace', 'layout'];
  #shown = false;
  #asked = '';
  #timer = 0;
  /** @type {AbortController|null} */
  #request = null;
  /** @type {() => void} */
  #leave = () => {};

  /**
   * What is asked: an answer is kept until this text changes. Null if there is nothing to ask.
   * @returns {string|null}
   */
  question() {
    const { trace, layout, answers } = store.get();
    return layout?.state === 'ready' ? `${trace} ${answers}` : null;
  }

  /**
   * Asks and returns what is shown.
   * @param {AbortSignal} _signal
   * @returns {Promise<import('../core/dom.js').Child[]>}
   */
  async load(_signal) {
    return [];
  }

  /** What is shown if there is nothing to ask. @returns {import('../core/dom.js').Child[]} */
  nothing() {
    const { layout } = store.get();
    if (layout?.state === 'failed') return [problem(layout.error ?? 'the trace cannot be read')];
    return [h('p', { class: 'faint' }, layout ? 'The trace is being read.' : 'No trace is open.')];
  }

  connectedCallback() {
    this.#leave = store.subscribe((changed) => {
      if (this.watched.some((key) => changed.has(key))) this.changed(changed.has('window'));
    });
    if (!this.closest('[data-lazy]')) this.show();
  }

  disconnectedCallback() {
    this.#leave();
    this.hide();
  }

  /** The panel is visible from now on. */
  show() {
    this.#shown = true;
    this.refresh();
  }

  /** The panel is not visible: requests end. */
  hide() {
    this.#shown = false;
    clearTimeout(this.#timer);
    if (this.#request) this.#asked = '';
    this.#request?.abort();
    this.#request = null;
  }

  get isShown() {
    return this.#shown;
  }

  /** Whether an answer is on its way. */
  get isWaiting() {
    return this.#request !== null;
  }

  /** @param {boolean} moves whether the state may still be moving */
  changed(moves) {
    if (!this.#shown) return;
    clearTimeout(this.#timer);
    if (moves) this.#timer = window.setTimeout(() => this.refresh(), STILL_MS);
    else this.refresh();
  }

  /** Asks again, even if the question is the same. */
  again() {
    this.#asked = '';
    this.refresh();
  }

  async refresh() {
    if (!this.#shown) return;
    const question = this.question();
    if (question === this.#asked || this.#waitsForTheSame(question)) return;
    this.#asked = question ?? '';
    this.#request?.abort();
    this.#request = null;
    if (question === null) {
      fill(this, this.nothing());
      return;
    }
    const request = new AbortController();
    this.#request = request;
    const progress = window.setTimeout(() => this.#wait(), PROGRESS_AFTER_MS);
    try {
      const content = await this.load(request.signal);
      if (this.#request !== request) return;
      this.#replace(content);
    } catch (error) {
      if (isAbort(error) || this.#request !== request) return;
      fill(
        this,
        failure(error, () => this.again()),
      );
    } finally {
      clearTimeout(progress);
      if (this.#request === request) {
        this.#request = null;
        this.removeAttribute('aria-busy');
      }
    }
  }

  /** Of a trace that grows, an answer that is on its way is good enough. @param {string|null} question */
  #waitsForTheSame(question) {
    if (!this.#request || !question || !isRecording(store.get().layout)) return false;
    const withoutGeneration = (/** @type {string} */ text) => text.split(' ').toSpliced(1, 1).join(' ');
    return withoutGeneration(question) === withoutGeneration(this.#asked);
  }

  /** Shows new content. The control that has the focus keeps it. @param {import('../core/dom.js').Child[]} content */
  #replace(content) {
    const name = this.contains(document.activeElement)
      ? /** @type {HTMLElement} */ (document.activeElement).dataset.focus
      : undefined;
    fill(this, content);
    if (name) /** @type {HTMLElement|null} */ (this.querySelector(`[data-focus="${name}"]`))?.focus();
  }

  #wait() {
    this.setAttribute('aria-busy', 'true');
    if (this.childElementCount === 0) fill(this, h('p', { class: 'faint waiting' }, 'Working…'));
  }
}

/**
 * A failed request, with its hint and a button that repeats it.
 * @param {unknown} error
 * @param {() => void} repeat
 */
export function failure(error, repeat) {
  const message = error instanceof Error ? error.message : String(error);
  const hint = error instanceof ApiError ? error.hint : undefined;
  if (!(error instanceof ApiError)) console.error(error);
  const button = h('button', { type: 'button', onclick: repeat }, 'Try again');
  return h(
    'div',
    { class: 'problem', role: 'alert' },
    h('p', {}, sentence(message)),
    hint ? h('p', { class: 'faint' }, `Hint: ${hint}`) : null,
    button,
  );
}

/** @param {string} text */
export function problem(text) {
  return h('div', { class: 'problem', role: 'alert' }, h('p', {}, sentence(text)));
}

/** A note in a panel. @param {import('../core/dom.js').Child[]} children */
export function note(...children) {
  return h('p', { class: 'note' }, ...children);
}

/** @param {string} text @param {import('../core/dom.js').Child[]} children */
export function section(text, ...children) {
  return h('section', { class: 'block' }, h('h3', {}, text), ...children);
}

/** With a capital at the start and a point at the end. @param {string} text */
export function sentence(text) {
  const start = text.charAt(0).toUpperCase() + text.slice(1);
  return /[.!?]$/.test(start) ? start : `${start}.`;
}
