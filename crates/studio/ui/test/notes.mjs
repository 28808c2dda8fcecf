// Writes notes with mouse and keyboard, and looks for them after a reload and in another browser.
// node notes.mjs PLAYWRIGHT CHROMIUM ADDRESS AXE

import { eventually, open, rest, run, settle, violations } from './browser.mjs';

const MARKUP = '<img src=x onerror=alert(1)>';
const [axePath] = rest;

await run(async (browser) => {
  const { page, seen } = await open(browser);
  const report = { window: await state(page) };
  report.about = await writeAboutGap(page);
  await page.reload();
  await settle(page);
  report.draft = await texts(page, 1);
  await writeAboutMoment(page);
  report.unsaved = await words(page);
  await page.click('ts-notes button:text-is("Save")');
  report.saved = await eventually(
    page,
    () => document.querySelector('ts-notes [role=status]')?.textContent,
    (text) => text.startsWith('Saved'),
  );
  report.canSaveAgain = await page.locator('ts-notes button:text-is("Save")').isEnabled();
  report.axe = await violations(page, axePath);

  const other = await open(browser, { scheme: 'dark' });
  report.other = await texts(other.page, 2);
  report.flag = await clickFlag(other.page);
  report.axeDark = await violations(other.page, axePath);
  report.shown = await showNote(other.page);
  report.deleted = await deleteNote(other.page);
  report.images = await other.page.evaluate(() => document.querySelectorAll('ts-notes img').length);
  report.console = [...seen.console, ...other.seen.console];
  report.dialogs = [...seen.dialogs, ...other.seen.dialogs];
  report.foreign = [...seen.foreign, ...other.seen.foreign];
  return report;
});

/** What a page shows at first. */
function state(page) {
  return page.evaluate(async () => {
    const { window, layout } = (await import('/core/store.js')).store.get();
    return { window, work: layout.work, span: layout.span_ns };
  });
}

/** Selects the longest gap with the mouse, and writes about it with the keyboard alone. */
async function writeAboutGap(page) {
  const place = await page.evaluate(async () => {
    const { store } = await import('/core/store.js');
    const timeline = document.querySelector('ts-timeline');
    const { layout } = store.get();
    const row = layout.tracks.find(({ kind }) => kind === 'idle').first_row;
    const { left, top, width } = timeline.overlayCanvas.getBoundingClientRect();
    const { top: y, height } = timeline.place(row);
    return { x: left + width * 0.5, y: top + y + height / 2 };
  });
  await page.mouse.click(place.x, place.y);
  await eventually(page, async () => (await import('/core/store.js')).store.get().selection, Boolean);
  await page.keyboard.press('t');
  await eventually(page, () => document.activeElement?.tagName, (tag) => tag === 'TEXTAREA');
  await page.keyboard.type(MARKUP);
  return page.evaluate(async () => {
    const { selection, notes } = (await import('/core/store.js')).store.get();
    return { selection, note: notes[0] };
  });
}

/** Without a selection, a note is about a moment. */
async function writeAboutMoment(page) {
  await page.evaluate(async () => (await import('/core/store.js')).store.select(null));
  await page.focus('#tab-notes');
  await page.keyboard.press('t');
  await eventually(page, () => document.activeElement?.tagName, (tag) => tag === 'TEXTAREA');
  await page.keyboard.type('moment');
}

function words(page) {
  return page.evaluate(() => document.querySelector('ts-notes [role=status]')?.textContent);
}

/** The texts of the notes, when there are as many. */
function texts(page, wanted) {
  return eventually(
    page,
    async () => (await import('/core/store.js')).store.get().notes.map(({ text }) => text),
    (all) => all.length >= wanted,
  );
}

/** A click on the flag of the first note leads to its field. */
async function clickFlag(page) {
  const place = await page.evaluate(async () => {
    const { notes } = (await import('/core/store.js')).store.get();
    const timeline = document.querySelector('ts-timeline');
    const { left, top } = document.querySelector('.tl-ruler').getBoundingClientRect();
    return { x: left + timeline.view.x(notes[0].from_ns) / timeline.ratio + 4, y: top + 5 };
  });
  await page.mouse.move(place.x, place.y);
  const title = await eventually(page, () => document.querySelector('.tl-ruler').title, Boolean);
  await page.mouse.click(place.x, place.y);
  const field = await eventually(page, () => document.activeElement?.value ?? '', Boolean);
  const tab = await page.evaluate(async () => (await import('/core/store.js')).store.get().tab);
  return { title, field, tab };
}

/** The button of a note shows its time. */
async function showNote(page) {
  await page.click('ts-notes .when');
  await settle(page);
  return page.evaluate(async () => {
    const { window, notes } = (await import('/core/store.js')).store.get();
    return window.from <= notes[0].from_ns && window.to >= notes[0].to_ns;
  });
}

/** A deleted note is gone at once, and comes back when the changes are discarded. */
async function deleteNote(page) {
  await page.locator('ts-notes li button:text-is("Delete")').first().click();
  const after = await page.evaluate(async () => (await import('/core/store.js')).store.get().notes.length);
  await page.click('ts-notes button:text-is("Discard changes")');
  const back = await page.evaluate(async () => (await import('/core/store.js')).store.get().notes.length);
  return [after, back];
}
