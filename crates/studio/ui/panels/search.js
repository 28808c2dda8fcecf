// The box in the head of the page: it finds events by name, stack or marker, and takes commands after a colon.

import { ApiError, getJson, isAbort } from '../core/api.js';
import { fill, h } from '../core/dom.js';
import { store } from '../core/store.js';
import { count, duration, moment } from '../core/units.js';
import { act } from './actions.js';
import { CommandError, completions } from './grammar.js';
import { trackOf } from './locate.js';
import { matcher } from './pattern.js';
import { sentence } from './panel.js';
import { counted } from './words.js';

/** @typedef {import('../core/answers.d.ts').SearchResults} SearchResults */
/** @typedef {SearchResults['results'][number]} Found */
/** @typedef {{element: HTMLElement, choose: () => void}} Option */

const PLACES = /** @type {const} */ (['names', 'stacks', 'markers']);
const LIMIT = 500;
const TYPED_MS = 200;
/** Events of one name that are listed. */
const OF_A_NAME = 4;
const HISTORY = 30;

class Search extends HTMLElement {
  #input = h('input', {
    type: 'text',
    role: 'combobox',
    'aria-expanded': 'false',
    'aria-controls': 'search-list',
    'aria-autocomplete': 'list',
    'aria-label': 'Search or command',
    placeholder: 'Search names, stacks and markers ( / ) or write a command ( : )',
    autocomplete: 'off',
    spellcheck: 'false',
  });
  #list = h('div', { id: 'search-list', role: 'listbox', 'aria-label': 'Results', class: 'search-list' });
  #words = h('p', { class: 'search-words', role: 'status' });
  #places = new Set(PLACES);
  #box = h('div', { class: 'search-box', hidden: true });
  #request = new AbortController();
  #timer = 0;
  /** @type {Option[]} */ #options = [];
  #at = -1;
  /** @type {Found[]} */ #found = [];
  #foundAt = -1;
  #foundFor = '';
  /** @type {string[]} */ #commands = [];

  connectedCallback() {
    const places = PLACES.map((place) => {
      const onchange = (/** @type {Event} */ event) => {
        if (/** @type {HTMLInputElement} */ (event.target).checked) this.#places.add(place);
        else this.#places.delete(place);
        this.#typed(0);
      };
      return h('label', {}, h('input', { type: 'checkbox', checked: true, onchange }), ` ${place}`);
    });
    const close = h(
      'button',
      { type: 'button', class: 'quiet', 'aria-label': 'Close the search', onclick: () => this.#close() },
      '×',
    );
    fill(
      this.#box,
      h('div', { class: 'search-head' }, h('span', { class: 'group' }, places), this.#words, close),
      this.#list,
    );
    fill(this, this.#input, this.#box);
    this.#input.addEventListener('input', () => this.#typed(TYPED_MS));
    this.#input.addEventListener('keydown', (event) => this.#key(event));
    this.#input.addEventListener('focus', () => this.#input.value && this.#typed(0));
    document.addEventListener(
      'pointerdown',
      (event) => !this.contains(/** @type {globalThis.Node} */ (event.target)) && this.#close(),
    );
  }

  /** Puts the cursor into the box, for a search or a command. @param {string} [sign] `/` or `:` */
  open(sign = '/') {
    if (sign === ':') this.#input.value = ':';
    else if (this.#input.value.startsWith(':')) this.#input.value = '';
    this.#input.focus();
    if (sign === ':') this.#typed(0);
    else this.#input.select();
  }

  /** @param {number} after */
  #typed(after) {
    clearTimeout(this.#timer);
    this.#request.abort();
    const text = this.#input.value;
    if (text === '') {
      this.#close();
      return;
    }
    this.#box.hidden = false;
    this.#box.classList.toggle('commands', text.startsWith(':'));
    this.#input.setAttribute('aria-expanded', 'true');
    if (text.startsWith(':')) this.#complete(text);
    else this.#timer = window.setTimeout(() => this.#search(text), after);
  }

  /** @param {string} text */
  #complete(text) {
    this.#words.textContent = 'Enter runs the command, Tab completes it.';
    this.#show([
      {
        title: '',
        options: completions(text).map(({ line, words, meaning }) =>
          this.#option([h('code', {}, words), h('span', { class: 'faint' }, ` ${meaning}`)], () => this.#take(line)),
        ),
      },
    ]);
  }

  /** @param {string} line */
  #take(line) {
    this.#input.value = line;
    this.#input.focus();
    this.#typed(0);
  }

  /** @param {string} text */
  async #search(text) {
    const wrong = matcher(text).error;
    if (wrong || this.#places.size === 0) {
      this.#tell(wrong ?? 'Choose where to search: names, stacks or markers.');
      return;
    }
    const { trace } = store.get();
    const request = new AbortController();
    this.#request = request;
    this.#words.textContent = 'Searching…';
    try {
      /** @type {SearchResults} */
      const answer = await getJson(
        `t/${trace}/search`,
        { q: text, in: [...this.#places].join(','), limit: LIMIT },
        { signal: request.signal },
      );
      if (request.signal.aborted) return;
      this.#found = [...answer.results].sort((a, b) => a.start - b.start || a.row - b.row);
      this.#foundAt = -1;
      this.#foundFor = text;
      this.#results(answer);
    } catch (error) {
      if (!isAbort(error)) this.#tell(wordsOf(error));
    }
  }

  /** @param {SearchResults} answer */
  #results(answer) {
    const more = answer.truncated ? `, the first ${count(answer.results.length)} are listed` : '';
    this.#words.textContent =
      answer.total === 0
        ? 'Nothing was found.'
        : `${counted(answer.total, 'event')}${more}. Enter goes to the next one.`;
    /** @type {Map<string, Found[]>} */
    const groups = new Map();
    for (const found of this.#found) groups.set(found.name, [...(groups.get(found.name) ?? []), found]);
    this.#show(
      [...groups].map(([name, events]) => {
        const totals = answer.shapes.find(({ shape }) => shape === events[0].shape);
        const sum = `${count(totals?.count ?? events.length)}${totals ? `, ${duration(totals.total_ns)}` : ''}`;
        const shown = events
          .slice(0, OF_A_NAME)
          .map((found) => this.#option(line(found), () => this.#goTo(this.#found.indexOf(found))));
        const hidden = events.length - OF_A_NAME;
        return { title: name, sum, options: shown, more: hidden > 0 ? `and ${count(hidden)} more in the list` : '' };
      }),
    );
  }

  /** @param {(import('../core/dom.js').Child)[]} content @param {() => void} choose @returns {Option} */
  #option(content, choose) {
    const element = h('div', { role: 'option', 'aria-selected': 'false', class: 'option' }, content);
    element.addEventListener('click', choose);
    return { element, choose };
  }

  /** @param {{title: string, sum?: string, options: Option[], more?: string}[]} groups */
  #show(groups) {
    this.#options = groups.flatMap((group) => group.options);
    this.#options.forEach(({ element }, i) => (element.id = `search-option-${i}`));
    this.#mark(-1);
    fill(
      this.#list,
      groups.map(({ title, sum, options, more }) => {
        const lines = options.map(({ element }) => element);
        if (!title) return lines;
        return h(
          'div',
          { role: 'group', 'aria-label': sum ? `${title} · ${sum}` : title },
          h(
            'div',
            { class: 'group-title', role: 'presentation', title },
            h('span', { class: 'group-name' }, title),
            sum ? h('span', { class: 'faint' }, sum) : null,
          ),
          lines,
          more ? h('div', { class: 'faint more', role: 'presentation' }, more) : null,
        );
      }),
    );
    this.#list.hidden = this.#options.length === 0;
  }

  /** @param {number} at */
  #mark(at) {
    this.#options[this.#at]?.element.setAttribute('aria-selected', 'false');
    this.#at = at;
    const option = this.#options[at];
    if (option) this.#list.hidden = false;
    option?.element.setAttribute('aria-selected', 'true');
    option?.element.scrollIntoView({ block: 'nearest' });
    if (option) this.#input.setAttribute('aria-activedescendant', option.element.id);
    else this.#input.removeAttribute('aria-activedescendant');
  }

  /** @param {KeyboardEvent} event */
  #key(event) {
    event.stopPropagation();
    const text = this.#input.value;
    const isCommand = text.startsWith(':');
    if (event.key === 'Escape') {
      if (isCommand) this.#input.value = '';
      this.#close();
      this.#input.blur();
    } else if (event.key === 'ArrowDown' || event.key === 'ArrowUp') {
      const step = event.key === 'ArrowDown' ? 1 : -1;
      if (this.#options.length > 0) this.#mark((this.#at + step + this.#options.length) % this.#options.length);
    } else if (event.key === 'Tab' && isCommand && this.#options.length > 0) {
      this.#options[Math.max(0, this.#at)].choose();
    } else if (event.key === 'Enter') {
      if (this.#at >= 0) this.#options[this.#at].choose();
      else if (isCommand) this.#run(text);
      else this.#next(event.shiftKey ? -1 : 1);
    } else return;
    event.preventDefault();
  }

  /** @param {number} step */
  async #next(step) {
    if (this.#foundFor !== this.#input.value) {
      clearTimeout(this.#timer);
      await this.#search(this.#input.value);
    }
    const { length } = this.#found;
    if (length === 0) return;
    this.#goTo(this.#foundAt < 0 && step < 0 ? length - 1 : (this.#foundAt + step + length) % length);
    // The list would cover the event.
    this.#list.hidden = true;
    this.#words.append(' (↓ list)');
  }

  /** Selects a result, and marks all events of its name. @param {number} at */
  #goTo(at) {
    const found = this.#found[at];
    this.#foundAt = at;
    store.select(
      { row: found.row, start: found.start, duration: found.duration, shape: found.shape },
      { reveal: true },
    );
    highlight({ shape: found.shape });
    this.#words.textContent = `${count(at + 1)} of ${count(this.#found.length)}, at ${moment(found.start, 1000)}`;
  }

  /** @param {string} text */
  async #run(text) {
    try {
      await act(text, (pattern) => this.#take(pattern));
      this.#commands = [text, ...this.#commands.filter((one) => one !== text)].slice(0, HISTORY);
      if (this.#input.value === text) {
        this.#input.value = '';
        this.#close();
        this.#input.blur();
      }
    } catch (error) {
      this.#tell(wordsOf(error));
    }
  }

  /** Shows a sentence instead of results. @param {string} text */
  #tell(text) {
    this.#show([]);
    this.#words.textContent = text;
  }

  #close() {
    clearTimeout(this.#timer);
    this.#request.abort();
    this.#box.hidden = true;
    this.#input.setAttribute('aria-expanded', 'false');
    this.#mark(-1);
    highlight(null);
  }
}

/** @param {{shape: number}|null} choice */
function highlight(choice) {
  const timeline = /** @type {HTMLElement & {setHighlight?: (choice: {shape: number}|null) => void}|null} */ (
    document.querySelector('ts-timeline')
  );
  timeline?.setHighlight?.(choice);
}

/** The GPU of a row, in a trace of several. @param {import('../core/answers.d.ts').Track|null} track */
function ofDevice(track) {
  const devices = (store.get().layout?.groups ?? []).filter(({ kind }) => kind === 'device');
  const device = devices.length > 1 ? devices.find(({ id }) => id === track?.group) : null;
  return device ? ` · ${device.label}` : '';
}

/** @param {Found} found */
function line(found) {
  const track = trackOf(found.row);
  const where = found.where && found.where !== 'name' && found.where !== 'names' ? ` in ${found.where}` : '';
  return [
    h('span', { class: 'time' }, moment(found.start, 1000)),
    h('span', { class: 'time' }, duration(found.duration)),
    h('span', { class: 'faint' }, `${track?.label ?? ''}${ofDevice(track)}${where}`),
  ];
}

/** @param {unknown} error */
function wordsOf(error) {
  if (error instanceof CommandError) return error.message;
  if (error instanceof ApiError)
    return `${sentence(error.message)}${error.hint ? ` Hint: ${sentence(error.hint)}` : ''}`;
  console.error(error);
  return sentence(error instanceof Error ? error.message : String(error));
}

customElements.define('ts-search', Search);
