// A stack with Python and C++ frames. A frame with a file opens its source, with the line marked.

import { ApiError, getJson } from '../core/api.js';
import { h } from '../core/dom.js';
import { store } from '../core/store.js';
import { failure, note } from './panel.js';
import { shortName } from './words.js';

/** @typedef {import('../core/answers.d.ts').Frame} Frame */

/** Frames shown at first; more are behind a button. */
const SHOWN = 14;

/** @param {import('../core/answers.d.ts').Stack} stack */
export function stackOf(stack) {
  const list = h('ol', { class: 'stack' }, stack.frames.slice(0, SHOWN).map(frameLine));
  const hidden = stack.frames.slice(SHOWN);
  const more = h(
    'button',
    { type: 'button', class: 'link', hidden: hidden.length === 0 },
    `${hidden.length} more frames`,
  );
  more.addEventListener('click', () => {
    list.append(...hidden.map(frameLine));
    more.remove();
  });
  const end =
    stack.end && !/^(root|complete)$/.test(stack.end)
      ? h('p', { class: 'faint' }, `The stack ends here: ${stack.end}.`)
      : null;
  return h('div', {}, list, more, end);
}

/** @param {Frame} frame */
function frameLine(frame) {
  const isPython = frame.kind.startsWith('python');
  const name = h(
    'span',
    { class: 'function', title: frame.function },
    isPython ? frame.function : shortName(frame.function),
  );
  const kind = h(
    'span',
    { class: `frame-kind ${isPython ? 'python' : 'native'}` },
    isPython ? 'py' : frame.kind === 'native' ? 'C++' : frame.kind,
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
    /** @type {import('../core/answers.d.ts').Source} */
    const source = await getJson(`t/${store.get().trace}/source`, { file: frame.file, line: frame.line });
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
