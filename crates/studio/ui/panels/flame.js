// The flame graph of the chosen time range: the code that launched GPU work.

import { getJson } from '../core/api.js';
import { h } from '../core/dom.js';
import { store } from '../core/store.js';
import { choose, chosen } from './choices.js';
import { FlameGraph, amount } from './flame-graph.js';
import { note } from './panel.js';
import { ScopedPanel, commandLine } from './scoped.js';
import { fileArgument, rangeOptions, scopeSpan } from './scope.js';

class Flame extends ScopedPanel {
  choices() {
    return chosen('weight', 'time');
  }

  /** @param {AbortSignal} signal */
  async load(signal) {
    const by = chosen('weight', 'time') === 'count' ? 'count' : 'time';
    /** @type {import('../core/answers.d.ts').Flame} */
    const flame = await getJson(`t/${store.get().trace}/flame`, { ...this.range, by }, { signal });
    const onchange = (/** @type {Event} */ event) =>
      choose({ weight: /** @type {HTMLSelectElement} */ (event.target).value });
    const weights = [
      ['time', 'GPU time'],
      ['count', 'launches'],
    ].map(([value, text]) => h('option', { value, selected: value === by }, text));
    const select = h('label', {}, 'Width is ', h('select', { onchange, 'data-focus': 'weight' }, weights));
    const command = commandLine(
      'tracesmith flame ' +
        `${fileArgument()}${by === 'count' ? ' --by launches' : ''}${rangeOptions(scopeSpan())} -o flame.svg`,
    );
    const head = h(
      'div',
      { class: 'tools' },
      select,
      h('span', { class: 'faint' }, `${amount(flame.total, flame.unit)} in all`),
    );
    if (flame.total === 0) return [head, note('No launch of GPU work is in this time range.'), command];
    const graph = new FlameGraph();
    queueMicrotask(() => graph.show(flame));
    return [head, graph, h('div', { class: 'panel-foot' }, command)];
  }
}

customElements.define('ts-flame', Flame);
