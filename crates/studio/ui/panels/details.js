// The selected event: its facts, the call that launched it, its stack and source, its dependencies, and its other runs.
// An idle gap and a selected area have panels of their own here.

import { h } from '../core/dom.js';
import { store } from '../core/store.js';
import { duration, moment } from '../core/units.js';
import { areaDetails } from './area.js';
import { connectArrows } from './arrows.js';
import { eventButton, eventOf } from './event.js';
import { factsOf } from './facts.js';
import { gapDetails } from './gap.js';
import { isGhostRow, movedOf } from './ghost.js';
import { otherRun, trackOf } from './locate.js';
import { movedFacts } from './moved.js';
import { overview } from './overview.js';
import { Panel, note, section } from './panel.js';
import { runsOf } from './runs.js';
import { stackOf } from './stack.js';
import { shortName, whyWords } from './words.js';

/** @typedef {import('../core/answers.d.ts').EventDetail} EventDetail */
/** @typedef {import('../core/answers.d.ts').NamedSlice} NamedSlice */

/** Operations of a call, or waits, that are listed. */
const LISTED = 12;

class Details extends Panel {
  /** @type {(keyof import('../core/store.js').State)[]} */
  watched = ['trace', 'layout', 'layers', 'selection', 'area'];

  question() {
    const { selection, area } = store.get();
    const base = super.question();
    const layers = store.get().layers.map(({ trace, layout }) => [trace, layout?.generation]);
    return base && `${base} ${JSON.stringify([area ?? selection, layers])}`;
  }

  /** @param {AbortSignal} signal */
  async load(signal) {
    const { selection, area } = store.get();
    if (area) return areaDetails(area, signal);
    if (!selection) return overview(signal);
    const moved = await movedOf(selection, signal);
    const isGhost = isGhostRow(selection.row);
    if (isGhost && !moved) return [note('This event cannot be found in the measured timeline.')];
    const event = await eventOf(isGhost && moved ? moved.measured : selection, signal);
    if (trackOf(selection.row)?.kind === 'idle') return gapDetails(event, signal);
    return [
      head(event),
      h(
        'div',
        { class: 'details-columns' },
        moved ? section(isGhost ? 'Predicted, selected' : 'Predicted', movedFacts(moved, isGhost)) : null,
        section('Facts', ...factsOf(event, trackOf(event.row)?.label)),
        origins(event),
        ...stacks(event),
        waits('Waited for', event.waited_for),
        waits('Waited for this', event.waited_by),
        event.runs && event.runs.count > 1
          ? section('Runs of the same name', runsOf(event.runs, event.duration))
          : null,
      ),
    ];
  }
}

/** @param {EventDetail} event */
function head(event) {
  const { selection } = store.get();
  const name = h('h2', { class: 'name', title: event.name }, event.short_name || shortName(event.name));
  const whole = event.name !== event.short_name ? fullName(event.name, name) : null;
  const go = async (/** @type {'next'|'previous'} */ direction) => {
    const { shape, row, start } = selection ?? { shape: -1, row: 0, start: 0 };
    const next = await otherRun(shape, row, start, direction);
    if (next) store.select(next, { reveal: true });
    else store.announce(`There is no ${direction} run of this.`);
  };
  return h(
    'div',
    { class: 'details-head' },
    name,
    whole,
    h('span', { class: 'figure' }, h('b', {}, duration(event.duration)), ` at ${moment(event.start, 1)}`),
    h(
      'span',
      { class: 'group' },
      h(
        'button',
        {
          type: 'button',
          'data-focus': 'previous',
          title: 'Previous run of the same name (P)',
          onclick: () => go('previous'),
        },
        '‹ Previous',
      ),
      h(
        'button',
        { type: 'button', 'data-focus': 'next', title: 'Next run of the same name (N)', onclick: () => go('next') },
        'Next ›',
      ),
      h(
        'button',
        {
          type: 'button',
          title: 'Zoom to this event (F)',
          onclick: () => store.zoomToSlice(event),
        },
        'Zoom',
      ),
    ),
  );
}

/** A switch between the short and the full name. @param {string} full @param {HTMLElement} place */
function fullName(full, place) {
  const short = place.textContent ?? '';
  const button = h('button', { type: 'button', class: 'quiet', 'aria-pressed': 'false' }, 'Full name');
  button.addEventListener('click', () => {
    const isFull = button.getAttribute('aria-pressed') === 'true';
    button.setAttribute('aria-pressed', String(!isFull));
    place.textContent = isFull ? short : full;
    place.classList.toggle('whole', !isFull);
  });
  return button;
}

/** The call that launched it, or what it launched. @param {EventDetail} event */
function origins(event) {
  const parts = [];
  if (event.launch) {
    const delay = event.start - (event.launch.start + event.launch.duration);
    const words =
      delay >= 0
        ? `It started ${duration(delay)} after the call returned.`
        : `It started ${duration(event.start - event.launch.start)} after the call began.`;
    parts.push(
      h('p', {}, eventButton(event.launch), h('span', { class: 'faint' }, ` on ${event.launch.thread}`)),
      h('p', { class: 'faint' }, words),
    );
  }
  if (event.forward) parts.push(h('p', {}, `Backward of ${event.forward.name}.`));
  const operations = event.ops.length > 0 ? section('Launched', list(event.ops)) : null;
  return [parts.length > 0 ? section('Launched by', ...parts) : null, operations];
}

/** @param {EventDetail} event */
function stacks(event) {
  const parts = [];
  if (event.stack?.frames.length) parts.push(section('Stack', stackOf(event.stack)));
  if (event.launch_stack?.frames.length) parts.push(section('Stack of the graph launch', stackOf(event.launch_stack)));
  if (event.forward?.stack?.frames.length)
    parts.push(section('Stack of the forward operator', stackOf(event.forward.stack)));
  return parts;
}

/** @param {string} title @param {(NamedSlice & {why: string})[]} events */
function waits(title, events) {
  if (events.length === 0) return null;
  return section(
    title,
    list(events),
    h(
      'p',
      {},
      h(
        'button',
        { type: 'button', class: 'link', onclick: () => store.openTab('dependencies') },
        'Follow the dependencies',
      ),
    ),
  );
}

/** @param {(NamedSlice & {why?: string})[]} events */
function list(events) {
  const lines = events
    .slice(0, LISTED)
    .map((event) =>
      h('li', {}, eventButton(event), event.why ? h('span', { class: 'faint' }, ` ${whyWords(event.why)}`) : null),
    );
  const hidden = events.length - LISTED;
  return h('ul', { class: 'events' }, lines, hidden > 0 ? h('li', { class: 'faint' }, `and ${hidden} more`) : null);
}

customElements.define('ts-details', Details);
connectArrows();
