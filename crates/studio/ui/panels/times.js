// Times of answers and of commands. Answers have absolute times, which a Number cannot hold exactly.

import { getExactJson } from '../core/api.js';
import { store } from '../core/store.js';

const KEPT_ANSWERS = 24;
/** @type {Map<string, unknown>} */
const answers = new Map();

/** @typedef {number | bigint} Nanos an absolute time or another integer of an answer */

/**
 * How long after the origin of the trace a moment is.
 * @param {Nanos} absolute
 * @param {import('../core/answers.d.ts').Layout} layout
 */
export function sinceOrigin(absolute, layout) {
  return Number(BigInt(absolute) - BigInt(layout.origin_ns));
}

/**
 * A moment as the command line takes it, exact to the nanosecond: `1.204008s`, `15ms`, `7ns`.
 * @param {number} ns
 */
export function timeArgument(ns) {
  const whole = Math.max(0, Math.round(ns));
  if (whole >= 1e9) return `${decimal(whole, 9)}s`;
  if (whole >= 1e6) return `${decimal(whole, 6)}ms`;
  if (whole >= 1e3) return `${decimal(whole, 3)}us`;
  return `${whole}ns`;
}

/**
 * A moment that somebody typed, as the command line reads it. Null if it is none.
 * @param {string} text
 * @param {import('../core/answers.d.ts').Layout} layout
 */
export function momentOf(text, layout) {
  if (/^@\d+$/.test(text)) return sinceOrigin(BigInt(text.slice(1)), layout);
  const share = /^(\d+(?:\.\d+)?)%$/.exec(text);
  if (share) return Number(share[1]) <= 100 ? Math.round((Number(share[1]) / 100) * layout.span_ns) : null;
  const match = /^(\d*\.?\d+)\s*(s|ms|us|µs|μs|ns)$/.exec(text);
  if (!match) return text === '0' ? 0 : null;
  const unit = { s: 1e9, ms: 1e6, us: 1e3, µs: 1e3, μs: 1e3, ns: 1 }[match[2]] ?? 1;
  return Math.round(Number(match[1]) * unit);
}

/**
 * The answer of an analysis: what `tracesmith analyze --only NAME --format json` prints. Some answers are kept.
 * @template T
 * @param {string} name
 * @param {import('../core/api.js').Query} query
 * @param {AbortSignal} signal
 * @param {import('../core/layer.js').Layer} [layer] the open trace, or another one on the timeline
 * @returns {Promise<T>}
 */
export async function analysis(name, query, signal, layer = store.layers()[0]) {
  const { trace, layout } = layer;
  // Answers about a trace that grows are asked for again now and then, not with every picture.
  const generation = layer.place === 0 ? store.get().answers : layout?.generation;
  const key = JSON.stringify([trace, generation, name, query]);
  const kept = answers.get(key);
  if (kept !== undefined) return /** @type {T} */ (kept);
  /** @type {T} */
  const answer = await getExactJson(`t/${trace}/analysis/${name}`, query, { signal });
  answers.set(key, answer);
  if (answers.size > KEPT_ANSWERS) answers.delete(answers.keys().next().value ?? '');
  return answer;
}

/** @param {number} whole @param {number} digits */
function decimal(whole, digits) {
  const text = String(whole).padStart(digits + 1, '0');
  return `${text.slice(0, -digits)}.${text.slice(-digits)}`.replace(/\.?0+$/, '');
}
