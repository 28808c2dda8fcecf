// Text that fits: names cut to a width, with measured widths kept.

const MAX_KEPT = 20_000;
/** Longer names are cut before they are measured. */
const MAX_LENGTH = 240;
const DOTS = '…';

/** Measures and cuts names for one font. */
export class Labels {
  #context;
  #font = '';
  /** @type {Map<string, number>} */
  #widths = new Map();

  /** @param {CanvasRenderingContext2D} context */
  constructor(context) {
    this.#context = context;
  }

  /** @param {string} font */
  use(font) {
    this.#context.font = font;
    if (font === this.#font) return;
    this.#font = font;
    this.#widths.clear();
  }

  /** @param {string} text */
  width(text) {
    let width = this.#widths.get(text);
    if (width === undefined) {
      if (this.#widths.size >= MAX_KEPT) this.#widths.clear();
      width = this.#context.measureText(text).width;
      this.#widths.set(text, width);
    }
    return width;
  }

  /** The text, or as much of its beginning as fits, or nothing. @param {string} text @param {number} room */
  fit(text, room) {
    const short = text.length > MAX_LENGTH ? text.slice(0, MAX_LENGTH) + DOTS : text;
    const width = this.width(short);
    if (width <= room) return short;
    let length = Math.floor((short.length * (room - this.width(DOTS))) / width);
    while (length > 1) {
      const cut = short.slice(0, length) + DOTS;
      const over = this.width(cut) - room;
      if (over <= 0) return cut;
      length -= Math.max(1, Math.floor((over / width) * short.length));
    }
    return '';
  }
}
