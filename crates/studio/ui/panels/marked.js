// Time ranges that the timeline outlines: evidence of a finding, the critical path.

/** @typedef {{row: number, from: number, to: number, kind: 'evidence'|'critical'|'ghost'|'pair'}} MarkedSpan */
/** @typedef {HTMLElement & {setSpans?: (spans: MarkedSpan[]) => void}} Timeline */

/** Stands for every row. */
export const ALL_ROWS = -1;

/** Outlines these time ranges, and no others. @param {MarkedSpan[]} spans */
export function mark(spans) {
  /** @type {Timeline|null} */
  const timeline = document.querySelector('ts-timeline');
  timeline?.setSpans?.(spans);
}
