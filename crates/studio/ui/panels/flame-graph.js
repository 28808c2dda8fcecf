// A flame graph on a canvas: who launched the GPU work, with the outermost frame at the top. A box opens on click,
// search marks boxes, arrow keys move between them, and the line below says what a box is.

import { h } from '../core/dom.js';
import { css, inkOn, onTheme, sliceColor } from '../core/colors.js';
import { count, duration, percent, bytes } from '../core/units.js';
import { matcher } from './pattern.js';
import { shortName } from './words.js';

/** @typedef {import('../core/answers.d.ts').FlameNode} Node */
/** @typedef {{node: Node, parent: Box|null, depth: number, from: number, children: Box[]}} Box */

const LINE = 18;
const FAINT_ALPHA = 0.35;

/** The category whose colour frames of a kind have. @type {Record<string, string>} */
const COLORS = {
  python: 'launch',
  native: 'copy',
  work: 'compute',
  jit: 'wait',
  range: 'range',
  operator: 'operator',
  call: 'communication',
};

class FlameGraph extends HTMLElement {
  /** @type {Box|null} */ #root = null;
  /** @type {Box|null} */ #zoomed = null;
  /** @type {Box|null} */ #current = null;
  #total = 0;
  #unit = 'ns';
  #pattern = '';
  /** @type {{box: Box, x: number, y: number, width: number}[]} */ #drawn = [];
  #canvas = h('canvas', { tabindex: '0', role: 'img' });
  #words = h('p', { class: 'flame-words', role: 'status' });
  #observer = new ResizeObserver(() => this.draw());

  connectedCallback() {
    if (this.childElementCount === 0) {
      const search = h('input', {
        type: 'search',
        placeholder: 'search, or /regex/',
        'aria-label': 'Search the flame graph',
      });
      search.addEventListener('input', () => this.#search(search.value));
      const out = h('button', { type: 'button', onclick: () => this.#zoom(this.#root) }, 'Whole graph');
      this.append(
        h('div', { class: 'tools' }, search, out, this.#words),
        h('div', { class: 'flame-scroll' }, this.#canvas),
      );
      this.#canvas.addEventListener('pointermove', (event) => this.#pointed(event));
      this.#canvas.addEventListener('pointerleave', () => this.#tell(this.#current));
      this.#canvas.addEventListener('click', (event) => this.#clicked(event));
      this.#canvas.addEventListener('keydown', (event) => this.#key(event));
      onTheme(() => this.draw());
    }
    this.#observer.observe(this);
  }

  disconnectedCallback() {
    this.#observer.disconnect();
  }

  /** @param {import('../core/answers.d.ts').Flame} flame */
  show(flame) {
    this.#total = flame.total;
    this.#unit = flame.unit;
    this.#root = boxOf(flame.root, null, 0, 0);
    this.#zoom(this.#root);
  }

  /** @param {Box|null} box */
  #zoom(box) {
    this.#zoomed = box;
    this.#current = box;
    this.#tell(box);
    this.draw();
  }

  /** @param {string} pattern */
  #search(pattern) {
    this.#pattern = pattern;
    const matches = matcher(pattern);
    if (matches.error) this.#words.textContent = matches.error;
    else if (pattern && this.#root) {
      const found = matchedValue(this.#root, matches.test);
      this.#words.textContent =
        `${percent(found / Math.max(1, this.#total))} ` + 'of everything is below a frame that matches.';
    } else this.#tell(this.#current);
    this.draw();
  }

  draw() {
    const zoomed = this.#zoomed;
    if (!zoomed || this.clientWidth === 0) return;
    const path = [];
    for (let box = zoomed.parent; box; box = box.parent) path.unshift(box);
    const rows = path.length + depthOf(zoomed) + 1;
    const ratio = devicePixelRatio || 1;
    const width = this.#canvas.parentElement?.clientWidth ?? this.clientWidth;
    this.#canvas.width = Math.round(width * ratio);
    this.#canvas.height = Math.round(rows * LINE * ratio);
    this.#canvas.style.height = `${rows * LINE}px`;
    const context = this.#canvas.getContext('2d');
    if (!context) return;
    context.scale(ratio, ratio);
    context.font = `12px ${getComputedStyle(this).fontFamily}`;
    context.textBaseline = 'middle';
    this.#drawn = [];
    const test = this.#pattern ? matcher(this.#pattern).test : null;
    path.forEach((box, row) => this.#box(context, box, { x: 0, y: row * LINE, width }, test));
    const scale = width / Math.max(1, zoomed.node.value);
    this.#tree(context, zoomed, { origin: zoomed.from, scale, row: path.length }, test);
  }

  /**
   * @param {CanvasRenderingContext2D} context
   * @param {Box} box
   * @param {{origin: number, scale: number, row: number}} place
   * @param {((name: string) => boolean)|null} test
   */
  #tree(context, box, place, test) {
    const width = box.node.value * place.scale;
    if (width < 0.4) return;
    const y = place.row * LINE;
    this.#box(context, box, { x: (box.from - place.origin) * place.scale, y, width }, test);
    for (const child of box.children) this.#tree(context, child, { ...place, row: place.row + 1 }, test);
  }

  /**
   * @param {CanvasRenderingContext2D} context
   * @param {Box} box
   * @param {{x: number, y: number, width: number}} at
   * @param {((name: string) => boolean)|null} test
   */
  #box(context, box, { x, y, width }, test) {
    const color = sliceColor('stream', COLORS[box.node.kind] ?? 'call', 0, box.node.name);
    context.globalAlpha = test && !test(box.node.name) ? FAINT_ALPHA : 1;
    context.fillStyle = css(color);
    context.fillRect(x, y, Math.max(0.5, width - 0.8), LINE - 1);
    if (width > 30) {
      context.fillStyle = inkOn(color);
      context.fillText(fitted(context, shortName(box.node.name), width - 8), x + 4, y + LINE / 2);
    }
    context.globalAlpha = 1;
    if (box === this.#current) {
      context.strokeStyle = getComputedStyle(this).color;
      context.lineWidth = 2;
      context.strokeRect(x + 1, y + 1, Math.max(1, width - 2.8), LINE - 3);
    }
    this.#drawn.push({ box, x, y, width });
  }

  /** @param {MouseEvent} event */
  #at(event) {
    const { left, top } = this.#canvas.getBoundingClientRect();
    const [x, y] = [event.clientX - left, event.clientY - top];
    return (
      this.#drawn.find((one) => x >= one.x && x < one.x + one.width && y >= one.y && y < one.y + LINE)?.box ?? null
    );
  }

  /** @param {PointerEvent} event */
  #pointed(event) {
    this.#tell(this.#at(event) ?? this.#current);
  }

  /** @param {MouseEvent} event */
  #clicked(event) {
    const box = this.#at(event);
    if (box) this.#zoom(box);
  }

  /** @param {KeyboardEvent} event */
  #key(event) {
    const box = this.#current ?? this.#root;
    if (!box || event.ctrlKey || event.metaKey || event.altKey) return;
    const beside = (/** @type {number} */ step) => {
      const all = box.parent?.children ?? [box];
      return all[all.indexOf(box) + step] ?? box;
    };
    const moves = {
      ArrowDown: box.children[0] ?? box,
      ArrowUp: box.parent ?? box,
      ArrowRight: beside(1),
      ArrowLeft: beside(-1),
    };
    if (event.key === 'Enter') this.#zoom(box);
    else if (event.key === 'Escape') this.#zoom(this.#root);
    else if (event.key in moves) {
      this.#current = moves[/** @type {keyof typeof moves} */ (event.key)];
      if (!this.#drawn.some((one) => one.box === this.#current)) this.#zoomed = this.#current.parent ?? this.#current;
      this.#tell(this.#current);
      this.draw();
    } else return;
    event.preventDefault();
    event.stopPropagation();
  }

  /** @param {Box|null} box */
  #tell(box) {
    if (!box) return;
    const { node } = box;
    const text = (/** @type {number} */ value) => amount(value, this.#unit);
    const share = percent(node.value / Math.max(1, this.#total));
    const own = node.self > 0 && node.self < node.value ? `, ${text(node.self)} of it directly` : '';
    const words = `${node.name}: ${text(node.value)} (${share})${own}`;
    this.#words.textContent = words;
    this.#canvas.setAttribute(
      'aria-label',
      `Flame graph. ${words}. Arrow keys move, Enter zooms in, Escape shows everything.`,
    );
  }
}

/** @param {number} value @param {string} unit */
export function amount(value, unit) {
  if (unit === 'ns') return duration(value);
  return unit === 'bytes' ? bytes(value) : `${count(value)} ${unit}`;
}

/** @param {Node} node @param {Box|null} parent @param {number} depth @param {number} from @returns {Box} */
function boxOf(node, parent, depth, from) {
  /** @type {Box} */
  const box = { node, parent, depth, from, children: [] };
  let at = from;
  for (const child of node.children ?? []) {
    box.children.push(boxOf(child, box, depth + 1, at));
    at += child.value;
  }
  return box;
}

/** @param {Box} box @returns {number} */
function depthOf(box) {
  return box.children.reduce((most, child) => Math.max(most, 1 + depthOf(child)), 0);
}

/**
 * The value below the outermost frames that match.
 * @param {Box} box
 * @param {(name: string) => boolean} test
 * @returns {number}
 */
function matchedValue(box, test) {
  if (test(box.node.name)) return box.node.value;
  return box.children.reduce((sum, child) => sum + matchedValue(child, test), 0);
}

/** As much of a text as fits. @param {CanvasRenderingContext2D} context @param {string} text @param {number} width */
function fitted(context, text, width) {
  if (context.measureText(text).width <= width) return text;
  let [short, long] = [0, text.length];
  while (long - short > 1) {
    const middle = (short + long) >> 1;
    if (context.measureText(`${text.slice(0, middle)}…`).width <= width) short = middle;
    else long = middle;
  }
  return short > 0 ? `${text.slice(0, short)}…` : '';
}

customElements.define('ts-flame-graph', FlameGraph);
export { FlameGraph };
