// Elements of a buffer as a table of numbers, or its bytes in hex. Elements that differ are marked.

import { h } from '../core/dom.js';
import { count } from '../core/units.js';
import { indexText, matrixOf, textAt, widthOf } from './numbers.js';
import { isDifferent, readWindow } from './window.js';

/** @typedef {import('./model.js').ReplayModel} ReplayModel */
/** @typedef {import('./memory.js').View} View */

const ROWS = 32;
const COLUMNS = 16;
/** Bytes of a line in hex. */
const LINE = 16;

/**
 * A table of numbers.
 * @param {ReplayModel} model
 * @param {View} view
 */
export async function values(model, view) {
  const { address, bytes, type, shape, at, other, origin } = view;
  const width = widthOf(type);
  const elements = Math.floor(bytes / width);
  if (elements === 0) return [h('p', { class: 'note' }, `The buffer is smaller than one element of ${type}.`)];
  const { rows, columns, sizes } = matrixOf(shape, elements);
  const row = Math.min(origin.row, Math.max(0, rows - 1));
  const column = Math.min(origin.column, Math.max(0, columns - 1));
  // The last line can be incomplete when no shape is chosen.
  const part = { row, column, rows: Math.min(ROWS, rows - row), columns: Math.min(COLUMNS, columns - column) };
  const windows = await readWindow(model, { address, type, columns, part, at, other });
  const lines = Array.from({ length: part.rows }, (_, r) => {
    const first = (row + r) * columns + column;
    const cells = Array.from({ length: part.columns }, (_, c) => {
      const offset = (r * part.columns + c) * width;
      const text = textAt(windows.now, offset, type);
      const isOther = isDifferent(windows, offset, width);
      const before = isOther && windows.other ? textAt(windows.other, offset, type) : '';
      const odd = text === 'NaN' || text.endsWith('inf') ? ' odd' : '';
      return h(
        'td',
        {
          class: `${isOther ? 'differs' : ''}${odd}`,
          'data-index': first + c,
          title: `${indexText(first + c, sizes)}${isOther ? `: was ${before}` : ''}`,
        },
        isOther ? h('ins', {}, text) : text,
      );
    });
    return h('tr', {}, h('th', { scope: 'row' }, indexText(first, sizes)), cells);
  });
  const head = Array.from({ length: part.columns }, (_, c) => h('th', { scope: 'col' }, `+${column + c}`));
  const rest = elements - rows * columns;
  const table = h(
    'table',
    { class: 'replay-values' },
    h('caption', { class: 'unseen' }, `Elements of ${address} as ${type}`),
    h('thead', {}, h('tr', {}, h('td', {}), head)),
    h('tbody', {}, lines),
  );
  const words =
    `Rows ${count(row)} to ${count(row + part.rows - 1)} of ${count(rows)}, ` +
    `columns ${count(column)} to ${count(column + part.columns - 1)} of ${count(columns)}` +
    (rest > 0 ? `; ${count(rest)} more elements are not in this shape` : '');
  return [
    scroller(table, `Elements as ${type}`),
    pager(view, { rows, columns }, { rows: ROWS, columns: COLUMNS }, words),
  ];
}

/**
 * Bytes in hex, with their characters.
 * @param {ReplayModel} model
 * @param {View} view
 */
export async function hexDump(model, view) {
  const { address, bytes, at, other, origin } = view;
  const rows = Math.ceil(bytes / LINE);
  const row = Math.min(origin.row, Math.max(0, rows - 1));
  const length = Math.min(ROWS * LINE, bytes - row * LINE);
  const part = { row: 0, column: row * LINE, rows: 1, columns: length };
  const windows = await readWindow(model, { address, type: 'u8', columns: bytes, part, at, other });
  const lines = Array.from({ length: Math.ceil(length / LINE) }, (_, r) => {
    const first = r * LINE;
    const inLine = Math.min(LINE, length - first);
    const cells = Array.from({ length: LINE }, (_, c) => {
      if (c >= inLine) return h('td', {});
      const text = windows.now
        .getUint8(first + c)
        .toString(16)
        .padStart(2, '0');
      const isOther = isDifferent(windows, first + c, 1);
      const was = isOther
        ? windows.other
            ?.getUint8(first + c)
            .toString(16)
            .padStart(2, '0')
        : '';
      const properties = { class: isOther ? 'differs' : '', title: isOther ? `was ${was}` : null };
      return h('td', properties, isOther ? h('ins', {}, text) : text);
    });
    const letters = Array.from({ length: inLine }, (_, c) => {
      const code = windows.now.getUint8(first + c);
      return code >= 0x20 && code < 0x7f ? String.fromCharCode(code) : '.';
    });
    const at16 = `+${((row + r) * LINE).toString(16).padStart(6, '0')}`;
    return h('tr', {}, h('th', { scope: 'row' }, at16), cells, h('td', { class: 'letters' }, letters.join('')));
  });
  const head = Array.from({ length: LINE }, (_, c) => h('th', { scope: 'col' }, c.toString(16)));
  const table = h(
    'table',
    { class: 'replay-values hex' },
    h('caption', { class: 'unseen' }, `Bytes of ${address}`),
    h('thead', {}, h('tr', {}, h('td', {}), head, h('td', {}))),
    h('tbody', {}, lines),
  );
  const words = `Bytes ${count(row * LINE)} to ${count(row * LINE + length - 1)} of ${count(bytes)}`;
  return [scroller(table, 'Bytes in hex'), pager(view, { rows, columns: 1 }, { rows: ROWS, columns: 1 }, words)];
}

/** @param {HTMLElement} table @param {string} label */
function scroller(table, label) {
  return h('div', { class: 'replay-scroll', tabindex: '0', role: 'region', 'aria-label': label }, table);
}

/**
 * Buttons that move to other rows and columns.
 * @param {View} view
 * @param {{rows: number, columns: number}} whole
 * @param {{rows: number, columns: number}} page
 * @param {string} words
 */
function pager(view, whole, page, words) {
  const { row, column } = view.origin;
  const move = (
    /** @type {string} */ text,
    /** @type {string} */ title,
    /** @type {number} */ r,
    /** @type {number} */ c,
  ) => {
    const to = { row: row + r * page.rows, column: column + c * page.columns };
    const isOut =
      to.row < 0 ? row === 0 : to.column < 0 ? column === 0 : to.row >= whole.rows || to.column >= whole.columns;
    return h(
      'button',
      {
        type: 'button',
        title,
        'aria-label': title,
        'data-focus': title,
        'aria-disabled': String(isOut),
        onclick: () => !isOut && view.moveTo({ row: Math.max(0, to.row), column: Math.max(0, to.column) }),
      },
      text,
    );
  };
  return h(
    'div',
    { class: 'replay-pager', role: 'group', 'aria-label': 'Part of the buffer' },
    move('↑', 'Rows before', -1, 0),
    move('↓', 'Rows after', 1, 0),
    whole.columns > page.columns ? [move('←', 'Columns before', 0, -1), move('→', 'Columns after', 0, 1)] : null,
    h('span', { class: 'faint', role: 'status' }, words),
  );
}
