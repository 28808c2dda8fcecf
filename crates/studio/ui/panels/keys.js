// The list of all keys, which `?` opens.

import { fill, h } from '../core/dom.js';

/** @type {[string, [string, string][]][]} */
const KEYS = [
  [
    'Move',
    [
      ['W S', 'zoom in, zoom out'],
      ['A D', 'move left, move right'],
      ['Wheel', 'scroll the rows; with Ctrl, zoom at the pointer; with Shift, move'],
      ['G', 'go to a time'],
      ['[ ]', 'previous step, next step'],
      ['F', 'zoom to the selection'],
      ['Home', 'show the whole trace'],
      ['< >', 'move the second trace of a comparison'],
      ['L', 'follow a recording, or pause'],
    ],
  ],
  [
    'Select',
    [
      ['Click', 'select an event or an idle gap'],
      ['Drag', 'on the ruler: a time range; in the rows: an area'],
      [', .', 'previous event, next event of the row'],
      ['P N', 'previous run, next run of the same name'],
      ['↑ ↓', 'in the list of rows: the row above, the row below'],
      ['M', 'mark a moment'],
      ['T', 'write a note about the selection or the moment'],
      ['Esc', 'clear the selection, close what is open'],
    ],
  ],
  [
    'Find',
    [
      ['/', 'search names, stacks and markers; /…/ is a regular expression'],
      ['Enter', 'in the search: the next result; with Shift the previous one'],
      [':', 'commands, in the words of tracesmith'],
      ['Tab', 'in a command: complete it'],
    ],
  ],
  [
    'Panels',
    [
      ['← →', 'on a tab: the tab beside it'],
      ['↑ ↓', 'in a table or flame graph: move between rows or frames'],
      ['Enter', 'in a table: go to the row on the timeline'],
      ['C', 'the critical path'],
      ['I', 'the causes of idle time'],
      ['E', 'the events in view as a table'],
      ['O', 'show or hide the predicted timeline of the what-if tab'],
      [', .', 'in Replay: previous call, next call'],
      ['B', 'in Replay: before or after the call'],
      ['?', 'this list'],
    ],
  ],
];

class Keys extends HTMLElement {
  #dialog = h('dialog', { class: 'keys', 'aria-labelledby': 'keys-title' });

  connectedCallback() {
    const close = h('button', { type: 'button', onclick: () => this.#dialog.close() }, 'Close');
    fill(
      this.#dialog,
      h('div', { class: 'keys-head' }, h('h2', { id: 'keys-title' }, 'Keys'), close),
      h(
        'div',
        { class: 'keys-lists' },
        KEYS.map(([title, keys]) =>
          h(
            'section',
            {},
            h('h3', {}, title),
            h(
              'dl',
              {},
              keys.map(([key, meaning]) =>
                h(
                  'div',
                  {},
                  h(
                    'dt',
                    {},
                    key.split(' ').map((one) => h('kbd', {}, one)),
                  ),
                  h('dd', {}, meaning),
                ),
              ),
            ),
          ),
        ),
      ),
    );
    fill(this, this.#dialog);
    document.querySelector('#keys')?.addEventListener('click', () => this.toggle());
    this.#dialog.addEventListener('keydown', (event) => event.stopPropagation());
    this.#dialog.addEventListener('click', (event) => event.target === this.#dialog && this.#dialog.close());
  }

  /** Opens the list, or closes it. */
  toggle() {
    if (this.#dialog.open) this.#dialog.close();
    else this.#dialog.showModal();
  }
}

customElements.define('ts-keys', Keys);
