// What the selected event waited for, and what waited for it. Each entry opens to its own dependencies.

import { h } from '../core/dom.js';
import { store } from '../core/store.js';
import { duration, moment } from '../core/units.js';
import { eventOf, selectEvent, sliceOf } from './event.js';
import { trackOf } from './locate.js';
import { Panel, failure, note, section } from './panel.js';
import { shortName, whyWords } from './words.js';

/** @typedef {import('../core/answers.d.ts').NamedSlice & {why: string}} Wait */
/** @typedef {'waited_for'|'waited_by'} Direction */

class Dependencies extends Panel {
  /** @type {(keyof import('../core/store.js').State)[]} */
  watched = ['trace', 'layout', 'selection'];

  question() {
    const { selection } = store.get();
    const base = super.question();
    return base && selection ? `${base} ${selection.row} ${selection.start} ${selection.shape}` : null;
  }

  nothing() {
    const { layout, selection } = store.get();
    return layout?.state === 'ready' && !selection
      ? [note('Select an event in the timeline. This tab shows what it waited for, and what waited for it.')]
      : super.nothing();
  }

  /** @param {AbortSignal} signal */
  async load(signal) {
    const { selection } = store.get();
    if (!selection) return this.nothing();
    const event = await eventOf(selection, signal);
    return [
      h(
        'div',
        { class: 'columns' },
        section(
          `${event.short_name} waited for`,
          tree(event.waited_for, 'waited_for', 'Nothing: no dependency of this event is known.'),
        ),
        section(`Waited for ${event.short_name}`, tree(event.waited_by, 'waited_by', 'Nothing waited for this event.')),
      ),
    ];
  }
}

/** @param {Wait[]} waits @param {Direction} direction @param {string} empty */
function tree(waits, direction, empty) {
  if (waits.length === 0) return h('p', { class: 'faint' }, empty);
  return h(
    'ul',
    { class: 'waits' },
    waits.map((wait) => h('li', {}, entry(wait, direction))),
  );
}

/** @param {Wait} wait @param {Direction} direction */
function entry(wait, direction) {
  const place = trackOf(wait.row)?.label ?? '';
  const text =
    `${shortName(wait.name)} at ${moment(wait.start, 1000)}, ` +
    `${duration(wait.duration)}${place ? `, ${place}` : ''}`;
  const button = h(
    'button',
    { type: 'button', class: 'link', title: wait.name, onclick: () => selectEvent(wait) },
    text,
  );
  const more = h(
    'details',
    {},
    h('summary', {}, direction === 'waited_for' ? 'what this waited for' : 'what waited for this'),
  );
  more.addEventListener('toggle', () => open(more, wait, direction), { once: true });
  return [button, h('span', { class: 'faint' }, ` ${whyWords(wait.why)}`), more];
}

/**
 * Fills an entry with its own dependencies.
 * @param {HTMLElement} more
 * @param {Wait} wait
 * @param {Direction} direction
 */
async function open(more, wait, direction) {
  try {
    const slice = await sliceOf(wait);
    const event = slice && (await eventOf(slice));
    more.append(
      event
        ? tree(event[direction], direction, 'Nothing further is known.')
        : note('The timeline has no single slice for it.'),
    );
  } catch (error) {
    more.append(failure(error, () => open(more, wait, direction)));
  }
}

customElements.define('ts-dependencies', Dependencies);
