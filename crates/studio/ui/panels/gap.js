// An idle gap: why it exists, which thread, call and line of code caused it, and what this cause costs in all.

import { causeOf, causeWords } from '../core/causes.js';
import { causeColor, css } from '../core/colors.js';
import { h } from '../core/dom.js';
import { store } from '../core/store.js';
import { duration, moment, percent } from '../core/units.js';
import { swatch } from './charts.js';
import { eventButton } from './event.js';
import { trackOf } from './locate.js';
import { section } from './panel.js';
import { frameLine, stackOf } from './stack.js';
import { analysis } from './times.js';
import { causeExplained, counted, whyWords } from './words.js';

/** @typedef {import('./event.js').EventDetail & {cause?: string}} GapDetail */

/** @param {GapDetail} gap @param {AbortSignal} signal */
export async function gapDetails(gap, signal) {
  const cause = gap.cause ?? causeOf(gap.name) ?? 'unknown';
  const total = await totalOf(gap, cause, signal);
  const next = gap.ops[0];
  const zoom = () => store.zoomToSlice(gap, { margin: 0.5 });
  const head = h(
    'div',
    { class: 'details-head' },
    h('h2', { class: 'name' }, swatch(css(causeColor(cause))), `Idle: ${causeWords(cause)}`),
    h('span', { class: 'figure' }, h('b', {}, duration(gap.duration)), ` at ${moment(gap.start, 1)}`),
    h('button', { type: 'button', onclick: zoom }, 'Zoom'),
  );
  return [
    head,
    h(
      'div',
      { class: 'details-columns' },
      section(
        'Why',
        h('p', {}, causeExplained(cause)),
        total,
        next ? h('p', {}, 'The gap ended with ', eventButton(next), '.') : null,
      ),
      who(gap),
      gap.stack?.frames.length ? section('Code of the call', stackOf(gap.stack)) : null,
      gap.fields.length > 0
        ? section(
            'Facts',
            h(
              'dl',
              { class: 'facts' },
              gap.fields.map(([label, value]) => [h('dt', {}, label), h('dd', {}, String(value))]),
            ),
          )
        : null,
    ),
  ];
}

/** The thread, the call and the line of code. @param {GapDetail} gap */
function who(gap) {
  const { launch } = gap;
  if (!launch)
    return section(
      'Who',
      h(
        'p',
        { class: 'faint' },
        'The call that launched the next operation is not in the trace. Record API calls to see it.',
      ),
    );
  const frame =
    gap.stack?.frames.find(({ kind, file }) => kind.startsWith('python') && file) ??
    gap.stack?.frames.find(({ file }) => file);
  const before = gap.waited_for.map((event) =>
    h('li', {}, eventButton(event), h('span', { class: 'faint' }, ` ${whyWords(event.why)}`)),
  );
  return section(
    'Who',
    h(
      'dl',
      { class: 'facts' },
      h('dt', {}, 'thread'),
      h('dd', {}, launch.thread),
      h('dt', {}, 'call'),
      h('dd', {}, eventButton(launch)),
      frame ? [h('dt', {}, 'line of code'), h('dd', {}, h('ol', { class: 'stack' }, frameLine(frame)))] : null,
    ),
    before.length > 0 ? [h('p', {}, 'What the thread did in the gap:'), h('ul', { class: 'events' }, before)] : null,
  );
}

/** What the cause costs over the trace. @param {GapDetail} gap @param {string} cause @param {AbortSignal} signal */
async function totalOf(gap, cause, signal) {
  /** @type {import('./analysis.d.ts').Idle} */
  const { devices } = await analysis('idle', {}, signal, store.layerOf(gap.row));
  const group = trackOf(gap.row)?.group ?? '';
  const number = Number(/^device:(\d+)$/.exec(group)?.[1] ?? NaN);
  const device = devices.find((one) => one.device === number) ?? (devices.length === 1 ? devices[0] : null);
  const total = device?.causes.find((one) => one.cause === cause);
  if (!device || !total) return null;
  const share = percent(gap.duration / Math.max(1, total.total_ns));
  const text =
    `Over the whole trace, this cause costs ${duration(total.total_ns)} (${percent(total.share)} of ` +
    `the time of ${device.name}) in ${counted(total.gaps, 'gap')}. This gap is ${share} of that.`;
  return h(
    'p',
    {},
    text,
    ' ',
    h('button', { type: 'button', class: 'link', onclick: () => store.openTab('idle') }, 'All causes'),
  );
}
