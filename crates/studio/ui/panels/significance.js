// Changes between two traces in the words of `tracesmith diff`: how large, and whether they are more than chance.

import { h } from '../core/dom.js';
import { duration } from '../core/units.js';

/** @typedef {import('./diff.d.ts').Compared} Compared */
/** @typedef {import('./diff.d.ts').Diff} Diff */

/** From ten times as much on, a change is not read as percent. */
const MANY_TIMES = 9;

/**
 * Nothing for a certain change; otherwise how likely chance alone makes it.
 * @param {Diff} report @param {Compared} row
 */
export function verdict({ unit, has_enough_steps }, row) {
  const every = row.is_in_every_step ? `${row.change_ns > 0 ? 'longer' : 'shorter'} in every step` : '';
  const isFew = unit === 'step' && !has_enough_steps;
  if (row.change_ns === 0 || (row.is_significant && row.p !== null)) return '';
  if (row.p_adjusted === null) return 'one sample';
  if (isFew) return every || 'not certain';
  const chance = `not certain (p = ${probability(row.p_adjusted)})`;
  return every ? `${chance}; ${every}` : chance;
}

/** A change with its sign, and its share of the first time: `+1.20 ms (+12.5 %)`. @param {Compared} row */
export function changeText({ change_ns: nanos, change }) {
  const text = `${nanos < 0 ? '-' : '+'}${duration(Math.trunc(Math.abs(nanos)))}`;
  if (change === null) return text;
  return `${text} (${change >= MANY_TIMES ? `×${(1 + change).toFixed(0)}` : signedPercent(change)})`;
}

/** The change in the colour of better or worse, pale if it is not certain. @param {Compared} row */
export function changeCell(row) {
  const kind = !row.is_significant ? 'faint' : row.change_ns > 0 ? 'slower' : row.change_ns < 0 ? 'faster' : '';
  return h('span', { class: kind }, changeText(row));
}

/** `+12.5 %`; what rounds to nothing has no sign. @param {number} share */
export function signedPercent(share) {
  const text = (100 * share).toFixed(1);
  return /^-?0\.0$/.test(text) ? '0.0 %' : `${share > 0 ? '+' : ''}${text} %`;
}

/** One text if both are the same. @param {string} a @param {string} b */
export function fromTo(a, b) {
  return a === b ? a : `${a} → ${b}`;
}

/** A mean of counts: whole where it is. @param {number} value */
export function meanCount(value) {
  return Number.isInteger(value) ? String(value) : value.toFixed(1);
}

/** With two digits that count. @param {number} p */
function probability(p) {
  const text = p.toFixed(p >= 0.1 ? 2 : p >= 0.01 ? 3 : 4);
  return text.replace(/0+$/, '').replace(/\.$/, '');
}
