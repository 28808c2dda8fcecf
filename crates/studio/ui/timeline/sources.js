// Where the pictures of the layers come from: tiles and slices of each layer, which are asked for with the rows and the
// times of that layer.

import { placeOf } from '../core/layer.js';
import { changedFrom, continues } from '../core/live.js';
import { store } from '../core/store.js';
import { Slices, fetchSlices } from './slices.js';
import { Tiles } from './tiles.js';

/** @typedef {import('../core/layer.js').Layer} Layer */
/** @typedef {import('./view.js').View} View */
/** @typedef {import('./slices.js').SliceColumns} SliceColumns */
/** @typedef {{tiles: Tiles, slices: Slices}} Source */

/** Tiles and slices by the place of the layer. */
export class Sources {
  /** @type {Map<number, Source>} */
  #all = new Map();
  /** The layouts that are shown, by the place of the layer. @type {Map<number, import('../core/answers.d.ts').Layout>} */
  #layouts = new Map();
  #onArrival;

  /** @param {() => void} onArrival */
  constructor(onArrival) {
    this.#onArrival = onArrival;
  }

  /** @param {number} place @returns {Source} */
  at(place) {
    let source = this.#all.get(place);
    if (!source) {
      source = { tiles: new Tiles(this.#onArrival), slices: new Slices(this.#onArrival) };
      this.#all.set(place, source);
    }
    return source;
  }

  get isIdle() {
    return [...this.#all.values()].every(({ tiles, slices }) => tiles.isIdle && slices.isIdle);
  }

  /**
   * Gets ready for these layers, and forgets the others. Of a trace that has grown, what did not change is kept.
   * @param {Layer[]} layers @param {{isNew: boolean}} options whether another trace is opened
   */
  open(layers, { isNew }) {
    for (const { place, trace, layout, isReady } of layers) {
      if (!isReady || !layout) continue;
      const rows = layout.tracks.reduce((most, track) => Math.max(most, track.first_row + track.rows), 0);
      const { tiles, slices } = this.at(place);
      const before = this.#layouts.get(place);
      const isGrown = before?.live !== undefined && !isNew && continues(before, layout);
      const from = isGrown ? changedFrom(before.generation, layout) : null;
      tiles.open(trace, layout.generation, layout.span_ns, rows, from);
      slices.open(trace, layout.generation, from);
      this.#layouts.set(place, layout);
    }
    for (const [place, { tiles, slices }] of this.#all) {
      if (place === 0 || layers.some((layer) => layer.place === place)) continue;
      tiles.close();
      slices.close();
      this.#all.delete(place);
      this.#layouts.delete(place);
    }
  }

  /** Whether the coarsest tile of these rows is here. @param {number[]} rows */
  hasTop(rows) {
    return byLayer(rows).every(({ layer, local }) => this.at(layer.place).tiles.hasTop(local));
  }

  /** Asks for the tiles that a view of these rows needs. @param {View} view @param {number[]} rows in order */
  wantTiles(view, rows) {
    for (const { layer, local } of byLayer(rows)) {
      this.at(layer.place).tiles.want(view.shifted(layer.offset), local, layer.layout?.span_ns ?? 1);
    }
  }

  /** Asks for the slices of these rows. @param {View} view @param {number[]} rows in order */
  wantSlices(view, rows) {
    const asked = byLayer(rows);
    for (const [place, { slices }] of this.#all) {
      const found = asked.find(({ layer }) => layer.place === place);
      slices.want(view.shifted(found?.layer.offset ?? 0), found?.local ?? []);
    }
  }

  pause() {
    for (const { tiles, slices } of this.#all.values()) {
      tiles.pause();
      slices.pause();
    }
  }
}

/**
 * Slices of rows of any layers in a time range of the timeline, straight from the server. They have the times of their
 * layer.
 * @param {number[]} rows @param {number} from @param {number} to
 * @param {number} limit for each row
 * @returns {Promise<Map<number, SliceColumns>>}
 */
export async function fetchShown(rows, from, to, limit) {
  /** @type {Map<number, SliceColumns>} */
  const all = new Map();
  for (const { layer, local } of byLayer([...rows].sort((a, b) => a - b))) {
    const span = layer.layout?.span_ns ?? 0;
    const [least, most] = [Math.max(0, layer.own(from)), Math.min(span, layer.own(to))];
    if (most < least) continue;
    const found = await fetchSlices(layer.trace, layer.layout?.generation ?? '', local, least, most, limit);
    for (const [row, columns] of found) all.set(layer.row(row), columns);
  }
  return all;
}

/** Rows by their layer. @param {number[]} rows in order */
function byLayer(rows) {
  return store
    .layers()
    .map((layer) => {
      const own = rows.filter((row) => placeOf(row) === layer.place);
      return { layer, local: own.map((row) => layer.local(row)) };
    })
    .filter(({ local }) => local.length > 0);
}
