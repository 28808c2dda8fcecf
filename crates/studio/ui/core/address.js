// The state in the fragment of the page's address, so that reload, Back, Forward and a copied link show the same
// picture.
// Rows are named by the key of their track and the number of the lane, which stay the same when rows are added.

import { roundTime, store } from './store.js';

/** @typedef {import('./answers.d.ts').Layout} Layout */
/** @typedef {import('./store.js').State} State */

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
]);
const LISTS = /** @type {const} */ (['pinned', 'hidden', 'folded']);
const LIST_NAMES = { pinned: 'pin', hidden: 'hide', folded: 'fold' };

/** `KEY.LANE`, the lasting name of a row. @param {Layout} layout @param {number} row */
export function rowKey(layout, row) {
  const track = layout.tracks.find(({ first_row, rows }) => row >= first_row && row < first_row + rows);
  return track ? `${encode(track.key)}.${row - track.first_row}` : '';
}

/** The row of that name. @param {Layout} layout @param {string} key @returns {number | null} */
export function rowOfKey(layout, key) {
  const point = key.lastIndexOf('.');
  const name = decode(key.slice(0, point));
  const lane = Number(key.slice(point + 1));
  const track = layout.tracks.find((candidate) => candidate.key === name);
  return track && lane >= 0 && lane < track.rows ? track.first_row + lane : null;
}

/** The fragment that describes a state. @param {Readonly<State>} state */
export function fragment(state) {
  const { layout, window, selection, area, marks, tab, rows, scroll } = state;
  const parts = [`trace=${state.trace}`];
  if (layout) {
    parts.push(`from=${number(window.from)}`, `to=${number(window.to)}`);
    if (state.following) parts.push('live=1');
    if (selection) parts.push(`select=${rowKey(layout, selection.row)}@${number(selection.start)}`);
    if (area) parts.push(`area=${areaRows(layout, area.rows)}@${number(area.from)}-${number(area.to)}`);
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

/** The parts of the page's fragment by name. @returns {Map<string, string>} */
export function readFragment() {
  const parts = location.hash.replace(/^#/, '').split('&').filter(Boolean);
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
  change.window = to > from ? store.clamp({ from, to }) : { from: 0, to: layout.span_ns };
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
  change.area = areaOf(layout, parts.get('area') ?? '');
  const names = ['pin', 'hide', 'fold', 'filter', 'group'];
  if (names.some((name) => parts.has(name))) {
    change.rows = {
      ...rows,
      pinned: list(parts.get('pin')),
      hidden: list(parts.get('hide')),
      folded: list(parts.get('fold')),
      filter: decode(parts.get('filter') ?? ''),
      grouping: parts.get('group') === 'process' ? 'process' : 'device',
    };
  }
  const [key, start] = (parts.get('select') ?? '').split('@');
  const row = key ? rowOfKey(layout, key) : null;
  return { change, pending: row === null || !start ? null : { row, start: Number(start) } };
}

/** @param {import('./store.js').Span} window @param {number} span */
function atEnd({ from, to }, span) {
  const length = from <= 0 ? span : Math.min(to - from, span);
  return { from: span - length, to: span };
}

/** Writes the address when the state changes. */
export function connectAddress() {
  let timer = 0;
  const write = (/** @type {'push' | 'replace'} */ how) => {
    clearTimeout(timer);
    timer = 0;
    const hash = `#${fragment(store.get())}`;
    if (hash === location.hash || !store.get().layout) return;
    if (how === 'push') history.pushState(null, '', hash);
    else history.replaceState(null, '', hash);
  };
  store.subscribe((changed, { history: how = 'replace' }) => {
    if (how === 'none' || !WRITTEN.some((name) => changed.has(name))) return;
    if (how === 'push') write('push');
    else if (timer === 0) timer = window.setTimeout(() => write('replace'), WRITE_AFTER_MS);
  });
}

/** Rows of an area, with runs of lanes as `KEY.0-3`. @param {Layout} layout @param {number[]} rows */
function areaRows(layout, rows) {
  const wanted = new Set(rows);
  const parts = [];
  for (const { key, first_row, rows: lanes } of layout.tracks) {
    for (let lane = 0; lane < lanes; lane += 1) {
      if (!wanted.has(first_row + lane)) continue;
      const first = lane;
      while (lane + 1 < lanes && wanted.has(first_row + lane + 1)) lane += 1;
      parts.push(`${encode(key)}.${first}${lane > first ? `-${lane}` : ''}`);
    }
  }
  return parts.join(',');
}

/** @param {Layout} layout @param {string} text @returns {import('./store.js').Area | null} */
function areaOf(layout, text) {
  const match = /^(.*)@([\d.]+)-([\d.]+)$/.exec(text);
  if (!match) return null;
  /** @type {number[]} */
  const rows = [];
  for (const part of match[1].split(',').filter(Boolean)) {
    const [, key, first, last] = /^(.*)\.(\d+)(?:-(\d+))?$/.exec(part) ?? [];
    if (key === undefined) continue;
    for (let lane = Number(first); lane <= Number(last ?? first); lane += 1) {
      const row = rowOfKey(layout, `${key}.${lane}`);
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
  return encodeURIComponent(text).replace(/[-.@]/g, (sign) => `%${sign.charCodeAt(0).toString(16)}`);
}

/** @param {string} text */
function decode(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
