// The line at the bottom: whether the recording is whole, the window, and the connection.

import { fill, h } from '../core/dom.js';
import { isRecording } from '../core/live.js';
import { store } from '../core/store.js';
import { bytes, count, duration, moment } from '../core/units.js';

/** @typedef {import('../core/layer.js').Layer} Layer */

const SHOWN = /** @type {const} */ (['layout', 'window', 'connection', 'selection', 'area', 'layers']);

/** `<ts-status>` */
class Status extends HTMLElement {
  #request = 0;

  connectedCallback() {
    store.subscribe((changed) => {
      if (SHOWN.some((name) => changed.has(name))) this.#request ||= requestAnimationFrame(() => this.#show());
    });
  }

  #show() {
    this.#request = 0;
    const { layout, window, connection, area } = store.get();
    if (!layout) {
      fill(this);
      return;
    }
    const events = layout.tracks.reduce((sum, track) => sum + track.slices, 0);
    const step = Math.max(1, (window.to - window.from) / 1000);
    fill(
      this,
      store.layers().map(healthOf),
      h(
        'span',
        {},
        `${count(events)} ${events === 1 ? 'event' : 'events'} · ${duration(layout.span_ns)} · ${bytes(layout.bytes)}`,
      ),
      h(
        'span',
        { class: 'status-window' },
        `${moment(window.from, step)} – ${moment(window.to, step)} (${duration(window.to - window.from)})`,
      ),
      area ? h('span', {}, `selected ${duration(area.to - area.from)}`) : null,
      h('span', { class: 'status-connection' }, connection === 'online' ? 'connected' : connection),
    );
  }
}

/** Whether the recording of a layer is whole; nothing for predictions. @param {Layer} layer */
function healthOf({ layout, label, style }) {
  if (!layout || style === 'ghost') return null;
  const { good, sentences } = layout.health;
  const whole = isRecording(layout) ? 'Nothing is missing so far' : 'The recording is complete';
  const first = sentences[0] ?? (good ? whole : 'The recording is damaged');
  return h(
    'button',
    {
      type: 'button',
      class: `quiet status-health ${good ? 'is-good' : 'is-bad'}`,
      title: sentences.join('\n'),
      onclick: () => store.openTab('health'),
    },
    `${good ? '✓' : '⚠'} ${label ? `${label}: ` : ''}${first}`,
    sentences.length > 1 ? ` (+${sentences.length - 1})` : '',
  );
}

customElements.define('ts-status', Status);
