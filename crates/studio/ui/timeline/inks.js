// Colours in the form that the picture needs: pixels and CSS text, made once for a theme and a table of shapes.

import { categoryColor, css, inkOn, sliceColor, theme } from '../core/colors.js';
import { mix, pixelOf } from './paint.js';

/** @typedef {import('../core/colors.js').Rgb} Rgb */
/** @typedef {import('../core/answers.d.ts').Track} Track */
/** @typedef {import('../core/shapes.js').ShapeTable} ShapeTable */
/** @typedef {import('./paint.js').Inks} Inks */
/** @typedef {import('./strips.js').SliceInk} SliceInk */
/** @typedef {import('../core/layer.js').LayerStyle} LayerStyle */

/**
 * @type {Record<'light' | 'dark', Record<'paper' | 'tint' | 'surface' | 'grid' | 'line' | 'ink' | 'soft' | 'accent'
 * | 'evidence' | 'critical', Rgb>>}
 */
const SCHEMES = {
  light: {
    paper: [255, 255, 255],
    tint: [241, 245, 251],
    surface: [245, 246, 248],
    grid: [238, 240, 244],
    line: [221, 225, 231],
    ink: [26, 31, 41],
    soft: [85, 96, 112],
    accent: [11, 98, 196],
    evidence: [179, 38, 30],
    critical: [143, 0, 90],
  },
  dark: {
    paper: [20, 23, 28],
    tint: [27, 33, 43],
    surface: [26, 30, 37],
    grid: [31, 36, 44],
    line: [45, 52, 63],
    ink: [228, 232, 239],
    soft: [159, 171, 187],
    accent: [109, 179, 255],
    evidence: [255, 138, 128],
    critical: [255, 140, 214],
  },
};
/** A counter's area: as its line, but pale. */
const AREA_SHARE = 0.72;
const PATTERN_SHARE = 0.22;
const EDGE_SHARE = 0.35;
const FAINT_SHARE = 0.78;
/** What is only predicted is paler by this share. */
const GHOST_SHARE = 0.45;

/** The inks of one theme and one table of shapes. */
export class InkTable {
  scheme;
  #theme = theme();
  #shapes;
  #highlight;
  /** @type {Map<string, Inks>} */
  #tracks = new Map();
  /** @type {Map<string, Map<number, SliceInk & {rgb: Rgb}>>} */
  #slices = new Map();

  /**
   * @param {ShapeTable} shapes
   * @param {number | null} highlight a shape that is drawn strongly, and all others faintly
   * @param {LayerStyle} [style]
   */
  constructor(shapes, highlight, style = 'solid') {
    this.#shapes = shapes;
    this.#highlight = highlight;
    this.style = style;
    const scheme = SCHEMES[theme()];
    this.scheme = style === 'solid' ? scheme : { ...scheme, paper: scheme.tint, grid: scheme.line };
  }

  /**
   * Whether it was made for these.
   * @param {ShapeTable} shapes @param {number | null} highlight @param {LayerStyle} style
   */
  isFor(shapes, highlight, style) {
    const isSame = shapes === this.#shapes && highlight === this.#highlight && style === this.style;
    return isSame && theme() === this.#theme;
  }

  /** Inks of a row of cells. @param {Track} track @returns {Inks} */
  track(track) {
    const key = `${track.kind} ${track.categories.join('|')}`;
    let inks = this.#tracks.get(key);
    if (!inks) {
      const { paper, grid } = this.scheme;
      const isCounter = track.kind === 'counter' || track.kind === 'memory';
      const colors = isCounter
        ? this.#counterColors(track)
        : [0, 1, 2, 3].map((k) => this.#faded(categoryColor(track.kind, track.categories[k] ?? '', k), null));
      inks = {
        paper: pixelOf(paper),
        grid: pixelOf(grid),
        categories: colors.map(pixelOf),
        patterns: colors.map((color) => pixelOf(mix(color, paper, PATTERN_SHARE))),
      };
      this.#tracks.set(key, inks);
    }
    return inks;
  }

  /** Inks of the slices of a track, by shape. @param {Track} track @returns {(shape: number) => SliceInk} */
  slices(track) {
    const key = `${track.kind} ${track.categories.join('|')}`;
    const made = this.#slices.get(key) ?? new Map();
    this.#slices.set(key, made);
    return (shape) => {
      let ink = made.get(shape);
      if (!ink) {
        ink = this.#sliceInk(track, shape);
        made.set(shape, ink);
      }
      return ink;
    };
  }

  /** CSS colour of text on a slice. @param {Track} track @param {number} shape */
  textOn(track, shape) {
    this.slices(track)(shape);
    const ink = this.#slices.get(`${track.kind} ${track.categories.join('|')}`)?.get(shape);
    return inkOn(ink?.rgb ?? this.scheme.paper);
  }

  /** CSS text of a colour of the scheme. @param {keyof typeof SCHEMES.light} name @param {number} [alpha] */
  css(name, alpha = 1) {
    return css(this.scheme[name], alpha);
  }

  /** @param {Track} track @returns {Rgb[]} */
  #counterColors(track) {
    const line = categoryColor('counter', track.kind === 'memory' ? 'memory' : 'launch');
    const area = mix(line, this.scheme.paper, AREA_SHARE);
    return [line, area, area, area];
  }

  /**
   * The colour, or a faint one for what is not the highlighted shape.
   * @param {Rgb} color
   * @param {number | null} shape
   */
  #faded(color, shape) {
    const own = this.style === 'ghost' ? mix(color, this.scheme.paper, GHOST_SHARE) : color;
    return this.#highlight === null || this.#highlight === shape ? own : mix(own, this.scheme.paper, FAINT_SHARE);
  }

  /** @param {Track} track @param {number} shape */
  #sliceInk(track, shape) {
    const category = this.#shapes.category(shape);
    const name = track.categories[category] ?? '';
    const rgb = this.#faded(sliceColor(track.kind, name, category, this.#shapes.name(shape)), shape);
    return {
      rgb,
      pixel: pixelOf(rgb),
      edge: pixelOf(mix(rgb, [0, 0, 0], EDGE_SHARE)),
      soft: pixelOf(this.#faded(categoryColor(track.kind, name, category), shape)),
      category: Math.min(category, 3),
    };
  }
}
