// Steps through the recording of a running server: the values on the page are written down, so that the test can hold
// them against what the command prints. The server's first trace has a recording, and the server may run it or not.
// node replay.mjs PLAYWRIGHT CHROMIUM ADDRESS AXE run|look KERNEL [REPLACEMENT]

import { eventually, open, rest, run, violations } from './browser.mjs';

const [axePath, mode, kernel, replacement] = rest;

await run(async (browser) => {
  const { page, seen } = await open(browser, { width: 1280, height: 1000 });
  await page.click('#tab-replay');
  const report = { opened: await opened(page) };
  if (mode === 'run') {
    await page.click('[data-focus=run]');
    await eventually(
      page,
      () => document.querySelector('.replay-badge')?.textContent,
      (text) => text === 'On the GPU',
    );
    await still(page);
  }
  report.badge = await page.textContent('.replay-badge');
  report.calls = await page.locator('[role=option][id^=replay-call]').count();
  const row = page.locator('.replay-call', { hasText: kernel }).first();
  report.number = Number(await row.getAttribute('data-number'));
  await row.click();
  await still(page);
  report.selected = await eventually(page, selectedName, Boolean);
  report.after = await values(page);
  report.buffer = await page.getAttribute('.replay-buffer.chosen', 'id');
  await page.click('.replay-left .switch button:text("Before")');
  await still(page);
  report.before = await values(page);
  report.address = await page.evaluate(() => location.hash);
  await page.reload();
  await eventually(
    page,
    () => document.querySelectorAll('.replay-values td').length,
    (count) => count > 0,
  );
  await still(page);
  report.reloaded = await values(page);
  await page.click('.replay-left .switch button:text("After")');
  await still(page);
  report.keys = await keys(page);
  await page.locator('.replay-call', { hasText: kernel }).first().click();
  await still(page);
  report.looks = await looks(page);
  if (mode === 'run') report.live = await live(page);
  report.followed = await follow(page);
  report.axe = {};
  for (const scheme of ['light', 'dark']) {
    await page.emulateMedia({ colorScheme: scheme });
    report.axe[scheme] = await violations(page, axePath);
  }
  if (mode === 'run') {
    await page.click('[data-focus=stop]');
    report.stopped = await eventually(
      page,
      () => document.querySelector('.replay-head')?.textContent,
      (text) => text?.includes('stopped'),
    );
  }
  report.console = seen.console.filter((text) => !text.startsWith('Failed to load resource'));
  report.foreign = seen.foreign;
  report.dialogs = seen.dialogs;
  return report;
});

/** What the tab shows before anything is run. */
async function opened(page) {
  await eventually(page, () => document.querySelector('.replay-badge')?.textContent, Boolean);
  await still(page);
  return page.evaluate(() => ({
    badge: document.querySelector('.replay-badge')?.textContent,
    canRun: document.querySelector('[data-focus=run]')?.getAttribute('aria-disabled') === 'false',
    words: document.querySelector('.replay-head')?.textContent,
  }));
}

/** Waits until the replay does nothing, and the contents are shown. */
async function still(page) {
  for (let turns = 0; turns < 3;) {
    await page.waitForTimeout(60);
    const isStill = await page.evaluate(
      () =>
        !document.querySelector('ts-replay-steps[data-busy]') &&
        !document.querySelector('.replay-content[aria-busy=true]') &&
        !document.querySelector('.replay-head .waiting'),
    );
    turns = isStill ? turns + 1 : 0;
  }
}

/** The numbers in the table, by their index. */
function values(page) {
  return page.evaluate(() =>
    [...document.querySelectorAll('.replay-values td[data-index]')].map((cell) => [
      Number(cell.dataset.index),
      cell.textContent,
      cell.classList.contains('differs'),
    ]),
  );
}

/** The name of the selected event of the timeline. */
async function selectedName() {
  const { store } = await import('/core/store.js');
  const { selection, shapes } = store.get();
  return selection ? shapes.name(selection.shape) : null;
}

/** Steps by keys: the number of the chosen call after each. */
async function keys(page) {
  const chosen = () => page.evaluate(() => document.querySelector('.replay-call.chosen')?.getAttribute('data-number'));
  const side = () => page.textContent('.replay-left .switch [aria-pressed=true]');
  const report = [];
  await page.focus('.replay-calls');
  for (const key of ['Home', 'ArrowDown', 'ArrowDown', 'ArrowUp', '.', ',', 'End']) {
    await page.keyboard.press(key);
    await still(page);
    report.push(`${key} ${await chosen()}`);
  }
  await page.keyboard.press('b');
  report.push(`b ${await side()}`);
  await page.keyboard.press('b');
  report.push(`b ${await side()}`);
  await page.keyboard.press('Home');
  await still(page);
  const disabled = await page.getAttribute('[aria-label="Previous call"]', 'aria-disabled');
  report.push(`first ${await chosen()} ${disabled}`);
  return report;
}

/** The other ways to look at a buffer. */
async function looks(page) {
  const look = async (name) => {
    await page.click(`[data-focus=look-${name}]`);
    await still(page);
  };
  const report = {};
  await look('hex');
  report.hex = await page.evaluate(() =>
    [...document.querySelectorAll('.replay-values.hex tbody tr')].slice(0, 2).map((line) =>
      [...line.querySelectorAll('td')]
        .slice(0, 16)
        .map((cell) => cell.textContent)
        .join(''),
    ),
  );
  await look('histogram');
  report.statistics = await page.evaluate(() =>
    Object.fromEntries(
      [...document.querySelectorAll('[data-fact]')].map((fact) => [fact.dataset.fact, fact.textContent]),
    ),
  );
  await look('heat');
  report.heat = await page.getAttribute('.replay-heat-canvas', 'aria-label');
  await page.focus('.replay-heat-canvas');
  await page.keyboard.press('ArrowRight');
  report.pointed = await page.textContent('.replay-heat [role=status]');
  report.colors = await page.evaluate(() => {
    const canvas = document.querySelector('.replay-heat-canvas');
    const { data } = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height);
    return new Set(new Uint32Array(data.buffer)).size;
  });
  await look('changes');
  report.changes = await page.textContent('.replay-content');
  await look('values');
  // A shape, and one that is none.
  await page.fill('[data-focus=shape]', '10x20');
  await page.keyboard.press('Enter');
  await still(page);
  report.shape = await page.evaluate(() =>
    [...document.querySelectorAll('.replay-values tbody th')].slice(0, 2).map((head) => head.textContent),
  );
  await page.click('.replay-pager [aria-label="Columns after"]');
  await still(page);
  report.column = await page.textContent('.replay-values thead th');
  await page.fill('[data-focus=shape]', 'x');
  await page.keyboard.press('Enter');
  report.invalid = await page.getAttribute('[data-focus=shape]', 'aria-invalid');
  await page.fill('[data-focus=shape]', '');
  await page.keyboard.press('Enter');
  await still(page);
  return report;
}

/** What needs a GPU. */
async function live(page) {
  const report = {};
  const act = async (name) => {
    await page.click(`[data-focus=action-${name}]`);
    await eventually(
      page,
      () => document.querySelector('.replay-answer, .replay-result .problem')?.textContent,
      Boolean,
    );
    await still(page);
    return page.textContent('.replay-result');
  };
  report.changed = await page.textContent('.replay-buffer .changed');
  report.compared = await act('compare');
  await page.click('.replay-result button:text("Close")');
  report.checked = await act('check');
  await page.click('.replay-result button:text("Close")');
  if (replacement) {
    await page.click('[data-focus=action-replace]');
    await page.fill('.replay-replace [name=file]', replacement);
    await page.click('.replay-replace [type=submit]');
    await eventually(
      page,
      () => document.querySelector('.replay-launches, .replay-result .problem')?.textContent,
      Boolean,
    );
    await still(page);
    report.replaced = await page.evaluate(() =>
      [...document.querySelectorAll('.replay-launches tbody td')].map((cell) => cell.textContent),
    );
    report.problem = await page.evaluate(() => document.querySelector('.replay-result .problem')?.textContent ?? null);
    await page.click('[data-focus=action-restore]');
    await eventually(page, () => document.querySelector('[data-focus=action-restore]') === null, Boolean);
    await still(page);
    report.restored = await values(page);
  }
  return report;
}

/** An event that is selected on the timeline is the chosen call. */
async function follow(page) {
  await page.focus('.replay-calls');
  await page.keyboard.press('Home');
  await still(page);
  await page.evaluate(() => document.activeElement?.blur());
  await page.evaluate(async (name) => {
    const { store } = await import('/core/store.js');
    const { getJson } = await import('/core/api.js');
    const { layout, trace, shapes } = store.get();
    for (const track of layout.tracks.filter(({ kind }) => kind === 'stream')) {
      for (let row = track.first_row; row < track.first_row + track.rows; row += 1) {
        for (let time = -1; ;) {
          const slice = await getJson(`t/${trace}/neighbor`, { row, time: Math.max(time, 0), direction: 'next' });
          if (!slice || slice.start <= time) break;
          time = slice.start;
          if (shapes.name(slice.shape).startsWith(name)) {
            store.select(slice);
            return;
          }
        }
      }
    }
  }, kernel);
  const chosen = await eventually(
    page,
    () => Number(document.querySelector('.replay-call.chosen')?.getAttribute('data-number')),
    (number) => number > 1,
  );
  return { chosen, tab: await page.getAttribute('#tab-replay', 'aria-selected') };
}
