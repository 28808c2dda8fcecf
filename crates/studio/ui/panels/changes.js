// The changes that a what-if simulates: as choices in the address, as a part of a request, and as options of the
// command.

import { choose, chosen } from './choices.js';
import { quoted } from './scope.js';

/** @typedef {{pattern: string, factor: number}} Scale */
/**
 * @typedef {object} Changes
 * @property {Scale[]} scales
 * @property {boolean} copiesHidden
 * @property {boolean} withoutSync
 * @property {string} syncPattern only waits in matching functions or lines; empty for all
 * @property {string} streams empty as recorded, `unlimited` or a number
 */

/** Matches the names of all memcpys and memsets. */
export const COPIES = '/^(?:(?:host|device|array) to (?:host|device|array)|peer to peer|copy|set)$/';

/** @returns {Changes} */
export function chosenChanges() {
  const scales = chosen('scale', '')
    .split('\n')
    .filter(Boolean)
    .map(scaleOf)
    .filter((scale) => scale !== null);
  const sync = chosen('sync', '');
  return {
    scales,
    copiesHidden: chosen('copies', '') === 'hidden',
    withoutSync: sync !== '',
    syncPattern: sync === '*' ? '' : sync,
    streams: chosen('streams', ''),
  };
}

/** @param {Changes} changes */
export function chooseChanges({ scales, copiesHidden, withoutSync, syncPattern, streams }) {
  choose({
    scale: scales.map(({ pattern, factor }) => `${pattern}=${factor}`).join('\n'),
    copies: copiesHidden ? 'hidden' : '',
    sync: withoutSync ? syncPattern || '*' : '',
    streams,
  });
}

/** `flash*=0.5`, as the command line reads it. @param {string} text @returns {Scale|null} */
export function scaleOf(text) {
  const at = text.lastIndexOf('=');
  const factor = Number(text.slice(at + 1).trim() || NaN);
  return at > 0 && Number.isFinite(factor) && factor >= 0 ? { pattern: text.slice(0, at), factor } : null;
}

/** @param {Changes} changes */
export function isEmpty(changes) {
  return changes.scales.length === 0 && !changes.copiesHidden && !changes.withoutSync && changes.streams === '';
}

/** All scales, with that of hidden copies. @param {Changes} changes @returns {Scale[]} */
function allScales({ scales, copiesHidden }) {
  return copiesHidden ? [...scales, { pattern: COPIES, factor: 0 }] : scales;
}

/** The changes as the server reads them. @param {Changes} changes */
export function changesQuery(changes) {
  const { withoutSync, syncPattern, streams } = changes;
  return JSON.stringify({
    scales: allScales(changes).map(({ pattern, factor }) => ({ name: pattern, factor })),
    streams: streams === '' ? 'as_recorded' : streams === 'unlimited' ? 'unlimited' : { at_most: Number(streams) },
    host_waits: !withoutSync ? 'kept' : syncPattern === '' ? 'left' : { left_in: syncPattern },
  });
}

/** The options of `tracesmith analyze`. @param {Changes} changes */
export function changesOptions(changes) {
  const scales = allScales(changes)
    .map(({ pattern, factor }) => ` --scale ${quoted(`${pattern}=${factor}`)}`)
    .join('');
  const sync = !changes.withoutSync
    ? ''
    : changes.syncPattern === ''
      ? ' --without-sync'
      : ` --without-sync=${quoted(changes.syncPattern)}`;
  return `${scales}${changes.streams === '' ? '' : ` --streams ${changes.streams}`}${sync}`;
}
