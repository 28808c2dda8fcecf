// The button in the head: whether the trace is being recorded, and whether the window follows.

import { isRecording, toggleFollowing } from '../core/live.js';
import { fill, h } from '../core/dom.js';
import { store } from '../core/store.js';
import { duration } from '../core/units.js';

class Live extends HTMLElement {
  #shown = '';

  connectedCallback() {
    store.subscribe((changed) => {
      if (changed.has('layout') || changed.has('following') || changed.has('behind')) this.#draw();
    });
    this.#draw();
  }

  #draw() {
    const { layout, following, behind } = store.get();
    const state = !layout?.live ? '' : !isRecording(layout) ? 'stopped' : following ? 'following' : 'paused';
    const text = state === 'paused' && behind > 0 ? `Paused, ${duration(behind)} behind` : words(state);
    if (this.#shown === text) return;
    this.#shown = text;
    if (state === '') fill(this);
    else if (state === 'stopped')
      fill(
        this,
        h('span', { class: 'live-state is-stopped', title: 'Nobody writes this file, and it has no end.' }, text),
      );
    else
      fill(
        this,
        h(
          'button',
          {
            type: 'button',
            class: `quiet live-state is-${state}`,
            'aria-pressed': String(state === 'following'),
            'aria-keyshortcuts': 'L',
            title: state === 'following' ? 'The window follows the recording (L)' : 'Follow the recording (L)',
            onclick: toggleFollowing,
          },
          h('span', { class: 'live-dot', 'aria-hidden': 'true' }),
          text,
        ),
      );
  }
}

/** @param {string} state */
function words(state) {
  return { following: 'Live', paused: 'Paused', stopped: 'Not finished' }[state] ?? '';
}

customElements.define('ts-live', Live);
