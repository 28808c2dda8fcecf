// The rows of several layers in one list: beneath each track of the open trace those tracks of the other layers that
// match it. What matches nothing comes at the end of its group, and groups that match none at the end of the list, but
// before those of counters.

import { grouped, isOfCounters } from './groups.js';

/** @typedef {import('../core/layer.js').Layer} Layer */
/** @typedef {import('../core/answers.d.ts').Track} Track */
/** @typedef {import('./groups.js').ShownGroup} ShownGroup */
/** @typedef {import('../core/store.js').Grouping} Grouping */
/** @typedef {import('./rows.js').Tracks} Tracks */
/**
 * @typedef {object} Part  what a layer adds: its groups and tracks with the names and numbers of the list
 * @property {Track[]} tracks
 * @property {ShownGroup[]} groups
 * @property {Map<string, string>} homes
 * @property {(name: string) => string} plain a key or a group as the layer itself names it
 */

/**
 * The groups and tracks of all layers. Tracks have the row numbers of the page, and their place in the list as number.
 * @param {Layer[]} layers the open trace first
 * @param {Grouping} grouping
 * @returns {Tracks}
 */
export function mergedTracks(layers, grouping) {
  let count = 0;
  const parts = layers.map((layer) => {
    const part = partOf(layer, grouping, count);
    count += part.tracks.length;
    return part;
  });
  const [first, ...others] = parts;
  if (others.length === 0) return first;
  const tracks = parts.flatMap((part) => part.tracks);
  const links = others.map(({ groups, plain }) =>
    matches(first.groups, groups, [
      // Processes have other numbers in another run, but a rank stays what it is.
      (one, other) => one.rank !== undefined && one.rank === other.rank,
      (one, other) => one.id === plain(other.id),
    ]),
  );
  const groups = first.groups.map((group) => {
    const own = group.tracks.map((id) => tracks[id]);
    const added = others.map((_, n) => (links[n].get(group)?.tracks ?? []).map((id) => tracks[id]));
    const beneath = others.map(({ plain }, n) =>
      matches(own, added[n], [(one, other) => one.key === plain(other.key)]),
    );
    const paired = own.flatMap((track) => [track, ...beneath.map((found) => found.get(track))]);
    const shown = new Set(paired.filter((track) => track !== undefined));
    return { ...group, tracks: [...shown, ...added.flat().filter((track) => !shown.has(track))].map(({ id }) => id) };
  });
  const alone = others.flatMap((part, n) => {
    const used = new Set(links[n].values());
    return part.groups.filter((group) => !used.has(group));
  });
  const all = [...groups, ...alone];
  return {
    tracks,
    groups: [...all.filter((group) => !isOfCounters(group)), ...all.filter(isOfCounters)],
    homes: new Map(parts.flatMap(({ homes }) => [...homes])),
  };
}

/** @param {Layer} layer @param {Grouping} grouping @param {number} base number of its first track @returns {Part} */
function partOf(layer, grouping, base) {
  const { tracks, groups } = layer.layout ?? { tracks: [], groups: [] };
  const shown = grouped({ tracks, groups }, grouping);
  const labels = /** @type {[string, string][]} */ (groups.map(({ id, label }) => [id, label]));
  if (layer.place === 0) return { tracks, groups: shown, homes: new Map(labels), plain: (name) => name };
  const named = (/** @type {string} */ name) => `${layer.key}~${name}`;
  return {
    tracks: tracks.map((track) => ({
      ...track,
      id: track.id + base,
      key: named(track.key),
      group: named(track.group),
      first_row: layer.row(track.first_row),
    })),
    groups: shown.map((group) => ({ ...group, id: named(group.id), tracks: group.tracks.map((id) => id + base) })),
    homes: new Map(labels.map(([id, label]) => [named(id), label])),
    plain: (name) => name.slice(layer.key.length + 1),
  };
}

/**
 * Which of `others` belongs to which of `own`: by the first rule that finds one, else the one with the same label, else
 * the next one of its kind.
 * @template {{kind: string, label: string}} T
 * @param {T[]} own @param {T[]} others
 * @param {((one: T, other: T) => boolean)[]} isSame
 * @returns {Map<T, T>}
 */
function matches(own, others, isSame) {
  /** @type {Map<T, T>} */
  const found = new Map();
  const used = new Set();
  /** @type {((one: T, other: T) => boolean)[]} */
  const rules = [...isSame, (one, other) => one.label === other.label, () => true];
  for (const rule of rules) {
    for (const one of own) {
      if (found.has(one)) continue;
      const other = others.find((item) => !used.has(item) && item.kind === one.kind && rule(one, item));
      if (!other) continue;
      found.set(one, other);
      used.add(other);
    }
  }
  return found;
}
