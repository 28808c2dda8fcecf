// The state in the fragment of the page's address, so that reload, Back, Forward and a copied link show the same
// picture.
// Rows are named by the key of their track and the number of the lane, which stay the same when rows are added.

import { roundTime, store } from './store.js';

/** @typedef {import('./answers.d.ts').Layout} Layout */
/** @typedef {import('./store.js').State} State */
/** @typedef {import('./align.js').Compare} Compare */

const WRITE_AFTER_MS = 150;
const WRITTEN = /** @type {const} */ ([
  'trace',
  'window',
  'selection',
  'area',
  'marks',
  'tab',
  'panel',
  'rows',
  'scroll',
  'compare',
]);
const GROUPINGS = /** @type {const} */ (['device', 'process', 'rank']);
const LISTS = /** @type {const} */ (['pinned', 'hidden', 'folded']);
const ALIGNMENTS = /** @type {const} */ (['steps', 'step', 'start', 'manual']);
const LIST_NAMES = { pinned: 'pin', hidden: 'hide', folded: 'fold' };

/** `KEY.LANE`, the lasting name of a row; `b~KEY.LANE` for one of the second trace. @param {number} row */
export function rowKey(row) {
  const layer = store.layerOf(row);
  const local = layer.local(row);
  const track = layer.layout?.tracks.find(({ first_row, rows }) => local >= first_row && local < first_row + rows);
  return track ? `${prefix(layer)}${encode(track.key)}.${local - track.first_row}` : '';
}

/** The row of that name, if its layer is there. @param {string} key @returns {number | null} */
export function rowOfKey(key) {
  const layer = store.layers().findLast((one) => key.startsWith(prefix(one)));
  const own = key.slice(layer ? prefix(layer).length : 0);
  const point = own.lastIndexOf('.');
  const name = decode(own.slice(0, point));
  const lane = Number(own.slice(point + 1));
  const track = layer?.layout?.tracks.find((candidate) => candidate.key === name);
  return layer && track && lane >= 0 && lane < track.rows ? layer.row(track.first_row + lane) : null;
}

/** @param {import('./layer.js').Layer} layer */
function prefix({ key }) {
  return key === 'a' ? '' : `${key}~`;
}

/** The fragment that describes a state. @param {Readonly<State>} state */
export function fragment(state) {
  const { layout, window, selection, area, marks, tab, rows, scroll, compare } = state;
  const parts = [`trace=${state.trace}`];
  if (compare) parts.push(...compareParts(compare));
  if (layout) {
    parts.push(`from=${number(window.from)}`, `to=${number(window.to)}`);
    if (state.following) parts.push('live=1');
    if (selection) parts.push(`select=${rowKey(selection.row)}@${number(selection.start)}`);
    if (area) parts.push(`area=${areaRows(area.rows)}@${number(area.from)}-${number(area.to)}`);
  }
  if (tab !== 'details') parts.push(`tab=${encode(tab)}`);
  const choices = Object.entries(state.panel).map(([name, text]) => `${encode(name)}.${encode(text)}`);
  if (choices.length > 0) parts.push(`panel=${choices.join(',')}`);
  for (const name of LISTS) {
    if (rows[name].length > 0) parts.push(`${LIST_NAMES[name]}=${rows[name].map(encode).join(',')}`);
  }
  if (rows.filter) parts.push(`filter=${encode(rows.filter)}`);
  if (rows.grouping !== 'device') parts.push(`group=${rows.grouping}`);
  if (scroll > 0) parts.push(`y=${Math.round(scroll)}`);
  if (marks.length > 0) parts.push(`mark=${marks.map(number).join(',')}`);
  return parts.join('&');
}

/**
 * The fragment of a state in which only a trace is chosen, and perhaps a comparison, a window and a tab.
 * @param {{trace: number, tab: string, compare?: Compare | null, window?: import('./store.js').Span}} start
 */
export function startFragment({ trace, tab, compare, window }) {
  const parts = [`trace=${trace}`, ...(compare ? compareParts(compare) : [])];
  if (window) parts.push(`from=${number(window.from)}`, `to=${number(window.to)}`);
  if (tab !== 'details') parts.push(`tab=${encode(tab)}`);
  return parts.join('&');
}

/** The parts of the page's fragment by name. @param {string} [hash] @returns {Map<string, string>} */
export function readFragment(hash = location.hash) {
  const parts = hash.replace(/^#/, '').split('&').filter(Boolean);
  return new Map(
    parts.map((part) => {
      const equals = part.indexOf('=');
      return equals < 0 ? [part, ''] : [part.slice(0, equals), part.slice(equals + 1)];
    }),
  );
}

/** The trace that the address names, or null. */
export function traceOfAddress() {
  const text = readFragment().get('trace');
  return text === undefined || !/^\d+$/.test(text) ? null : Number(text);
}

/**
 * What the address says about the state, for a layout. A selection has no duration and shape yet: they come from the
 * server (`pending`).
 * @param {Layout} layout
 * @returns {{change: Partial<State>, pending: {row: number, start: number} | null}}
 */
export function stateOfAddress(layout) {
  const parts = readFragment();
  const rows = store.get().rows;
  /** @type {Partial<State>} */
  const change = { area: null, selection: null, marks: [] };
  const [from, to] = [Number(parts.get('from') ?? NaN), Number(parts.get('to') ?? NaN)];
  change.compare = compareOf(parts);
  // What a further layer adds to the time range is not known before it is there.
  const isLonger = change.compare || /(?:^|,)(?:scale|copies|sync|streams)\./.test(parts.get('panel') ?? '');
  const shown = isLonger ? { from, to } : store.clamp({ from, to });
  change.window = to > from ? shown : store.firstWindow();
  // A window that followed a recording does so again.
  if (parts.has('live') && layout.live?.state === 'recording') change.window = atEnd(change.window, layout.span_ns);
  change.marks = (parts.get('mark') ?? '').split(',').filter(Boolean).map(Number).filter(Number.isFinite);
  change.scroll = Number(parts.get('y') ?? 0) || 0;
  change.tab = decode(parts.get('tab') ?? 'details');
  const choices = (parts.get('panel') ?? '').split(',').filter(Boolean);
  change.panel = Object.fromEntries(
    choices.map((choice) => {
      const [name, text] = choice.split('.');
      return [decode(name), decode(text ?? '')];
    }),
  );
  change.area = areaOf(parts.get('area') ?? '');
  const names = ['pin', 'hide', 'fold', 'filter', 'group'];
  if (names.some((name) => parts.has(name))) {
    change.rows = {
      ...rows,
      pinned: list(parts.get('pin')),
      hidden: list(parts.get('hide')),
      folded: list(parts.get('fold')),
      filter: decode(parts.get('filter') ?? ''),
      grouping: GROUPINGS.find((name) => name === parts.get('group')) ?? 'device',
    };
  }
  return { change, pending: selectionOf(parts.get('select') ?? '') };
}

/**
 * What the address says about rows of a second trace, to be read when that is there. An empty text says nothing.
 * @param {string} [hash]
 * @returns {() => {area: import('./store.js').Area | null, pending: {row: number, start: number} | null}}
 */
export function laterOfAddress(hash = location.hash) {
  const parts = readFragment(hash);
  const [area, select] = [parts.get('area') ?? '', parts.get('select') ?? ''];
  return () => ({
    area: area.includes('~') ? areaOf(area) : null,
    pending: select.includes('~') ? selectionOf(select) : null,
  });
}

/** @param {string} text */
function selectionOf(text) {
  const [key, start] = text.split('@');
  const row = key ? rowOfKey(key) : null;
  return row === null || !start ? null : { row, start: Number(start) };
}

/** @param {Compare} compare */
function compareParts({ trace, align, step, offset }) {
  const parts = [`with=${trace}`];
  if (align !== 'steps') parts.push(`align=${align}`);
  if (step !== null && (align === 'steps' || align === 'step')) parts.push(`step=${step}`);
  if (align === 'manual') parts.push(`shift=${number(offset)}`);
  return parts;
}

/** @param {Map<string, string>} parts @returns {Compare | null} */
function compareOf(parts) {
  const trace = parts.get('with') ?? '';
  if (!/^\d+$/.test(trace)) return null;
  const align = ALIGNMENTS.find((name) => name === parts.get('align')) ?? 'steps';
  const step = parts.get('step') ?? '';
  return {
    trace: Number(trace),
    align,
    step: /^\d+$/.test(step) ? Number(step) : null,
    offset: Number(parts.get('shift') ?? 0) || 0,
  };
}

/** @param {import('./store.js').Span} window @param {number} span */
function atEnd({ from, to }, span) {
  const length = from <= 0 ? span : Math.min(to - from, span);
  return { from: span - length, to: span };
}

/** Writes the address when the state changes. */
export function connectAddress() {
  let timer = 0;
  const write = (/** @type {'push' | 'replace'} */ how, text = fragment(store.get())) => {
    clearTimeout(timer);
    timer = 0;
    const hash = `#${text}`;
    if (hash === location.hash || !store.get().layout) return;
    if (how === 'push') history.pushState(null, '', hash);
    else history.replaceState(null, '', hash);
  };
  store.subscribe((changed, { history: how = 'replace' }) => {
    if (how === 'none' || !WRITTEN.some((name) => changed.has(name))) return;
    // Times and rows are still those of the trace before: the new one begins with its own.
    const { trace, tab } = store.get();
    if (how === 'push' && changed.has('trace')) write('push', startFragment({ trace, tab }));
    else if (how === 'push') write('push');
    else if (timer === 0) timer = window.setTimeout(() => write('replace'), WRITE_AFTER_MS);
  });
}

/** Rows of an area, with runs of lanes as `KEY.0-3`. @param {number[]} rows */
function areaRows(rows) {
  const wanted = new Set(rows);
  const parts = [];
  for (const layer of store.layers()) {
    for (const { key, first_row, rows: lanes } of layer.layout?.tracks ?? []) {
      for (let lane = 0; lane < lanes; lane += 1) {
        if (!wanted.has(layer.row(first_row + lane))) continue;
        const first = lane;
        while (lane + 1 < lanes && wanted.has(layer.row(first_row + lane + 1))) lane += 1;
        parts.push(`${prefix(layer)}${encode(key)}.${first}${lane > first ? `-${lane}` : ''}`);
      }
    }
  }
  return parts.join(',');
}

/** @param {string} text @returns {import('./store.js').Area | null} */
function areaOf(text) {
  const match = /^(.*)@(-?[\d.]+)-(-?[\d.]+)$/.exec(text);
  if (!match) return null;
  /** @type {number[]} */
  const rows = [];
  for (const part of match[1].split(',').filter(Boolean)) {
    const [, key, first, last] = /^(.*)\.(\d+)(?:-(\d+))?$/.exec(part) ?? [];
    if (key === undefined) continue;
    for (let lane = Number(first); lane <= Number(last ?? first); lane += 1) {
      const row = rowOfKey(`${key}.${lane}`);
      if (row !== null) rows.push(row);
    }
  }
  return { rows, from: Number(match[2]), to: Number(match[3]) };
}

/** @param {string | undefined} text */
function list(text) {
  return (text ?? '').split(',').filter(Boolean).map(decode);
}

/** Times are whole ns where that is exact enough. @param {number} ns */
function number(ns) {
  return String(roundTime(ns));
}

/** @param {string} text */
function encode(text) {
  return encodeURIComponent(text).replace(/[-.@~]/g, (sign) => `%${sign.charCodeAt(0).toString(16)}`);
}

/** @param {string} text */
function decode(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
