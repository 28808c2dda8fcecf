// Looks at a trace that is being recorded: rows grow at the right edge, the picture can be held, and the end comes.
// node live.mjs PLAYWRIGHT CHROMIUM ADDRESS AXE STOP [PICTURE FOLDER]   STOP: a file that ends the recording when it
// is made; STOP.second: one that adds a stream

import { writeFileSync } from 'node:fs';

import { eventually, hash, open, rest, run, settle, violations } from './browser.mjs';

const [axePath, stop, pictures] = rest;

await run(async (browser) => {
  const { page, seen } = await open(browser, { width: 1280, height: 700 });
  const report = { button: await buttonText(page) };
  await pinAndSelect(page);
  const before = await facts(page);
  writeFileSync(`${stop}.second`, '');
  report.grown = await grown(page, before);
  report.requests = await requests(page, seen);
  if (pictures) await page.screenshot({ path: `${pictures}/live.png` });
  report.axe = await violations(page, axePath);
  report.zoomed = await zoomed(page);
  report.held = await held(page);
  if (pictures) await page.screenshot({ path: `${pictures}/held.png` });
  report.resumed = await resumed(page);
  writeFileSync(stop, '');
  report.ended = await ended(page);
  report.console = seen.console;
  report.foreign = seen.foreign;
  report.refused = seen.refused ?? [];
  return report;
});

function buttonText(page) {
  return eventually(
    page,
    () => document.querySelector('ts-live button')?.textContent ?? '',
    (text) => text !== '',
  );
}

/** What a person would not like to lose. */
async function pinAndSelect(page) {
  await page.evaluate(async () => {
    const { store } = await import('/core/store.js');
    const { fetchSlices } = await import('/timeline/slices.js');
    const { layout, trace } = store.get();
    const track = layout.tracks.find(({ kind }) => kind === 'stream');
    store.chooseRows({ pinned: [track.key] });
    const columns = (await fetchSlices(trace, layout.generation, [track.first_row], 0, layout.span_ns, 10)).get(
      track.first_row,
    );
    store.select({
      row: track.first_row,
      start: columns.start[1],
      duration: columns.duration[1],
      shape: columns.shape[1],
    });
  });
  await settle(page);
}

function facts(page) {
  return page.evaluate(async () => {
    const { store } = await import('/core/store.js');
    const { layout, window, selection, rows, following, behind, shapes } = store.get();
    return {
      span: layout.span_ns,
      slices: layout.tracks.filter(({ kind }) => kind === 'stream').reduce((sum, { slices }) => sum + slices, 0),
      tracks: layout.tracks.length,
      window,
      following,
      behind,
      pinned: rows.pinned.join(),
      selected: selection && `${shapes.name(selection.shape)} ${selection.start} ${selection.duration}`,
      scroll: document.querySelector('.tl-body').scrollTop,
      live: layout.live?.state ?? null,
      generation: layout.generation,
      button: document.querySelector('ts-live')?.textContent ?? '',
    };
  });
}

/** Waits until there are more slices than before. */
async function more(page, before) {
  for (let turn = 0; turn < 200; turn += 1) {
    const now = await facts(page);
    if (now.slices > before.slices) return now;
    await page.waitForTimeout(50);
  }
  throw new Error('the rows do not grow');
}

/** Several generations, each with what the one before had, and the newest work at the right edge. */
async function grown(page, first) {
  const result = { generations: 0, atEdge: 0, edgeDrawn: 0, kept: 0, moved: 0 };
  let before = first;
  let picture = await hash(page);
  for (let turn = 0; turn < 3; turn += 1) {
    const now = await more(page, before);
    await settle(page);
    const drawn = await page.evaluate(async () => {
      const { store } = await import('/core/store.js');
      const timeline = document.querySelector('ts-timeline');
      // The other stream has a kernel now and then only.
      const streams = store.get().layout.tracks.filter(({ kind }) => kind === 'stream');
      const row = streams.toSorted((a, b) => b.slices - a.slices)[0].first_row;
      const width = document.querySelector('.tl-canvas').width;
      const shares = [1, 2, 3, 4, 5, 6].map((i) => timeline.cellAt(row, width - 2 * i));
      return shares.some((cell) => cell && Array.from(cell).some((share) => share > 0));
    });
    const next = await hash(page);
    result.generations += now.generation !== before.generation ? 1 : 0;
    result.atEdge += Math.abs(now.window.to - now.span) < 1 ? 1 : 0;
    result.edgeDrawn += drawn ? 1 : 0;
    result.kept += ['pinned', 'selected', 'scroll'].every((name) => now[name] === first[name]) ? 1 : 0;
    result.moved += next !== picture ? 1 : 0;
    picture = next;
    before = now;
  }
  return { ...result, tracks: [first.tracks, before.tracks], rowsAdded: before.tracks > first.tracks };
}

/** While the past is in view, tiles of it are not asked for again. */
async function requests(page, seen) {
  const from = seen.requests.length;
  const before = await facts(page);
  // Far in, at the beginning, the picture is held: nothing is asked for.
  await page.evaluate(async () => {
    const { store } = await import('/core/store.js');
    store.set({ window: store.clamp({ from: 0, to: store.span() / 8 }) });
  });
  await settle(page);
  const start = seen.requests.length;
  await page.waitForTimeout(2500);
  const asked = seen.requests.slice(start).map((request) => new URL(request.url()).pathname);
  await page.keyboard.press('l');
  await more(page, before);
  await settle(page);
  return { all: seen.requests.length - from, held: asked.filter((path) => /tiles|slices$/.test(path)).length };
}

/** Zooming by the keyboard goes on to follow. */
async function zoomed(page) {
  const before = await facts(page);
  for (let i = 0; i < 4; i += 1) await page.keyboard.press('w');
  await settle(page);
  const now = await more(page, before);
  return { following: now.following, share: (now.window.to - now.window.from) / now.span };
}

/** A window that does not end with the trace stands still. */
async function held(page) {
  await page.keyboard.press('a');
  await settle(page);
  const before = await facts(page);
  const picture = await hash(page);
  await page.waitForTimeout(3000);
  const now = await facts(page);
  return {
    following: now.following,
    same: (await hash(page)) === picture && now.slices === before.slices,
    behind: now.behind,
    button: now.button,
  };
}

async function resumed(page) {
  const before = await facts(page);
  await page.click('ts-live button');
  const now = await more(page, before);
  return { following: now.following, button: now.button, atEdge: Math.abs(now.window.to - now.span) < 1 };
}

/** The file is complete: the page shows what a new page shows. */
async function ended(page) {
  await complete(page);
  await page.evaluate(async () => {
    const { store } = await import('/core/store.js');
    store.set({ selection: null, rows: { ...store.get().rows, pinned: [] } });
    store.zoomTo({ from: 0, to: store.span() }, { margin: 0 });
  });
  await settle(page);
  const last = await facts(page);
  const picture = await hash(page);
  if (pictures) await page.screenshot({ path: `${pictures}/ended.png` });
  await page.reload();
  await complete(page);
  await settle(page);
  if (pictures) await page.screenshot({ path: `${pictures}/reloaded.png` });
  return { ...last, sameAsNew: (await hash(page)) === picture };
}

/** Waits until the whole file is read. */
async function complete(page) {
  for (let turn = 0; turn < 600; turn += 1) {
    const isComplete = await page.evaluate(async () => {
      const { layout } = (await import('/core/store.js')).store.get();
      return layout?.state === 'ready' && !layout.live && layout.idle !== 'pending';
    });
    if (isComplete) return;
    await page.waitForTimeout(50);
  }
  throw new Error('the recording does not end');
}
