// One event, as several panels need it: its details, and a button that leads to it.

import { getJson } from '../core/api.js';
import { h } from '../core/dom.js';
import { store } from '../core/store.js';
import { duration } from '../core/units.js';
import { shortName } from './words.js';

/** @typedef {import('../core/answers.d.ts').EventDetail} EventDetail */
/** @typedef {import('../core/answers.d.ts').Slice} Slice */

/**
 * The answer for a slice.
 * @param {Slice} slice
 * @param {AbortSignal} [signal]
 * @returns {Promise<EventDetail & {cause?: string}>}
 */
export async function eventOf({ row, start, shape }, signal) {
  const layer = store.layerOf(row);
  /** @type {EventDetail & {cause?: string}} */
  const event = await getJson(`t/${layer.trace}/event`, { row: layer.local(row), start, shape }, { signal });
  const { launch, ops, waited_for, waited_by } = event;
  return {
    ...layer.placed(event),
    launch: launch && layer.placed(launch),
    ops: ops.map((op) => layer.placed(op)),
    waited_for: waited_for.map((other) => layer.placed(other)),
    waited_by: waited_by.map((other) => layer.placed(other)),
  };
}

/** The slice that starts there. @param {{row: number, start: number}} place @returns {Promise<Slice|null>} */
export async function sliceOf({ row, start }) {
  const layer = store.layerOf(row);
  const at = { row: layer.local(row), time: start - 1, direction: 'next' };
  /** @type {Slice|null} */
  const slice = await getJson(`t/${layer.trace}/neighbor`, at);
  return slice && slice.start === start ? layer.placed(slice) : null;
}

/**
 * Selects an event that an answer names, and moves to it.
 * @param {{row: number, start: number, duration: number, name: string}} event
 */
export async function selectEvent(event) {
  const slice = await sliceOf(event);
  if (slice) store.select(slice, { reveal: true });
  else {
    store.zoomToSlice(event);
    store.announce(`Moved to ${event.name}. The timeline has no single slice for it.`);
  }
}

/** A button that selects an event. @param {import('../core/answers.d.ts').NamedSlice} event */
export function eventButton(event) {
  return h(
    'button',
    { type: 'button', class: 'link', title: event.name, onclick: () => selectEvent(event) },
    `${shortName(event.name)}, ${duration(event.duration)}`,
  );
}
