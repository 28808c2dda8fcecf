// A stack with Python and C++ frames. A frame with a file opens its source, with the line marked.

import { ApiError, getJson } from '../core/api.js';
import { h } from '../core/dom.js';
import { store } from '../core/store.js';
import { failure, note } from './panel.js';
import { shortName } from './words.js';

/** @typedef {import('../core/answers.d.ts').Frame} Frame */

/** Frames shown at first; more are behind a button. */
const SHOWN = 14;
/** So many native frames in a row become one line, in stacks that also have Python frames. */
const FOLDED_FROM = 3;

/** @param {import('../core/answers.d.ts').Stack} stack */
export function stackOf(stack) {
  const lines = folded(stack.frames);
  const list = h('ol', { class: 'stack' }, lines.slice(0, SHOWN));
  const hidden = lines.slice(SHOWN);
  const more = h('button', { type: 'button', class: 'link', hidden: hidden.length === 0 }, 'More frames');
  more.addEventListener('click', () => {
    list.append(...hidden);
    more.remove();
  });
  const isWhole = !stack.end || stack.end === 'root';
  return h('div', {}, list, more, isWhole ? null : h('p', { class: 'faint' }, `The stack ends here: ${stack.end}.`));
}

/** The lines of a stack, with long runs of native frames behind one line. @param {Frame[]} frames */
function folded(frames) {
  const hasPython = frames.some(isPython);
  const lines = [];
  for (let i = 0; i < frames.length; i += 1) {
    const first = i;
    while (hasPython && i + 1 < frames.length && !isPython(frames[first]) && !isPython(frames[i + 1])) i += 1;
    const run = frames.slice(first, i + 1);
    if (run.length < FOLDED_FROM) lines.push(...run.map(frameLine));
    else lines.push(foldedLine(run));
  }
  return lines;
}

/** @param {Frame[]} run */
function foldedLine(run) {
  const words = `${run.length} C++ frames, innermost ${shortName(run[0].function)}`;
  return h('li', {}, h('details', {}, h('summary', {}, words), h('ol', { class: 'stack' }, run.map(frameLine))));
}

/** @param {Frame} frame */
function isPython({ kind }) {
  return kind.startsWith('python');
}

/** One frame; its file opens the source. @param {Frame} frame */
export function frameLine(frame) {
  const python = isPython(frame);
  const name = h(
    'span',
    { class: 'function', title: frame.function },
    python ? frame.function : shortName(frame.function),
  );
  const kind = h(
    'span',
    { class: `frame-kind ${python ? 'python' : 'native'}` },
    python ? 'py' : frame.kind === 'native' ? 'C++' : frame.kind,
  );
  if (!frame.file)
    return h('li', {}, kind, name, frame.image ? h('span', { class: 'faint' }, ` in ${base(frame.image)}`) : null);
  const place = `${base(frame.file)}${frame.line ? `:${frame.line}` : ''}`;
  const source = h('details', {}, h('summary', { title: frame.file }, place));
  if (frame.line) source.addEventListener('toggle', () => openSource(source, frame), { once: true });
  return h('li', {}, kind, name, source);
}

/** @param {HTMLElement} place @param {Frame} frame */
async function openSource(place, frame) {
  try {
    const { trace } = store.layerOf(store.get().selection?.row ?? 0);
    /** @type {import('../core/answers.d.ts').Source} */
    const source = await getJson(`t/${trace}/source`, { file: frame.file, line: frame.line });
    place.append(sourceText(source));
  } catch (error) {
    const isMissing = error instanceof ApiError && error.status === 404;
    place.append(
      isMissing
        ? note(`The source is not on this machine: ${frame.file}.`)
        : failure(error, () => openSource(place, frame)),
    );
  }
}

/** @param {import('../core/answers.d.ts').Source} source */
function sourceText({ file, first, lines, line }) {
  const width = String(first + lines.length).length;
  const texts = lines.map((text, i) => {
    const number = first + i;
    const isHere = number === line;
    return h(
      'span',
      { class: isHere ? 'line here' : 'line', 'aria-current': isHere ? 'true' : null },
      `${String(number).padStart(width)}  ${text}\n`,
    );
  });
  return h('pre', { class: 'source', tabindex: '0', 'aria-label': `${file}, line ${line}` }, texts);
}

/** @param {string} path */
function base(path) {
  return path.split('/').at(-1) ?? path;
}
