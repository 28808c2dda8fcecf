// Starts the page: the theme, the key, the session, and the parts of the page that belong to no panel.

import { applyTheme, chooseTheme, onTheme, themeChoice } from './core/colors.js';
import { takeKey } from './core/api.js';
import { connectNotes } from './core/notes.js';
import { connectDivider } from './core/divider.js';
import { fill, find, h } from './core/dom.js';
import { sentence, start } from './core/session.js';
import { store } from './core/store.js';
import './timeline/timeline.js';
import './timeline/minimap.js';
import './timeline/status.js';
import './panels/panels.js';

const THEMES = /** @type {const} */ (['auto', 'light', 'dark']);

const PAGE_STATE = /** @type {const} */ (['session', 'trace', 'layout', 'connection', 'problem']);
const REFUSED =
  'The key of this page is not valid. The server may have been started again. ' +
  'Open the address that tracesmith studio printed last.';

/** Shows which page is seen: the trace, or the list of files when no trace is open. */
function showPage() {
  const { session, trace, layout, connection } = store.get();
  // Without a key there is nothing to show but why.
  find('main').classList.toggle('is-refused', connection === 'denied' && !session);
  // A file that cannot be read has nothing to show but why.
  const isOpen = (trace >= 0 && layout?.state !== 'failed') || !session;
  find('#page').hidden = !isOpen;
  find('ts-open').hidden = isOpen;
}

/** The most urgent sentence. */
function bannerText() {
  const { connection, layout, session, problem } = store.get();
  if (connection === 'offline') return 'The server does not answer. The page connects again as soon as it does.';
  if (connection === 'denied') return REFUSED;
  if (problem) return problem;
  if (layout?.state === 'failed') return sentence(layout.error ?? 'the trace cannot be read');
  if (layout?.state === 'reading') return `Reading the trace: ${Math.round(layout.progress * 100)} %`;
  return session ? '' : 'Connecting…';
}

/** The banner: why there is no picture, or why it may be old. */
function showBanner() {
  const { layout } = store.get();
  const banner = find('#banner');
  const text = bannerText();
  banner.hidden = text === '';
  banner.dataset.kind = layout?.state === 'reading' ? 'progress' : 'problem';
  if (banner.textContent !== text) fill(banner, text ? h('span', {}, text) : null);
  document.title = layout ? `${layout.name} – TraceSmith Studio` : 'TraceSmith Studio';
}

function showTheme() {
  const choice = themeChoice();
  fill(find('#theme'), `Theme: ${choice}`);
}

applyTheme();
takeKey();
showTheme();
onTheme(showTheme);
find('#theme').addEventListener('click', () => {
  chooseTheme(THEMES[(THEMES.indexOf(themeChoice()) + 1) % THEMES.length]);
});
const page = find('#page');
connectDivider(find('#divider'), {
  name: 'tracesmith-dock',
  axis: 'y',
  initial: 30,
  least: 5,
  most: 80,
  value: ({ clientY }) => ((page.getBoundingClientRect().bottom - clientY) / page.clientHeight) * 100,
  apply: (percent) => page.style.setProperty('--dock', `${percent}%`),
});
store.subscribe((changed) => {
  if (PAGE_STATE.some((name) => changed.has(name))) {
    showPage();
    showBanner();
  }
  if (changed.has('announcement')) find('#live').textContent = store.get().announcement;
});
connectNotes();
start();
