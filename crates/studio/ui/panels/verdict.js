// The line that says at once whether a GPU is busy, and if not, why. The numbers are those of `analyze`.

import { causeWords } from '../core/causes.js';
import { causeColor, css } from '../core/colors.js';
import { h } from '../core/dom.js';
import { store } from '../core/store.js';
import { count, duration, percent } from '../core/units.js';
import { stackedBar, swatch } from './charts.js';
import { choose, chosen } from './choices.js';
import { Panel } from './panel.js';
import { analysis } from './times.js';
import { counted } from './words.js';

/** @typedef {import('./analysis.d.ts').Utilization['devices'][number]} Device */
/** @typedef {import('./analysis.d.ts').Idle['devices'][number]} DeviceIdle */

/** Causes that have their share written out. */
const CAUSES_SHOWN = 3;
/** A smaller share is not written out. */
const LEAST_SHARE = 0.001;
/** A smaller cause is only counted. */
const LEAST_CAUSE = 0.01;

class Verdict extends Panel {
  /** @type {(keyof import('../core/store.js').State)[]} */
  watched = ['trace', 'layout', 'panel'];

  question() {
    const base = super.question();
    return base && `${base} ${chosen('gpu', '')}`;
  }

  /** @param {AbortSignal} signal */
  async load(signal) {
    const [use, idle, steps] = await Promise.all([
      /** @type {Promise<import('./analysis.d.ts').Utilization>} */ (analysis('utilization', {}, signal)),
      /** @type {Promise<import('./analysis.d.ts').Idle>} */ (analysis('idle', {}, signal)),
      /** @type {Promise<import('./analysis.d.ts').Steps>} */ (analysis('steps', {}, signal)),
    ]);
    if (use.devices.length === 0)
      return [h('p', { class: 'faint' }, 'No GPU work: the trace has no kernels, memcpys or memsets.')];
    const wanted = Number(chosen('gpu', String(use.devices[0].device)));
    const device = use.devices.find((one) => one.device === wanted) ?? use.devices[0];
    const causes = idle.devices.find((one) => one.device === device.device);
    return [
      h(
        'div',
        { class: 'verdict-line' },
        deviceName(use.devices, device),
        busy(device),
        stepTime(steps),
        idleTime(device, causes),
      ),
    ];
  }
}

/** @param {Device[]} devices @param {Device} device */
function deviceName(devices, device) {
  if (devices.length === 1) return h('strong', { class: 'device' }, device.name);
  const ordered = [...devices].sort((a, b) => (a.name < b.name ? -1 : 1));
  const options = ordered.map((one) =>
    h('option', { value: String(one.device), selected: one === device }, `${one.name}: ${percent(one.utilization)}`),
  );
  const onchange = (/** @type {Event} */ event) =>
    choose({ gpu: /** @type {HTMLSelectElement} */ (event.target).value });
  return h('select', { 'aria-label': 'GPU of the verdict', onchange }, options);
}

/** @param {Device} device */
function busy(device) {
  const share = (/** @type {number} */ ns) => percent(ns / Math.max(1, device.span_ns));
  const parts = [
    figure(
      'busy',
      percent(device.utilization),
      `${duration(device.busy_ns)} of ${duration(device.span_ns)}, from the first to the last GPU operation`,
    ),
  ];
  if (device.communication_ns > 0) {
    const why =
      `${duration(device.communication_exposed_ns)} of communication while ` +
      `nothing computes, of ${duration(device.communication_ns)} in all`;
    parts.push(figure('exposed communication', share(device.communication_exposed_ns), why));
  }
  if (device.copy_exposed_ns / Math.max(1, device.span_ns) >= LEAST_SHARE) {
    parts.push(
      figure(
        'exposed copies',
        share(device.copy_exposed_ns),
        `${duration(device.copy_exposed_ns)} of copies and sets while no kernel runs`,
      ),
    );
  }
  return parts;
}

/** @param {Device} device @param {DeviceIdle|undefined} idle */
function idleTime(device, idle) {
  const title = `${duration(device.idle_ns)} without a GPU operation. Opens the causes.`;
  const button = h(
    'button',
    { type: 'button', class: 'figure', title, onclick: () => store.openTab('idle') },
    h('b', {}, percent(device.idle_ns / Math.max(1, device.span_ns))),
    ' idle',
  );
  if (!idle || idle.causes.length === 0) return button;
  const parts = idle.causes.map((total, i) => ({
    share: total.share,
    color: css(causeColor(total.cause, i)),
    text:
      `${causeWords(total.cause)}: ${percent(total.share)}, ` +
      `${duration(total.total_ns)} in ${counted(total.gaps, 'gap')}`,
  }));
  const sentence = `Idle time by cause: ${parts.map((part) => part.text).join('; ')}`;
  const shown = idle.causes.slice(0, CAUSES_SHOWN).filter(({ share }, i) => i === 0 || share >= LEAST_CAUSE);
  const causes = shown.map((total, i) =>
    h(
      'span',
      { class: 'cause', title: parts[i].text },
      swatch(parts[i].color),
      `${causeWords(total.cause)} `,
      h('b', {}, percent(total.share)),
    ),
  );
  const others = parts.slice(shown.length);
  const rest =
    others.length > 0
      ? h('span', { class: 'faint', title: others.map(({ text }) => text).join('\n') }, `+ ${others.length} more`)
      : null;
  return [button, stackedBar(parts, sentence), h('span', { class: 'causes' }, causes, rest)];
}

/** @param {import('./analysis.d.ts').Steps} steps */
function stepTime({ steps, settled }) {
  if (steps.length === 0) return null;
  const title =
    `${count(settled.count)} of ${counted(steps.length, 'step')}, without warm-up and steps that are cut ` +
    `off. Shortest ${duration(settled.min_ns)}, longest ${duration(settled.max_ns)}. Opens the steps.`;
  const button = { type: 'button', class: 'figure', title, onclick: () => store.openTab('steps') };
  return h('button', button, 'step ', h('b', {}, duration(settled.mean_ns)), ` × ${count(steps.length)}`);
}

/** @param {string} name @param {string} value @param {string} title */
function figure(name, value, title) {
  return h('span', { class: 'figure', title }, h('b', {}, value), ` ${name}`);
}

customElements.define('ts-verdict', Verdict);
