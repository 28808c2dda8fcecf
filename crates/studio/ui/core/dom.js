// Builds DOM elements. Text always becomes text nodes: names in a trace come from programs that we do not trust.

/** @typedef {Node | string | number | null | undefined | false | Child[]} Child */
/** @typedef {Record<string, unknown>} Properties */

/**
 * Makes an element. `onclick` and other functions become listeners, `class` and `aria-*` attributes, `value`, `checked`
 * and `selected` properties. `style` is an object of CSS properties, because the page's policy forbids style
 * attributes.
 * @template {keyof HTMLElementTagNameMap} T
 * @param {T} tag
 * @param {Properties} [properties]
 * @param {Child[]} children
 * @returns {HTMLElementTagNameMap[T]}
 */
export function h(tag, properties = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) assign(element, name, value);
  append(element, children);
  return element;
}

/**
 * Replaces the children of an element.
 * @param {Element} element
 * @param {Child[]} children
 */
export function fill(element, ...children) {
  const fragment = document.createDocumentFragment();
  append(fragment, children);
  element.replaceChildren(fragment);
}

/**
 * The element of that selector, which the page contains.
 * @param {string} selector
 * @param {ParentNode} [root]
 * @returns {HTMLElement}
 */
export function find(selector, root = document) {
  const element = root.querySelector(selector);
  if (!(element instanceof HTMLElement)) throw new Error(`the page has no ${selector}`);
  return element;
}

/** @param {HTMLElement} element @param {string} name @param {unknown} value */
function assign(element, name, value) {
  if (value === null || value === undefined) return;
  if (name.startsWith('aria-')) {
    element.setAttribute(name, String(value));
    return;
  }
  if (value === false) return;
  if (typeof value === 'function' && name.startsWith('on')) {
    element.addEventListener(name.slice(2), /** @type {EventListener} */ (value));
  } else if (name === 'style') {
    for (const [property, text] of Object.entries(/** @type {Record<string, string>} */ (value))) {
      element.style.setProperty(property, text);
    }
  } else if (name === 'value' || name === 'checked' || name === 'selected') {
    Object.assign(element, { [name]: value });
  } else {
    element.setAttribute(name, value === true ? '' : String(value));
  }
}

/** @param {Node} parent @param {Child[]} children */
function append(parent, children) {
  for (const child of children) {
    if (child === null || child === undefined || child === false) continue;
    if (Array.isArray(child)) append(parent, child);
    else parent.appendChild(child instanceof Node ? child : document.createTextNode(String(child)));
  }
}
