// The steps of a replay: to the first, previous, next and last call, and before or after it.

import { fill, h } from '../core/dom.js';
import { bytes, count } from '../core/units.js';
import { ReplayPart } from './part.js';

/** @type {[name: string, sign: string, title: string, key: string|null][]} */
const STEPS = [
  ['first', '«', 'First call', null],
  ['back', '‹', 'Previous call', ','],
  ['next', '›', 'Next call', '.'],
  ['last', '»', 'Last call', null],
];

class ReplaySteps extends ReplayPart {
  #buttons = /** @type {Map<string, HTMLButtonElement>} */ (new Map());
  #state = h('span', { class: 'replay-state', role: 'status' });

  build() {
    const steps = STEPS.map(([name, sign, title, key]) => {
      const button = h(
        'button',
        {
          type: 'button',
          'aria-label': title,
          'aria-keyshortcuts': key,
          title: key ? `${title} ( ${key} )` : title,
          onclick: () => this.step(name),
        },
        sign,
      );
      this.#buttons.set(name, button);
      return button;
    });
    const sides = /** @type {const} */ (['before', 'after']).map((side) => {
      const title = side === 'before' ? 'Memory before the call' : 'Memory after the call';
      const button = h(
        'button',
        {
          type: 'button',
          'aria-pressed': 'false',
          title: `${title} (B)`,
          'aria-keyshortcuts': 'B',
          onclick: () => this.turn(side),
        },
        side === 'before' ? 'Before' : 'After',
      );
      this.#buttons.set(side, button);
      return button;
    });
    fill(
      this,
      h('div', { class: 'group', role: 'group', 'aria-label': 'Steps' }, steps),
      h('div', { class: 'switch', role: 'group', 'aria-label': 'Moment of the memory' }, sides),
      this.#state,
    );
  }

  /** @param {string} name */
  step(name) {
    const { calls } = this.model;
    const counts = /** @type {Record<string, number>} */ ({
      first: -calls.length,
      back: -1,
      next: 1,
      last: calls.length,
    });
    this.model.step(counts[name] ?? 0);
  }

  /** @param {'before'|'after'} [side] the other side without one */
  turn(side = this.model.side === 'before' ? 'after' : 'before') {
    const { call } = this.model;
    if (call) this.model.select(call.number, side);
  }

  draw() {
    const { calls, call, side, status, isBusy, doing, progress } = this.model;
    const at = call ? calls.indexOf(call) : -1;
    for (const [name, button] of this.#buttons) {
      const isFirst = at <= 0 && (name === 'first' || name === 'back');
      const isLast = at >= calls.length - 1 && (name === 'next' || name === 'last');
      // A button that has the focus keeps it.
      button.setAttribute('aria-disabled', String(status !== 'ready' || isFirst || isLast));
      if (name === 'before' || name === 'after') button.setAttribute('aria-pressed', String(name === side));
    }
    const done = progress && progress.bytes > 0 ? `, ${bytes(progress.bytes)}` : '';
    const where = progress && progress.call > 0 ? `, call #${progress.call}` : '';
    const still = at < 0 ? '' : `Call ${count(at + 1)} of ${count(calls.length)}`;
    const text = isBusy ? `${doing}${where}${done}…` : still;
    if (this.#state.textContent !== text) this.#state.textContent = text;
    this.toggleAttribute('data-busy', isBusy);
  }
}

customElements.define('ts-replay-steps', ReplaySteps);
export { ReplaySteps };
