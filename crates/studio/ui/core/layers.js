// Shows and hides layers beside the open trace: their layout, shapes and steps are loaded, and loaded again when the
// server has read more.

import { getJson, isAbort } from './api.js';
import { Layer } from './layer.js';
import { ShapeTable } from './shapes.js';
import { stepsLoaded, stepsOf } from './steps.js';
import { store } from './store.js';

/** @typedef {import('./layer.js').LayerKey} LayerKey */
/** @typedef {import('./answers.d.ts').Layout} Layout */

const POLL_MS = 250;
/** What is being loaded, by layer. @type {Map<LayerKey, AbortController>} */
const loading = new Map();

/**
 * Shows a layer when it is read, or replaces the one of that key. Fails if the trace cannot be read.
 * @param {Pick<import('./layer.js').LayerParts, 'key' | 'trace' | 'label' | 'style'>} parts
 */
export async function showLayer(parts) {
  loading.get(parts.key)?.abort();
  const request = new AbortController();
  loading.set(parts.key, request);
  try {
    const layer = await loaded(new Layer(parts), request.signal);
    // The first picture with this layer is aligned by steps.
    await stepsLoaded();
    if (request.signal.aborted) return;
    const others = store.get().layers.filter(({ key }) => key !== parts.key);
    const layers = [...others, layer].sort((a, b) => a.place - b.place);
    store.set({ layers }, { history: 'none' });
  } catch (error) {
    if (!isAbort(error)) throw error;
  } finally {
    if (loading.get(parts.key) === request) loading.delete(parts.key);
  }
}

/** Takes a layer away, also while it is being loaded. @param {LayerKey} key */
export function hideLayer(key) {
  loading.get(key)?.abort();
  loading.delete(key);
  const { layers } = store.get();
  if (layers.some((layer) => layer.key === key))
    store.set({ layers: layers.filter((layer) => layer.key !== key) }, { history: 'none' });
}

/** Ends the loading of all layers: another trace is opened. */
export function abortLayers() {
  for (const request of loading.values()) request.abort();
  loading.clear();
}

/** Whether a layer is being loaded. */
export function isLoading() {
  return loading.size > 0;
}

/**
 * Loads layers of that trace again, of which the server has another generation.
 * @param {number} trace @param {string} generation
 */
export async function renewLayers(trace, generation) {
  const old = store.get().layers.filter((layer) => layer.trace === trace && layer.layout?.generation !== generation);
  await Promise.all(old.map((layer) => showLayer(layer)));
}

/** @param {Layer} layer @param {AbortSignal} signal */
async function loaded(layer, signal) {
  for (;;) {
    /** @type {Layout} */
    const layout = await getJson(`t/${layer.trace}/layout`, {}, { signal });
    if (layout.state === 'failed') throw new Error(`cannot read ${layout.name}: ${layout.error ?? 'unknown error'}`);
    if (layout.state === 'ready') {
      /** @type {[import('./answers.d.ts').Shape[], import('./steps.js').Steps]} */
      const [shapes, steps] = await Promise.all([
        getJson(`t/${layer.trace}/shapes`, { from: 0 }, { signal }),
        stepsOf(layer.trace, layout, signal),
      ]);
      return layer.with({ layout, shapes: new ShapeTable(shapes), ...steps });
    }
    await new Promise((resolve) => setTimeout(resolve, POLL_MS));
    signal.throwIfAborted();
  }
}
