// What if: choose changes, and see the predicted time of the whole range and of its steps, and what limits it then. The
// predicted timeline is shown beneath the measured one.

import { h } from '../core/dom.js';
import { duration, percent } from '../core/units.js';
import { shareBar } from './charts.js';
import { changesOptions, changesQuery, chosenChanges, isEmpty } from './changes.js';
import { failure, note, section, sentence } from './panel.js';
import { pathTotals } from './path.js';
import { exactly } from './pattern.js';
import { ScopedPanel, analyzeLine } from './scoped.js';
import { dataTable } from './table.js';
import { analysis } from './times.js';
import { changesForm } from './what-if-form.js';
import { counted, partWords, shortName } from './words.js';

/** @typedef {import('./changes.js').Changes} Changes */
/** @typedef {import('./analysis.d.ts').WhatIfAnswer['what_if'][number]} Report */

/** Kernels that are tried as the next limit. */
const CANDIDATES = 5;
const TRIED_FACTOR = 0.5;
/** Parts of the predicted critical path that the verdict names, and the least share of one. */
const LIMITS = 3;
const LEAST_SHARE = 0.05;

class WhatIf extends ScopedPanel {
  choices() {
    return JSON.stringify(chosenChanges());
  }

  /** @param {AbortSignal} signal */
  async load(signal) {
    const changes = chosenChanges();
    const report = await simulated(changes, this.range, signal);
    const next = h('div', { class: 'next-limit' });
    const find = h(
      'button',
      { type: 'button', 'data-focus': 'next', onclick: () => this.#findNext(changes, report, next) },
      'What limits the time then?',
    );
    return [
      isEmpty(changes)
        ? note('Choose a change. The predicted timeline appears beneath the measured one.')
        : verdict(report),
      h(
        'div',
        { class: 'columns' },
        section('Changes', changesForm(changes)),
        section('Prediction', figures(report), explanation(report), h('p', {}, find), next),
        section(`Critical path with the changes: ${duration(report.path.path_ns)}`, path(report)),
        report.steps.length > 0 ? section('Steps', steps(report)) : null,
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

/** The answer in a line: the step, or the time range without steps. @param {Report} report */
function verdict(report) {
  const { measured_ns, changed_ns } = report.step ?? report;
  const what = report.step ? 'Median step' : 'This time range';
  const saved = measured_ns - changed_ns;
  const share = percent(Math.abs(saved) / Math.max(1, measured_ns));
  const words = saved >= 0 ? `saves ${duration(saved)} (${share})` : `costs ${duration(-saved)} (${share})`;
  const path = report.step?.path ?? report.path.totals;
  const limits = path.filter((total) => total.share >= LEAST_SHARE).slice(0, LIMITS);
  return h(
    'p',
    { class: 'what-if-verdict', role: 'status' },
    `${what} `,
    h('b', {}, duration(measured_ns)),
    ' → ',
    h('b', {}, duration(changed_ns)),
    `, ${words}. `,
    limits.length > 0
      ? h('span', {}, 'Then critical: ', limits.map(limitWords).join(', '), '.')
      : null,
  );
}

/** One thing that the predicted critical path goes to. @param {Report['path']['totals'][number]} total */
function limitWords({ part, name, share }) {
  return `${part === 'work' ? shortName(name) : partWords(part)} ${percent(share)}`;
}

/** @param {Report} report */
function path({ path: { totals, host } }) {
  const rows = [...host.ranges.slice(0, 2), ...host.lines.slice(0, 3)];
  const places = rows.map((row) => h('li', {}, shareBar(percent(row.share), row.share), ` ${row.name}`));
  return [
    pathTotals(totals, 'Parts of the critical path with the changes'),
    places.length > 0 ? [h('p', {}, 'Where the CPU is in its part:'), h('ul', { class: 'next' }, places)] : null,
  ];
}

/** @param {Report} report */
function steps({ steps: rows }) {
  const saved = (/** @type {Report['steps'][number]} */ row) => row.measured_ns - row.changed_ns;
  const time = (/** @type {number} */ nanos) => (nanos < 0 ? `−${duration(-nanos)}` : duration(nanos));
  return dataTable({
    caption: 'Steps, measured and predicted',
    rows,
    columns: [
      { key: 'name', title: 'Step', value: (row) => row.name, wide: true },
      {
        key: 'measured_ns',
        title: 'Measured',
        align: 'right',
        value: (row) => row.measured_ns,
        text: (row) => duration(row.measured_ns),
      },
      {
        key: 'changed_ns',
        title: 'Predicted',
        align: 'right',
        value: (row) => row.changed_ns,
        text: (row) => duration(row.changed_ns),
      },
      { key: 'saved_ns', title: 'Saved', align: 'right', value: saved, text: (row) => time(saved(row)) },
    ],
  });
}

/** @param {Report} report */
function figures(report) {
  /** @param {string} what @param {{measured_ns: number, changed_ns: number}} one */
  const line = (what, { measured_ns, changed_ns }) => {
    const saved = measured_ns - changed_ns;
    const share = percent(saved / Math.max(1, measured_ns));
    return h(
      'tr',
      {},
      h('th', { scope: 'row' }, what),
      ...[
        duration(measured_ns),
        duration(changed_ns),
        `${duration(saved)} (${share})`,
        `${(measured_ns / Math.max(1, changed_ns)).toFixed(2)} ×`,
      ].map((text) => h('td', { class: 'number' }, text)),
    );
  };
  const head = ['', 'Measured', 'Predicted', 'Saved', 'Speedup'].map((text) =>
    text ? h('th', { scope: 'col', class: 'number' }, text) : h('td', {}),
  );
  const lines = [
    line('This time range', report),
    report.step ? line(`Median of ${counted(report.step.count, 'step')}`, report.step) : null,
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

customElements.define('ts-what-if', WhatIf);
