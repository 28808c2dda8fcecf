// A part of a matrix in memory, with the same part at another moment to compare with.

import { bytesOf, widthOf } from './numbers.js';

/** @typedef {import('./answers.d.ts').Moment} Moment */
/** @typedef {import('./answers.d.ts').NumberType} NumberType */
/** @typedef {import('./model.js').ReplayModel} ReplayModel */

/**
 * @typedef {object} Wanted
 * @property {string} address of the matrix
 * @property {NumberType} type
 * @property {number} columns of the matrix
 * @property {{row: number, column: number, rows: number, columns: number}} part
 * @property {Moment} at
 * @property {Moment|null} other what it is compared with
 */
/** @typedef {{now: DataView, other: DataView|null}} Windows both row by row, without gaps */

/**
 * Reads a part of a matrix, and the same part at the moment that it is compared with.
 * @param {ReplayModel} model
 * @param {Wanted} wanted
 * @returns {Promise<Windows>}
 */
export async function readWindow(model, { address, type, columns, part, at, other }) {
  const width = widthOf(type);
  const start = BigInt(address) + BigInt((part.row * columns + part.column) * width);
  const request = {
    do: 'read',
    address: `0x${start.toString(16)}`,
    bytes: part.columns * width,
    rows: part.rows,
    pitch: columns * width,
  };
  const read = async (/** @type {Moment} */ moment) => {
    /** @type {import('./answers.d.ts').Contents} */
    const { hex } = await model.ask('Reading memory', { ...request, at: moment });
    return new DataView(bytesOf(hex).buffer);
  };
  const now = await read(at);
  return { now, other: other && other !== at ? await read(other) : null };
}

/** Whether an element differs. @param {Windows} windows @param {number} offset @param {number} width */
export function isDifferent({ now, other }, offset, width) {
  if (!other) return false;
  for (let i = offset; i < offset + width; i += 1) if (now.getUint8(i) !== other.getUint8(i)) return true;
  return false;
}
