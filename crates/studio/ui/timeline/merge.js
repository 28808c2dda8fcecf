// The rows of several layers in one list: beneath each track of the open trace those tracks of the other layers that
// match it. What matches nothing comes at the end of its group, and groups that match none at the end of the list.

/** @typedef {import('../core/layer.js').Layer} Layer */
/** @typedef {import('../core/answers.d.ts').Track} Track */
/** @typedef {import('../core/answers.d.ts').Group} Group */
/** @typedef {import('../core/store.js').Grouping} Grouping */
/** @typedef {import('./rows.js').Tracks} Tracks */
/**
 * @typedef {object} Part  what a layer adds: its groups and tracks with the names and numbers of the list
 * @property {Track[]} tracks
 * @property {Group[]} groups
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
  const links = others.map(({ groups, plain }) => matches(first.groups, groups, ({ id }) => id, plain));
  const groups = first.groups.map((group) => {
    const own = group.tracks.map((id) => tracks[id]);
    const added = others.map((_, n) => (links[n].get(group)?.tracks ?? []).map((id) => tracks[id]));
    const beneath = others.map(({ plain }, n) => matches(own, added[n], ({ key }) => key, plain));
    const paired = own.flatMap((track) => [track, ...beneath.map((found) => found.get(track))]);
    const shown = new Set(paired.filter((track) => track !== undefined));
    return { ...group, tracks: [...shown, ...added.flat().filter((track) => !shown.has(track))].map(({ id }) => id) };
  });
  const alone = others.flatMap((part, n) => {
    const used = new Set(links[n].values());
    return part.groups.filter((group) => !used.has(group));
  });
  return { tracks, groups: [...groups, ...alone], homes: new Map(parts.flatMap(({ homes }) => [...homes])) };
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
 * Which of `others` belongs to which of `own`: the one with the same name, else with the same label, else the next one
 * of its kind.
 * @template {{kind: string, label: string}} T
 * @param {T[]} own @param {T[]} others
 * @param {(one: T) => string} name
 * @param {(name: string) => string} plain a name of one of `others` as its layer has it
 * @returns {Map<T, T>}
 */
function matches(own, others, name, plain) {
  /** @type {Map<T, T>} */
  const found = new Map();
  const used = new Set();
  /** @type {((one: T, other: T) => boolean)[]} */
  const rules = [
    (one, other) => name(one) === plain(name(other)),
    (one, other) => one.label === other.label,
    () => true,
  ];
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

/**
 * The groups of the layout, or with what a process does on devices beside what it does on the host.
 * @param {{tracks: Track[], groups: Group[]}} layout
 * @param {Grouping} grouping
 * @returns {Group[]}
 */
function grouped(layout, grouping) {
  if (grouping === 'device') return layout.groups;
  const ids = new Set(layout.groups.filter(({ kind }) => kind === 'process').map(({ id }) => id));
  const ofProcess = (/** @type {number} */ id) => {
    const process = `process:${processOf(layout.tracks[id])}`;
    return ids.has(process) ? process : layout.tracks[id].group;
  };
  const groups = layout.groups.map((group) => {
    const tracks = layout.groups.flatMap((other) => other.tracks).filter((id) => ofProcess(id) === group.id);
    return { ...group, tracks };
  });
  return [...groups.filter(({ kind }) => kind === 'process'), ...groups.filter(({ kind }) => kind !== 'process')];
}

/** The process in the key of a track: `stream:DEVICE.PROCESS…`, `calls:PROCESS…`. @param {Track} track */
function processOf({ key, kind }) {
  const [first, second] = key.slice(key.indexOf(':') + 1).split('.');
  return ['calls', 'host', 'markers'].includes(kind) ? first : second;
}
