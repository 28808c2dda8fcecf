// A heat map of a matrix: the means of blocks of its elements, in colors that people with any kind of color vision
// tell apart. Beside the picture are the numbers under the cursor, and a table of coarser blocks.

import { h } from '../core/dom.js';
import { count } from '../core/units.js';
import { matrixOf, rounded, widthOf } from './numbers.js';

/** @typedef {import('./model.js').ReplayModel} ReplayModel */
/** @typedef {import('./memory.js').View} View */
/** @typedef {import('./answers.d.ts').Picture} Picture */
/** @typedef {[number, number, number]} Rgb */

/** Blocks per side. */
const BLOCKS = 128;
/** Rows and columns of the table. */
const COARSE = 6;
const CELL_PX = 2;
const MOST_PX = 320;

/** From low to high, darker to lighter (cividis). @type {Rgb[]} */
const ONE_SIGN = [
  [0, 34, 78],
  [40, 62, 108],
  [86, 92, 108],
  [124, 123, 120],
  [165, 156, 116],
  [211, 193, 100],
  [254, 232, 56],
];
/** Negative numbers are blue, and positive ones are orange. @type {Rgb[]} */
const TWO_SIGNS = [
  [0, 68, 136],
  [90, 160, 210],
  [238, 238, 238],
  [235, 160, 75],
  [160, 70, 0],
];
/** A block without a finite element. @type {Rgb} */
const NOTHING = [128, 128, 128];
/** The corner of a block with NaN or infinities. @type {Rgb} */
const ODD = [204, 40, 140];

/** @param {ReplayModel} model @param {View} view */
export async function heatMap(model, view) {
  const { address, bytes, type, shape, at } = view;
  const elements = Math.floor(bytes / widthOf(type));
  if (elements === 0) return [h('p', { class: 'note' }, `The buffer is smaller than one element of ${type}.`)];
  const { rows, columns } = matrixOf(shape ?? nearSquare(elements), elements);
  /** @type {Picture} */
  const picture = await model.ask('Drawing the heat map', {
    do: 'grid',
    address,
    type,
    at,
    rows,
    columns,
    most_rows: BLOCKS,
    most_columns: BLOCKS,
  });
  const odd = picture.not_finite.filter((one) => one > 0).length;
  const blocks =
    `${count(picture.rows)} × ${count(picture.columns)} blocks ` + `of ${count(rows)} × ${count(columns)} elements`;
  const label =
    `Heat map: ${blocks}; means from ${rounded(picture.min)} to ${rounded(picture.max)}` +
    (odd > 0 ? `; ${count(odd)} blocks have NaN or infinities` : '');
  const rest = elements - rows * columns;
  const left = rest > 0 ? h('p', {}, `The last ${count(rest)} elements do not fill a row, and are not shown.`) : null;
  const read = h('p', { class: 'faint', role: 'status' }, 'Point at the picture, or focus it and use the arrow keys.');
  const canvas = draw(picture, label, (block) => {
    read.textContent = blockText(picture, block);
  });
  return [
    h(
      'div',
      { class: 'replay-heat' },
      h('div', { class: 'replay-heat-picture' }, canvas, legend(picture)),
      h('div', {}, h('p', {}, `${label}.`), left, read, coarseTable(picture)),
    ),
  ];
}

/** Without a shape: as many rows as columns, nearly. @param {number} elements */
function nearSquare(elements) {
  const columns = 2 ** Math.ceil(Math.log2(Math.sqrt(elements)));
  return [Math.max(1, Math.ceil(elements / columns)), Math.min(columns, elements)];
}

/**
 * @param {Picture} picture
 * @param {string} label
 * @param {(block: {row: number, column: number}) => void} pointed
 */
function draw(picture, label, pointed) {
  const { rows, columns } = picture;
  const canvas = h('canvas', { class: 'replay-heat-canvas', role: 'img', tabindex: '0', 'aria-label': label });
  [canvas.width, canvas.height] = [columns * CELL_PX, rows * CELL_PX];
  const scale = Math.min(MOST_PX / canvas.width, MOST_PX / canvas.height);
  canvas.style.width = `${Math.max(canvas.width * scale, 24)}px`;
  canvas.style.height = `${Math.max(canvas.height * scale, 24)}px`;
  const cursor = { row: 0, column: 0 };
  const context = canvas.getContext('2d');
  const paint = () => {
    if (!context) return;
    const image = context.createImageData(canvas.width, canvas.height);
    for (let row = 0; row < rows; row += 1) {
      for (let column = 0; column < columns; column += 1) {
        const at = row * columns + column;
        for (let pixel = 0; pixel < CELL_PX * CELL_PX; pixel += 1) {
          const [x, y] = [column * CELL_PX + (pixel % CELL_PX), row * CELL_PX + Math.floor(pixel / CELL_PX)];
          const isOdd = picture.not_finite[at] > 0 && pixel === 0;
          image.data.set([...(isOdd ? ODD : colorOf(picture, picture.means[at])), 255], 4 * (y * canvas.width + x));
        }
      }
    }
    context.putImageData(image, 0, 0);
  };
  paint();
  const point = (/** @type {number} */ row, /** @type {number} */ column) => {
    cursor.row = Math.min(Math.max(row, 0), rows - 1);
    cursor.column = Math.min(Math.max(column, 0), columns - 1);
    paint();
    if (context) {
      context.strokeStyle = '#fff';
      context.strokeRect(cursor.column * CELL_PX - 0.5, cursor.row * CELL_PX - 0.5, CELL_PX + 1, CELL_PX + 1);
    }
    pointed(cursor);
  };
  canvas.addEventListener('pointermove', (event) => {
    const box = canvas.getBoundingClientRect();
    point(
      Math.floor(((event.clientY - box.top) / box.height) * rows),
      Math.floor(((event.clientX - box.left) / box.width) * columns),
    );
  });
  canvas.addEventListener('keydown', (event) => {
    if (event.altKey || event.ctrlKey || event.metaKey) return;
    const moves = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] };
    const move = moves[/** @type {keyof typeof moves} */ (event.key)];
    if (!move) return;
    event.preventDefault();
    event.stopPropagation();
    point(cursor.row + move[0], cursor.column + move[1]);
  });
  return canvas;
}

/** @param {Picture} picture @param {number|null} mean @returns {Rgb} */
function colorOf({ min, max }, mean) {
  if (mean === null || min === null || max === null) return NOTHING;
  if (min < 0 && max > 0) {
    const most = Math.max(-min, max);
    return between(TWO_SIGNS, (mean / most + 1) / 2);
  }
  return between(ONE_SIGN, max > min ? (mean - min) / (max - min) : 0.5);
}

/** @param {Rgb[]} colors @param {number} share @returns {Rgb} */
function between(colors, share) {
  const at = Math.min(Math.max(share, 0), 1) * (colors.length - 1);
  const low = Math.min(Math.floor(at), colors.length - 2);
  const part = (/** @type {0|1|2} */ i) =>
    Math.round(colors[low][i] + (colors[low + 1][i] - colors[low][i]) * (at - low));
  return [part(0), part(1), part(2)];
}

/** @param {Picture} picture */
function legend(picture) {
  const { min, max } = picture;
  if (min === null || max === null) return h('p', { class: 'faint' }, 'No element is finite.');
  const isSigned = min < 0 && max > 0;
  const most = Math.max(-min, max);
  const [low, high] = isSigned ? [-most, most] : [min, max];
  const bar = h('canvas', { class: 'replay-heat-legend', 'aria-hidden': 'true' });
  [bar.width, bar.height] = [128, 1];
  const context = bar.getContext('2d');
  for (let x = 0; context && x < bar.width; x += 1) {
    const color = between(isSigned ? TWO_SIGNS : ONE_SIGN, x / (bar.width - 1));
    context.fillStyle = `rgb(${color.join(' ')})`;
    context.fillRect(x, 0, 1, 1);
  }
  return h('div', { class: 'replay-heat-scale' }, h('span', {}, rounded(low)), bar, h('span', {}, rounded(high)));
}

/** @param {Picture} picture @param {{row: number, column: number}} block */
function blockText(picture, { row, column }) {
  const at = row * picture.columns + column;
  const span = (/** @type {number} */ i, /** @type {number} */ blocks, /** @type {number} */ size) => {
    const from = Math.ceil((i * size) / blocks);
    const to = Math.ceil(((i + 1) * size) / blocks) - 1;
    return from === to ? String(from) : `${from}–${to}`;
  };
  const [rows, columns] = picture.shape;
  const where = `Row ${span(row, picture.rows, rows)}, column ${span(column, picture.columns, columns)}`;
  const odd = picture.not_finite[at];
  const mean = picture.means[at];
  const words = mean === null ? 'no finite element' : `mean ${rounded(mean)}`;
  return `${where}: ${words}${odd > 0 ? `, ${count(odd)} not finite` : ''}`;
}

/** The picture as a small table. @param {Picture} picture */
function coarseTable(picture) {
  const rows = Math.min(COARSE, picture.rows);
  const columns = Math.min(COARSE, picture.columns);
  const cell = (/** @type {number} */ row, /** @type {number} */ column) => {
    let [sum, blocks] = [0, 0];
    for (let r = Math.floor((row * picture.rows) / rows); r < Math.floor(((row + 1) * picture.rows) / rows); r += 1) {
      const last = Math.floor(((column + 1) * picture.columns) / columns);
      for (let c = Math.floor((column * picture.columns) / columns); c < last; c += 1) {
        const mean = picture.means[r * picture.columns + c];
        if (mean !== null) [sum, blocks] = [sum + mean, blocks + 1];
      }
    }
    return h('td', {}, blocks === 0 ? '–' : rounded(sum / blocks));
  };
  const line = (/** @type {number} */ row) =>
    h(
      'tr',
      {},
      Array.from({ length: columns }, (_, column) => cell(row, column)),
    );
  return h(
    'details',
    {},
    h('summary', {}, 'The picture as a table'),
    h(
      'table',
      { class: 'replay-values' },
      h('caption', { class: 'unseen' }, 'Means of larger blocks, from the first rows and columns to the last'),
      h(
        'tbody',
        {},
        Array.from({ length: rows }, (_, row) => line(row)),
      ),
    ),
  );
}
