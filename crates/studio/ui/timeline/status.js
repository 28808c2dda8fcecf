// The line at the bottom: whether the recording is whole, the window, and the connection.

import { fill, h } from '../core/dom.js';
import { isRecording } from '../core/live.js';
import { store } from '../core/store.js';
import { bytes, count, duration, moment } from '../core/units.js';

const SHOWN = /** @type {const} */ (['layout', 'window', 'connection', 'selection', 'area']);

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
    const { good, sentences } = layout.health;
    const events = layout.tracks.reduce((sum, track) => sum + track.slices, 0);
    const step = Math.max(1, (window.to - window.from) / 1000);
    const whole = isRecording(layout) ? 'Nothing is missing so far' : 'The recording is complete';
    const health = h(
      'button',
      {
        type: 'button',
        class: `quiet status-health ${good ? 'is-good' : 'is-bad'}`,
        title: sentences.join('\n'),
        onclick: () => store.openTab('health'),
      },
      `${good ? '✓' : '⚠'} ${sentences[0] ?? (good ? whole : 'The recording is damaged')}`,
      sentences.length > 1 ? ` (+${sentences.length - 1})` : '',
    );
    fill(
      this,
      health,
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

customElements.define('ts-status', Status);
