// The base of the parts of the replay tab: an element that draws itself when the replay changes.

/** @typedef {import('./model.js').ReplayModel} ReplayModel */

/** A part of the tab. `model` is set before the element is put into the page. */
export class ReplayPart extends HTMLElement {
  /** @type {ReplayModel|null} */
  #model = null;
  #changed = () => this.draw();
  #moved = () => this.contentsMoved();

  get model() {
    if (!this.#model) throw new Error('the element has no replay');
    return this.#model;
  }

  set model(model) {
    this.#model = model;
  }

  connectedCallback() {
    this.build();
    this.model.addEventListener('change', this.#changed);
    this.model.addEventListener('moved', this.#moved);
    this.draw();
    this.contentsMoved();
  }

  disconnectedCallback() {
    this.model.removeEventListener('change', this.#changed);
    this.model.removeEventListener('moved', this.#moved);
  }

  /** Makes what stays. */
  build() {}

  /** Shows the state of the replay. */
  draw() {}

  /** Contents of memory may have changed. */
  contentsMoved() {}
}

/**
 * Makes a part.
 * @template {ReplayPart} P
 * @param {string} name
 * @param {ReplayModel} model
 */
export function part(name, model) {
  const element = /** @type {P} */ (document.createElement(name));
  element.model = model;
  return element;
}
