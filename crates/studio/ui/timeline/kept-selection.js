// Keeps the selected event selected while the trace grows: more is known of its clock, which moves it by some
// nanoseconds, and what lasts longer can push it to another lane.

import { isAbort } from '../core/api.js';
import { isRecording } from '../core/live.js';
import { store } from '../core/store.js';
import { fetchSlices } from './slices.js';

/** @typedef {import('../core/answers.d.ts').Slice} Slice */

/** An event is taken for another one when it is farther away. */
const FARTHEST_NS = 50_000;
const LIMIT = 4000;

/** Looks for the selected event in each new layout. */
export function keepSelection() {
  let generation = '';
  store.subscribe((changed) => {
    const { layout } = store.get();
    if (!changed.has('layout') || !layout || layout.state !== 'ready' || layout.generation === generation) return;
    const isNew = generation !== '' && isRecording(layout);
    generation = layout.generation;
    if (isNew) find().catch((error) => !isAbort(error) && console.info(`the selection was not found: ${error}`));
  });
}

async function find() {
  const { layout, trace, selection } = store.get();
  const row = selection?.row ?? -1;
  const track = layout?.tracks.find(({ first_row, rows }) => row >= first_row && row < first_row + rows);
  if (!layout || !selection || !track) return;
  const lanes = Array.from({ length: track.rows }, (_, lane) => track.first_row + lane);
  const from = Math.max(0, selection.start - FARTHEST_NS);
  const to = selection.start + FARTHEST_NS;
  const found = await fetchSlices(trace, layout.generation, lanes, from, to, LIMIT);
  if (store.get().selection !== selection) return;
  /** @type {Slice | null} */
  let best = null;
  for (const [lane, { start, duration, shape }] of found) {
    for (let i = 0; i < start.length; i += 1) {
      const distance = Math.abs(start[i] - selection.start);
      if (shape[i] !== selection.shape || distance > FARTHEST_NS) continue;
      if (!best || distance < Math.abs(best.start - selection.start))
        best = { row: lane, start: start[i], duration: duration[i], shape: shape[i] };
    }
  }
  const isSame = best?.row === selection.row && best.start === selection.start && best.duration === selection.duration;
  if (best && !isSame) store.set({ selection: best }, { history: 'none' });
}
