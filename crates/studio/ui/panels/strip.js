// The three findings that cost most, as buttons that lead to their evidence.

import { h } from '../core/dom.js';
import { store } from '../core/store.js';
import { duration, percent } from '../core/units.js';
import { showFinding } from './evidence.js';
import { Panel, sentence } from './panel.js';
import { analysis } from './times.js';

const SHOWN = 3;

class FindingsStrip extends Panel {
  /** How often each finding was opened: the next time shows its next evidence. @type {Map<string, number>} */
  #opened = new Map();

  /** @param {AbortSignal} signal */
  async load(signal) {
    /** @type {import('./analysis.d.ts').Findings} */
    const { findings, gpu_bound } = await analysis('findings', {}, signal);
    if (findings.length === 0) {
      const text = gpu_bound
        ? `No idle time worth fixing. ${sentence(gpu_bound)}`
        : 'No findings: no rule found a problem in this trace.';
      return [h('p', { class: 'strip-none' }, text)];
    }
    const all = h(
      'button',
      { type: 'button', class: 'all', onclick: () => store.openTab('findings') },
      findings.length > SHOWN ? `All ${findings.length} findings` : 'All findings',
    );
    return [
      h(
        'div',
        { class: 'strip-line' },
        findings.slice(0, SHOWN).map((finding, i) => this.#button(finding, i)),
        all,
      ),
    ];
  }

  /** @param {import('./analysis.d.ts').Finding} finding @param {number} place */
  #button(finding, place) {
    const saves =
      finding.saves_ns && finding.saves_share !== null
        ? `saves at most ${duration(finding.saves_ns)} (${percent(finding.saves_share)})`
        : '';
    const title = `${sentence(finding.sentence)}\n${sentence(finding.advice)}${saves ? `\nA fix ${saves}.` : ''}`;
    const onclick = () => {
      const number = this.#opened.get(finding.rule) ?? 0;
      this.#opened.set(finding.rule, number + 1);
      showFinding(finding, number);
    };
    return h(
      'button',
      { type: 'button', class: 'finding', title, onclick },
      h('span', { class: 'place', 'aria-hidden': 'true' }, String(place + 1)),
      h(
        'span',
        { class: 'what' },
        saves ? h('b', {}, `Save up to ${duration(finding.saves_ns ?? 0)}: `) : null,
        withoutModel(finding.sentence),
      ),
    );
  }
}

/** Without the model of a GPU, which the line above has. @param {string} sentence */
function withoutModel(sentence) {
  const labels = store.get().layout?.groups.filter(({ kind }) => kind === 'device').map(({ label }) => label) ?? [];
  return labels.reduce((text, label) => text.replaceAll(label, /^GPU \d+/.exec(label)?.[0] ?? label), sentence);
}

customElements.define('ts-findings-strip', FindingsStrip);
