// One event, as several panels need it: its details, and a button that leads to it.

import { getJson } from '../core/api.js';
import { h } from '../core/dom.js';
import { store } from '../core/store.js';
import { duration } from '../core/units.js';
import { shortName } from './words.js';

/** Of a name in a list. */
const MOST_LETTERS = 90;

/** @typedef {import('../core/answers.d.ts').EventDetail} EventDetail */
/** @typedef {import('../core/answers.d.ts').Slice} Slice */

/**
 * The answer for a slice.
 * @param {Slice} slice
 * @param {AbortSignal} [signal]
 * @returns {Promise<EventDetail & {cause?: string}>}
 */
export function eventOf({ row, start, shape }, signal) {
  return getJson(`t/${store.get().trace}/event`, { row, start, shape }, { signal });
}

/** The slice that starts there. @param {{row: number, start: number}} place @returns {Promise<Slice|null>} */
export async function sliceOf({ row, start }) {
  /** @type {Slice|null} */
  const slice = await getJson(`t/${store.get().trace}/neighbor`, { row, time: start - 1, direction: 'next' });
  return slice && slice.start === start ? slice : null;
}

/**
 * Selects an event that an answer names, and moves to it.
 * @param {{row: number, start: number, duration: number, name: string}} event
 */
export async function selectEvent(event) {
  const slice = await sliceOf(event);
  if (slice) store.select(slice, { reveal: true });
  else {
    store.zoomTo({ from: event.start, to: event.start + Math.max(1, event.duration) }, { margin: 1 });
    store.announce(`Moved to ${event.name}. The timeline has no single slice for it.`);
  }
}

/** @param {string} name */
function shorten(name) {
  if (name === '') return '(no name)';
  return name.length > MOST_LETTERS ? `${name.slice(0, MOST_LETTERS)}…` : name;
}

/** A button that selects an event. @param {import('../core/answers.d.ts').NamedSlice} event */
export function eventButton(event) {
  return h(
    'button',
    { type: 'button', class: 'link', title: event.name, onclick: () => selectEvent(event) },
    // Names can hold signs that turn the direction of what follows.
    h('bdi', {}, shorten(shortName(event.name))),
    `, ${duration(event.duration)}`,
  );
}
