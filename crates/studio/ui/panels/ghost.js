// The timeline that the changes of the what-if tab predict, beneath the measured one: the layer `ghost`. The changes and
// whether it is shown are choices, so they are in the address.

import { ApiError, getJson, postJson } from '../core/api.js';
import { fill, h } from '../core/dom.js';
import { hideLayer, showLayer } from '../core/layers.js';
import { applyLater } from '../core/session.js';
import { store } from '../core/store.js';
import { changesQuery, chosenChanges, isEmpty } from './changes.js';
import { choose, chosen } from './choices.js';

/** @typedef {import('../core/answers.d.ts').Slice} Slice */
/** @typedef {import('../core/answers.d.ts').Moved} Moved */

/** A prediction that the server has forgotten is asked for once more. */
const MOST_TRIES = 2;

/** The predicted timeline that is shown, or null. */
export function ghostLayer() {
  return store.get().layers.find(({ key }) => key === 'ghost') ?? null;
}

/** Whether a row is one of the predicted timeline. @param {number} row */
export function isGhostRow(row) {
  return store.layerOf(row).key === 'ghost';
}

/**
 * An event of either timeline in both of them; null if it has no predicted times, or if nothing is predicted. Its rows
 * are those of the page.
 * @param {Slice} slice @param {AbortSignal} [signal]
 * @returns {Promise<Moved | null>}
 */
export async function movedOf({ row, start, shape }, signal) {
  const [ghost, layer] = [ghostLayer(), store.layerOf(row)];
  if (!ghost || (layer.key !== 'a' && layer.key !== 'ghost')) return null;
  const side = layer.key === 'ghost' ? 'predicted' : 'measured';
  /** @type {Moved | null} */
  const found = await getJson(`t/${ghost.trace}/moved`, { row: layer.local(row), start, shape, side }, { signal });
  return found && { measured: found.measured, predicted: ghost.placed(found.predicted) };
}

/** The switch of the predicted timeline. It is there when there are changes, and shows how far the prediction is. */
class Ghost extends HTMLElement {
  /** The question that the layer answers, or is to answer; empty without one. */
  #wanted = '';
  #isWorking = false;

  connectedCallback() {
    store.subscribe((changed) => {
      if (changed.has('panel') || changed.has('layout') || changed.has('trace')) this.#follow();
      if (changed.has('layers')) this.#show();
    });
    this.#follow();
  }

  /** Shows or hides it. */
  toggle() {
    if (isEmpty(chosenChanges())) {
      store.openTab('what-if');
      store.announce('Choose a change first: nothing is predicted.');
      return;
    }
    choose({ ghost: isHidden() ? '' : 'off' });
    store.announce(isHidden() ? 'The predicted timeline is hidden.' : 'The predicted timeline is shown.');
  }

  /** Makes the layer what the choices say. */
  async #follow() {
    const { layout, trace } = store.get();
    const changes = chosenChanges();
    const isWhole = layout?.state === 'ready' && layout.live?.state !== 'recording';
    const isWanted = isWhole && !isEmpty(changes) && !isHidden();
    // A file that is read again gets another prediction. New idle rows change nothing.
    const stamp = layout?.generation.split('-')[0];
    const question = isWanted ? `${trace} ${stamp} ${layout.path} ${changesQuery(changes)}` : '';
    if (question === this.#wanted) {
      this.#show();
      return;
    }
    this.#wanted = question;
    this.#isWorking = question !== '';
    if (question === '') {
      leaveGhost();
      hideLayer('ghost');
    }
    this.#show();
    if (question !== '') await this.#predict(question, trace, changesQuery(changes));
  }

  /** @param {string} question @param {number} trace @param {string} changes */
  async #predict(question, trace, changes) {
    for (let tries = 1; question === this.#wanted; tries += 1) {
      try {
        /** @type {{id: number}} */
        const { id } = await postJson(`t/${trace}/predict`, JSON.parse(changes));
        if (question !== this.#wanted) return;
        leaveGhost();
        await showLayer({ key: 'ghost', trace: id, label: 'predicted', style: 'ghost' });
        if (question !== this.#wanted) return;
        this.#isWorking = false;
        this.#show();
        await applyLater();
        return;
      } catch (error) {
        if (!(error instanceof Error)) throw error;
        if (question !== this.#wanted) return;
        if (error instanceof ApiError && error.status === 404 && tries < MOST_TRIES) continue;
        this.#isWorking = false;
        hideLayer('ghost');
        this.#show();
        store.set({ problem: `Cannot predict the timeline: ${error.message}.` }, { history: 'none' });
        return;
      }
    }
  }

  #show() {
    const changes = chosenChanges();
    const { layout } = store.get();
    this.hidden = isEmpty(changes) || layout?.state !== 'ready' || layout.live?.state === 'recording';
    if (this.hidden) {
      fill(this);
      return;
    }
    const isPressed = !isHidden();
    const button = h(
      'button',
      {
        type: 'button',
        'aria-pressed': String(isPressed),
        'aria-keyshortcuts': 'O',
        'aria-busy': this.#isWorking ? 'true' : null,
        title: 'Show or hide the timeline with the changes of the what-if tab (O)',
        onclick: () => this.toggle(),
      },
      h('span', { class: 'ghost-swatch', 'aria-hidden': 'true' }),
      this.#isWorking ? 'Predicting…' : 'Predicted',
    );
    const hadFocus = this.contains(document.activeElement);
    fill(this, button);
    if (hadFocus) button.focus();
  }
}

/** Whether the predicted timeline is not to be seen. */
function isHidden() {
  return chosen('ghost', '') === 'off';
}

/** Events of the predicted timeline cannot stay selected when it goes or changes. */
function leaveGhost() {
  const { selection, area } = store.get();
  if (selection && isGhostRow(selection.row)) store.set({ selection: null }, { history: 'none' });
  if (area?.rows.some(isGhostRow)) {
    const rows = area.rows.filter((row) => !isGhostRow(row));
    store.set({ area: rows.length > 0 ? { ...area, rows } : null }, { history: 'none' });
  }
}

customElements.define('ts-ghost', Ghost);
