// Small pictures in SVG: stacked bars, share bars, histograms and series over time. Each has a text beside it or a
// label, so that nothing is known from colour alone.

import { h } from '../core/dom.js';

const SVG = 'http://www.w3.org/2000/svg';

/**
 * Makes an SVG element. `style` is an object of CSS properties.
 * @param {string} tag
 * @param {Record<string, string|number|Record<string, string>>} attributes
 * @param {(Node|string)[]} children
 */
export function s(tag, attributes = {}, ...children) {
  const element = /** @type {SVGElement} */ (document.createElementNS(SVG, tag));
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === 'object')
      for (const [property, text] of Object.entries(value)) element.style.setProperty(property, text);
    else element.setAttribute(name, String(value));
  }
  element.append(...children);
  return element;
}

/** @typedef {{share: number, color: string, text: string}} Part */

/**
 * A bar of parts, with what each is as a tooltip.
 * @param {Part[]} parts shares of 1
 * @param {string} label
 */
export function stackedBar(parts, label) {
  let x = 0;
  const boxes = parts.map(({ share, color, text }) => {
    const box = s(
      'rect',
      { x: (x * 100).toFixed(3), width: (share * 100).toFixed(3), y: 0, height: 10, style: { fill: color } },
      s('title', {}, text),
    );
    x += share;
    return box;
  });
  const ground = s('rect', { x: 0, y: 0, width: 100, height: 10, class: 'ground' });
  return s(
    'svg',
    { class: 'stacked-bar', viewBox: '0 0 100 10', preserveAspectRatio: 'none', role: 'img', 'aria-label': label },
    ground,
    ...boxes,
  );
}

/** A square in a colour, which a text follows. @param {string} color */
export function swatch(color) {
  return h('span', { class: 'swatch', 'aria-hidden': 'true', style: { background: color } });
}

/**
 * A number with a bar of its share behind it.
 * @param {string} text
 * @param {number} share of the longest row or of everything
 */
export function shareBar(text, share) {
  const width = `${(Math.max(0, Math.min(1, share)) * 100).toFixed(2)}%`;
  return h(
    'span',
    { class: 'share-bar' },
    h('span', { class: 'share-fill', 'aria-hidden': 'true', style: { width } }),
    h('span', { class: 'share-text' }, text),
  );
}

/**
 * Counts by length, with one value marked.
 * @param {{from_ns: number, to_ns: number, count: number}[]} bins
 * @param {number|null} marked
 * @param {string} label
 */
export function histogram(bins, marked, label) {
  const most = Math.max(1, ...bins.map((bin) => bin.count));
  const width = 100 / Math.max(1, bins.length);
  const here =
    marked === null
      ? -1
      : bins.findIndex((bin, i) => marked >= bin.from_ns && (marked < bin.to_ns || i === bins.length - 1));
  const boxes = bins.map((bin, i) => {
    // A bin with one run among thousands is still visible.
    const height = bin.count === 0 ? 0 : Math.max(2, (bin.count / most) * 40);
    const name = i === here ? 'bin here' : 'bin';
    return s(
      'rect',
      {
        x: (i * width + 0.3).toFixed(2),
        width: Math.max(0.5, width - 0.6).toFixed(2),
        y: (42 - height).toFixed(2),
        height: height.toFixed(2),
        class: name,
      },
      s('title', {}, `${bin.count}`),
    );
  });
  const mark = here < 0 ? [] : [s('path', { d: `M${(here + 0.5) * width - 1.5} 48 l1.5 -4 l1.5 4 z`, class: 'mark' })];
  return s(
    'svg',
    { class: 'histogram', viewBox: '0 0 100 48', preserveAspectRatio: 'none', role: 'img', 'aria-label': label },
    ...boxes,
    ...mark,
  );
}

/**
 * @typedef {object} SeriesOptions
 * @property {{time: number, value: number}[]} points in order of time
 * @property {import('../core/store.js').Span} span
 * @property {number} most
 * @property {string} label
 * @property {boolean} [steps] the value holds until the next point
 * @property {number|null} [mark] a moment that is marked
 */

/** A filled series over time. @param {SeriesOptions} options */
export function series({ points, span, most, label, steps = true, mark = null }) {
  const length = Math.max(1, span.to - span.from);
  const x = (/** @type {number} */ time) => (Math.max(0, Math.min(1, (time - span.from) / length)) * 1000).toFixed(2);
  const y = (/** @type {number} */ value) => (100 - (value / Math.max(1e-9, most)) * 96).toFixed(2);
  let path = '';
  let before = '100';
  for (const { time, value } of points) {
    if (path === '') path = `M${x(time)} 100`;
    if (steps) path += `L${x(time)} ${before}`;
    before = y(value);
    path += `L${x(time)} ${before}`;
  }
  const end = steps ? '1000' : x(points.at(-1)?.time ?? span.to);
  const filled = path ? `${path}L${end} ${before}L${end} 100Z` : '';
  const line = mark === null ? [] : [s('line', { x1: x(mark), x2: x(mark), y1: 0, y2: 100, class: 'mark' })];
  return s(
    'svg',
    { class: 'series', viewBox: '0 0 1000 100', preserveAspectRatio: 'none', role: 'img', 'aria-label': label },
    s('path', { d: filled, class: 'area' }),
    ...line,
  );
}
