// The groups of the rows of one layer: by GPU, by process or by rank, with the counters of devices after all others.

/** @typedef {import('../core/answers.d.ts').Track} Track */
/** @typedef {import('../core/answers.d.ts').Group} Group */
/** @typedef {import('../core/store.js').Grouping} Grouping */
/** @typedef {{tracks: Track[], groups: Group[]}} Arranged  what the groups are made of */
/** @typedef {Group & {home: string}} ShownGroup  `home` is the label of the group that the layout itself has */

/**
 * The groups of the layout, or with what a process does on devices beside what it does on the host.
 * @param {Arranged} layout
 * @param {Grouping} grouping
 * @returns {ShownGroup[]}
 */
export function grouped(layout, grouping) {
  const own = layout.groups.map((group) => ({ ...group, home: group.label }));
  if (grouping === 'device') return countersLast(own, layout);
  const isRank = grouping === 'rank';
  const ids = new Set(own.filter(({ kind }) => kind === 'process').map(({ id }) => id));
  const users = usersOf(layout);
  const ofProcess = (/** @type {number} */ id) => {
    const track = layout.tracks[id];
    const [user, ...others] = users.get(track.group) ?? [];
    // What a device does as a whole belongs to the process that uses it alone.
    const process = `process:${processOf(track) ?? (others.length === 0 ? user : '')}`;
    return ids.has(process) ? process : track.group;
  };
  const groups = own.map((group) => {
    const tracks = own.flatMap((other) => other.tracks).filter((id) => ofProcess(id) === group.id);
    const label = isRank && group.rank !== undefined ? `rank ${group.rank} · ${group.label}` : group.label;
    return { ...group, label, tracks };
  });
  const first = groups.filter(({ kind }) => kind === 'process');
  if (isRank) first.sort((a, b) => (a.rank ?? Infinity) - (b.rank ?? Infinity));
  return countersLast([...first, ...groups.filter(({ kind }) => kind !== 'process')], layout);
}

/** Whether all that a group has are counters. @param {Group} group */
export function isOfCounters({ kind }) {
  return kind === 'counters';
}

/**
 * Counters of a device are groups of their own after all others: there are many, and threads matter more.
 * @param {ShownGroup[]} groups
 * @param {Arranged} layout
 * @returns {ShownGroup[]}
 */
function countersLast(groups, layout) {
  /** @type {ShownGroup[]} */
  const last = [];
  const others = groups.map((group) => {
    if (group.kind !== 'device') return group;
    const isCounter = (/** @type {number} */ id) => layout.tracks[id].kind === 'counter';
    const tracks = group.tracks.filter(isCounter);
    if (tracks.length === 0 || tracks.length === group.tracks.length) return group;
    last.push({ ...group, id: `${group.id}.counters`, kind: 'counters', label: `${group.label} counters`, tracks });
    return { ...group, tracks: group.tracks.filter((id) => !isCounter(id)) };
  });
  return [...others, ...last];
}

/** The processes that use each device. @param {Arranged} layout @returns {Map<string, Set<string>>} */
function usersOf(layout) {
  /** @type {Map<string, Set<string>>} */
  const users = new Map();
  for (const track of layout.tracks) {
    if (track.kind !== 'stream') continue;
    users.set(track.group, (users.get(track.group) ?? new Set()).add(processOf(track) ?? ''));
  }
  return users;
}

/**
 * The process in the key of a track: `stream:DEVICE.PROCESS…`, `calls:PROCESS…`. A device and its gaps have none.
 * @param {Track} track
 * @returns {string | undefined}
 */
function processOf({ key, kind }) {
  const [first, second] = key.slice(key.indexOf(':') + 1).split('.');
  return ['calls', 'host', 'markers'].includes(kind) ? first : second;
}
