// Arrows in the timeline from the selected event: to the call that launched it, and to what it waited for.

import { store } from '../core/store.js';
import { eventOf } from './event.js';

/** @typedef {{row: number, time: number}} End */
/** @typedef {{from: End, to: End, kind: 'waited_for'|'waited_by'|'launch'}} Arrow */
/** @typedef {HTMLElement & {setArrows?: (arrows: Arrow[]) => void}} Timeline */

/** Arrows of one kind that are drawn. */
const MOST = 50;

/** Draws arrows when the selection changes. */
export function connectArrows() {
  let request = new AbortController();
  const draw = async () => {
    request.abort();
    request = new AbortController();
    const { signal } = request;
    const { selection } = store.get();
    if (!selection) {
      show([]);
      return;
    }
    // Without an answer there are no arrows; the details panel reports why.
    const event = await eventOf(selection, signal).catch(() => null);
    if (!signal.aborted) show(event ? arrowsOf(event) : []);
  };
  store.subscribe((changed) => {
    if (changed.has('selection') || changed.has('trace')) draw();
  });
  draw();
}

/** @param {Arrow[]} arrows */
function show(arrows) {
  /** @type {Timeline|null} */
  const timeline = document.querySelector('ts-timeline');
  timeline?.setArrows?.(arrows);
}

/** @param {import('./event.js').EventDetail} event @returns {Arrow[]} */
function arrowsOf(event) {
  const start = { row: event.row, time: event.start };
  const end = { row: event.row, time: event.start + event.duration };
  /** @type {Arrow[]} */
  const arrows = [];
  if (event.launch)
    arrows.push({ from: { row: event.launch.row, time: event.launch.start }, to: start, kind: 'launch' });
  for (const op of event.ops.slice(0, MOST))
    arrows.push({ from: start, to: { row: op.row, time: op.start }, kind: 'launch' });
  for (const wait of event.waited_for.slice(0, MOST))
    arrows.push({ from: { row: wait.row, time: wait.start + wait.duration }, to: start, kind: 'waited_for' });
  for (const wait of event.waited_by.slice(0, MOST))
    arrows.push({ from: end, to: { row: wait.row, time: wait.start }, kind: 'waited_by' });
  return arrows;
}
