// A table of rows: sorting, filter, copy as TSV, and only the visible rows in the page if there are many.
// It is a real <table>. The first cell of the column marked `opens` has a button, and arrow keys move between buttons.

import { h } from '../core/dom.js';
import { count } from '../core/units.js';
import { matcher } from './pattern.js';
import { counted } from './words.js';

/**
 * @template R
 * @typedef {object} Column
 * @property {string} key name in the copied text, with its unit as in JSON
 * @property {string} title
 * @property {(row: R) => string|number|null} value what is sorted, copied and, without `text`, shown
 * @property {(row: R) => string} [text]
 * @property {(row: R) => Node} [cell]
 * @property {(row: R) => string} [hint] shown as a tooltip
 * @property {'left'|'right'} [align]
 * @property {boolean} [opens] the cell is the button of the row
 * @property {boolean} [wide] takes the room that is left
 */

/**
 * @template R
 * @typedef {object} TableOptions
 * @property {string} caption
 * @property {Column<R>[]} columns
 * @property {R[]} rows
 * @property {{key: string, descending: boolean}} [sort]
 * @property {(row: R) => void} [open]
 * @property {(row: R) => boolean} [marked]
 * @property {string} [empty] what is shown without rows
 * @property {boolean} [plain] no filter and no copy button
 * @property {Node[]} [tools] more controls beside the filter
 */

const ROW_HEIGHT = 26;
const VIRTUAL_FROM = 1000;
const BEYOND = 20;

/**
 * @template R
 * @param {TableOptions<R>} options
 * @returns {HTMLElement}
 */
export function dataTable(options) {
  return new DataTable(options).element;
}

/** @template R */
class DataTable {
  /** @param {TableOptions<R>} options */
  constructor(options) {
    this.options = options;
    this.sort = options.sort ?? null;
    this.filter = '';
    /** @type {R[]} */
    this.shown = options.rows;
    this.focused = 0;
    this.first = 0;
    this.body = h('tbody');
    this.head = h('thead', {}, h('tr', {}, ...options.columns.map((column) => this.header(column))));
    this.state = h('span', { class: 'table-state', role: 'status' });
    const caption = h('caption', { class: 'unseen' }, options.caption);
    const table = h('table', { class: 'data' }, caption, this.head, this.body);
    this.scroller = h(
      'div',
      { class: 'table-scroll', tabindex: '0', role: 'region', 'aria-label': options.caption },
      table,
    );
    this.scroller.addEventListener('scroll', () => this.scrolled(), { passive: true });
    this.body.addEventListener('keydown', (event) => this.moved(event));
    this.body.addEventListener('click', (event) => this.clicked(event));
    this.table = table;
    this.element = h('div', { class: 'table-panel' }, ...(options.plain ? [] : [this.tools()]), this.scroller);
    this.update();
  }

  tools() {
    const filter = /** @type {HTMLInputElement} */ (
      h('input', { type: 'search', placeholder: 'filter, or /regex/', 'aria-label': `Filter ${this.options.caption}` })
    );
    filter.addEventListener('input', () => {
      this.filter = filter.value;
      this.update();
    });
    const copy = h('button', { type: 'button', title: 'Copy the rows shown, separated by tabs' }, 'Copy');
    copy.addEventListener('click', () => this.copy());
    return h('div', { class: 'tools' }, ...(this.options.tools ?? []), filter, copy, this.state);
  }

  /** @param {Column<R>} column */
  header(column) {
    const button = h('button', { type: 'button' }, column.title);
    button.addEventListener('click', () => {
      const descending = this.sort?.key === column.key ? !this.sort.descending : column.align === 'right';
      this.sort = { key: column.key, descending };
      this.update();
    });
    return h('th', { scope: 'col', class: classOf(column), 'data-key': column.key }, button);
  }

  update() {
    const { rows, columns } = this.options;
    const matches = matcher(this.filter);
    const texts = columns.filter((column) => column.align !== 'right');
    const found = matches.error
      ? []
      : rows.filter((row) => texts.some((column) => matches.test(String(column.value(row) ?? ''))));
    this.shown = this.filter ? found : [...rows];
    const sort = this.sort;
    const by = sort && columns.find((column) => column.key === sort.key);
    if (sort && by) {
      const sign = sort.descending ? -1 : 1;
      this.shown.sort((a, b) => sign * compared(by.value(a), by.value(b)));
    }
    for (const th of this.head.querySelectorAll('th')) {
      const order = sort?.key === th.dataset.key ? (sort?.descending ? 'descending' : 'ascending') : 'none';
      th.setAttribute('aria-sort', order);
    }
    this.focused = 0;
    this.scroller.scrollTop = 0;
    const all = count(rows.length);
    this.state.textContent =
      matches.error ?? (this.filter ? `${count(this.shown.length)} of ${all} rows` : counted(rows.length, 'row'));
    this.draw(0);
  }

  get isVirtual() {
    return this.shown.length > VIRTUAL_FROM;
  }

  scrolled() {
    if (!this.isVirtual) return;
    const first = Math.max(0, Math.floor(this.scroller.scrollTop / ROW_HEIGHT) - BEYOND);
    if (Math.abs(first - this.first) >= BEYOND / 2) this.draw(first);
  }

  /** @param {number} first */
  draw(first) {
    const { columns, empty } = this.options;
    this.first = first;
    if (this.shown.length === 0) {
      const text = this.filter ? 'No row matches the filter.' : (empty ?? 'Nothing in this range.');
      this.body.replaceChildren(h('tr', {}, h('td', { colspan: String(columns.length), class: 'empty' }, text)));
      return;
    }
    const height = Math.max(this.scroller.clientHeight, 400);
    const last = this.isVirtual
      ? Math.min(this.shown.length, first + Math.ceil(height / ROW_HEIGHT) + 2 * BEYOND)
      : this.shown.length;
    const lines = this.shown.slice(first, last).map((row, i) => this.line(row, first + i));
    if (this.isVirtual) {
      this.table.setAttribute('aria-rowcount', String(this.shown.length + 1));
      lines.unshift(spacer(first, columns.length));
      lines.push(spacer(this.shown.length - last, columns.length));
    }
    this.body.replaceChildren(...lines);
  }

  /** @param {R} row @param {number} number */
  line(row, number) {
    const cells = this.options.columns.map((column) => {
      const attributes = { class: classOf(column), ...(column.hint ? { title: column.hint(row) } : {}) };
      if (!column.opens || !this.options.open) return h('td', attributes, content(column, row));
      const tabindex = number === this.focused ? '0' : '-1';
      return h('td', attributes, h('button', { type: 'button', class: 'row-button', tabindex }, content(column, row)));
    });
    const isOpenable = this.options.open ? ' openable' : '';
    const marked = this.options.marked?.(row) ? ' marked' : '';
    const attributes = { class: `row${isOpenable}${marked}`, 'data-number': String(number) };
    const position = this.isVirtual ? { 'aria-rowindex': String(number + 2) } : {};
    return h('tr', { ...attributes, ...position }, ...cells);
  }

  /** @param {Event} event */
  clicked(event) {
    const line = /** @type {HTMLElement} */ (event.target).closest('tr.row');
    const number = Number(/** @type {HTMLElement|null} */ (line)?.dataset.number ?? -1);
    const row = this.shown[number];
    if (row === undefined || !this.options.open || getSelection()?.type === 'Range') return;
    this.focused = number;
    this.options.open(row);
  }

  /** @param {KeyboardEvent} event */
  moved(event) {
    const steps = { ArrowDown: 1, ArrowUp: -1, PageDown: 15, PageUp: -15, Home: -Infinity, End: Infinity };
    const step = steps[/** @type {keyof typeof steps} */ (event.key)];
    if (step === undefined || event.ctrlKey || event.altKey || event.metaKey) return;
    event.preventDefault();
    event.stopPropagation();
    this.focused = Math.min(this.shown.length - 1, Math.max(0, this.focused + step));
    if (this.isVirtual) {
      const top = this.focused * ROW_HEIGHT;
      const height = this.scroller.clientHeight - 2 * ROW_HEIGHT;
      if (top < this.scroller.scrollTop || top > this.scroller.scrollTop + height)
        this.scroller.scrollTop = Math.max(0, top - height / 2);
      this.draw(Math.max(0, Math.floor(this.scroller.scrollTop / ROW_HEIGHT) - BEYOND));
    }
    for (const button of this.body.querySelectorAll('.row-button')) button.setAttribute('tabindex', '-1');
    const line = this.body.querySelector(`tr[data-number="${this.focused}"]`);
    const button = /** @type {HTMLElement|null} */ (line?.querySelector('.row-button') ?? null);
    button?.setAttribute('tabindex', '0');
    button?.focus();
    line?.scrollIntoView({ block: 'nearest' });
  }

  async copy() {
    const { columns } = this.options;
    const lines = [
      columns.map((column) => column.key),
      ...this.shown.map((row) => columns.map((column) => column.value(row) ?? '')),
    ];
    const text = lines
      .map((line) => line.map((value) => String(value).replace(/[\t\r\n]+/g, ' ')).join('\t'))
      .join('\n');
    try {
      await navigator.clipboard.writeText(text);
      this.state.textContent = `copied ${counted(this.shown.length, 'row')}`;
    } catch {
      this.state.textContent = 'The browser refused access to the clipboard. Allow it for this page, then copy again.';
    }
  }
}

/** @template R @param {Column<R>} column */
function classOf(column) {
  return `${column.align === 'right' ? 'number' : 'text'}${column.wide ? ' wide' : ''}`;
}

/** @template R @param {Column<R>} column @param {R} row @returns {Node|string} */
function content(column, row) {
  if (column.cell) return column.cell(row);
  if (column.text) return column.text(row);
  const value = column.value(row);
  if (value === null) return '';
  return typeof value === 'number' ? count(value) : value;
}

/** @param {number} rows @param {number} columns */
function spacer(rows, columns) {
  const line = h('tr', { class: 'spacer', 'aria-hidden': 'true' }, h('td', { colspan: String(columns) }));
  line.style.height = `${rows * ROW_HEIGHT}px`;
  return line;
}

/**
 * @param {string|number|null} a
 * @param {string|number|null} b
 */
function compared(a, b) {
  if (a === null || b === null) return a === b ? 0 : a === null ? -1 : 1;
  if (typeof a === 'number' && typeof b === 'number') return a - b;
  return String(a).localeCompare(String(b), 'en', { numeric: true });
}
