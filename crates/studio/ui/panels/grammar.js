// The words of the command line in the page: those of the command `tracesmith`, and a few to move about. Reading and
// completion only; actions.js does what they say.

/**
 * @typedef {object} Word
 * @property {string} name
 * @property {string} meaning
 * @property {string[]} options names of options without a value end in nothing, others in `=`
 * @property {string} [argument] what follows the options
 */

const RANGE = ['from=', 'to=', 'step='];
export const ANALYSES = [
  'utilization',
  'streams',
  'idle',
  'host',
  'steps',
  'kernels',
  'copies',
  'launches',
  'memory',
  'critical-path',
  'slack',
  'what-if',
  'findings',
];
export const KERNEL_KEYS = ['name', 'short', 'shape', 'line', 'stack', 'nvtx', 'operator', 'process', 'rank', 'step'];

/** @type {Word[]} */
export const WORDS = [
  {
    name: 'analyze',
    meaning: 'open an analysis: analyze --only kernels --by line',
    options: ['only=', 'by=', 'scale=', 'streams=', 'without-sync', ...RANGE],
  },
  { name: 'view', meaning: 'find events by name: view --name flash*', options: ['name=', ...RANGE] },
  { name: 'flame', meaning: 'open the flame graph: flame --by launches', options: ['by=', ...RANGE] },
  { name: 'states', meaning: 'open the states of streams and GPUs', options: [] },
  { name: 'sql', meaning: 'run a query: sql select count(*) from kernels', options: [], argument: 'QUERY' },
  { name: 'cut', meaning: 'select a time range to copy into a new trace', options: RANGE },
  { name: 'info', meaning: 'open the health and the facts of the trace', options: [] },
  { name: 'goto', meaning: 'move to a time: goto 1.5s', options: [], argument: 'TIME' },
  { name: 'step', meaning: 'zoom to a step: step 4', options: [], argument: 'N' },
  { name: 'tab', meaning: 'open a tab: tab memory', options: [], argument: 'NAME' },
  { name: 'open', meaning: 'open another trace: open runs/b.sbt', options: [], argument: 'PATH' },
  { name: 'diff', meaning: 'compare with a second trace: diff runs/b.sbt', options: [], argument: 'PATH' },
  { name: 'all', meaning: 'show the whole trace', options: [] },
];

/**
 * @typedef {object} Command
 * @property {string} name
 * @property {Map<string, string[]>} options values by name; the value of an option without one is empty
 * @property {string} rest
 */

/** A command cannot be read. */
export class CommandError extends Error {}

/**
 * Reads a command. `tracesmith` and a file name before the options are left out, so that a copied command line works.
 * @param {string} text
 * @returns {Command}
 */
export function commandOf(text) {
  const line = text
    .trim()
    .replace(/^:/, '')
    .replace(/^tracesmith\s+/, '');
  const isRange = line.startsWith('--');
  const name = isRange ? 'analyze' : (/^\S*/.exec(line)?.[0] ?? '');
  const word = WORDS.find((one) => one.name === name);
  if (!word)
    throw new CommandError(
      `'${name}' is not a command here. Commands are: ${WORDS.map((one) => one.name).join(', ')}.`,
    );
  const rest = isRange ? line : line.slice(name.length).trim();
  if (word.argument) return { name, options: new Map(), rest };
  return { name: isRange ? 'range' : name, ...optionsOf(word, wordsOf(rest)) };
}

/** @param {Word} word @param {string[]} words */
function optionsOf(word, words) {
  /** @type {Map<string, string[]>} */
  const options = new Map();
  for (let i = 0; i < words.length; i += 1) {
    if (!words[i].startsWith('--')) {
      // The first word after the command is the file, which is open already.
      if (i === 0 && options.size === 0) continue;
      throw new CommandError(`'${words[i]}' is neither an option nor the value of one.`);
    }
    const [, name, value] = /^--([^=]*)(?:=(.*))?$/s.exec(words[i]) ?? [];
    const known = word.options.find((one) => one.replace('=', '') === name);
    if (!known)
      throw new CommandError(
        `${word.name} has no option --${name} here. Options are: ` +
          `${word.options.map((one) => `--${one.replace('=', '')}`).join(', ') || 'none'}.`,
      );
    if (known.endsWith('=') && value === undefined && i + 1 >= words.length)
      throw new CommandError(`--${name} needs a value.`);
    const text = known.endsWith('=') && value === undefined ? words[(i += 1)] : (value ?? '');
    options.set(name, [...(options.get(name) ?? []), text]);
  }
  return { options, rest: '' };
}

/** Splits as a shell does, with quotes. @param {string} text */
function wordsOf(text) {
  const words = [];
  for (const [, double, single, plain] of text.matchAll(
    /((?:[^\s"']*"[^"]*"[^\s"']*)+)|((?:[^\s"']*'[^']*'[^\s"']*)+)|(\S+)/g,
  )) {
    words.push((double ?? single ?? plain).replace(/"([^"]*)"|'([^']*)'/g, (_, a, b) => a ?? b));
  }
  return words;
}

/**
 * What can come next, as whole lines.
 * @param {string} text
 * @returns {{line: string, words: string, meaning: string}[]}
 */
export function completions(text) {
  const line = text.replace(/^:\s*/, '');
  const [name, ...others] = line.split(/\s+/);
  if (others.length === 0) {
    return WORDS.filter((word) => word.name.startsWith(name)).map((word) => ({
      line: `:${word.name} `,
      words: word.argument ? `${word.name} ${word.argument}` : word.name,
      meaning: word.meaning,
    }));
  }
  const word = WORDS.find((one) => one.name === name);
  const last = others.at(-1) ?? '';
  const before = line.slice(0, line.length - last.length);
  const previous = others.at(-2) ?? '';
  const values = valuesOf(name, previous);
  if (values)
    return values
      .filter((value) => value.startsWith(last))
      .map((value) => ({ line: `:${before}${value} `, words: value, meaning: '' }));
  const options = word?.options.map((one) => `--${one.replace('=', '')}`) ?? [];
  return options
    .filter((one) => one.startsWith(last))
    .map((one) => ({ line: `:${before}${one} `, words: one, meaning: '' }));
}

/** @param {string} command @param {string} option */
function valuesOf(command, option) {
  if (option === '--only') return ANALYSES;
  if (option === '--by') return command === 'flame' ? ['gpu-time', 'launches'] : KERNEL_KEYS;
  return null;
}
