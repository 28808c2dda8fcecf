// Flags of notes: on the ruler where a note begins, with a line through the rows that it is about.

import { rowOfNote } from '../core/notes.js';
import { store } from '../core/store.js';

/** @typedef {import('../core/answers.d.ts').Note} Note */
/** @typedef {import('./inks.js').InkTable} InkTable */
/** @typedef {import('./view.js').View} View */

/** The height of the part of the ruler that has flags. */
export const FLAG_HEIGHT = 14;
const FLAG_WIDTH = 11;
const REACH = 4;
const MOST_TITLE = 400;

/**
 * Flags, with a bar over the time of a note that is longer.
 * @param {CanvasRenderingContext2D} context
 * @param {View} view
 * @param {number} ratio
 * @param {InkTable} inks
 */
export function drawFlags(context, view, ratio, inks) {
  for (const { from_ns: from, to_ns: to } of store.get().notes) {
    if (to < view.from || from > view.to) continue;
    const [left, right] = [view.x(from) / ratio, view.x(to) / ratio];
    context.fillStyle = inks.css('note', 0.45);
    context.fillRect(left, 0, Math.max(0, right - left), 3);
    context.fillStyle = inks.css('note');
    context.fillRect(Math.round(left), 0, 1.5, FLAG_HEIGHT + 4);
    context.beginPath();
    context.moveTo(Math.round(left), 1);
    context.lineTo(left + FLAG_WIDTH, 1);
    context.lineTo(left + FLAG_WIDTH - 3, 5.5);
    context.lineTo(left + FLAG_WIDTH, 10);
    context.lineTo(Math.round(left), 10);
    context.fill();
  }
}

/**
 * Lines through the rows, from the flags down: through all, or to the row that the note is about.
 * @param {CanvasRenderingContext2D} context
 * @param {import('./overlay.js').OverlayScene} scene
 * @param {number} height CSS pixels
 */
export function drawFlagLines(context, { view, ratio, inks, place, state }, height) {
  for (const note of state.notes) {
    if (note.from_ns < view.from || note.from_ns > view.to) continue;
    const row = rowOfNote(note);
    const at = row === null ? null : place(row);
    const x = Math.round(view.x(note.from_ns)) / ratio;
    context.fillStyle = inks.css('note', 0.6);
    for (let y = 0; y < (at ? Math.min(at.top, height) : height); y += 6) context.fillRect(x, y, 1, 3);
    if (!at) continue;
    context.fillStyle = inks.css('note');
    context.beginPath();
    context.moveTo(x, at.top);
    context.lineTo(x + 7, at.top);
    context.lineTo(x, at.top + 7);
    context.fill();
  }
}

/**
 * The note whose flag is there.
 * @param {View} view
 * @param {number} ratio
 * @param {number} x CSS pixels
 * @param {number} y
 * @returns {Note | null}
 */
export function flagAt(view, ratio, x, y) {
  if (y > FLAG_HEIGHT) return null;
  const near = store.get().notes.filter(({ from_ns: from }) => {
    const left = view.x(from) / ratio;
    return x >= left - REACH && x <= left + FLAG_WIDTH + REACH;
  });
  return near.at(-1) ?? null;
}

/** What the pointer shows of a note. @param {Note | null} note */
export function flagTitle(note) {
  return note ? note.text.slice(0, MOST_TITLE) : '';
}
