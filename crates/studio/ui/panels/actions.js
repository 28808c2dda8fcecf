// Does what a command of the command line says: opens the tab that shows the same answer, and moves the window.

import { postJson, getJson } from '../core/api.js';
import { compareWith } from '../core/compare.js';
import { store } from '../core/store.js';
import { chooseChanges, scaleOf } from './changes.js';
import { choose } from './choices.js';
import { ANALYSES, CommandError, KERNEL_KEYS, commandOf } from './grammar.js';
import { TABS } from './tabs.js';
import { analysis, momentOf } from './times.js';

/** @typedef {import('./grammar.js').Command} Command */

/** The tab that shows an analysis, where it has another name. @type {Record<string, string>} */
const TAB_OF = { utilization: 'idle', streams: 'states', host: 'idle', slack: 'critical-path' };

/**
 * Does a command. Fails with a sentence for the user.
 * @param {string} text
 * @param {(pattern: string) => void} search
 */
export async function act(text, search) {
  const command = commandOf(text);
  const action = ACTIONS[command.name];
  await action(command, search);
}

/** @type {Record<string, (command: Command, search: (pattern: string) => void) => void | Promise<void>>} */
const ACTIONS = {
  range: moveTo,
  analyze,
  view: async (command, search) => {
    await moveTo(command);
    const name = command.options.get('name')?.at(-1);
    if (name) search(name);
  },
  flame: async (command) => {
    await moveTo(command);
    const by = command.options.get('by')?.at(-1) ?? 'gpu-time';
    if (!['gpu-time', 'launches'].includes(by))
      throw new CommandError(
        `The flame graph in the page has --by gpu-time and --by launches. Run \`tracesmith flame\` for ${by}.`,
      );
    choose({ weight: by === 'launches' ? 'count' : '' });
    store.openTab('flame');
  },
  states: () => store.openTab('states'),
  sql: ({ rest }) => {
    choose({ sql: rest });
    store.openTab('sql');
  },
  cut: async (command) => {
    const span = await spanOf(command);
    if (!span) throw new CommandError('Write the time range: cut --from 1s --to 2s.');
    store.selectArea({ rows: [], ...span });
    store.openTab('details');
  },
  info: () => store.openTab('health'),
  goto: ({ rest }) => {
    const time = timeOf(rest);
    const { from, to } = store.get().window;
    const half = (to - from) / 2;
    store.set({ window: store.clamp({ from: time - half, to: time + half }) }, { history: 'push' });
  },
  step: async ({ rest }) => store.zoomTo(await stepSpan(rest), { margin: 0.02 }),
  tab: ({ rest }) => {
    const tab = TABS.find(({ name, title }) => name === rest || title.toLowerCase() === rest.toLowerCase());
    if (!tab) throw new CommandError(`'${rest}' is not a tab. Tabs are: ${TABS.map(({ name }) => name).join(', ')}.`);
    store.openTab(tab.name);
  },
  open: ({ rest }) => openTrace(rest),
  diff: async ({ rest }) => {
    // `diff A B` of a copied command line: A is the open trace.
    const path = rest.split(/\s+/).at(-1) ?? '';
    if (path === '') throw new CommandError('Write the path of the second trace: diff runs/b.sbt.');
    compareWith(await openFile(path));
    store.openTab('compare');
  },
  all: () => store.zoomTo(store.extent(), { margin: 0 }),
};

/** Opens a trace below the folder of the server, and shows it. @param {string} path */
export async function openTrace(path) {
  if (path === '') throw new CommandError('Write the path of a trace: open runs/b.sbt.');
  const trace = await openFile(path);
  store.set({ trace }, { history: 'push' });
}

/** Opens a trace below the folder of the server, and returns its number. @param {string} path */
export async function openFile(path) {
  /** @type {{id: number}} */
  const { id } = await postJson('open', { path });
  /** @type {import('../core/answers.d.ts').Session} */
  const session = await getJson('session');
  store.set({ session }, { history: 'none' });
  return id;
}

/** @param {Command} command */
async function analyze(command) {
  const { options } = command;
  const only = options.get('only')?.at(-1);
  if (only && !ANALYSES.includes(only))
    throw new CommandError(`'${only}' is not an analysis. Analyses are: ${ANALYSES.join(', ')}.`);
  const by = options.get('by')?.at(-1);
  if (by && !KERNEL_KEYS.includes(by))
    throw new CommandError(`Kernels cannot be grouped by '${by}'. Keys are: ${KERNEL_KEYS.join(', ')}.`);
  await moveTo(command);
  if (by) choose({ by: by === 'stack' ? 'line' : by === 'name' ? '' : by });
  const changes = changesOf(options);
  if (changes) chooseChanges(changes);
  if (only) store.openTab(TAB_OF[only] ?? only);
  else store.openTab(changes ? 'what-if' : by ? 'kernels' : 'findings');
}

/** The changes of a what-if; null without one. @param {Map<string, string[]>} options */
function changesOf(options) {
  const scales = options.get('scale') ?? [];
  const sync = options.get('without-sync')?.at(-1);
  const streams = options.get('streams')?.at(-1) ?? '';
  if (scales.length === 0 && sync === undefined && streams === '') return null;
  if (streams !== '' && streams !== 'unlimited' && !(Number(streams) >= 1))
    throw new CommandError("--streams takes a number from 1 on, or 'unlimited'.");
  const read = scales.map((text) => {
    const scale = scaleOf(text);
    if (!scale) throw new CommandError(`'${text}' is not a pattern and a factor, such as 'flash*=0.5'.`);
    return scale;
  });
  return { scales: read, copiesHidden: false, withoutSync: sync !== undefined, syncPattern: sync ?? '', streams };
}

/** Moves the window to the time range of a command, and makes the tabs look at it. @param {Command} command */
async function moveTo(command) {
  const span = await spanOf(command);
  if (!span) return;
  store.zoomTo(span, { margin: 0 });
  choose({ scope: 'window' });
}

/** @param {Command} command @returns {Promise<import('../core/store.js').Span|null>} */
async function spanOf({ options }) {
  const step = options.get('step')?.at(-1);
  const [from, to] = [options.get('from')?.at(-1), options.get('to')?.at(-1)];
  if (step !== undefined) {
    if (from !== undefined || to !== undefined) throw new CommandError('--step cannot be used with --from and --to.');
    return stepSpan(step);
  }
  if (from === undefined && to === undefined) return null;
  const span = { from: from === undefined ? 0 : timeOf(from), to: to === undefined ? store.span() : timeOf(to) };
  if (span.from >= span.to) throw new CommandError('The time range is empty: --from must be before --to.');
  return span;
}

/** @param {string} text */
function timeOf(text) {
  const { layout } = store.get();
  const time = layout && momentOf(text, layout);
  if (time === null)
    throw new CommandError(`'${text}' is not a time. Write 1.5s, 200ms, 10us, 7ns, 25% or @nanoseconds.`);
  return time;
}

/** @param {string} text */
async function stepSpan(text) {
  const number = Number(text);
  if (text === '' || !Number.isInteger(number) || number < 0)
    throw new CommandError(`'${text}' is not a step. Steps are counted from 0.`);
  /** @type {import('./analysis.d.ts').Steps} */
  const { steps } = await analysis('steps', {}, new AbortController().signal);
  const step = steps[number];
  if (!step)
    throw new CommandError(
      steps.length === 0 ? 'No steps were found in this trace.' : `The trace has steps 0 to ${steps.length - 1}.`,
    );
  return { from: step.offset_ns, to: step.offset_ns + Number(BigInt(step.end_ns) - BigInt(step.start_ns)) };
}
