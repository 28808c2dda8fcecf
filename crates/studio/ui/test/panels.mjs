// Checks the panels of a running server: numbers against the answers of the routes, roles and keys, sorting, search,
// commands, SQL, history and accessibility. The first trace of the server must have kernels and steps.
// node panels.mjs PLAYWRIGHT CHROMIUM ADDRESS AXE [PICTURE FOLDER]

import { eventually, open, rest, run, settle, violations } from './browser.mjs';
import { numbers } from './panels-numbers.mjs';

const [axePath, pictures] = rest;

await run(async (browser) => {
  const { page, seen, context } = await open(browser);
  await context.grantPermissions(['clipboard-read', 'clipboard-write']);
  const refused = [];
  page.on('response', (answer) => {
    if (answer.status() >= 400) refused.push(`${answer.status()} ${new URL(answer.url()).pathname}`);
  });
  const report = {};
  report.tabs = await tabs(page);
  report.numbers = await numbers(page, (name) => openTab(page, name));
  report.table = await table(page);
  report.findings = await findings(page);
  report.details = await details(page);
  report.history = await history(page);
  report.search = await search(page);
  report.commands = await commands(page);
  report.sql = await sql(page);
  report.area = await area(page);
  report.keysList = await keysList(page);
  report.markup = await markup(page);
  report.axe = { light: await everyTab(page, 'light'), dark: await everyTab(page, 'dark') };
  // Chromium writes down every answer that is an error; `refused` has them.
  report.console = seen.console.filter((text) => !text.startsWith('Failed to load resource'));
  report.refused = refused;
  report.dialogs = seen.dialogs;
  report.foreign = seen.foreign;
  return report;
});

/** Opens a tab, and waits until its panel has its answer. */
async function openTab(page, name) {
  await page.click(`#tab-${name}`);
  const isReady = () => {
    const panel = document.querySelector('.tab-page:not([hidden]) > *');
    return Boolean(
      panel && panel.childElementCount > 0 && !panel.hasAttribute('aria-busy') && !panel.querySelector('.waiting'),
    );
  };
  await eventually(page, isReady, Boolean);
}

/** The keys of the list of tabs: one tab is in the order of focus, arrows move. */
async function tabs(page) {
  await openTab(page, 'details');
  await page.focus('#tab-details');
  const state = () =>
    page.evaluate(() => ({
      selected: [...document.querySelectorAll('[role=tab][aria-selected=true]')].map(({ id }) => id),
      focusable: [...document.querySelectorAll('[role=tab][tabindex="0"]')].map(({ id }) => id),
      focused: document.activeElement?.id,
      shown: [...document.querySelectorAll('[role=tabpanel]:not([hidden])')].map((one) =>
        one.getAttribute('aria-labelledby'),
      ),
    }));
  const report = {
    names: await page.evaluate(() =>
      [...document.querySelectorAll('[role=tab]')].map(({ textContent }) => textContent),
    ),
  };
  for (const key of ['ArrowRight', 'End', 'ArrowRight', 'ArrowLeft', 'Home']) {
    await page.keyboard.press(key);
    const { selected, focusable, focused, shown } = await state();
    const isOne = selected.length === 1 && focusable.length === 1 && shown.length === 1;
    const isSame = selected[0] === focusable[0] && selected[0] === focused && selected[0] === shown[0];
    report[`${Object.keys(report).length} ${key}`] =
      isOne && isSame ? selected[0] : { selected, focusable, focused, shown };
  }
  return report;
}

/** Sorting, filter, copy and keys of a table. */
async function table(page) {
  await openTab(page, 'kernels');
  const cells = () =>
    page.evaluate(() =>
      [...document.querySelectorAll('ts-kernels tbody tr.row')].map((row) => row.lastElementChild?.textContent ?? ''),
    );
  const sorts = () =>
    page.evaluate(() =>
      [...document.querySelectorAll('ts-kernels th')].map((head) => head.ariaSort).filter((sort) => sort !== 'none'),
    );
  const report = { rows: (await cells()).length };
  await page.click('ts-kernels th[data-key=name] button');
  const up = await cells();
  await page.click('ts-kernels th[data-key=name] button');
  const down = await cells();
  report.sort = await sorts();
  report.isReversed = up.join('\n') === [...down].reverse().join('\n') && up.length > 1;
  await page.fill('ts-kernels input[type=search]', down[0]);
  report.filtered = (await cells()).every((name) => name.includes(down[0]));
  await page.fill('ts-kernels input[type=search]', '/(/');
  report.wrongPattern = await page.textContent('ts-kernels .table-state');
  await page.fill('ts-kernels input[type=search]', '');
  await page.click('ts-kernels .tools button:text("Copy")');
  await page.waitForTimeout(100);
  const copied = await page.evaluate(() => navigator.clipboard.readText());
  report.copied = { lines: copied.split('\n').length - 1, head: copied.split('\n')[0].split('\t') };
  await page.focus('ts-kernels .row-button');
  await page.keyboard.press('End');
  const focused = () => page.evaluate(() => Number(document.activeElement?.closest('tr')?.dataset.number));
  report.keys = [await focused()];
  await page.keyboard.press('ArrowUp');
  report.keys.push(await focused());
  await page.keyboard.press('Enter');
  report.opened = await eventually(page, selection, Boolean);
  return report;
}

/** A finding leads to its evidence. */
async function findings(page) {
  const report = { buttons: await page.locator('.finding').count() };
  if (report.buttons === 0) return report;
  await page.click('.finding');
  await settle(page);
  const answer = await ask(page, 'analysis/findings');
  const { evidence } = answer.findings[0];
  const { layout, window } = await stateOf(page);
  const start = evidence[0].start_ns - Number(layout.origin_ns);
  report.isInWindow = start >= window.from && start <= window.to;
  report.selected = await eventually(page, selection, Boolean);
  return report;
}

/** The details of an event are those of its route; a gap names its cause and its cost. */
async function details(page) {
  await openTab(page, 'kernels');
  await page.focus('ts-kernels .row-button');
  await page.keyboard.press('Home');
  await page.keyboard.press('Enter');
  await settle(page);
  await openTab(page, 'details');
  const chosen = await page.evaluate(selection);
  const event = await ask(page, `event?row=${chosen.row}&start=${chosen.start}&shape=${chosen.shape}`);
  const text = await eventually(
    page,
    () => document.querySelector('ts-details')?.textContent ?? '',
    (words) => words.includes('All columns'),
  );
  const { duration, shortName } = await units(page, event);
  const report = { name: text.includes(shortName), duration: text.includes(duration) };
  report.launch = !event.launch || text.includes(event.launch.name);
  report.frames = event.stack?.frames.length ?? 0;
  report.hasStack = report.frames === 0 || (await page.locator('ts-details ol.stack li').count()) > 0;
  const before = chosen.start;
  await page.click('ts-details [data-focus=next]');
  await page.waitForTimeout(400);
  const next = await page.evaluate(selection);
  report.next =
    next.shape === chosen.shape && (event.runs?.count > 1 ? next.start !== before || next.row !== chosen.row : true);
  return report;
}

/** Back and Forward bring selections back. */
async function history(page) {
  const first = await page.evaluate(() => location.hash);
  const chosen = await page.evaluate(selection);
  await page.click('ts-details button:text("Previous")');
  await page.waitForTimeout(400);
  await page.goBack();
  const back = await eventually(page, selection, (now) => now?.start === chosen.start);
  const report = { back: back?.start === chosen.start, address: (await page.evaluate(() => location.hash)) === first };
  await page.goForward();
  const forward = await eventually(page, selection, (now) => now?.start !== chosen.start);
  report.forward = forward?.start !== chosen.start;
  return report;
}

/** The search finds what the route finds, and Enter goes from one to the next. */
async function search(page) {
  const { rows } = await ask(page, 'analysis/kernels');
  const name = rows[0].name;
  const answer = await ask(page, `search?q=${encodeURIComponent(name)}&in=names&limit=500`);
  await page.keyboard.press('Escape');
  await page.focus('#tab-details');
  await page.keyboard.press('/');
  const report = { focused: await page.evaluate(() => document.activeElement?.getAttribute('role')) };
  for (const place of ['stacks', 'markers'])
    await page.locator(`ts-search label:has-text("${place}") input`).evaluate((box) => box.click());
  await page.fill('ts-search > input', name);
  const words = () => document.querySelector('.search-words')?.textContent ?? '';
  report.words = await eventually(page, words, (text) => /event/.test(text));
  report.total = answer.total;
  await page.keyboard.press('Enter');
  report.first = (await eventually(page, selection, Boolean))?.start === answer.results[0].start;
  await page.keyboard.press('Enter');
  const second = answer.results[1]?.start ?? answer.results[0].start;
  report.second =
    (await eventually(page, selection, (now) => now?.start === answer.results[1]?.start))?.start === second;
  await page.fill('ts-search > input', '/(/');
  report.wrong = await eventually(page, words, (text) => /regular/.test(text));
  await page.keyboard.press('Escape');
  report.closed = await page.evaluate(() => document.querySelector('.search-box')?.hidden);
  return report;
}

/** Commands in the words of the command line. */
async function commands(page) {
  const report = {};
  const write = async (text) => {
    await page.focus('#tab-details, [role=tab][tabindex="0"]');
    await page.keyboard.press(':');
    await page.fill('ts-search > input', text);
    await page.keyboard.press('Enter');
    await page.waitForTimeout(250);
    return page.evaluate(() =>
      document.querySelector('.search-box')?.hidden ? '' : document.querySelector('.search-words')?.textContent,
    );
  };
  const now = () => stateOf(page);
  await write(':analyze --only kernels --by shape');
  report.by = [
    (await now()).tab,
    await eventually(
      page,
      () => document.querySelector('ts-kernels select')?.value,
      (value) => value === 'shape',
    ),
  ];
  await write(':analyze --by name');
  const { layout } = await now();
  const half = Math.floor(layout.span_ns / 2);
  await write(`:tracesmith analyze ${layout.path} --from 25% --to ${half}ns`);
  const { window, panel } = await now();
  report.range = [Math.round(window.from - layout.span_ns / 4), Math.round(window.to - half), panel.scope];
  await write(':all');
  report.all = (await now()).window.to === layout.span_ns;
  await write(':step 1');
  const { steps } = await ask(page, 'analysis/steps');
  const middle = steps[1].offset_ns + (steps[1].end_ns - steps[1].start_ns) / 2;
  const shown = (await now()).window;
  report.step = Math.abs((shown.from + shown.to) / 2 - middle) < 2;
  await write(':analyze --scale "*=0.5"');
  report.whatIf = [(await now()).tab, (await now()).panel.scale];
  report.unknown = await write(':analyse');
  report.unknownOption = await write(':analyze --onyl kernels');
  report.wrongTime = await write(':goto soon');
  await page.fill('ts-search > input', ':ana');
  await page.keyboard.press('Tab');
  report.completed = await page.inputValue('ts-search > input');
  await page.keyboard.press('Escape');
  await write(':all');
  await page.evaluate(async () => (await import('/core/store.js')).store.set({ panel: {} }));
  return report;
}

/** A query, and a query that is wrong. */
async function sql(page) {
  await openTab(page, 'sql');
  const cell = () =>
    document.querySelector('ts-sql tbody td')?.textContent ??
    document.querySelector('ts-sql .problem')?.textContent ??
    '';
  await page.fill('ts-sql textarea', 'select count(*) as kernels from kernels');
  await page.keyboard.press('Control+Enter');
  const report = { count: await eventually(page, cell, Boolean) };
  report.expected = String((await ask(page, 'analysis/kernels')).count);
  await page.fill('ts-sql textarea', 'selec 1');
  await page.click('ts-sql button.primary');
  report.wrong = await eventually(page, cell, (text) => /selec/.test(text));
  return report;
}

/** A selected time range has the totals of its route, and the command that prints the same. */
async function area(page) {
  const { layout } = await stateOf(page);
  const [from, to] = [Math.floor(layout.span_ns * 0.4), Math.ceil(layout.span_ns * 0.8)];
  await page.evaluate(async (span) => (await import('/core/store.js')).store.selectArea({ rows: [], ...span }), {
    from,
    to,
  });
  await openTab(page, 'details');
  const { tracks } = await ask(page, 'layout');
  const streams = tracks
    .filter(({ kind }) => kind === 'stream')
    .flatMap((track) => Array.from({ length: track.rows }, (_, i) => track.first_row + i));
  const answer = await ask(page, `area?rows=${streams.join(',')}&from=${from}&to=${to}`);
  const read = () => ({
    rows: Number(document.querySelector('ts-details .table-state')?.textContent?.match(/\d+/)?.[0]),
    commands: [...document.querySelectorAll('ts-details code')].map(({ textContent }) => textContent),
  });
  const shown = await eventually(page, read, ({ rows }) => rows === answer.shapes.length);
  await page.evaluate(async () => (await import('/core/store.js')).store.selectArea(null));
  return {
    rows: shown.rows,
    expected: answer.shapes.length,
    commands: shown.commands.map((text) => text.replace(layout.path, 'FILE')),
  };
}

/** The list of keys opens and closes by key. */
async function keysList(page) {
  await page.focus('#tab-details, [role=tab][tabindex="0"]');
  await page.keyboard.press('?');
  const isOpen = () => document.querySelector('ts-keys dialog')?.open === true;
  const opened = await eventually(page, isOpen, Boolean);
  await page.keyboard.press('Escape');
  return {
    opened,
    closed: !(await eventually(page, isOpen, (open) => !open)),
    keys: await page.locator('ts-keys kbd').count(),
  };
}

/** Names that look like markup are texts. */
async function markup(page) {
  await openTab(page, 'kernels');
  const { rows } = await ask(page, 'analysis/kernels');
  const names = rows.map(({ name }) => name).filter((name) => name.includes('<img'));
  const shown = await page.evaluate(() => document.querySelector('ts-kernels')?.textContent ?? '');
  const elements = await page.evaluate(() => document.querySelectorAll('img, [onerror]').length);
  return { names: names.length, shown: names.filter((name) => shown.includes(name)).length, elements };
}

/** What axe finds on every tab, in a colour scheme. */
async function everyTab(page, scheme) {
  await page.emulateMedia({ colorScheme: scheme });
  const { rows } = await ask(page, 'analysis/kernels');
  const { results } = await ask(page, `search?q=${encodeURIComponent(rows[0].name)}&in=names&limit=1`);
  await page.evaluate(async ({ row, start, duration, shape }) => {
    const { store } = await import('/core/store.js');
    store.select({ row, start, duration, shape }, { reveal: true });
  }, results[0]);
  const report = {};
  for (const name of await page.evaluate(() =>
    [...document.querySelectorAll('[role=tab]')].map(({ id }) => id.slice(4)),
  )) {
    await openTab(page, name);
    await settle(page);
    if (pictures) await page.screenshot({ path: `${pictures}/${name}-${scheme}.png` });
    report[name] = await violations(page, axePath);
  }
  await page.focus('[role=tab][tabindex="0"]');
  await page.keyboard.press(':');
  report.commandList = await violations(page, axePath);
  await page.keyboard.press('Escape');
  return report;
}

/** The answer of a route of the open trace. */
function ask(page, path) {
  return page.evaluate(async (route) => {
    const { store } = await import('/core/store.js');
    const key = sessionStorage.getItem('tracesmith-key');
    const answer = await fetch(`/api/v1/t/${store.get().trace}/${route}`, { headers: { 'X-TraceSmith-Key': key } });
    return answer.json();
  }, path);
}

/** The state of the page, as far as it is plain data. */
function stateOf(page) {
  return page.evaluate(async () => {
    const { layout, window, tab, panel } = (await import('/core/store.js')).store.get();
    return { layout: { origin_ns: layout.origin_ns, span_ns: layout.span_ns, path: layout.path }, window, tab, panel };
  });
}

/** The selected slice. Runs in the page. */
async function selection() {
  return (await import('/core/store.js')).store.get().selection;
}

/** How the page writes the facts of an event. */
function units(page, { duration, short_name }) {
  return page.evaluate(
    async ([ns, name]) => ({ duration: (await import('/core/units.js')).duration(ns), shortName: name }),
    [duration, short_name],
  );
}
