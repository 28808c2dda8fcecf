// All findings: what happens, what it costs, what to do, what is assumed, and where to look.

import { h } from '../core/dom.js';
import { store } from '../core/store.js';
import { duration, moment, percent } from '../core/units.js';
import { showEvidence } from './evidence.js';
import { sentence } from './panel.js';
import { ScopedPanel, analyzeLine } from './scoped.js';
import { analysis, sinceOrigin } from './times.js';

class Findings extends ScopedPanel {
  /** @param {AbortSignal} signal */
  async load(signal) {
    /** @type {import('./analysis.d.ts').Findings} */
    const { findings, gpu_bound } = await analysis('findings', this.range, signal);
    const command = h(
      'div',
      { class: 'panel-foot' },
      h('span', { class: 'faint' }, 'Two findings can describe the same time, so their savings do not add up.'),
      analyzeLine(' --only findings'),
    );
    const bound = gpu_bound ? h('p', {}, sentence(gpu_bound)) : null;
    if (findings.length === 0) return [h('p', {}, 'No rule found a problem in this time range.'), bound, command];
    return [bound, h('ol', { class: 'findings' }, findings.map(card)), command];
  }
}

/** @param {import('./analysis.d.ts').Finding} finding */
function card(finding) {
  const saves =
    finding.saves_ns && finding.saves_share !== null
      ? h(
          'p',
          { class: 'saves' },
          `A fix saves at most ${duration(finding.saves_ns)} (${percent(finding.saves_share)}).`,
        )
      : null;
  const evidence =
    finding.evidence.length === 0
      ? null
      : h(
          'ul',
          { class: 'evidence' },
          finding.evidence.map((one) => h('li', {}, evidenceButton(one))),
        );
  return h(
    'li',
    {},
    h('h3', {}, sentence(finding.sentence)),
    h('p', {}, sentence(finding.advice)),
    saves,
    h(
      'p',
      { class: 'faint' },
      `This assumes that ${sentence(finding.assumption).replace(/^./, (letter) => letter.toLowerCase())}`,
    ),
    evidence,
  );
}

/** @param {import('./analysis.d.ts').Evidence} evidence */
function evidenceButton(evidence) {
  const { layout } = store.get();
  const length = Number(BigInt(evidence.end_ns) - BigInt(evidence.start_ns));
  const part =
    evidence.cause_ns !== null && evidence.cause_ns < length
      ? `${duration(evidence.cause_ns)} of a gap of ${duration(length)}`
      : duration(length);
  const at = layout ? moment(sinceOrigin(evidence.start_ns, layout), 1000) : '';
  const row = evidence.row === null ? '' : `row ${evidence.row} of ${evidence.table}`;
  return h(
    'button',
    { type: 'button', class: 'link', title: row, onclick: () => showEvidence(evidence) },
    `${evidence.what} at ${at}, ${part}`,
  );
}

customElements.define('ts-findings', Findings);
