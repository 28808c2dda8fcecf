// Which rows are shown, in which order, where, and how high: the tracks of the layers and the person's choices of rows
// make a list of items. An item is the head of a group, or a track with its lanes.

/**
 * @typedef {object} Tracks
 * @property {Track[]} tracks
 * @property {Group[]} groups in the order in which they are shown, with their tracks
 * @property {Map<string, string>} homes labels of the groups that tracks belong to, also if they are shown in others
 */
/** @typedef {import('../core/answers.d.ts').Track} Track */
/** @typedef {import('../core/answers.d.ts').Group} Group */
/** @typedef {import('../core/store.js').RowChoices} RowChoices */
/**
 * @typedef {object} Item
 * @property {string} key of the track, or `@` and the id of the group
 * @property {string} label
 * @property {Group} group
 * @property {Track | null} track the track; for the head of a folded group, the track that stands for it
 * @property {boolean} isGroup
 * @property {boolean} isFolded
 * @property {boolean} isPinned
 * @property {number} y CSS pixels from the top of the list that it is in
 * @property {number} height
 * @property {number} laneHeight with the gap beneath it
 */

const GROUP_HEIGHT = 26;
const FOLDED_HEIGHT = 16;
/** Space above and below the lanes. */
export const PADDING = 3;
/** All lanes of a track together, unless they would be thinner than MIN_LANE. */
const MAX_LANES_HEIGHT = 132;
const MIN_LANE = 7;

/** @type {Record<Track['kind'], number>} */
const LANE_HEIGHTS = {
  device: 34,
  idle: 20,
  stream: 24,
  collective: 24,
  waits: 18,
  markers: 20,
  host: 20,
  calls: 22,
  counter: 36,
  memory: 44,
};

/** The items in view order, with their places. */
export class RowList {
  /** @type {Item[]} */
  items = [];
  /** @type {Item[]} */
  pinned = [];
  height = 0;
  pinnedHeight = 0;
  /** Tracks that the person or the filter hides. */
  hiddenTracks = 0;
  /** @type {Map<number, Item>} */
  #byTrack = new Map();
  /** The groups that tracks are shown in. @type {Map<number, Group>} */
  #groups = new Map();
  /** Of all layers. @type {Track[]} */
  tracks;
  /** Labels of the groups that tracks belong to. @type {Map<string, string>} */
  homes;

  /** @param {Tracks} layout @param {RowChoices} choices */
  constructor(layout, choices) {
    this.tracks = layout.tracks;
    this.homes = layout.homes;
    const [pinned, hidden, folded] = [choices.pinned, choices.hidden, choices.folded].map((keys) => new Set(keys));
    for (const group of layout.groups) {
      const key = groupKey(group);
      const tracks = group.tracks.map((id) => layout.tracks[id]);
      const shown = tracks.filter(
        (track) => !hidden.has(key) && !hidden.has(track.key) && matches(track, group, choices),
      );
      this.hiddenTracks += tracks.length - shown.length;
      if (shown.length === 0) continue;
      const isFolded = folded.has(key);
      this.#add({
        group,
        key,
        label: group.label,
        track: isFolded ? representative(shown) : null,
        isGroup: true,
        isFolded,
      });
      for (const track of shown) {
        this.#groups.set(track.id, group);
        const isTrackFolded = folded.has(track.key);
        const home = layout.homes.get(track.group) ?? '';
        const label = home === group.label ? track.label : `${track.label} · ${home}`;
        const item = { group, key: track.key, label, track, isGroup: false, isFolded: isTrackFolded };
        if (pinned.has(track.key)) this.#pin(item);
        if (!isFolded) this.#add(item);
      }
    }
  }

  /** The item at a height of the scrolled list. @param {number} y @returns {Item | null} */
  itemAt(y) {
    return this.items.find((item) => y >= item.y && y < item.y + item.height) ?? null;
  }

  /** The item that shows a row, also a group's head that stands for it. @param {number} row @returns {Item | null} */
  itemOfRow(row) {
    const track = this.trackOfRow(row);
    return track ? (this.#byTrack.get(track.id) ?? null) : null;
  }

  /**
   * The head of the group that shows a track, or would if it were not folded.
   * @param {Track} track
   * @returns {Item | null}
   */
  headOf(track) {
    const group = this.#groups.get(track.id);
    return this.items.find((item) => item.isGroup && item.group === group) ?? null;
  }

  /** @param {number} row @returns {Track | null} */
  trackOfRow(row) {
    return this.tracks.find(({ first_row, rows }) => row >= first_row && row < first_row + rows) ?? null;
  }

  /** Items in view order: pinned ones first. */
  all() {
    return [...this.pinned, ...this.items];
  }

  /** @param {Omit<Item, 'y' | 'height' | 'laneHeight' | 'isPinned'>} item */
  #add(item) {
    const placed = { ...item, ...heights(item), y: this.height, isPinned: false };
    this.items.push(placed);
    this.height += placed.height;
    if (item.track && !item.isGroup) this.#byTrack.set(item.track.id, placed);
  }

  /** @param {Omit<Item, 'y' | 'height' | 'laneHeight' | 'isPinned'>} item */
  #pin(item) {
    const label = `${item.label} · ${item.group.label}`;
    const placed = { ...item, ...heights(item), label, y: this.pinnedHeight, isPinned: true };
    this.pinned.push(placed);
    this.pinnedHeight += placed.height;
    if (item.track) this.#byTrack.set(item.track.id, placed);
  }
}

/**
 * The lane of an item at a distance from its top.
 * @param {Item} item
 * @param {number} y
 * @returns {number | null} the row
 */
export function rowAt(item, y) {
  if (!item.track) return null;
  const lane = Math.floor((y - PADDING) / item.laneHeight);
  return item.track.first_row + Math.min(Math.max(lane, 0), item.track.rows - 1);
}

/** @param {Group} group */
export function groupKey(group) {
  return `@${group.id}`;
}

/** @param {Track} track @param {Group} group @param {RowChoices} choices */
function matches(track, group, choices) {
  const words = choices.filter.toLowerCase().split(/\s+/).filter(Boolean);
  const text = `${group.label} ${track.label} ${track.kind}`.toLowerCase();
  return words.every((word) => text.includes(word));
}

/** The track that a folded group shows. @param {Track[]} tracks */
function representative(tracks) {
  return tracks.find(({ kind }) => kind === 'device') ?? tracks.find(({ kind }) => kind === 'calls') ?? tracks[0];
}

/** @param {{isGroup: boolean, isFolded: boolean, track: Track | null}} item */
function heights({ isGroup, isFolded, track }) {
  if (!track) return { height: GROUP_HEIGHT, laneHeight: GROUP_HEIGHT };
  const inner = isGroup ? GROUP_HEIGHT - 2 * PADDING : FOLDED_HEIGHT;
  if (isGroup || isFolded) {
    const laneHeight = inner / track.rows;
    return { height: inner + 2 * PADDING, laneHeight };
  }
  const wanted = LANE_HEIGHTS[track.kind] ?? 20;
  const laneHeight = Math.min(wanted, Math.max(MIN_LANE, Math.floor(MAX_LANES_HEIGHT / track.rows)));
  return { height: laneHeight * track.rows + 2 * PADDING, laneHeight };
}
