// A flight over a trace, and the time that drawing takes. Everything is a count or a ratio, so that it holds on any
// machine.
// node flight.mjs PLAYWRIGHT CHROMIUM ADDRESS [FEW MANY]   FEW, MANY: traces with the same rows, MANY with more events

import { open, openTrace, rest, run, settle } from './browser.mjs';

const TURNS = 6;
const [few, many] = rest.map(Number);

await run(async (browser) => {
  const { page, seen } = await open(browser);
  const report = { flight: await flight(page, seen) };
  if (Number.isFinite(many)) report.draw = await draw(page);
  report.console = seen.console;
  return report;
});

/** 450 frames: zoom in by 10^5, pan, zoom out. */
async function flight(page, seen) {
  const before = await page.evaluate(() => ({ ...document.querySelector('ts-timeline').stats }));
  const flown = await page.evaluate(async () => {
    const { store } = await import('/core/store.js');
    const span = store.span();
    const middle = span * 0.437;
    const frame = () => new Promise((resolve) => requestAnimationFrame(resolve));
    const times = [];
    let last = await frame();
    for (let i = 0; i < 450; i += 1) {
      const depth = i < 150 ? i / 150 : i < 300 ? 1 : (450 - i) / 150;
      const length = span * 10 ** (-5 * depth);
      const shift = i < 150 ? 0 : Math.min(i - 150, 150) * length * 0.05;
      const centre = middle + (i < 300 ? shift : 150 * 0.05 * span * 1e-5);
      store.set({ window: store.clamp({ from: centre - length / 2, to: centre + length / 2 }) }, { history: 'none' });
      const now = await frame();
      times.push(now - last);
      last = now;
    }
    return times;
  });
  await settle(page);
  const after = await page.evaluate(() => ({ ...document.querySelector('ts-timeline').stats }));
  const asked = new Map();
  let requests = 0;
  for (const request of seen.requests) {
    const url = new URL(request.url());
    if (!url.pathname.endsWith('/tiles') || seen.failed.has(request)) continue;
    requests += 1;
    for (const row of rowsOf(url.searchParams.get('rows'))) {
      const key = `${url.pathname} ${url.searchParams.get('level')} ${url.searchParams.get('first')} ${row}`;
      asked.set(key, (asked.get(key) ?? 0) + 1);
    }
  }
  const repeated = [...asked.values()].filter((count) => count > 1).length;
  const drawn = after.times.slice(-Math.min(450, after.frames - before.frames));
  return {
    frames: after.frames - before.frames,
    holes: after.holes - before.holes,
    requests,
    repeated,
    example: [...asked].find(([, count]) => count > 1)?.[0] ?? null,
    aborted: seen.failed.size,
    frameMedianMs: median(flown),
    drawMedianMs: median(drawn),
    drawMaxMs: Math.max(...drawn),
  };
}

/** Draw times of two traces, in alternating turns. */
async function draw(page) {
  const ratios = [];
  const medians = { few: [], many: [] };
  for (let turn = 0; turn < TURNS; turn += 1) {
    const [a, b] = [await drawTime(page, few), await drawTime(page, many)];
    medians.few.push(a);
    medians.many.push(b);
    ratios.push(b / a);
  }
  return {
    ratio: median(medians.many) / median(medians.few),
    ratios,
    fewMs: median(medians.few),
    manyMs: median(medians.many),
  };
}

/** Median draw time over views of several widths. */
async function drawTime(page, trace) {
  await openTrace(page, trace);
  return page.evaluate(async () => {
    const { store } = await import('/core/store.js');
    const timeline = document.querySelector('ts-timeline');
    const frame = () => new Promise((resolve) => requestAnimationFrame(resolve));
    const span = store.span();
    const times = [];
    for (const share of [1, 0.1, 0.01]) {
      store.set({ window: store.clamp({ from: span * 0.4, to: span * (0.4 + share) }) }, { history: 'none' });
      for (let i = 0; i < 100 && !timeline.isSettled; i += 1) await frame();
      for (let i = 0; i < 12; i += 1) {
        timeline.redraw();
        await frame();
        await frame();
        times.push(timeline.stats.times.at(-1));
      }
    }
    // The clock of a page has steps of a tenth of a millisecond, which a mean levels out. Half of the times are those of
    // a machine that does nothing else.
    const undisturbed = times.sort((a, b) => a - b).slice(0, times.length >> 1);
    return undisturbed.reduce((sum, time) => sum + time, 0) / undisturbed.length;
  });
}

function rowsOf(text) {
  return (text ?? '').split(',').flatMap((part) => {
    const [from, to] = part.split('-').map(Number);
    return Array.from({ length: (to ?? from) - from + 1 }, (_, i) => from + i);
  });
}

function median(values) {
  return [...values].sort((a, b) => a - b)[values.length >> 1];
}
