// Reports the window and the selection in the page's live region, after they came to rest.

import { store } from '../core/store.js';
import { duration, moment } from '../core/units.js';
import { rowLabel } from './events-table.js';

/** @typedef {import('./timeline.js').Timeline} Timeline */

const REST_MS = 350;

/** @param {Timeline} timeline */
export function connectAnnouncements(timeline) {
  let timer = 0;
  /** @type {Set<string>} */
  const topics = new Set();
  store.subscribe((changed) => {
    for (const topic of /** @type {const} */ (['window', 'selection', 'area']))
      if (changed.has(topic)) topics.add(topic);
    if (topics.size === 0) return;
    clearTimeout(timer);
    timer = setTimeout(() => {
      const sentence = sentences(timeline, topics).join(' ');
      topics.clear();
      if (sentence) store.announce(sentence);
    }, REST_MS);
  });
}

/** @param {Timeline} timeline @param {Set<string>} topics */
function sentences(timeline, topics) {
  const { window, selection, area, layout } = store.get();
  if (layout?.state !== 'ready') return [];
  const parts = [];
  if (topics.has('selection') && selection) {
    const { shapes } = store.layerOf(selection.row);
    const name = shapes.shortName(selection.shape).slice(0, 120);
    parts.push(`Selected ${name}, ${duration(selection.duration)}, in ${rowLabel(timeline, selection.row)}.`);
  }
  if (topics.has('area') && area) {
    const rows = area.rows.length > 0 ? `, ${area.rows.length} rows` : '';
    parts.push(`Area of ${duration(area.to - area.from)} from ${moment(area.from, 1000)}${rows}.`);
  }
  if (topics.has('window')) {
    const step = Math.max(1, (window.to - window.from) / 1000);
    parts.push(
      `Window from ${moment(window.from, step)} to ${moment(window.to, step)}, ${duration(window.to - window.from)}.`,
    );
  }
  return parts;
}
