// Arrows in the timeline from the selected event: to the call that launched it, to what it waited for, and to where it
// is predicted.

import { store } from '../core/store.js';
import { eventOf } from './event.js';
import { isGhostRow, movedOf } from './ghost.js';

/** @typedef {{row: number, time: number}} End */
/** @typedef {{from: End, to: End, kind: 'waited_for'|'waited_by'|'launch'|'moved'}} Arrow */
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
    const moved = await movedOf(selection, signal).catch(() => null);
    const place = isGhostRow(selection.row) ? moved?.measured : selection;
    const event = place && !signal.aborted ? await eventOf(place, signal).catch(() => null) : null;
    if (!signal.aborted) show([...(event ? arrowsOf(event) : []), ...(moved ? [arrowTo(moved)] : [])]);
  };
  store.subscribe((changed) => {
    if (changed.has('selection') || changed.has('trace') || changed.has('layers')) draw();
  });
  draw();
}

/** @param {Arrow[]} arrows */
function show(arrows) {
  /** @type {Timeline|null} */
  const timeline = document.querySelector('ts-timeline');
  timeline?.setArrows?.(arrows);
}

/** From where an event was measured to where it is predicted. @param {import('./ghost.js').Moved} moved @returns {Arrow} */
function arrowTo({ measured, predicted }) {
  const end = (/** @type {import('./ghost.js').Slice} */ { row, start }) => ({ row, time: start });
  return { from: end(measured), to: end(predicted), kind: 'moved' };
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
