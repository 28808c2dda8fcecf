// Looks into the chosen buffer: how it is read, at which moment, and what it is compared with.

import { ApiError } from '../core/api.js';
import { fill, h } from '../core/dom.js';
import { store } from '../core/store.js';
import { bytes as byteText } from '../core/units.js';
import { choose, chosen } from '../panels/choices.js';
import { failure, sentence } from '../panels/panel.js';
import { ReplayError } from './client.js';
import { differences } from './differences.js';
import { heatMap } from './heat.js';
import { TYPES, matrixOf, parseShape, typeOf, widthOf } from './numbers.js';
import { offsetOf, pointerOf } from './model.js';
import { ReplayPart } from './part.js';
import { statistics } from './statistics.js';
import { hexDump, values } from './values.js';

/** @typedef {import('./answers.d.ts').Moment} Moment */
/** @typedef {import('./answers.d.ts').NumberType} NumberType */
/** @typedef {import('../core/dom.js').Child} Child */
/** @typedef {{row: number, column: number}} Origin */
/**
 * @typedef {object} View what is looked at
 * @property {string} address
 * @property {number} bytes
 * @property {NumberType} type
 * @property {number[]|null} shape
 * @property {Moment} at
 * @property {Moment|null} other what it is compared with
 * @property {Origin} origin
 * @property {(origin: Origin) => void} moveTo
 * @property {(index: number) => void} showElement
 */

/** @typedef {(model: import('./model.js').ReplayModel, view: View) => Promise<Child[]>} Look */

/** @type {[name: string, title: string, look: Look][]} */
const LOOKS = [
  ['values', 'Values', values],
  ['hex', 'Hex', hexDump],
  ['heat', 'Heat map', heatMap],
  ['histogram', 'Histogram', statistics],
  ['changes', 'Changes', differences],
];

/** @type {[Moment, string][]} */
const MOMENTS = [
  ['now', 'at this call'],
  ['begin', 'recorded start'],
  ['end', 'recorded end'],
];

class ReplayMemory extends ReplayPart {
  #head = h('div', { class: 'tools replay-memory-tools' });
  #content = h('div', { class: 'replay-content' });
  #turn = 0;
  #drawn = '';
  #origin = { row: 0, column: 0 };
  #of = '';

  build() {
    fill(this, this.#head, this.#content);
  }

  contentsMoved() {
    this.#drawn = '';
    this.draw();
  }

  draw() {
    const { buffer, place, status, error } = this.model;
    const choices = ['type', 'look', 'shape', 'at', 'with'].map((name) => chosen(`replay-${name}`, ''));
    const key = JSON.stringify([buffer && pointerOf(buffer), place, status, error?.message, choices]);
    if (key === this.#drawn) return;
    this.#drawn = key;
    if (!buffer || status !== 'ready') {
      fill(this.#head);
      fill(this.#content, error ? problemOf(error) : null);
      return;
    }
    const of = `${pointerOf(buffer)} ${choices[2]} ${choices[0]} ${choices[1]}`;
    if (of !== this.#of) this.#origin = { row: 0, column: 0 };
    this.#of = of;
    this.#tools(buffer);
    this.#look();
  }

  /** @param {import('./answers.d.ts').BufferEntry} buffer */
  #tools(buffer) {
    const hadFocus = /** @type {HTMLElement|null} */ (document.activeElement)?.dataset.focus;
    const isOwn = this.#head.contains(document.activeElement);
    const { isLive, side } = this.model;
    const looks = LOOKS.map(([name, title]) =>
      h(
        'button',
        {
          type: 'button',
          'aria-pressed': String(chosen('replay-look', 'values') === name),
          'data-focus': `look-${name}`,
          onclick: () => choose({ 'replay-look': name === 'values' ? '' : name }) ?? this.draw(),
        },
        title,
      ),
    );
    const shape = h('input', {
      type: 'text',
      size: '11',
      placeholder: shapeText(buffer.bytes - offsetOf(buffer), this.model.type),
      value: chosen('replay-shape', ''),
      'aria-label': 'Shape, such as 64x128',
      title: 'Shape, such as 64x128 or 8, 64, 128',
      'data-focus': 'shape',
    });
    shape.addEventListener('change', () => {
      const isShape = shape.value.trim() === '' || parseShape(shape.value) !== null;
      shape.setAttribute('aria-invalid', String(!isShape));
      if (!isShape) store.announce('A shape is a list of sizes, such as 64x128.');
      else {
        choose({ 'replay-shape': shape.value.trim() });
        this.draw();
      }
    });
    shape.addEventListener('keydown', (event) => event.stopPropagation());
    /** @type {[string, string][]} */
    const others = [['', 'nothing']];
    if (isLive && side === 'after') others.push(['before', 'before the call']);
    others.push(['begin', 'recorded start'], ['end', 'recorded end']);
    fill(
      this.#head,
      h('div', { class: 'switch', role: 'group', 'aria-label': 'How the buffer is shown' }, looks),
      this.#choice(
        'Type',
        'type',
        TYPES.map((type) => [type, type]),
        'f32',
      ),
      shape,
      this.#choice('Memory', 'at', MOMENTS, 'now'),
      this.#choice('Compared with', 'with', others, this.#other() ?? ''),
      h(
        'span',
        { class: 'faint' },
        `${buffer.variable || pointerOf(buffer)}, ` +
          `${byteText(buffer.bytes - offsetOf(buffer))} to the end of the buffer`,
      ),
    );
    if (isOwn && hadFocus)
      /** @type {HTMLElement|null} */ (this.#head.querySelector(`[data-focus="${hadFocus}"]`))?.focus();
  }

  /**
   * @param {string} title
   * @param {string} name
   * @param {[string, string][]} options
   * @param {string} otherwise
   */
  #choice(title, name, options, otherwise) {
    const current = chosen(`replay-${name}`, '') || otherwise;
    const select = h(
      'select',
      { 'data-focus': name },
      options.map(([value, text]) => h('option', { value, selected: value === current }, text)),
    );
    select.addEventListener('change', () => {
      choose({ [`replay-${name}`]: select.value === '' && name === 'with' ? 'nothing' : select.value });
      if (name === 'type') this.model.refresh();
      else this.draw();
    });
    return h('label', { class: 'replay-choice' }, `${title} `, select);
  }

  /** What the contents are compared with. @returns {Moment|null} */
  #other() {
    const { isLive, side } = this.model;
    const hasBefore = isLive && side === 'after';
    const choice = chosen('replay-with', hasBefore ? 'before' : '');
    if (choice === 'begin' || choice === 'end') return choice;
    return choice === 'before' && hasBefore ? 'before' : null;
  }

  async #look() {
    this.#turn += 1;
    const turn = this.#turn;
    const { buffer, type, error } = this.model;
    if (!buffer) return;
    if (error) {
      fill(this.#content, problemOf(error));
      return;
    }
    const at = MOMENTS.find(([name]) => name === chosen('replay-at', 'now'))?.[0] ?? 'now';
    const other = this.#other();
    const shape = parseShape(chosen('replay-shape', ''));
    // A shape says where a tensor ends: buffers of allocators contain many.
    const size = shape ? shape.reduce((product, one) => product * one, widthOf(type)) : Infinity;
    const rest = buffer.bytes - offsetOf(buffer);
    /** @type {View} */
    const view = {
      address: pointerOf(buffer),
      bytes: Math.min(rest, size),
      type,
      shape,
      at,
      other: other === at ? null : other,
      origin: this.#origin,
      moveTo: (origin) => {
        this.#origin = origin;
        this.#look();
      },
      showElement: (index) => {
        const { columns } = matrixOf(shape, Math.floor(rest / widthOf(type)));
        choose({ 'replay-look': '' });
        this.#of = `${pointerOf(buffer)} ${chosen('replay-shape', '')} ${chosen('replay-type', '')} `;
        this.#origin = { row: Math.floor(index / columns), column: index % columns };
        this.draw();
      },
    };
    const name = chosen('replay-look', 'values');
    const look = LOOKS.find(([known]) => known === name)?.[2] ?? values;
    this.#content.setAttribute('aria-busy', 'true');
    try {
      const content = await look(this.model, view);
      if (turn === this.#turn) this.#replace(content);
    } catch (problem) {
      if (turn === this.#turn) fill(this.#content, this.#unknown(problem));
    } finally {
      if (turn === this.#turn) this.#content.removeAttribute('aria-busy');
    }
  }

  /** Shows new content. A button that has the focus keeps it. @param {Child[]} content */
  #replace(content) {
    const focused = this.#content.contains(document.activeElement)
      ? /** @type {HTMLElement} */ (document.activeElement).dataset.focus
      : undefined;
    fill(this.#content, content);
    if (focused) /** @type {HTMLElement|null} */ (this.#content.querySelector(`[data-focus="${focused}"]`))?.focus();
  }

  /** Why contents cannot be shown, and where they can. @param {unknown} error */
  #unknown(error) {
    if (!(error instanceof ReplayError) || !error.readable) return failure(error, () => this.#look());
    const { calls } = this.model;
    const buttons = error.readable.flatMap(([first, last]) => {
      const ends = first === last ? [first] : [first, last];
      return ends.map((place) => {
        const [call, side] =
          place === 0
            ? [calls[0], /** @type {const} */ ('before')]
            : [calls[place - 1], /** @type {const} */ ('after')];
        return h(
          'button',
          { type: 'button', onclick: () => call && this.model.select(call.number, side) },
          `${side} #${call?.number}`,
        );
      });
    });
    return h(
      'div',
      { class: 'note', role: 'status' },
      h('p', {}, sentence(error.message)),
      buttons.length > 0 ? h('p', {}, 'The file has the contents at these calls: ', buttons) : null,
      h('p', {}, 'The recorded start and end of the window can be read at any call (Memory).'),
    );
  }
}

/** Lines of 16 elements. @param {number} bytes @param {NumberType} type */
function shapeText(bytes, type) {
  const { rows, columns } = matrixOf(null, Math.max(1, Math.floor(bytes / widthOf(typeOf(type)))));
  return `${rows}x${columns}`;
}

/** @param {Error} error */
function problemOf(error) {
  const hint = error instanceof ApiError ? error.hint : undefined;
  return h(
    'div',
    { class: 'problem', role: 'alert' },
    h('p', {}, sentence(error.message)),
    hint ? h('p', { class: 'faint' }, `Hint: ${hint}`) : null,
  );
}

customElements.define('ts-replay-memory', ReplayMemory);
