// Checks the predicted timeline of a what-if: its rows, pixels at computed places, the tab, the address, keys.
// node ghost.mjs PLAYWRIGHT CHROMIUM ADDRESS AXE [PICTURE FOLDER]
// The server has a trace of six steps of 9 ms. Each launches gemm (2 ms) and norm (0.5 ms), then waits for both. If gemm
// takes half the time, each step ends 1 ms sooner than the step before.

import { eventually, hash, open, rest, run, settle, violations } from './browser.mjs';

const [axePath, pictures] = rest;
const STEPS = 6;
const MS = 1_000_000;
/** When gemm starts in a step that begins at 0, as the test's trace has it. */
const GEMM = 0.12 * MS;

await run(async (browser) => {
  const { page, seen, context } = await open(browser, { width: 1600, height: 1000 });
  const report = {};
  const alone = await hash(page);
  const window = await page.evaluate(async () => (await import('/core/store.js')).store.get().window);
  report.begun = await begin(page);
  report.rows = await rows(page);
  report.pixels = await pixels(page);
  report.verdict = await page.locator('.what-if-verdict').innerText();
  report.answer = await answer(page);
  report.axe = { light: await violations(page, axePath) };
  if (pictures) await page.screenshot({ path: `${pictures}/ghost-light.png` });
  await page.emulateMedia({ colorScheme: 'dark' });
  await settle(page);
  report.axe.dark = await violations(page, axePath);
  report.darkPixels = await pixels(page);
  if (pictures) await page.screenshot({ path: `${pictures}/ghost-dark.png` });
  await page.emulateMedia({ colorScheme: 'light' });
  await settle(page);
  report.switched = await switched(page, alone);
  report.restored = await restored(page);
  report.moved = await moved(page, context);
  report.copies = await copies(page);
  report.removed = await removed(page, alone, window);
  report.console = seen.console;
  report.foreign = seen.foreign;
  return report;
});

/** Chooses `gemm × 0.5` in the form of the what-if tab. */
async function begin(page) {
  await page.getByRole('tab', { name: 'What-if' }).click();
  const pattern = page.getByRole('textbox', { name: 'Pattern of kernel names' });
  await pattern.fill('gemm');
  await page.getByRole('button', { name: 'Add', exact: true }).click();
  await ghostIs(page, true);
  const address = await eventually(page, () => location.hash, (text) => text.includes('scale.gemm'));
  return { address: address.includes('scale.gemm'), pressed: await pressed(page) };
}

/** Waits until the predicted timeline is there, or is not. */
async function ghostIs(page, isThere) {
  const keys = async () => (await import('/core/store.js')).store.get().layers.map(({ key }) => key);
  await eventually(page, keys, (found) => found.includes('ghost') === isThere);
  await settle(page);
}

function pressed(page) {
  return page.locator('ts-ghost button').getAttribute('aria-pressed');
}

/** Every predicted row is directly beneath the measured one of the same name. */
async function rows(page) {
  return page.evaluate(async () => {
    const { store } = await import('/core/store.js');
    const ghost = store.get().layers.find(({ key }) => key === 'ghost');
    const items = [...document.querySelectorAll('.tl-list [role=treeitem].tl-track')];
    const name = (item) => item?.querySelector('.tl-name').textContent;
    const predicted = items.filter((item) => item.dataset.layer === 'ghost');
    return {
      tracks: ghost.layout.tracks.map(({ kind }) => kind),
      items: predicted.length,
      beneath: predicted.every((item) => {
        const above = items[items.indexOf(item) - 1];
        return above && above.dataset.layer !== 'ghost' && name(above) === name(item);
      }),
      named: predicted.every((item) => item.getAttribute('aria-label').startsWith('predicted')),
    };
  });
}

/**
 * Where gemm is measured and where it is predicted, in the row of its stream and in the one beneath: colour there, and
 * none where only the other one is.
 */
async function pixels(page) {
  const expected = Array.from({ length: STEPS }, (_, step) => {
    const measured = step * 10 * MS + GEMM;
    return { measured: [measured, measured + 2 * MS], predicted: [measured - step * MS, measured - step * MS + MS] };
  });
  return page.evaluate(async (ops) => {
    const { store } = await import('/core/store.js');
    const timeline = document.querySelector('ts-timeline');
    const canvas = document.querySelector('.tl-canvas');
    const { data } = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height);
    const { window, layout } = store.get();
    // The trace begins 50 µs before the first step's range.
    const first = layout.span_ns > 0 ? store.get().steps[0].from : 0;
    const x = (time) => Math.round(((first + time - window.from) / (window.to - window.from)) * canvas.width);
    // The middle of the first lane: the measured stream has its waits in another one.
    const middle = (key) => {
      const item = timeline.rows.items.find(
        ({ track, isGroup }) =>
          track && !isGroup && track.kind === 'stream' && store.layerOf(track.first_row).key === key,
      );
      return Math.round(item.y - timeline.scrolled + item.height / 2 / item.track.rows);
    };
    /** How strong the strongest colour is around a place: the hatch leaves parts of a slice free. */
    const color = (time, key) => {
      let most = 0;
      for (let dx = -4; dx <= 4; dx += 1) {
        const at = (middle(key) * canvas.width + x(time) + dx) * 4;
        const [r, g, b] = data.slice(at, at + 3);
        most = Math.max(most, Math.max(r, g, b) - Math.min(r, g, b));
      }
      return most;
    };
    const report = { checked: 0, wrong: [] };
    const check = (time, key, isThere) => {
      const found = color(time, key);
      report.checked += 1;
      if (found > 40 !== isThere) report.wrong.push({ time, key, isThere, found });
    };
    for (const { measured, predicted } of ops) {
      const inside = ([from, to]) => (from + to) / 2;
      check(inside(measured), 'a', true);
      check(inside(predicted), 'ghost', true);
      // 1.5 ms before a measured gemm nothing runs; nor 2 ms before a predicted one.
      check(measured[0] - 1.5e6, 'a', false);
      check(predicted[0] - 2e6, 'ghost', false);
    }
    return report;
  }, expected);
}

/** The answer of the server, as the page got it. */
function answer(page) {
  return page.evaluate(async () => {
    const { getJson } = await import('/core/api.js');
    const { changesQuery, chosenChanges } = await import('/panels/changes.js');
    const { trace } = (await import('/core/store.js')).store.get();
    return getJson(`t/${trace}/analysis/what-if`, { what_if: changesQuery(chosenChanges()) });
  });
}

/** The key hides the predicted rows, and shows the same picture again. */
async function switched(page, alone) {
  const before = await hash(page);
  await page.locator('ts-timeline').press('o');
  await ghostIs(page, false);
  const hidden = { pressed: await pressed(page), same: (await hash(page)) === alone };
  const address = await eventually(page, () => location.hash, (text) => text.includes('ghost.off'));
  await page.locator('ts-ghost button').click();
  await ghostIs(page, true);
  return { hidden, address: address.includes('ghost.off'), again: (await hash(page)) === before };
}

/** A reload shows the same picture. */
async function restored(page) {
  const before = await hash(page);
  await page.waitForTimeout(300);
  await page.reload();
  await ghostIs(page, true);
  const verdict = await eventually(
    page,
    () => document.querySelector('.what-if-verdict')?.textContent ?? '',
    (text) => text !== '',
  );
  return { same: (await hash(page)) === before, verdict: verdict.includes('→') };
}

/** Where the gemm of the third step is, selected in either timeline. */
async function moved(page) {
  await page.evaluate(async () => {
    const { store } = await import('/core/store.js');
    const { getJson } = await import('/core/api.js');
    const { layout, steps } = store.get();
    const stream = layout.tracks.find(({ kind }) => kind === 'stream');
    const slice = await getJson(`t/${store.get().trace}/neighbor`, {
      row: stream.first_row,
      time: steps[2].from,
      direction: 'next',
    });
    store.openTab('details');
    store.select(slice, { reveal: true });
  });
  const texts = () => [...document.querySelectorAll('table.moved td.number')].map(({ textContent }) => textContent);
  const measured = await eventually(page, texts, (found) => found.length === 6);
  await page.getByRole('button', { name: 'Select the predicted event' }).click();
  const isGhost = async () => {
    const { store } = await import('/core/store.js');
    const { selection } = store.get();
    return selection ? { layer: store.layerOf(selection.row).key, ...selection } : null;
  };
  const selected = await eventually(page, isGhost, (found) => found?.layer === 'ghost');
  const predicted = await eventually(page, texts, (found) => found.length === 6);
  await page.waitForTimeout(300);
  await page.reload();
  await ghostIs(page, true);
  const again = await eventually(page, isGhost, (found) => found !== null);
  return {
    measured,
    same: JSON.stringify(measured) === JSON.stringify(predicted),
    layer: selected.layer,
    duration: selected.duration,
    restored: JSON.stringify(again) === JSON.stringify(selected),
  };
}

/** With hidden copies instead: nothing changes, since the trace has none. */
async function copies(page) {
  await page.getByRole('tab', { name: 'What-if' }).click();
  await page.getByRole('button', { name: 'Remove gemm' }).click();
  await ghostIs(page, false);
  await page.getByRole('checkbox', { name: /Copies are hidden/ }).check();
  await ghostIs(page, true);
  const verdict = await eventually(
    page,
    () => document.querySelector('.what-if-verdict')?.textContent ?? '',
    (text) => text.includes('→'),
  );
  return { verdict, answer: (await answer(page)).what_if[0].changed_ns };
}

/** Without changes there is no switch, and the picture is as before. */
async function removed(page, alone, window) {
  await page.getByRole('button', { name: 'Remove all changes' }).click();
  await ghostIs(page, false);
  await page.evaluate(async (first) => {
    const { store } = await import('/core/store.js');
    store.set({ selection: null, window: first });
  }, window);
  await settle(page);
  return { hidden: await page.locator('ts-ghost').isHidden(), same: (await hash(page)) === alone };
}
