// What if: choose changes, and see the predicted time of the whole range and of one step, and what limits it next.

import { h } from '../core/dom.js';
import { duration, percent } from '../core/units.js';
import { shareBar } from './charts.js';
import { changesOptions, changesQuery, chooseChanges, chosenChanges, isEmpty, scaleOf } from './changes.js';
import { failure, note, section, sentence } from './panel.js';
import { exactly } from './pattern.js';
import { ScopedPanel, analyzeLine } from './scoped.js';
import { analysis } from './times.js';
import { counted, shortName } from './words.js';

/** @typedef {import('./changes.js').Changes} Changes */
/** @typedef {import('./analysis.d.ts').WhatIfAnswer['what_if'][number]} Report */

/** Kernels that are tried as the next limit. */
const CANDIDATES = 5;
const TRIED_FACTOR = 0.5;

class WhatIf extends ScopedPanel {
  choices() {
    return JSON.stringify(chosenChanges());
  }

  /** @param {AbortSignal} signal */
  async load(signal) {
    const changes = chosenChanges();
    const report = await simulated(changes, this.range, signal);
    const step = await typicalStep(signal);
    const ofStep = step === null ? null : { step, report: await simulated(changes, { step }, signal) };
    const next = h('div', { class: 'next-limit' });
    const find = h(
      'button',
      { type: 'button', 'data-focus': 'next', onclick: () => this.#findNext(changes, report, next) },
      'What limits the time then?',
    );
    return [
      h(
        'div',
        { class: 'columns' },
        section('Changes', form(changes)),
        section(
          'Prediction',
          isEmpty(changes) ? note('Choose a change. The simulation gives the measured time without one.') : null,
          figures(report, ofStep),
          explanation(report),
          h('p', {}, find),
          next,
        ),
      ),
      h(
        'div',
        { class: 'panel-foot' },
        h('span', { class: 'faint' }, 'Contention for memory bandwidth and multiprocessors is not simulated.'),
        analyzeLine(changesOptions(changes) || ' --only what-if'),
      ),
    ];
  }

  /**
   * Tries further changes on top of the chosen ones: what saves most limits the time next.
   * @param {Changes} changes
   * @param {Report} report
   * @param {HTMLElement} place
   */
  async #findNext(changes, report, place) {
    place.replaceChildren(h('p', { class: 'faint' }, 'Simulating…'));
    const signal = new AbortController().signal;
    try {
      /** @type {import('./analysis.d.ts').Kernels} */
      const kernels = await analysis('kernels', { ...this.range, by: 'name', limit: CANDIDATES }, signal);
      /** @type {{name: string, changes: Changes}[]} */
      const tries = kernels.rows.slice(0, CANDIDATES).map(({ name }) => ({
        name: `${shortName(name)} × ${TRIED_FACTOR}`,
        changes: {
          ...changes,
          scales: [{ pattern: exactly(name), factor: TRIED_FACTOR * factorOf(changes, name) }, ...changes.scales],
        },
      }));
      if (!changes.withoutSync)
        tries.push({ name: 'no CPU waits for the GPU', changes: { ...changes, withoutSync: true } });
      if (!changes.copiesHidden) tries.push({ name: 'copies hidden', changes: { ...changes, copiesHidden: true } });
      const results = [];
      for (const one of tries) {
        const { changed_ns } = await simulated(one.changes, this.range, signal);
        results.push({ name: one.name, saved: report.changed_ns - changed_ns });
      }
      results.sort((a, b) => b.saved - a.saved);
      place.replaceChildren(...nextWords(results, report));
    } catch (error) {
      place.replaceChildren(failure(error, () => this.#findNext(changes, report, place)));
    }
  }
}

/**
 * What a scale already makes of a kernel: the first pattern with this exact name counts.
 * @param {Changes} changes
 * @param {string} name
 */
function factorOf({ scales }, name) {
  return scales.find(({ pattern }) => pattern === exactly(name) || pattern === name)?.factor ?? 1;
}

/** @param {{name: string, saved: number}[]} results @param {Report} report */
function nextWords(results, report) {
  const most = Math.max(1, ...results.map((one) => one.saved));
  if (results.every((one) => one.saved < report.changed_ns * 0.001)) {
    const text =
      'None of these changes the total by 0.1 %: shorter kernels, no CPU ' +
      'waits, hidden copies. CPU code between calls limits the time.';
    return [note(text)];
  }
  const lines = results
    .filter((one) => one.saved > 0)
    .map((one) => h('li', {}, shareBar(duration(one.saved), one.saved / most), ` ${one.name}`));
  return [h('p', {}, 'Saved on top of that, by one more change:'), h('ul', { class: 'next' }, lines)];
}

/** @param {Changes} changes @param {import('../core/api.js').Query} range @param {AbortSignal} signal */
async function simulated(changes, range, signal) {
  /** @type {import('./analysis.d.ts').WhatIfAnswer} */
  const answer = await analysis('what-if', { ...range, what_if: changesQuery(changes) }, signal);
  return answer.what_if[0];
}

/** The number of the step with the median time; null without steps. @param {AbortSignal} signal */
async function typicalStep(signal) {
  /** @type {import('./analysis.d.ts').Steps} */
  const { steps, settled } = await analysis('steps', {}, signal);
  const far = (/** @type {typeof steps[number]} */ step) =>
    Math.abs(Number(BigInt(step.end_ns) - BigInt(step.start_ns)) - settled.p50_ns);
  const good = steps.filter((step) => !step.is_warm_up && !step.is_cut_off);
  if (good.length === 0) return null;
  return steps.indexOf(good.reduce((best, step) => (far(step) < far(best) ? step : best)));
}

/** @param {Report} report @param {{step: number, report: Report}|null} ofStep */
function figures(report, ofStep) {
  const line = (/** @type {string} */ what, /** @type {Report} */ one) => {
    const saved = one.measured_ns - one.changed_ns;
    const share = percent(saved / Math.max(1, one.measured_ns));
    return h(
      'tr',
      {},
      h('th', { scope: 'row' }, what),
      ...[
        duration(one.measured_ns),
        duration(one.changed_ns),
        `${duration(saved)} (${share})`,
        `${one.speedup.toFixed(2)} ×`,
      ].map((text) => h('td', { class: 'number' }, text)),
    );
  };
  const head = ['', 'Measured', 'Predicted', 'Saved', 'Speedup'].map((text) =>
    text ? h('th', { scope: 'col', class: 'number' }, text) : h('td', {}),
  );
  const lines = [
    line('This time range', report),
    ...(ofStep ? [line(`Step ${ofStep.step}, the median`, ofStep.report)] : []),
  ];
  return h(
    'table',
    { class: 'data figures' },
    h('caption', { class: 'unseen' }, 'Measured and predicted time'),
    h('thead', {}, h('tr', {}, head)),
    h('tbody', {}, lines),
  );
}

/** @param {Report} report */
function explanation(report) {
  const lines = [];
  if (report.scaled_ops > 0)
    lines.push(
      `${counted(report.scaled_ops, 'GPU operation')} changed, ${report.scaled_on_path} ` +
        `of them on the critical path with ${duration(report.scaled_on_path_ns)}.`,
    );
  if (report.left_waits > 0) lines.push(`${counted(report.left_waits, 'CPU wait')} removed.`);
  if (report.explanation) lines.push(sentence(report.explanation));
  if (report.unchanged_ns !== report.measured_ns)
    lines.push(`Without a change, the simulation gives ${duration(report.unchanged_ns)}.`);
  return lines.map((text) => h('p', {}, text));
}

/** @param {Changes} changes */
function form(changes) {
  const set = (/** @type {Partial<Changes>} */ part) => chooseChanges({ ...changes, ...part });
  const scales = changes.scales.map((scale, i) =>
    h(
      'li',
      {},
      h('code', {}, `${scale.pattern} × ${scale.factor}`),
      h(
        'button',
        {
          type: 'button',
          class: 'quiet',
          'aria-label': `Remove ${scale.pattern}`,
          onclick: () => set({ scales: changes.scales.filter((_, j) => j !== i) }),
        },
        '×',
      ),
    ),
  );
  const pattern = h('input', {
    type: 'text',
    placeholder: 'flash*',
    'aria-label': 'Pattern of kernel names',
    'data-focus': 'pattern',
  });
  const factor = h('input', { type: 'number', min: '0', step: '0.1', value: '0.5', 'aria-label': 'Factor' });
  const onsubmit = (/** @type {Event} */ event) => {
    event.preventDefault();
    const scale = scaleOf(`${pattern.value}=${factor.value}`);
    if (scale) set({ scales: [...changes.scales, scale] });
    else pattern.focus();
  };
  const checked = (/** @type {Event} */ event) => /** @type {HTMLInputElement} */ (event.target).checked;
  const text = (/** @type {Event} */ event) => /** @type {HTMLInputElement} */ (event.target).value.trim();
  const streams = [
    ['', 'as recorded'],
    ['1', '1'],
    ['2', '2'],
    ['4', '4'],
    ['8', '8'],
    ['unlimited', 'unlimited'],
  ];
  return h(
    'form',
    { class: 'what-if', onsubmit },
    h('ul', { class: 'scales' }, scales),
    h('p', {}, 'Kernels ', pattern, ' take ', factor, ' times as long ', h('button', { type: 'submit' }, 'Add')),
    h(
      'p',
      {},
      h(
        'label',
        {},
        h('input', {
          type: 'checkbox',
          checked: changes.copiesHidden,
          'data-focus': 'copies',
          onchange: (/** @type {Event} */ event) => set({ copiesHidden: checked(event) }),
        }),
        ' Copies are hidden: memcpys and memsets take no time',
      ),
    ),
    h(
      'p',
      {},
      h(
        'label',
        {},
        h('input', {
          type: 'checkbox',
          checked: changes.withoutSync,
          'data-focus': 'sync',
          onchange: (/** @type {Event} */ event) => set({ withoutSync: checked(event) }),
        }),
        ' The CPU does not wait for the GPU',
      ),
      ' in ',
      h('input', {
        type: 'text',
        placeholder: 'all functions and lines',
        value: changes.syncPattern,
        'aria-label': 'Pattern of functions or lines that do not wait',
        onchange: (/** @type {Event} */ event) => set({ withoutSync: true, syncPattern: text(event) }),
      }),
    ),
    h(
      'p',
      {},
      h(
        'label',
        {},
        'Streams of each GPU: ',
        h(
          'select',
          { 'data-focus': 'streams', onchange: (/** @type {Event} */ event) => set({ streams: text(event) }) },
          streams.map(([value, words]) => h('option', { value, selected: value === changes.streams }, words)),
        ),
      ),
    ),
    isEmpty(changes)
      ? null
      : h(
          'button',
          {
            type: 'button',
            onclick: () =>
              chooseChanges({ scales: [], copiesHidden: false, withoutSync: false, syncPattern: '', streams: '' }),
          },
          'Remove all changes',
        ),
  );
}

customElements.define('ts-what-if', WhatIf);
