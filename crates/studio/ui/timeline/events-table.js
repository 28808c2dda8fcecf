// The text alternative to the picture: a table of the events in view.

import { h } from '../core/dom.js';
import { store } from '../core/store.js';
import { count, duration, moment } from '../core/units.js';
import { fetchShown } from './sources.js';

/** @typedef {import('./timeline.js').Timeline} Timeline */
/** @typedef {import('../core/answers.d.ts').Slice} Slice */

const PER_ROW = 200;
const MOST = 1000;

/** Opens the table for the window and the rows that are shown. @param {Timeline} timeline */
export async function openEvents(timeline) {
  const { layout, window } = store.get();
  if (!layout) return;
  const rows = shownRows(timeline);
  const dialog = h('dialog', { class: 'dialog dialog-wide', 'aria-label': 'Events in view' });
  dialog.addEventListener('close', () => dialog.remove());
  dialog.append(h('p', {}, 'Loading…'));
  document.body.append(dialog);
  dialog.showModal();
  try {
    const found = await fetchShown(rows, window.from, window.to, PER_ROW);
    /** @type {Slice[]} */
    const slices = [];
    let isCut = false;
    for (const [row, { start, duration: lengths, shape, hasMore }] of found) {
      isCut ||= hasMore;
      for (let i = 0; i < start.length; i += 1)
        slices.push({ row, start: start[i], duration: lengths[i], shape: shape[i] });
    }
    slices.sort((a, b) => store.shown(a).from - store.shown(b).from || a.row - b.row);
    dialog.replaceChildren(...content(timeline, dialog, slices, isCut || slices.length > MOST));
  } catch (error) {
    dialog.replaceChildren(
      h('p', { role: 'alert' }, error instanceof Error ? error.message : String(error)),
      closeButton(dialog),
    );
  }
}

/** @param {Timeline} timeline @param {HTMLDialogElement} dialog @param {Slice[]} slices @param {boolean} isCut */
function content(timeline, dialog, slices, isCut) {
  const { window } = store.get();
  const shown = slices.slice(0, MOST);
  const range = `${moment(window.from, 1000)} to ${moment(window.to, 1000)}`;
  const sentence = isCut
    ? `The first ${count(shown.length)} events, at most ${PER_ROW} of a row, from ${range}. Zoom in to see all.`
    : `${count(shown.length)} events from ${range}.`;
  return [
    h('h2', {}, 'Events in view'),
    h('p', {}, sentence),
    h(
      'div',
      { class: 'dialog-scroll', tabindex: 0, role: 'region', 'aria-label': 'Table of events' },
      table(timeline, dialog, shown),
    ),
    closeButton(dialog),
  ];
}

/** @param {Timeline} timeline @param {HTMLDialogElement} dialog @param {Slice[]} slices */
function table(timeline, dialog, slices) {
  const head = ['Start', 'Duration', 'Row', 'Event'].map((title, i) =>
    h('th', { scope: 'col', class: i < 2 ? 'number' : null }, title),
  );
  const rows = slices.map((slice) => {
    const name = store.layerOf(slice.row).shapes.shortName(slice.shape);
    const choose = () => {
      dialog.close();
      store.select(slice, { reveal: true });
    };
    return h(
      'tr',
      {},
      h('td', { class: 'number' }, moment(slice.start, 1)),
      h('td', { class: 'number' }, duration(slice.duration)),
      h('td', {}, rowLabel(timeline, slice.row)),
      h('td', {}, h('button', { type: 'button', class: 'link', onclick: choose }, name)),
    );
  });
  return h('table', { class: 'events' }, h('thead', {}, h('tr', {}, ...head)), h('tbody', {}, ...rows));
}

/** @param {HTMLDialogElement} dialog */
function closeButton(dialog) {
  return h('div', { class: 'dialog-actions' }, h('button', { type: 'button', onclick: () => dialog.close() }, 'Close'));
}

/** @param {Timeline} timeline */
function shownRows(timeline) {
  const rows = new Set();
  for (const { track, isGroup } of timeline.rows.all()) {
    if (!track || isGroup || track.slices === 0) continue;
    for (let lane = 0; lane < track.rows; lane += 1) rows.add(track.first_row + lane);
  }
  return [...rows].sort((a, b) => a - b);
}

/** The label of a row's track and group. @param {Timeline} timeline @param {number} row */
export function rowLabel(timeline, row) {
  const track = timeline.rows.trackOfRow(row);
  const { label } = store.layerOf(row);
  return track ? `${label ? `${label}, ` : ''}${track.label}, ${timeline.rows.homes.get(track.group) ?? ''}` : '';
}
