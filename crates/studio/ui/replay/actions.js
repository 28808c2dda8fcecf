// What is asked of the whole replay: does it end as recorded, which call differs first, and another kernel in place of
// the chosen one.

import { fill, h } from '../core/dom.js';
import { bytes, count, duration } from '../core/units.js';
import { failure } from '../panels/panel.js';
import { counted } from '../panels/words.js';
import { differenceOf } from './differences.js';
import { ReplayPart } from './part.js';

/** @typedef {import('../core/dom.js').Child} Child */
/** @typedef {import('./answers.d.ts').BufferDifference} BufferDifference */

const RUNS = 3;
const REPEAT = 10;

class ReplayActions extends ReplayPart {
  #tools = h('div', { class: 'tools' });
  #result = h('div', { class: 'replay-result', role: 'status' });
  #form = h('form', { class: 'replay-replace', hidden: true });
  #drawn = '';

  build() {
    this.#form.addEventListener('submit', (event) => {
      event.preventDefault();
      this.#replace();
    });
    this.#form.addEventListener('keydown', (event) => event.key !== 'Escape' && event.stopPropagation());
    fill(this, this.#tools, this.#form, this.#result);
  }

  draw() {
    const { isLive, isBusy, call, position } = this.model;
    this.hidden = !isLive;
    const key = JSON.stringify([isLive, isBusy, call?.number, position?.replaced]);
    if (key === this.#drawn) return;
    this.#drawn = key;
    const focused = /** @type {HTMLElement|null} */ (document.activeElement)?.dataset.focus;
    const isOwn = this.#tools.contains(document.activeElement);
    const button = (
      /** @type {string} */ name,
      /** @type {string} */ text,
      /** @type {string} */ title,
      /** @type {() => void} */ act,
      off = false,
    ) =>
      h(
        'button',
        {
          type: 'button',
          title,
          'data-focus': `action-${name}`,
          'aria-disabled': String(off),
          onclick: () => !off && act(),
        },
        text,
      );
    const { replaced } = position ?? {};
    const isKernel = call?.kind === 'launch';
    fill(
      this.#tools,
      button('compare', 'Compare with the recording', 'Runs to the end, and compares all memory', () =>
        this.#compare(),
      ),
      button('check', 'First call that differs', `Runs all calls ${RUNS} times, and compares each result`, () =>
        this.#check(),
      ),
      button(
        'replace',
        'Replace kernel…',
        'Launches another kernel with the same inputs',
        () => this.#open(),
        !isKernel,
      ),
      replaced
        ? button('restore', 'Restore recorded kernel', `${replaced.file} is launched now`, () => this.#restore())
        : null,
      replaced
        ? h(
            'span',
            { class: 'replay-odd' },
            `${counted(replaced.calls.length, 'launch', 'launches')} replaced: ${replaced.file}`,
          )
        : null,
    );
    if (isOwn && focused)
      /** @type {HTMLElement|null} */ (this.#tools.querySelector(`[data-focus="${focused}"]`))?.focus();
  }

  /** @param {string} doing @param {Record<string, unknown>} request @param {(answer: any) => Child[]} show */
  async #run(doing, request, show) {
    fill(this.#result, h('p', { class: 'faint' }, `${doing}…`));
    try {
      const answer = await this.model.ask(doing, request);
      fill(this.#result, h('div', { class: 'replay-answer' }, show(answer), this.#close()));
    } catch (error) {
      fill(
        this.#result,
        failure(error, () => this.#run(doing, request, show)),
      );
    }
  }

  #close() {
    const button = h('button', { type: 'button', class: 'quiet', onclick: () => fill(this.#result) }, 'Close');
    return h('p', {}, button);
  }

  #compare() {
    this.#run(
      'Comparing with the recording',
      { do: 'compare', type: this.model.type },
      (/** @type {import('./answers.d.ts').EndComparison} */ found) => {
        const all = `${counted(found.buffer_count, 'buffer')} (${bytes(found.bytes)})`;
        if (found.buffer_count === 0) return [h('p', {}, 'The recording contains no memory to compare.')];
        if (found.same) return [h('p', { 'data-fact': 'compared' }, `Same as recorded: ${all}.`)];
        return [
          h(
            'p',
            { 'data-fact': 'compared' },
            `${count(found.buffers.length)} of ${all} differ from the recording at the end.`,
          ),
          found.buffers.map((buffer) => this.#different(buffer)),
        ];
      },
    );
  }

  /** @param {BufferDifference} buffer */
  #different(buffer) {
    const last = this.model.calls.find((call) => call.number === buffer.last_call);
    return h(
      'details',
      {},
      h(
        'summary',
        {},
        `${buffer.variable || buffer.address}: ` +
          `${count(buffer.different_elements)} of ${count(buffer.elements)} elements`,
      ),
      last ? h('p', {}, 'Last call with it as an argument: ', this.#callButton(last.number)) : null,
      differenceOf(buffer, () => {
        if (last) this.model.select(last.number, 'after');
        this.model.selectBuffer(buffer.address);
      }),
    );
  }

  #check() {
    this.#run(
      'Running all calls again and again',
      { do: 'check', runs: RUNS },
      (/** @type {import('./answers.d.ts').Check} */ found) => {
        if (found.verdict === 'repeats') {
          const words =
            `No call differs: ${count(found.runs ?? 0)} runs, ` +
            `same memory after each of ${count(found.calls ?? 0)} calls.`;
          return [h('p', { 'data-fact': 'checked' }, words)];
        }
        const { command, name, cause, buffer, difference } = found;
        const bytesOf = (/** @type {number[]} */ list) =>
          list.map((one) => one.toString(16).padStart(2, '0')).join(' ');
        return [
          h(
            'p',
            { 'data-fact': 'checked' },
            'The first call that differs: ',
            typeof command === 'number' ? this.#callButton(command) : (name ?? ''),
            ` ${cause ?? ''}.`,
          ),
          difference
            ? h(
                'p',
                {},
                `${count(difference.count)} of ${count(difference.bytes)} bytes of ${buffer ?? ''} differ, ` +
                  `first at offset ${count(difference.offset)}: ${bytesOf(difference.expected)} in one run, ` +
                  `${bytesOf(difference.found)} in another.`,
              )
            : null,
        ];
      },
    );
  }

  /** @param {number} number */
  #callButton(number) {
    const call = this.model.calls.find((one) => one.number === number);
    return h(
      'button',
      { type: 'button', class: 'link', onclick: () => this.model.select(number, 'after') },
      `#${number} ${call?.name ?? ''}`,
    );
  }

  #open() {
    const { call } = this.model;
    const field = (
      /** @type {string} */ name,
      /** @type {string} */ title,
      /** @type {string} */ hint,
      required = false,
    ) => h('label', {}, `${title} `, h('input', { name, type: 'text', placeholder: hint, required, size: '24' }));
    fill(
      this.#form,
      h(
        'p',
        {},
        `Launch another kernel in place of #${call?.number} ${call?.name ?? ''}. ` +
          'Its parameters must have the same sizes.',
      ),
      field('file', 'Cubin or PTX below the start folder', 'new.cubin', true),
      field('symbol', 'Kernel in it', 'the same name, or the only one'),
      field('tolerance', 'Tolerance', 'f32=1e-5'),
      h('label', {}, h('input', { name: 'all', type: 'checkbox' }), ' all launches of this kernel'),
      h('button', { type: 'submit', class: 'primary' }, 'Replace and compare'),
      h('button', { type: 'button', onclick: () => (this.#form.hidden = true) }, 'Cancel'),
    );
    this.#form.hidden = false;
    /** @type {HTMLInputElement|null} */ (this.#form.querySelector('input'))?.focus();
  }

  #replace() {
    const { call } = this.model;
    const data = new FormData(/** @type {HTMLFormElement} */ (this.#form));
    const text = (/** @type {string} */ name) => String(data.get(name) ?? '').trim();
    const tolerance = text('tolerance')
      .split(/[\s,]+/)
      .filter(Boolean);
    const which = data.has('all') ? { kernel: call?.function } : { call: call?.number };
    const request = {
      do: 'replace',
      ...which,
      file: text('file'),
      ...(text('symbol') ? { symbol: text('symbol') } : {}),
      tolerance,
      repeat: REPEAT,
    };
    this.#form.hidden = true;
    this.#run('Replacing the kernel', request, (/** @type {import('./answers.d.ts').Replaced} */ found) => {
      this.model.refresh();
      const heads = ['Call', 'Recorded', 'Old', 'New', 'New / old', 'Result'];
      const rows = found.launches.map((one) =>
        h(
          'tr',
          {},
          h('td', {}, this.#callButton(one.command)),
          h('td', {}, one.recorded_ns === null ? '–' : duration(one.recorded_ns)),
          h('td', {}, duration(one.old_ns)),
          h('td', {}, duration(one.new_ns)),
          h('td', {}, (one.new_ns / Math.max(1, one.old_ns)).toFixed(2)),
          h('td', { class: one.outcome.verdict === 'differs' ? 'differs' : '' }, outcomeText(one.outcome)),
        ),
      );
      return [
        h(
          'table',
          { class: 'replay-values replay-launches' },
          h('caption', { class: 'unseen' }, 'Times and results of the replaced launches'),
          h(
            'thead',
            {},
            h(
              'tr',
              {},
              heads.map((head) => h('th', { scope: 'col' }, head)),
            ),
          ),
          h('tbody', {}, rows),
        ),
        h('p', { class: 'faint' }, 'All views show the new kernel until the recorded one is restored.'),
      ];
    });
  }

  async #restore() {
    await this.#run('Restoring the kernel', { do: 'restore' }, () => [
      h('p', {}, 'The recorded kernels are launched again.'),
    ]);
    this.model.refresh();
  }
}

/** @param {import('./answers.d.ts').ReplacedLaunch['outcome']} outcome */
function outcomeText({ verdict, reason, differences }) {
  if (verdict === 'unproven') return `unproven: ${reason ?? ''}`;
  if (!differences || differences.length === 0) return verdict;
  const list = differences.map(({ address, count: bytesOther }) => `${count(bytesOther)} B at ${address}`);
  return `${verdict}: ${list.join(', ')}`;
}

customElements.define('ts-replay-actions', ReplayActions);
