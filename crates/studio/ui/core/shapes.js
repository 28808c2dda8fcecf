// The table of shapes: what a slice is called, its kind and its category. Slices and cells name shapes by their index.

/** @typedef {import('./answers.d.ts').Shape} Shape */

/** In cells: nothing, and more shapes than one. */
export const NO_SHAPE = 0xffff;
export const MANY_SHAPES = 0xfffe;

/** Names, kinds and categories of the slices of a trace. It never changes; a longer table replaces it. */
export class ShapeTable {
  /** @type {Shape[]} */
  #shapes;
  /** @type {Map<string, number> | null} */
  #byName = null;

  /** @param {Shape[]} shapes */
  constructor(shapes) {
    this.#shapes = shapes;
  }

  get length() {
    return this.#shapes.length;
  }

  /** The full name. @param {number} shape */
  name(shape) {
    return this.#shapes[shape]?.[0] ?? `shape ${shape}`;
  }

  /** The name without template arguments and parameters. @param {number} shape */
  shortName(shape) {
    return this.#shapes[shape]?.[1] ?? `shape ${shape}`;
  }

  /** @param {number} shape */
  kind(shape) {
    return this.#shapes[shape]?.[2] ?? '';
  }

  /** Number of the category within the kind of track. @param {number} shape */
  category(shape) {
    return this.#shapes[shape]?.[3] ?? 0;
  }

  /** The first shape with that full name, or -1. @param {string} name */
  find(name) {
    this.#byName ??= new Map(this.#shapes.map(([known], shape) => /** @type {const} */ ([known, shape])).reverse());
    return this.#byName.get(name) ?? -1;
  }

  /** This table with more shapes at its end. @param {Shape[]} shapes */
  with(shapes) {
    return new ShapeTable([...this.#shapes, ...shapes]);
  }
}
