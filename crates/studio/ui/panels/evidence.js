// Findings lead to their evidence: the time range on the timeline, and the event or gap in it.

import { store } from '../core/store.js';
import { duration, moment } from '../core/units.js';
import { getJson } from '../core/api.js';
import { rowsOf, sliceAt } from './locate.js';
import { ALL_ROWS, mark } from './marked.js';
import { sinceOrigin } from './times.js';

/** @typedef {import('./analysis.d.ts').Evidence} Evidence */
/** @typedef {import('./analysis.d.ts').Finding} Finding */

/** The tab that shows more for findings whose evidence is no single moment. @type {Record<string, string>} */
const TABS = {
  leaks: 'memory',
  bad_frees: 'memory',
  uneven_steps: 'steps',
  pageable_copies: 'copies',
  small_copies: 'copies',
  copies_alone: 'copies',
  short_kernels: 'launches',
};

/**
 * Zooms to evidence, and selects the gap or the event there.
 * @param {Evidence} evidence
 */
export async function showEvidence(evidence) {
  const { layout } = store.get();
  if (!layout) return;
  const from = sinceOrigin(evidence.start_ns, layout);
  const to = from + Number(BigInt(evidence.end_ns) - BigInt(evidence.start_ns));
  store.zoomTo({ from, to: Math.max(to, from + 1) }, { margin: 0.6 });
  store.announce(`${evidence.what} at ${moment(from, 1000)}, ${duration(to - from)}.`);
  const slice = evidence.what.startsWith('idle before')
    ? ((await gapAt(from, to)) ?? (await opAt(evidence, to)))
    : await opAt(evidence, from);
  mark([{ row: slice?.row ?? ALL_ROWS, from, to, kind: 'evidence' }]);
  if (slice) store.select(slice, { reveal: true, history: 'replace' });
  store.openTab('details');
}

/**
 * Shows the evidence of a finding of that number, or the tab that has more if there is none.
 * @param {Finding} finding
 * @param {number} number
 */
export async function showFinding(finding, number) {
  if (finding.evidence.length > 0) await showEvidence(finding.evidence[number % finding.evidence.length]);
  else store.openTab(TABS[finding.rule] ?? 'findings');
}

/** The idle gap that covers the middle of a time range. @param {number} from @param {number} to */
async function gapAt(from, to) {
  const { trace } = store.get();
  const middle = Math.floor((from + to) / 2);
  for (const row of rowsOf(['idle'])) {
    /** @type {import('../core/answers.d.ts').Slice|null} */
    const slice = await getJson(`t/${trace}/neighbor`, { row, time: middle + 1, direction: 'previous' });
    if (slice && slice.start + slice.duration > middle && slice.duration <= 2 * (to - from)) return slice;
  }
  return null;
}

/** @param {Evidence} evidence @param {number} start */
function opAt(evidence, start) {
  return sliceAt(evidence.table, start, evidence.what.replace(/^(idle before|the longest) /, ''));
}
