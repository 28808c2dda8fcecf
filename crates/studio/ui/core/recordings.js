// The recordings that this server has started: asked for when the server says that one has changed.

import { getJson } from './api.js';

/** @typedef {import('./answers.d.ts').Recording} Recording */

/** @type {Set<(recordings: Recording[]) => void>} */
const listeners = new Set();

/** Calls `listener` with all recordings when one has changed. @param {(recordings: Recording[]) => void} listener */
export function onRecordings(listener) {
  listeners.add(listener);
}

/** Asks how all recordings are. */
export async function refreshRecordings() {
  /** @type {Recording[] | null} */
  const recordings = await getJson('recordings').catch(() => null);
  if (recordings) for (const listener of listeners) listener(recordings);
}
