// A table of columns that are known only when the answer arrives: tables of the trace, and results of SQL.

import { bytes, count, duration } from '../core/units.js';
import { dataTable } from './table.js';

/**
 * @param {string} caption
 * @param {string[]} columns
 * @param {unknown[][]} rows
 * @param {{open?: (row: unknown[]) => void, empty?: string}} [options]
 */
export function answerTable(caption, columns, rows, options = {}) {
  return dataTable({
    caption,
    rows,
    ...options,
    columns: columns.map((name, i) => {
      const isNumber =
        rows.some((row) => isNumeric(row[i])) && rows.every((row) => row[i] === null || isNumeric(row[i]));
      return {
        key: name,
        title: name,
        align: isNumber ? 'right' : 'left',
        value: (row) => plain(row[i]),
        text: (row) => shown(name, row[i], isNumber),
        opens: i === 0,
      };
    }),
  });
}

/** @param {unknown} value */
function isNumeric(value) {
  return typeof value === 'number' || typeof value === 'bigint';
}

/** @param {unknown} value @returns {string|number|null} */
function plain(value) {
  if (value === null || value === undefined) return null;
  return typeof value === 'number' ? value : String(value);
}

/** @param {string} name @param {unknown} value @param {boolean} isNumber */
function shown(name, value, isNumber) {
  if (value === null || value === undefined) return '';
  if (!isNumber) return String(value);
  const number = Number(value);
  if (name.endsWith('_ns')) return duration(number);
  if (name === 'bytes' || name.endsWith('_bytes')) return bytes(number);
  if (typeof value === 'bigint') return String(value);
  return Number.isInteger(number) ? (Math.abs(number) < 1e6 ? count(number) : String(number)) : String(number);
}
