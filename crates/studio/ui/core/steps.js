// The steps of the trace, for the ruler, the minimap and the keys.

import { getExactJson, isAbort } from './api.js';
import { store } from './store.js';

/** @typedef {import('./answers.d.ts').Layout} Layout */
/** @typedef {{steps?: {name: string, start_ns: number | bigint, end_ns: number | bigint}[]}} StepsAnswer */

/** @typedef {{steps: import('./store.js').Span[], stepNames: string[]}} Steps */

/** Ends when the steps of the open trace are there. */
let loading = Promise.resolve();

/**
 * Loads the steps of the open trace.
 * @param {number} trace @param {Layout} layout @param {AbortSignal} signal
 */
export function loadSteps(trace, layout, signal) {
  loading = stepsOf(trace, layout, signal).then((found) => {
    if (!signal.aborted) store.set(found, { history: 'none' });
  });
}

/** Waits for the steps of the open trace. */
export function stepsLoaded() {
  return loading;
}

/**
 * The steps of a trace; one without steps has none, whatever the reason.
 * @param {number} trace @param {Layout} layout @param {AbortSignal} signal
 * @returns {Promise<Steps>}
 */
export async function stepsOf(trace, layout, signal) {
  // Predicted steps have lengths, which the what-if tab shows, and no places.
  if (layout.predicted_of !== undefined) return { steps: [], stepNames: [] };
  try {
    /** @type {StepsAnswer | {steps?: StepsAnswer | null} | null} */
    const answer = await getExactJson(`t/${trace}/analysis/steps`, {}, { signal });
    const list = stepList(answer);
    const origin = BigInt(layout.origin_ns);
    const after = (/** @type {number | bigint} */ time) => Number(BigInt(time) - origin);
    const steps = list.map(({ start_ns, end_ns }) => ({ from: after(start_ns), to: after(end_ns) }));
    return { steps, stepNames: list.map(({ name }) => name) };
  } catch (error) {
    // A trace whose steps cannot be told apart answers with an error: the panel of steps shows it.
    if (!isAbort(error) && !(error instanceof Error)) throw error;
    return { steps: [], stepNames: [] };
  }
}

/** The steps in the answer, which holds the report by its name or bare. @param {any} answer */
function stepList(answer) {
  const report = answer?.steps && !Array.isArray(answer.steps) ? answer.steps : answer;
  return /** @type {NonNullable<StepsAnswer['steps']>} */ (Array.isArray(report?.steps) ? report.steps : []);
}
