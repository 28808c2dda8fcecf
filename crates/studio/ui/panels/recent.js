// The traces that this browser opened before, newest first.

import { store } from '../core/store.js';

const NAME = 'tracesmith-recent';
const KEPT = 12;

/** @returns {string[]} */
export function recent() {
  try {
    const paths = JSON.parse(localStorage.getItem(NAME) ?? '[]');
    return Array.isArray(paths) ? paths.filter((path) => typeof path === 'string') : [];
  } catch {
    return [];
  }
}

/** Remembers each trace that is opened. */
export function rememberTraces() {
  store.subscribe((changed) => {
    const path = changed.has('layout') ? store.get().layout?.path : undefined;
    if (path)
      localStorage.setItem(NAME, JSON.stringify([path, ...recent().filter((one) => one !== path)].slice(0, KEPT)));
  });
}
