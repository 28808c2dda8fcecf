// Lines of a replay over HTTP: a request is answered with lines of progress, and then with the answer.

import { ApiError, postLines } from '../core/api.js';

/** @typedef {import('./answers.d.ts').Progress} Progress */
/** @typedef {(progress: Progress) => void} OnProgress */

/** A request that the replay refused, with what it says beside its message. */
export class ReplayError extends ApiError {
  /** @param {{error: string, hint?: string, readable?: [number, number][], ended?: boolean, fatal?: boolean}} line */
  constructor({ error, hint, readable, ended, fatal }) {
    super(422, error, hint);
    /** Positions at which the memory can be read. */
    this.readable = readable ?? null;
    /** Whether the replay has ended. */
    this.ended = ended === true || fatal === true;
  }
}

/**
 * Starts a replay, or finds one that runs.
 * @param {number} trace
 * @param {boolean} run whether it runs recorded calls
 * @param {OnProgress} onProgress
 * @returns {Promise<import('./answers.d.ts').Ready>}
 */
export function start(trace, run, onProgress) {
  return lastLine(`t/${trace}/replay/start`, { run }, onProgress);
}

/**
 * Sends a request and returns its answer.
 * @template T
 * @param {number} trace
 * @param {Record<string, unknown>} request
 * @param {OnProgress} onProgress
 * @returns {Promise<T & {position: import('./answers.d.ts').Position}>}
 */
export async function ask(trace, request, onProgress) {
  const line = await lastLine(`t/${trace}/replay/ask`, request, onProgress);
  return line.ok;
}

/** @param {string} path @param {unknown} body @param {OnProgress} onProgress */
async function lastLine(path, body, onProgress) {
  /** @type {any} */
  let last = null;
  await postLines(path, body, (line) => {
    if (line.progress) onProgress(line.progress);
    else last = line;
  });
  if (!last) throw new ApiError(0, 'the server ended before it answered', 'check that `tracesmith studio` is running');
  if (typeof last.error === 'string') throw new ReplayError(last);
  return last;
}
