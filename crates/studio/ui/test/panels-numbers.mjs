// Compares what each tab shows with the answer of its route, rounded by the page's own functions. Reports how many texts
// were compared, and those that are missing.

import { readFileSync } from 'node:fs';

import { eventually } from './browser.mjs';

// The page's own rounding. Node takes a .js file for a CommonJS module, so its text is imported.
const source = readFileSync(new URL('../core/units.js', import.meta.url), 'utf8');
const units = await import(`data:text/javascript,${encodeURIComponent(source)}`);

/** Texts that must be on a tab, from the answer of its route. */
const EXPECTED = {
  findings: ['analysis/findings', (answer) => answer.findings.flatMap((one) => [one.sentence, one.advice])],
  kernels: [
    'analysis/kernels?by=name',
    ({ rows }, { duration, percent, count }) =>
      rows.flatMap((row) => [
        duration(row.total_ns),
        percent(row.share),
        count(row.count),
        duration(row.mean_ns),
        duration(row.max_ns),
      ]),
  ],
  idle: [
    'analysis/idle',
    ({ devices }, { duration, percent }) =>
      devices.flatMap((one) => [
        duration(one.idle_ns),
        ...one.causes.flatMap((cause) => [duration(cause.total_ns), percent(cause.share)]),
      ]),
  ],
  steps: [
    'analysis/steps',
    ({ steps, settled }, { duration }) => [
      duration(settled.mean_ns),
      duration(settled.p50_ns),
      ...steps.map((step) => duration(step.end_ns - step.start_ns)),
    ],
  ],
  launches: [
    'analysis/launches',
    ({ call, latency, delay, queues }, { duration, percent }) => [
      ...[call, latency, delay].flatMap((one) => [duration(one.mean_ns), duration(one.p95_ns), duration(one.max_ns)]),
      ...queues.map((queue) => percent(queue.empty_share)),
    ],
  ],
  copies: [
    'analysis/copies',
    ({ rows }, { duration, bytes, count }) =>
      rows.flatMap((row) => [duration(row.total_ns), bytes(row.bytes), count(row.count), row.direction]),
  ],
  memory: [
    'analysis/memory',
    ({ pools }, { bytes }) => pools.flatMap((pool) => [bytes(pool.peak_bytes), bytes(pool.allocated_bytes)]),
  ],
  flame: ['flame?by=time', ({ total }, { duration }) => [duration(total)]],
  states: [
    'table/states',
    ({ columns, rows }, { duration }) => rows.map((row) => duration(row[columns.indexOf('idle_ns')])),
  ],
  'critical-path': [
    'analysis/critical-path',
    ({ path_ns, totals, segments }, { duration, percent, count }) => [
      duration(path_ns),
      ...totals.flatMap((total) => [duration(total.total_ns), percent(total.share)]),
      `${count(segments.length)} rows`,
    ],
  ],
  'what-if': [
    'analysis/what-if',
    ({ what_if: [report] }, { duration }) => [duration(report.measured_ns), duration(report.changed_ns)],
  ],
  health: [
    'layout',
    (layout, { bytes, duration }) => [
      layout.path,
      bytes(layout.bytes),
      duration(layout.span_ns),
      ...layout.health.sentences,
    ],
  ],
};

/** @param {(name: string) => Promise<void>} openTab */
export async function numbers(page, openTab) {
  const report = { verdict: await verdict(page) };
  for (const [name, [route, texts]] of Object.entries(EXPECTED)) {
    await openTab(name);
    report[name] = await compared(page, `[aria-labelledby=tab-${name}]`, route, texts);
  }
  return report;
}

async function verdict(page) {
  const use = await compared(page, 'ts-verdict', 'analysis/utilization', ({ devices: [first] }, { percent }) => [
    percent(first.utilization),
    percent(first.idle_ns / first.span_ns),
  ]);
  const steps = await compared(page, 'ts-verdict', 'analysis/steps', ({ settled }, { duration }) => [
    duration(settled.mean_ns),
  ]);
  return { compared: use.compared + steps.compared, missing: [...use.missing, ...steps.missing] };
}

/** Texts of an answer that the page should have at `place`. */
async function compared(page, place, route, texts) {
  const answer = await page.evaluate(async (path) => {
    const { store } = await import('/core/store.js');
    const key = sessionStorage.getItem('tracesmith-key');
    return (await fetch(`/api/v1/t/${store.get().trace}/${path}`, { headers: { 'X-TraceSmith-Key': key } })).json();
  }, route);
  const list = texts(answer, units);
  const missing = (text) => list.filter((one) => !plain(text).toLowerCase().includes(plain(one).toLowerCase()));
  const text = await eventually(
    page,
    `document.querySelector(${JSON.stringify(place)})?.textContent ?? ''`,
    (now) => missing(now).length === 0,
  );
  return { compared: list.length, missing: [...new Set(missing(text))] };
}

function plain(text) {
  return String(text).replace(/\s+/g, ' ');
}
