// The recordings that this server has started: asked for when the server says that one has changed.

import { getJson } from './api.js';

/** @typedef {import('./answers.d.ts').Recording} Recording */

/** @type {Set<(recordings: Recording[]) => void>} */
const listeners = new Set();
let latest = 0;

/** Calls `listener` with all recordings when one has changed. @param {(recordings: Recording[]) => void} listener */
export function onRecordings(listener) {
  listeners.add(listener);
}

/** Asks how all recordings are. */
export async function refreshRecordings() {
  latest += 1;
  const turn = latest;
  /** @type {Recording[] | null} */
  const recordings = await getJson('recordings').catch(() => null);
  // An answer that was overtaken shows what was before.
  if (recordings && turn === latest) for (const listener of listeners) listener(recordings);
}
