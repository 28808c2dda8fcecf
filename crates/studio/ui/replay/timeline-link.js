// Calls of the recording and events of the timeline: both have the correlation of the API call.

import { getJson, isAbort } from '../core/api.js';
import { store } from '../core/store.js';
import { eventOf } from '../panels/event.js';

/** @typedef {import('./answers.d.ts').Call} Call */
/** @typedef {import('./answers.d.ts').ReplayPlace} ReplayPlace */
/** @typedef {import('./model.js').ReplayModel} ReplayModel */
/** @typedef {import('../core/answers.d.ts').Slice} Slice */

/** The kind of GPU operation of each kind of call. @type {Record<string, string>} */
const KINDS = { launch: 'kernel', copy: 'copy', 'copy of planes': 'copy', set: 'set' };

let latest = 0;

/**
 * Selects the GPU operation of a call on the timeline.
 * @param {ReplayModel} model
 * @param {Call} call
 */
export async function showOnTimeline(model, call) {
  latest += 1;
  const turn = latest;
  if (!KINDS[call.kind] || !call.correlation) return;
  const places = await placesOf(model, call.correlation);
  const at = alike(model, call).indexOf(call);
  const place = places.filter((one) => isAlike(one, call))[at];
  // Another call may have been chosen meanwhile, or another trace opened.
  const isStill = turn === latest && store.get().trace === model.trace;
  if (place && isStill) store.select(place, { reveal: true, history: 'replace' });
}

/**
 * The call of the selected event. Null if the event is not in the recording, which is of one process of the open trace.
 * @param {ReplayModel} model
 * @param {Slice} slice
 * @param {AbortSignal} signal
 * @returns {Promise<Call|null>}
 */
export async function callOf(model, slice, signal) {
  if (store.layerOf(slice.row).key !== 'a') return null;
  try {
    const { fields, kind } = await eventOf(slice, signal);
    const number = (/** @type {string} */ wanted) => Number(fields.find(([name]) => name === wanted)?.[1] ?? 0);
    const correlation = number('correlation');
    // Processes number their calls alike.
    const isRecorded = correlation > 0 && number('process') === model.ready?.process;
    const same = model.calls.filter((call) => isRecorded && call.correlation === correlation);
    if (same.length <= 1 || kind === 'api') return same[0] ?? null;
    // The nodes of a graph have one correlation: the n-th of a name is the n-th call of that name.
    const places = await placesOf(model, correlation);
    const place = places.find((one) => one.row === slice.row && one.start === slice.start);
    const found = place && same.find((call) => isAlike(place, call));
    if (!place || !found) return same[0] ?? null;
    const at = places.filter((one) => isAlike(one, found)).indexOf(place);
    return alike(model, found)[at] ?? found;
  } catch (error) {
    if (!isAbort(error)) store.announce('The selected event could not be read.');
    return null;
  }
}

/** @param {ReplayModel} model @param {number} correlation @returns {Promise<ReplayPlace[]>} */
function placesOf(model, correlation) {
  return getJson(`t/${model.trace}/replay/places`, { correlation, process: model.ready?.process ?? 0 });
}

/** Calls with the same correlation, kind and name, in order. @param {ReplayModel} model @param {Call} call */
function alike(model, call) {
  return model.calls.filter(
    (other) =>
      other.correlation === call.correlation &&
      KINDS[other.kind] === KINDS[call.kind] &&
      other.function === call.function,
  );
}

/** @param {ReplayPlace} place @param {Call} call */
function isAlike(place, call) {
  const isNamed = place.name === call.name || place.name === call.function;
  return place.kind === KINDS[call.kind] && (call.kind !== 'launch' || isNamed);
}
