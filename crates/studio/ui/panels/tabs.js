// The dock below the timeline: one panel a tab, loaded when its tab is opened for the first time.

import { h } from '../core/dom.js';
import { store } from '../core/store.js';
import { Panel, failure } from './panel.js';
import './scope.js';

/**
 * @typedef {object} Tab
 * @property {string} name in the address and in commands
 * @property {string} title
 * @property {string} element
 * @property {() => Promise<unknown>} module
 * @property {boolean} [scoped] it looks at the chosen time range
 */

/** @type {Tab[]} */
export const TABS = [
  { name: 'details', title: 'Details', element: 'ts-details', module: () => import('./details.js') },
  { name: 'findings', title: 'Findings', element: 'ts-findings', module: () => import('./findings.js'), scoped: true },
  { name: 'kernels', title: 'Kernels', element: 'ts-kernels', module: () => import('./kernels.js'), scoped: true },
  { name: 'idle', title: 'Idle', element: 'ts-idle', module: () => import('./idle.js'), scoped: true },
  { name: 'steps', title: 'Steps', element: 'ts-steps', module: () => import('./steps.js') },
  { name: 'launches', title: 'Launches', element: 'ts-launches', module: () => import('./launches.js'), scoped: true },
  { name: 'copies', title: 'Copies', element: 'ts-copies', module: () => import('./copies.js'), scoped: true },
  { name: 'memory', title: 'Memory', element: 'ts-memory', module: () => import('./memory.js'), scoped: true },
  { name: 'flame', title: 'Flame', element: 'ts-flame', module: () => import('./flame.js'), scoped: true },
  { name: 'states', title: 'States', element: 'ts-states', module: () => import('./states.js') },
  {
    name: 'dependencies',
    title: 'Dependencies',
    element: 'ts-dependencies',
    module: () => import('./dependencies.js'),
  },
  {
    name: 'critical-path',
    title: 'Critical path',
    element: 'ts-critical-path',
    module: () => import('./path.js'),
    scoped: true,
  },
  { name: 'what-if', title: 'What-if', element: 'ts-what-if', module: () => import('./what-if.js'), scoped: true },
  { name: 'compare', title: 'Compare', element: 'ts-comparison', module: () => import('./compare.js') },
  { name: 'replay', title: 'Replay', element: 'ts-replay', module: () => import('./replay.js') },
  { name: 'sql', title: 'SQL', element: 'ts-sql', module: () => import('./sql.js') },
  { name: 'health', title: 'Health', element: 'ts-health', module: () => import('./health.js') },
];

/** Tabs that follow the selection themselves. */
const FOLLOWING = ['dependencies', 'replay'];

class Tabs extends HTMLElement {
  /** @type {Map<string, {button: HTMLElement, page: HTMLElement}>} */
  #parts = new Map();
  /** @type {HTMLElement} */
  #scope = h('div', { class: 'scope' });
  #open = '';

  connectedCallback() {
    if (this.#parts.size === 0) this.#build();
    store.subscribe((changed, { history }) => {
      if (changed.has('tab') || changed.has('trace')) this.#show();
      else if (history !== 'none' && (changed.has('selection') || changed.has('area'))) this.#selected();
    });
    this.#show();
  }

  #build() {
    const list = h('div', { role: 'tablist', 'aria-label': 'Panels', class: 'tab-list' });
    list.addEventListener('keydown', (event) => this.#moved(event));
    const pages = TABS.map(({ name, title }) => {
      const button = h(
        'button',
        {
          type: 'button',
          role: 'tab',
          id: `tab-${name}`,
          'aria-controls': `page-${name}`,
          'aria-selected': 'false',
          tabindex: '-1',
          onclick: () => store.openTab(name),
        },
        title,
      );
      const page = h('div', {
        role: 'tabpanel',
        id: `page-${name}`,
        'aria-labelledby': `tab-${name}`,
        'data-lazy': true,
        class: 'tab-page',
        hidden: true,
        tabindex: '-1',
      });
      list.append(button);
      this.#parts.set(name, { button, page });
      return page;
    });
    this.#scope.append(document.createElement('ts-scope'));
    const title = h('h2', { class: 'unseen' }, 'Panels');
    this.replaceChildren(title, h('div', { class: 'tab-bar' }, list, this.#scope), ...pages);
  }

  /** What was selected outside of the panels is shown here, unless the tab follows the selection itself. */
  #selected() {
    const { selection, area, tab } = store.get();
    const isOwn = this.contains(document.activeElement);
    if ((selection || area) && !isOwn && !FOLLOWING.includes(tab)) store.openTab('details');
  }

  async #show() {
    const wanted = store.get().tab;
    const tab = TABS.find(({ name }) => name === wanted) ?? TABS[0];
    const { button, page } = /** @type {{button: HTMLElement, page: HTMLElement}} */ (this.#parts.get(tab.name));
    if (this.#open === tab.name) return;
    this.#open = tab.name;
    for (const [name, part] of this.#parts) {
      const isOpen = name === tab.name;
      part.button.setAttribute('aria-selected', String(isOpen));
      part.button.tabIndex = isOpen ? 0 : -1;
      part.page.hidden = !isOpen;
      const panel = part.page.firstElementChild;
      if (!isOpen && panel instanceof Panel) panel.hide();
    }
    this.#scope.classList.toggle('unseen', !tab.scoped);
    this.#scope.toggleAttribute('inert', !tab.scoped);
    button.scrollIntoView({ block: 'nearest', inline: 'nearest' });
    await this.#fill(tab, page);
  }

  /** @param {Tab} tab @param {HTMLElement} page */
  async #fill(tab, page) {
    try {
      await tab.module();
    } catch (error) {
      page.replaceChildren(failure(error, () => this.#fill(tab, page)));
      return;
    }
    if (!(page.firstElementChild instanceof Panel)) page.replaceChildren(document.createElement(tab.element));
    const panel = page.firstElementChild;
    if (panel instanceof Panel && this.#open === tab.name) panel.show();
  }

  /** @param {KeyboardEvent} event */
  #moved(event) {
    const names = TABS.map(({ name }) => name);
    const at = names.indexOf(this.#open);
    const next = { ArrowRight: at + 1, ArrowLeft: at - 1, Home: 0, End: names.length - 1 }[event.key];
    if (next === undefined) return;
    event.preventDefault();
    event.stopPropagation();
    const name = names[(next + names.length) % names.length];
    store.openTab(name);
    this.#parts.get(name)?.button.focus();
  }
}

customElements.define('ts-tabs', Tabs);
