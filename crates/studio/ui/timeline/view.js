// The part of the trace that is drawn now. It moves towards the window of the state, so that jumps can be followed
// with the eye; with reduced motion it is there at once.

/** @typedef {import('../core/store.js').Span} Span */

/** After this time the view has gone two thirds of the way. */
const TIME_CONSTANT_MS = 55;
/** Nearer than this share of the window, the view is there. */
const THERE = 1 / 8000;

const stillness = matchMedia('(prefers-reduced-motion: reduce)');

/** Whether things may move. */
export function mayMove() {
  return !stillness.matches;
}

/** Time range and width in pixels, and the conversion between the two. */
export class View {
  from = 0;
  to = 1;
  /** Device pixels. */
  width = 1;
  /** @type {Span} */
  #target = { from: 0, to: 1 };
  #last = 0;

  get nanosPerPixel() {
    return (this.to - this.from) / this.width;
  }

  get isMoving() {
    return this.from !== this.#target.from || this.to !== this.#target.to;
  }

  /** Position in device pixels. @param {number} time */
  x(time) {
    return (time - this.from) / this.nanosPerPixel;
  }

  /** Time at a position in device pixels. @param {number} x */
  time(x) {
    return this.from + x * this.nanosPerPixel;
  }

  /** The same pixels with times that are `offset` earlier: those of a layer. @param {number} offset @returns {View} */
  shifted(offset) {
    if (offset === 0) return this;
    const view = new View();
    view.width = this.width;
    view.jump({ from: this.from - offset, to: this.to - offset });
    return view;
  }

  /** Shows that range at once. @param {Span} span */
  jump(span) {
    this.#target = span;
    this.from = span.from;
    this.to = span.to;
  }

  /** Starts to move to that range. @param {Span} span */
  moveTo(span) {
    if (!mayMove()) {
      this.jump(span);
      return;
    }
    if (!this.isMoving) this.#last = performance.now();
    this.#target = span;
  }

  /** Moves on to the moment `now`. */
  step(now = performance.now()) {
    if (!this.isMoving) return;
    const share = 1 - Math.exp(-Math.max(1, now - this.#last) / TIME_CONSTANT_MS);
    this.#last = now;
    this.from += (this.#target.from - this.from) * share;
    this.to += (this.#target.to - this.to) * share;
    const left = Math.abs(this.#target.from - this.from) + Math.abs(this.#target.to - this.to);
    if (left < (this.#target.to - this.#target.from) * THERE) this.jump(this.#target);
  }
}
