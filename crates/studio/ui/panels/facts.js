// The facts about an event that matter most, in words and units, from the columns of its row. All columns are behind
// them.

import { h } from '../core/dom.js';
import { bytes } from '../core/units.js';
import { counted } from './words.js';

/** @typedef {import('../core/answers.d.ts').EventDetail} EventDetail */
/** @typedef {Map<string, string|number|boolean>} Fields */

/**
 * The list of facts of an event.
 * @param {EventDetail} event
 * @param {string|undefined} row label of its row
 */
export function factsOf(event, row) {
  const fields = new Map(event.fields);
  /** @type {[string, string][]} */
  const facts = [...shape(fields), ...resources(fields), ...transfer(event, fields), ...place(fields)];
  if (row && !fields.has('stream')) facts.unshift(['row', row]);
  const all = [...fields].map(([name, value]) => [h('dt', {}, name), h('dd', {}, String(value))]);
  return [
    h(
      'dl',
      { class: 'facts' },
      facts.map(([name, value]) => [h('dt', {}, name), h('dd', {}, value)]),
    ),
    all.length === 0
      ? null
      : h('details', { class: 'all-columns' }, h('summary', {}, 'All columns'), h('dl', { class: 'facts' }, all)),
  ];
}

/** The grid of a kernel. @param {Fields} fields @returns {[string, string][]} */
function shape(fields) {
  if (!fields.has('grid_x')) return [];
  const sizes = (/** @type {string} */ of) => ['x', 'y', 'z'].map((axis) => Number(fields.get(`${of}_${axis}`) ?? 1));
  const words = (/** @type {number[]} */ [x, y, z]) => `${x} × ${y} × ${z}`;
  const product = (/** @type {number[]} */ all) => all.reduce((result, one) => result * one, 1);
  const [grid, block] = [sizes('grid'), sizes('block')];
  /** @type {[string, string][]} */
  const facts = [
    ['grid', `${words(grid)} (${counted(product(grid), 'block')})`],
    ['block', `${words(block)} (${counted(product(block), 'thread')})`],
  ];
  if (Number(fields.get('cluster_x') ?? 0) > 0) facts.push(['cluster', words(sizes('cluster'))]);
  return facts;
}

/** Registers and memory of a kernel. @param {Fields} fields @returns {[string, string][]} */
function resources(fields) {
  /** @type {[string, string][]} */
  const facts = [];
  const registers = Number(fields.get('registers') ?? fields.get('registers_per_thread') ?? 0);
  if (registers > 0) facts.push(['registers', `${registers} a thread`]);
  const [fixed, dynamic] = [Number(fields.get('static_shared') ?? 0), Number(fields.get('dynamic_shared') ?? 0)];
  if (fields.has('static_shared')) facts.push(['shared memory', `${bytes(fixed)} static, ${bytes(dynamic)} dynamic`]);
  const local = Number(fields.get('local_per_thread') ?? 0);
  if (local > 0) facts.push(['local memory', `${bytes(local)} a thread`]);
  return facts;
}

/**
 * Bytes and speed of a memcpy or memset.
 * @param {EventDetail} event
 * @param {Fields} fields
 * @returns {[string, string][]}
 */
function transfer(event, fields) {
  /** @type {[string, string][]} */
  const facts = [];
  const size = Number(fields.get('bytes') ?? 0);
  if (size > 0) facts.push(['bytes', bytes(size)]);
  const isTransfer = event.table === 'copies' || event.table === 'sets' || event.table === 'collectives';
  if (size > 0 && isTransfer && event.duration > 0) facts.push(['speed', `${(size / event.duration).toFixed(1)} GB/s`]);
  if (fields.has('source_memory')) {
    facts.push(['from, to', `${fields.get('source_memory')}, ${fields.get('destination_memory')}`]);
  }
  if (fields.get('asynchronous') === false) facts.push(['call', 'synchronous: the CPU waits']);
  return facts;
}

/** Where it ran. @param {Fields} fields @returns {[string, string][]} */
function place(fields) {
  /** @type {[string, string][]} */
  const facts = [];
  const names = /** @type {const} */ (['device', 'stream', 'pid', 'thread', 'domain', 'result', 'correlation']);
  for (const name of names) {
    const value = fields.get(name);
    if (value === undefined || value === '') continue;
    if (name === 'result') facts.push(['result', Number(value) === 0 ? 'success' : `error ${value}`]);
    else facts.push([name === 'device' ? 'GPU' : name, String(value)]);
  }
  return facts;
}
