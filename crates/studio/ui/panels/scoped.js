// Panels that follow the chosen time range, and the line with the command that prints the same answer.

import { h } from '../core/dom.js';
import { store } from '../core/store.js';
import { Panel } from './panel.js';
import { SCOPE_WATCHED, fileArgument, rangeOptions, scope, scopeQuery, scopeSpan, selectedSpan } from './scope.js';

/** A panel that asks again when the chosen time range changes. */
export class ScopedPanel extends Panel {
  watched = SCOPE_WATCHED;

  question() {
    const base = super.question();
    return base && `${base} ${JSON.stringify(scopeQuery())} ${this.choices()}`;
  }

  /** Choices of this panel that change its question. */
  choices() {
    return '';
  }

  /** The time range as a part of a request. */
  get range() {
    if (scope() === 'selection' && !selectedSpan()) return {};
    return scopeQuery();
  }
}

/**
 * The command that prints what an `analyze` panel shows, with a button that copies it.
 * @param {string} options after the file, without the time range
 */
export function analyzeLine(options) {
  return commandLine(`tracesmith analyze ${fileArgument()}${options}${rangeOptions(scopeSpan())}`);
}

/** A command with a button that copies it. @param {string} command */
export function commandLine(command) {
  const button = h(
    'button',
    {
      type: 'button',
      class: 'quiet',
      title: 'Copy the command that prints the same answer',
      onclick: () => copyText(command, button),
    },
    'Copy command',
  );
  return h('p', { class: 'command' }, h('code', {}, command), button);
}

/** @param {string} text @param {HTMLElement} button */
async function copyText(text, button) {
  try {
    await navigator.clipboard.writeText(text);
    button.textContent = 'Copied';
    store.announce('The command was copied.');
  } catch {
    button.textContent = 'Not copied: the browser refused';
  }
}
