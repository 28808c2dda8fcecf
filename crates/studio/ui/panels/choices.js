// Choices inside the panels: the grouping of kernels, the time range, what-if changes. They are part of the page's
// address, as short names and texts.

import { store } from '../core/store.js';

/**
 * The chosen text of a name.
 * @param {string} name
 * @param {string} otherwise what counts without a choice
 */
export function chosen(name, otherwise) {
  return store.get().panel[name] ?? otherwise;
}

/**
 * Changes choices. An empty text takes a choice back.
 * @param {Record<string, string>} changes
 */
export function choose(changes) {
  const all = { ...store.get().panel, ...changes };
  const kept = Object.entries(all).filter(([, text]) => text !== '');
  store.set({ panel: Object.fromEntries(kept) }, { history: 'replace' });
}
