// The notes of the trace: a list to read and write, and what keeps them.

import { h } from '../core/dom.js';
import {
  addNote,
  changeNote,
  chosenNote,
  chooseNote,
  discardNotes,
  notesFile,
  notesText,
  removeNote,
  rowOfNote,
  saveNotes,
} from '../core/notes.js';
import { store } from '../core/store.js';
import { duration, moment } from '../core/units.js';
import { trackOf } from './locate.js';
import { Panel, failure, note as remark, problem as problemBox } from './panel.js';
import { shortName } from './words.js';

/** @typedef {import('../core/answers.d.ts').Note} Note */

const MOST_LETTERS = 10_000;

class NotesPanel extends Panel {
  /** @type {(keyof import('../core/store.js').State)[]} */
  watched = ['trace', 'layout'];
  /** @type {HTMLElement} */
  #state = h('div', { class: 'tools' });
  #list = h('ol', { class: 'notes' });
  /** The notes that are listed, in order. @type {Note[]} */
  #listed = [];

  connectedCallback() {
    super.connectedCallback();
    document.addEventListener('noteschange', this.#changed);
    document.addEventListener('notechosen', this.#chosen);
  }

  disconnectedCallback() {
    super.disconnectedCallback();
    document.removeEventListener('noteschange', this.#changed);
    document.removeEventListener('notechosen', this.#chosen);
  }

  async load() {
    this.#listed = [];
    this.#changed();
    // The list is a part of the page after this.
    setTimeout(this.#chosen);
    return [this.#state, this.#list];
  }

  #changed = () => {
    const { notes } = store.get();
    this.#showState();
    // A note that is being written keeps its field.
    const isSame = notes.length === this.#listed.length && this.#list.contains(document.activeElement);
    this.#listed = notes;
    if (isSame && this.#list.childElementCount === notes.length) return;
    const lines = notes.map((note, place) => this.#line(note, place));
    const none = h(
      'li',
      { class: 'faint' },
      'No notes yet. Select an event, an area or a time and press T to write one.',
    );
    this.#list.replaceChildren(...(lines.length > 0 ? lines : [none]));
  };

  /** The field of the chosen note gets the focus. */
  #chosen = () => {
    const note = chosenNote();
    const line = note && this.#list.children[store.get().notes.indexOf(note)];
    if (!line || !this.isShown) return;
    line.scrollIntoView({ block: 'nearest' });
    line.querySelector('textarea')?.focus();
  };

  /** The line above the list: what there is, where it is kept, and what can be done. */
  #showState() {
    const { known, problem, isChanged } = notesFile();
    const { notes, session, window } = store.get();
    const add = h(
      'button',
      { type: 'button', title: 'Write a note (T)', onclick: () => chooseNote(addNote((window.from + window.to) / 2)) },
      'Add note',
    );
    const result = h('span', { role: 'status', class: 'faint' }, words(isChanged, known?.stamp !== null));
    const save = async () => {
      result.replaceChildren('Saving…');
      try {
        await saveNotes();
        store.announce('The notes were saved.');
      } catch (error) {
        result.replaceChildren(failure(error, save));
      }
    };
    const saveButton = h('button', { type: 'button', class: 'primary', disabled: !isChanged, onclick: save }, 'Save');
    const parts = [
      add,
      known?.can_save ? saveButton : null,
      h('button', { type: 'button', disabled: notes.length === 0, onclick: download }, 'Download'),
      isChanged && known?.stamp ? h('button', { type: 'button', onclick: discardNotes }, 'Discard changes') : null,
      result,
    ];
    const lines = [];
    if (problem) lines.push(problemBox(problem));
    if (known && !known.fits) lines.push(remark('These notes were written about another recording of this name.'));
    if (known?.path && !known.can_save && !problem && !session?.control)
      lines.push(
        h(
          'p',
          { class: 'faint wide-line' },
          'Notes that are not saved stay in this browser. ',
          'To share them, put the download next to the trace as ',
          h('code', {}, fileName(known.path)),
          ', or start Studio with ',
          h('code', {}, '--control'),
          ' to save them from here.',
        ),
      );
    this.#state.replaceChildren(...parts.filter((part) => part !== null), ...lines);
  }

  /** @param {Note} note @param {number} place */
  #line(note, place) {
    const current = () => store.get().notes[place] ?? note;
    const field = h('textarea', {
      rows: Math.min(6, Math.max(1, note.text.split('\n').length)),
      maxlength: MOST_LETTERS,
      placeholder: 'Write a note',
      'aria-label': `Note at ${moment(note.from_ns, 1000)}`,
      value: note.text,
      oninput: () => changeNote(current(), field.value),
    });
    field.addEventListener('blur', () => {
      // A note without a word was not meant to be one.
      if (current().text.trim() === '') removeNote(current());
    });
    field.addEventListener('keydown', (event) => {
      if (event.key !== 'Escape') return;
      event.stopPropagation();
      field.blur();
    });
    return h(
      'li',
      {},
      h(
        'button',
        { type: 'button', class: 'link when', title: 'Show on the timeline', onclick: () => show(current()) },
        moment(note.from_ns, 1000),
      ),
      h('span', { class: 'about', title: note.event ?? '' }, about(note)),
      field,
      h(
        'button',
        { type: 'button', class: 'quiet', 'aria-label': 'Delete this note', onclick: () => removeNote(current()) },
        'Delete',
      ),
    );
  }
}

/** @param {boolean} isChanged @param {boolean} hasFile */
function words(isChanged, hasFile) {
  if (isChanged) return 'Not saved';
  return hasFile ? 'Saved next to the trace' : '';
}

/** What a note is about. @param {Note} note */
function about(note) {
  const row = rowOfNote(note);
  const length = note.to_ns > note.from_ns ? duration(note.to_ns - note.from_ns) : '';
  const label = row === null ? '' : (trackOf(row)?.label ?? '');
  const subject = note.event ? shortName(note.event) : label;
  return [subject, length].filter(Boolean).join(', ') || 'moment';
}

/** Shows what a note is about. @param {Note} note */
function show(note) {
  const row = rowOfNote(note);
  const span = { from: note.from_ns, to: note.to_ns };
  if (span.to > span.from) store.zoomTo(span, { margin: 1 });
  else {
    const half = Math.min(store.span() / 200, (store.get().window.to - store.get().window.from) / 2);
    store.zoomTo({ from: span.from - half, to: span.from + half }, { margin: 0 });
  }
  if (row !== null) store.set({ reveal: { row, serial: (store.get().reveal?.serial ?? 0) + 1 } });
}

function download() {
  const { known } = notesFile();
  const url = URL.createObjectURL(new Blob([notesText()], { type: 'application/json' }));
  const link = h('a', { href: url, download: fileName(known?.path ?? `${store.get().layout?.name}.notes.json`) });
  link.click();
  setTimeout(() => URL.revokeObjectURL(url), 1000);
}

/** @param {string} path */
function fileName(path) {
  return path.slice(path.lastIndexOf('/') + 1);
}

customElements.define('ts-notes', NotesPanel);
