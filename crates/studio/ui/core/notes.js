// Notes about the open trace: those of the file next to it, and what this page has changed since. Changes that are not
// saved stay in the browser, so that a reload loses nothing.

import { getJson, isAbort, postJson } from './api.js';
import { store } from './store.js';

/** @typedef {import('./answers.d.ts').Note} Note */
/** @typedef {import('./answers.d.ts').Notes} Notes */
/** @typedef {import('./answers.d.ts').Layout} Layout */
/** @typedef {import('./store.js').Span} Span */

const DRAFT = 'tracesmith-notes:';
/** Of the name of an event in a file. */
const MOST_NAME_LETTERS = 5000;

/** What the server knows of the notes of the open trace. @type {Notes | null} */
let known = null;
/** Why the draft could not be kept, or the notes could not be read. */
let problem = '';
/** The note that is chosen. @type {Note | null} */
let chosen = null;
/** Whether the file has other times, because its trace has an earlier beginning now. */
let isMoved = false;
let loading = new AbortController();

/** What the panel shows about the file. */
export function notesFile() {
  return { known, problem, isChanged: isChanged() };
}

/** Whether the file is to be written. */
function isChanged() {
  return known !== null && (isMoved || !isSame(store.get().notes, known.document.notes));
}

/** The note that is chosen on the ruler or in the list. */
export function chosenNote() {
  return chosen;
}

/** Chooses a note, and shows the list. @param {Note | null} note */
export function chooseNote(note) {
  chosen = note;
  store.openTab('notes');
  document.dispatchEvent(new CustomEvent('notechosen'));
}

/** Loads the notes whenever another trace is opened. */
export function connectNotes() {
  /** @type {Layout | null} */
  let shown = null;
  store.subscribe(() => {
    const { layout } = store.get();
    const now = layout?.state === 'ready' ? layout : null;
    if (now === shown) return;
    const before = shown;
    shown = now;
    if (before && now && isSameFile(before, now)) {
      follow(before, now);
      return;
    }
    known = null;
    chosen = null;
    problem = '';
    isMoved = false;
    loading.abort();
    store.set({ notes: [] }, { history: 'none' });
    if (now) load();
  });
}

/**
 * An event that began earlier was recorded: times count from there now, and notes move with what they are about.
 * @param {Layout} before @param {Layout} now
 */
function follow(before, now) {
  const shift = Number(BigInt(before.origin_ns) - BigInt(now.origin_ns));
  if (shift === 0) return;
  localStorage.removeItem(draftName(before));
  const moved = (/** @type {Note} */ note) => ({ ...note, from_ns: note.from_ns + shift, to_ns: note.to_ns + shift });
  if (known) {
    const { document } = known;
    known = { ...known, document: { ...document, origin_ns: now.origin_ns, notes: document.notes.map(moved) } };
  }
  isMoved = known !== null && known.document.notes.length > 0;
  chosen = null;
  put(store.get().notes.map(moved));
}

/** Gets the notes of the file. A draft that this browser kept is not lost. */
async function load() {
  loading = new AbortController();
  const { signal } = loading;
  try {
    /** @type {Notes} */
    const answer = await getJson(`t/${store.get().trace}/notes`, {}, { signal });
    known = answer;
    problem = answer.problem ?? '';
    const draft = readDraft();
    const saved = answer.document.notes;
    // What somebody else saved meanwhile is added to the draft.
    if (draft === null) put(saved);
    else put(draft.stamp === answer.stamp ? draft.notes : joined(saved, draft.notes));
  } catch (error) {
    if (isAbort(error) || !(error instanceof Error)) return;
    problem = error.message;
    changed();
  }
}

/**
 * Adds a note about what is selected, or about a moment. Returns it.
 * @param {number} time for a note about a moment
 */
export function addNote(time) {
  const { selection, area, shapes } = store.get();
  let note = noteAt({ from: time, to: time });
  if (area) note = { ...noteAt(area), ...placeOf(area.rows) };
  if (selection) {
    note = noteAt(store.shown(selection));
    // A note about an event of a second trace is about a time of the open one.
    const event = shapes.name(selection.shape).slice(0, MOST_NAME_LETTERS);
    if (isOfOpenTrace(selection.row)) note = { ...note, ...placeOf([selection.row]), event };
  }
  put([...store.get().notes, note]);
  return note;
}

/** Changes the text of a note. Returns the new one. @param {Note} note @param {string} text */
export function changeNote(note, text) {
  const next = { ...note, text };
  if (chosen === note) chosen = next;
  put(store.get().notes.map((one) => (one === note ? next : one)));
  return next;
}

/** @param {Note} note */
export function removeNote(note) {
  if (chosen === note) chosen = null;
  put(store.get().notes.filter((one) => one !== note));
}

/** Takes the notes of the file again. */
export function discardNotes() {
  if (known) put(known.document.notes);
}

/** Writes the notes next to the trace. Fails with a sentence. */
export async function saveNotes() {
  if (!known) return;
  const { trace, notes } = store.get();
  /** @type {Notes} */
  const saved = await postJson(`t/${trace}/notes`, { base: known.stamp, notes });
  if (store.get().trace !== trace) return;
  known = saved;
  isMoved = false;
  put(store.get().notes);
}

/** The file as the server would write it, for a download. */
export function notesText() {
  if (!known) return '';
  return `${JSON.stringify({ ...known.document, notes: store.get().notes }, null, 2)}\n`;
}

/** The row of a note; null if it has none, or if the trace has no such row. @param {Note} note */
export function rowOfNote({ track, lane }) {
  if (track === undefined) return null;
  const found = store.get().layout?.tracks.find(({ key }) => key === track);
  return found && (lane ?? 0) < found.rows ? found.first_row + (lane ?? 0) : null;
}

/** An empty note about a time. A second trace can go beyond the open one. @param {Span} span @returns {Note} */
function noteAt({ from, to }) {
  const [from_ns, to_ns] = [from, to].map((time) => Math.round(Math.min(Math.max(time, 0), store.span())));
  return { from_ns, to_ns, text: '' };
}

/** @param {number} row */
function isOfOpenTrace(row) {
  return store.layerOf(row).key === 'a';
}

/** The place of the first of these rows that the open trace has. @param {number[]} rows @returns {Partial<Note>} */
function placeOf(rows) {
  const row = rows.find(isOfOpenTrace) ?? -1;
  const track = store.get().layout?.tracks.find(({ first_row, rows }) => row >= first_row && row < first_row + rows);
  return track ? { track: track.key, lane: row - track.first_row } : {};
}

/** @param {Note[]} notes */
function put(notes) {
  const sorted = notes.toSorted((a, b) => a.from_ns - b.from_ns || a.to_ns - b.to_ns);
  store.set({ notes: sorted }, { history: 'none' });
  keepDraft();
  changed();
}

function changed() {
  document.dispatchEvent(new CustomEvent('noteschange'));
}

/** Keeps what is not saved. */
function keepDraft() {
  if (!known) return;
  const { notes } = store.get();
  try {
    if (!isChanged()) localStorage.removeItem(draftName());
    else localStorage.setItem(draftName(), JSON.stringify({ stamp: known.stamp, notes }));
  } catch {
    problem = 'The browser has no room for these notes: download them before you close the page.';
  }
}

/** @returns {{stamp: string | null, notes: Note[]} | null} */
function readDraft() {
  try {
    const draft = JSON.parse(localStorage.getItem(draftName()) ?? 'null');
    return draft && Array.isArray(draft.notes) ? draft : null;
  } catch {
    return null;
  }
}

/** Whether a file was opened once for both, and has grown at most. @param {Layout} one @param {Layout} other */
function isSameFile(one, other) {
  const stamp = (/** @type {Layout} */ { generation }) => generation.slice(0, generation.lastIndexOf('-'));
  return one.path === other.path && stamp(one) === stamp(other);
}

/** A draft belongs to a recording, wherever the file lies. */
function draftName(layout = store.get().layout) {
  return `${DRAFT}${layout?.name}:${layout?.origin_ns}`;
}

/** Notes of both lists, each once. @param {Note[]} some @param {Note[]} others */
function joined(some, others) {
  const texts = new Set(some.map(textOf));
  return [...some, ...others.filter((note) => !texts.has(textOf(note)))];
}

/** @param {Note[]} some @param {Note[]} others */
function isSame(some, others) {
  return some.length === others.length && some.every((note, place) => textOf(note) === textOf(others[place]));
}

/** The same text for the same note, whoever made it. @param {Note} note */
function textOf({ from_ns, to_ns, track, lane, event, text }) {
  return JSON.stringify([from_ns, to_ns, track, lane, event, text]);
}
