// The replay of a recording: the recorded calls, and the memory of each. Without a GPU, recorded contents can be read.

import { fill, h } from '../core/dom.js';
import { store } from '../core/store.js';
import { bytes, count } from '../core/units.js';
import { ReplayModel } from '../replay/model.js';
import { part } from '../replay/part.js';
import { callOf } from '../replay/timeline-link.js';
import '../replay/actions.js';
import '../replay/buffers.js';
import '../replay/calls.js';
import '../replay/memory.js';
import '../replay/steps.js';
import { Panel, failure, note, problem } from './panel.js';
import { commandLine } from './scoped.js';

/** @typedef {import('../replay/steps.js').ReplaySteps} ReplaySteps */

const STEP_KEYS = /** @type {Record<string, string>} */ ({ ',': 'back', '.': 'next' });

class Replay extends Panel {
  /** @type {(keyof import('../core/store.js').State)[]} */
  watched = ['trace', 'layout', 'selection', 'panel'];
  /** @type {ReplayModel|null} */
  #model = null;
  #of = '';
  #selected = '';
  #head = h('div', { class: 'replay-head' });
  /** @type {ReplaySteps|null} */
  #steps = null;
  #headKey = '';

  connectedCallback() {
    super.connectedCallback();
    this.addEventListener('keydown', (event) => this.#key(event));
  }

  /** Idle rows make a new generation, but not another recording. */
  question() {
    const { trace, layout } = store.get();
    return layout?.state === 'ready' ? `${trace} ${layout.generation.split('-')[0]}` : null;
  }

  /** @param {boolean} moves */
  changed(moves) {
    super.changed(moves);
    if (this.isShown) this.#follow();
  }

  async load() {
    const question = this.question() ?? '';
    if (this.#of !== question || !this.#model) {
      this.#of = question;
      this.#model = new ReplayModel(store.get().trace);
      this.#model.addEventListener('change', () => this.#draw());
    }
    const model = this.#model;
    if (!model.info) await model.load();
    const { info } = model;
    if (!info?.is_recording) return nothingRecorded();
    if (!info.can_look) return [note('This server cannot replay: it was started without a program that does.')];
    this.#steps = /** @type {ReplaySteps} */ (part('ts-replay-steps', model));
    this.#headKey = '';
    this.#draw();
    await this.#follow();
    return [
      this.#head,
      h(
        'div',
        { class: 'replay-columns' },
        h('div', { class: 'replay-left' }, this.#steps, part('ts-replay-calls', model)),
        h(
          'div',
          { class: 'replay-right' },
          part('ts-replay-actions', model),
          part('ts-replay-buffers', model),
          part('ts-replay-memory', model),
        ),
      ),
    ];
  }

  /** The head: what this replay is, and what can be done about it. */
  #draw() {
    const model = this.#model;
    if (!model?.info) return;
    const key = JSON.stringify([model.status, model.ready, model.error?.message, model.isBusy && model.status]);
    if (key === this.#headKey) return;
    this.#headKey = key;
    this.classList.toggle('is-ready', model.status === 'ready');
    fill(this.#head, this.#state(model), this.#controls(model));
  }

  /** @param {ReplayModel} model */
  #state(model) {
    const { status, ready, error, info } = model;
    if (status === 'starting') return h('p', { class: 'faint waiting', role: 'status' }, 'Starting the replay…');
    if (status === 'ended')
      return error ? failure(error, () => model.start(false)) : problem(info?.error ?? 'the replay ended');
    if (!ready) return null;
    const size = `${count(ready.calls)} calls, ${bytes(ready.begin_bytes)} of memory`;
    if (ready.offline === null) return h('p', {}, h('span', { class: 'replay-badge live' }, 'On the GPU'), ` ${size}`);
    const reason =
      info?.mode === 'look' || ready.offline.startsWith('--mode')
        ? 'Nothing is run.'
        : `Nothing is run: ${ready.offline}.`;
    return h(
      'p',
      {},
      h('span', { class: 'replay-badge' }, 'Recorded contents'),
      ` ${size}. ${reason} Memory is known before the first kernel and after the last one.`,
    );
  }

  /** @param {ReplayModel} model */
  #controls(model) {
    const { info, status, ready } = model;
    if (!info || status === 'starting') return null;
    const isLive = model.isLive;
    const run = h(
      'button',
      {
        type: 'button',
        class: 'primary',
        'data-focus': 'run',
        'aria-disabled': String(!info.can_run),
        title: info.can_run ? 'Runs the recorded device code' : 'Start tracesmith studio with --control',
        onclick: () => info.can_run && model.start(true),
      },
      'Run on the GPU',
    );
    const obstacles = ready?.obstacles ?? [];
    return h(
      'div',
      { class: 'replay-controls' },
      isLive ? null : run,
      status === 'ended' || isLive
        ? h(
            'button',
            { type: 'button', 'data-focus': 'look', onclick: () => model.start(false) },
            'Show recorded contents',
          )
        : null,
      isLive ? h('button', { type: 'button', 'data-focus': 'stop', onclick: () => model.stop() }, 'Stop') : null,
      !isLive && !info.can_run
        ? h(
            'span',
            { class: 'faint' },
            'A replay runs the device code of the file. It needs tracesmith studio --control.',
          )
        : null,
      !isLive && ready?.is_from_elsewhere
        ? h(
            'span',
            { class: 'replay-odd' },
            `Recorded on another machine (${ready.recorded_on || 'unknown'}): run it only if you trust the file.`,
          )
        : null,
      obstacles.length > 0 ? h('span', { class: 'replay-odd' }, `Not replayable: ${obstacles[0]}`) : null,
    );
  }

  /** The event that was selected on the timeline is a call of the recording. */
  async #follow() {
    const { selection } = store.get();
    const key = JSON.stringify(selection);
    const model = this.#model;
    if (key === this.#selected || !selection || model?.status !== 'ready') return;
    this.#selected = key;
    if (this.contains(document.activeElement)) return;
    const call = await callOf(model, selection, new AbortController().signal);
    if (call && key === JSON.stringify(store.get().selection)) model.select(call.number);
    else if (!call) store.announce('The selected event is not a call of the recording.');
  }

  /** @param {KeyboardEvent} event */
  #key(event) {
    const target = /** @type {HTMLElement} */ (event.target);
    if (target.matches('input, select, textarea') || event.altKey || event.ctrlKey || event.metaKey) return;
    const step = STEP_KEYS[event.key];
    if (step) this.#steps?.step(step);
    else if (event.key === 'b') this.#steps?.turn();
    else return;
    event.preventDefault();
    event.stopPropagation();
  }
}

function nothingRecorded() {
  return [
    note('This trace has no recorded calls and memory. Record a short window, such as one training step:'),
    commandLine('tracesmith profile --record --capture-range nvtx:step --steps 10..11 -o step.sbt -- python train.py'),
    h('p', { class: 'faint' }, 'A recording is a normal trace, too.'),
  ];
}

customElements.define('ts-replay', Replay);
