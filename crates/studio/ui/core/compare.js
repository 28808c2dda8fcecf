// Comparing: a second trace on the timeline of the open one. What is chosen is `compare` in the state; this loads the
// second trace as the layer `b`.

import { startFragment } from './address.js';
import { newCompare } from './align.js';
import { hideLayer, showLayer } from './layers.js';
import { store } from './store.js';

/** @typedef {import('./align.js').Compare} Compare */

/** The trace that is being loaded, or was. */
let wanted = -1;

/** Loads the second trace that the state names. @param {() => void} onShown when it can be seen */
export function connectCompare(onShown) {
  store.subscribe((changed) => {
    if (changed.has('compare') || changed.has('layout')) void sync(onShown);
  });
}

/** Compares the open trace with that one. @param {number} trace */
export function compareWith(trace) {
  store.set({ compare: newCompare(trace) }, { history: 'push' });
}

/** Ends the comparison. */
export function endCompare() {
  const { selection, area } = store.get();
  const isOfFirst = (/** @type {number} */ row) => store.layerOf(row).key !== 'b';
  const rows = area?.rows.filter(isOfFirst) ?? [];
  store.set(
    {
      compare: null,
      selection: selection && isOfFirst(selection.row) ? selection : null,
      area: area && (area.rows.length === 0 || rows.length > 0) ? { ...area, rows } : null,
    },
    { history: 'push' },
  );
}

/** Makes the second trace the first, with the same moment in view. */
export function swap() {
  const { compare, trace, window, tab, layers } = store.get();
  const b = layers.find(({ key }) => key === 'b');
  if (!compare || !b) return;
  const change = { trace: b.trace, window: { from: b.own(window.from), to: b.own(window.to) } };
  const turned = { ...compare, trace, offset: -compare.offset };
  // The address says all that stays; the rest begins anew with the other trace.
  location.hash = startFragment({ ...change, tab, compare: turned });
}

/**
 * Moves the second trace by a share of the window, by hand from now on.
 * @param {number} share
 */
export function nudge(share) {
  const { compare, layers, window } = store.get();
  const b = layers.find(({ key }) => key === 'b');
  if (!compare || !b) return;
  const offset = Math.round(b.offset + share * (window.to - window.from));
  store.set({ compare: { ...compare, align: 'manual', offset } }, { history: 'replace' });
}

/** Changes how the second trace is aligned. @param {Partial<Compare>} change */
export function align(change) {
  const { compare } = store.get();
  if (compare) store.set({ compare: { ...compare, ...change } }, { history: 'push' });
}

/** @param {() => void} onShown */
async function sync(onShown) {
  const { compare, layout, layers } = store.get();
  if (!compare || layout?.state !== 'ready') {
    if (wanted >= 0) hideLayer('b');
    wanted = -1;
    return;
  }
  const { trace } = compare;
  if (trace === wanted || layers.some((layer) => layer.key === 'b' && layer.trace === trace)) return;
  wanted = trace;
  try {
    await showLayer({ key: 'b', trace, label: 'B', style: 'tinted' });
    if (wanted === trace) onShown();
  } catch (error) {
    if (!(error instanceof Error)) throw error;
    if (wanted !== trace) return;
    store.set({ compare: null, problem: `Cannot compare: ${error.message}.` }, { history: 'replace' });
  }
}
