// Which slice is meant by a place in the picture.

import { store } from '../core/store.js';
import { rowAt } from './rows.js';
import { fetchShown } from './sources.js';

/** @typedef {import('./timeline.js').Timeline} Timeline */
/** @typedef {import('../core/answers.d.ts').Slice} Slice */
/** @typedef {import('../core/answers.d.ts').Track} Track */

/** Short slices are hit within this distance. */
const SLACK_PIXELS = 3;
const MOST = 4000;

/**
 * The row and the time at a place of the canvas in CSS pixels.
 * @param {Timeline} timeline
 * @param {number} x
 * @param {number} y
 */
export function placeAt(timeline, x, y) {
  const found = timeline.itemAt(y);
  const row = found ? rowAt(found.item, y - found.top) : null;
  return { row, time: timeline.view.time(x * timeline.ratio), item: found?.item ?? null };
}

/** The slice there, if the page has it already. @param {Timeline} timeline @param {number} row @param {number} time */
export function sliceAt(timeline, row, time) {
  if (!timeline.showsSlices(row)) return null;
  const layer = store.layerOf(row);
  const { slices } = timeline.sources.at(layer.place);
  const slack = SLACK_PIXELS * timeline.ratio * timeline.view.nanosPerPixel;
  const found = slices.at(timeline.view.shifted(layer.offset), layer.local(row), layer.own(time), slack);
  return found && layer.placed(found);
}

/**
 * The slice there, or the longest one in the pixels around. A device stands for its streams.
 * @param {Timeline} timeline @param {number} row @param {number} time
 * @returns {Promise<Slice | null>}
 */
export async function findSlice(timeline, row, time) {
  const known = sliceAt(timeline, row, time);
  if (known || timeline.showsSlices(row)) return known;
  const track = timeline.rows.trackOfRow(row);
  if (!track || track.kind === 'counter' || track.kind === 'memory') return null;
  const rows = track.slices > 0 ? [row] : streamRows(timeline.rows.tracks, track);
  if (rows.length === 0) return null;
  const slack = timeline.ratio * timeline.view.nanosPerPixel;
  const found = await fetchShown(rows, time - slack, time + slack, MOST);
  /** @type {Slice | null} */
  let best = null;
  for (const [slicesRow, { start, duration, shape }] of found) {
    for (let i = 0; i < start.length; i += 1) {
      if (best && duration[i] <= best.duration) continue;
      best = { row: slicesRow, start: start[i], duration: duration[i], shape: shape[i] };
    }
  }
  return best;
}

/** @param {Track[]} tracks @param {Track} device */
function streamRows(tracks, device) {
  const streams = tracks.filter(({ group, kind }) => group === device.group && kind === 'stream');
  return streams.flatMap(({ first_row, rows }) => Array.from({ length: rows }, (_, lane) => first_row + lane));
}
