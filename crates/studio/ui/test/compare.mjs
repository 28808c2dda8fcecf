// Checks two traces on one timeline: their rows, pixels at computed places, the address, keys, the tab Compare.
// node compare.mjs PLAYWRIGHT CHROMIUM ADDRESS AXE [PICTURE FOLDER]
// The server has a trace with steps, and a part of the same trace.

import { eventually, hash, open, rest, run, settle, violations } from './browser.mjs';

const [axePath, pictures] = rest;
const STATE = async () => {
  const { store } = await import('/core/store.js');
  const { trace, compare, window, selection, layers } = store.get();
  const b = layers.find(({ key }) => key === 'b');
  return { trace, compare, window, selection, offset: b?.offset ?? null, b: b?.trace ?? null };
};

await run(async (browser) => {
  const { page, seen } = await open(browser, { width: 1600, height: 1300 });
  const report = {};
  const alone = await hash(page);
  report.begun = await begin(page);
  report.rows = await rows(page);
  const before = seen.requests.length;
  report.steps = await steps(page);
  report.requests = requests(seen.requests.slice(before));
  report.colors = await colors(page);
  report.selected = await selected(page);
  report.restored = await restored(page);
  report.aligned = await alignments(page);
  report.tab = await tab(page);
  report.axe = { light: await violations(page, axePath) };
  if (pictures) await page.screenshot({ path: `${pictures}/compare-light.png` });
  await page.emulateMedia({ colorScheme: 'dark' });
  await settle(page);
  report.axe.dark = await violations(page, axePath);
  if (pictures) await page.screenshot({ path: `${pictures}/compare-dark.png` });
  await page.emulateMedia({ colorScheme: 'light' });
  report.file = await otherFile(page, axePath);
  report.swapped = await swapped(page);
  report.changed = await changed(page, seen);
  report.ended = await ended(page, alone);
  report.absent = await absent(page, seen);
  report.console = seen.console;
  report.foreign = seen.foreign;
  return report;
});

/** Chooses the second trace in the head of the page, by the keyboard. */
async function begin(page) {
  const select = page.getByRole('combobox', { name: 'Compare with' });
  await select.focus();
  await select.selectOption('1');
  await settle(page);
  const state = await page.evaluate(STATE);
  const address = await eventually(page, () => location.hash, (text) => text.includes('with='));
  return { b: state.b, align: state.compare.align, address: address.includes('with=1') };
}

/** Rows of both traces: all are there, and those that match are neighbors. */
async function rows(page) {
  return page.evaluate(async () => {
    const { store } = await import('/core/store.js');
    const tracks = store.layers().map(({ layout }) => layout.tracks.length);
    const items = [...document.querySelectorAll('.tl-list [role=treeitem].tl-track')];
    const keys = items.map(({ dataset }) => dataset.key);
    const labels = items.map((item) => item.querySelector('.tl-layer')?.textContent.trim());
    const names = items.map((item) => item.querySelector('.tl-name').textContent);
    let neighbors = 0;
    keys.forEach((key, i) => {
      if (key.startsWith('b~') && i > 0 && !keys[i - 1].startsWith('b~') && names[i] === names[i - 1]) neighbors += 1;
    });
    return {
      tracks,
      items: items.length,
      distinct: new Set(keys).size,
      a: labels.filter((label) => label === 'A').length,
      b: labels.filter((label) => label === 'B').length,
      neighbors,
      named: items.every((item) => /^[AB] /.test(item.getAttribute('aria-label'))),
    };
  });
}

/** Step k of both traces begins in the same column of pixels. */
async function steps(page) {
  const result = { checked: 0, wrong: 0, offsets: new Set(), example: null };
  const count = await page.evaluate(async () => {
    const { store } = await import('/core/store.js');
    return Math.min(...store.layers().map((layer) => layer.steps.length));
  });
  for (let step = 1; step < count; step += 3) {
    await page.evaluate(async (number) => {
      const { store } = await import('/core/store.js');
      const { from, to } = store.get().steps[number];
      store.zoomTo({ from: from - (to - from) * 0.4, to: to + (to - from) * 0.3 }, { margin: 0 });
    }, step);
    await settle(page);
    const found = await page.evaluate(async (number) => {
      const { store } = await import('/core/store.js');
      const timeline = document.querySelector('ts-timeline');
      const canvas = document.querySelector('.tl-canvas');
      const { data } = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height);
      const brightness = (x, y) => data[(y * canvas.width + x) * 4] + data[(y * canvas.width + x) * 4 + 1];
      const { window, compare, steps: own } = store.get();
      const [a, b] = store.layers();
      // The room above the lanes of a row has nothing but its background and the lines of steps.
      const x = Math.round(((own[number].from - window.from) / (window.to - window.from)) * canvas.width);
      const lines = timeline.rows.items
        .filter(({ track, isGroup }) => track && !isGroup)
        .map((item) => ({ layer: store.layerOf(item.track.first_row).key, y: Math.round(item.y - timeline.scrolled) + 2 }))
        .filter(({ y }) => y > 2 && y < canvas.height - 2)
        .map(({ layer, y }) => ({ layer, dark: brightness(x, y), left: brightness(x - 2, y), right: brightness(x + 2, y) }));
      return {
        step: compare.step,
        offset: b.offset,
        wanted: a.steps[number].from - b.steps[number].from,
        lines,
      };
    }, step);
    result.offsets.add(found.offset);
    const isLine = ({ dark, left, right }) => dark < left - 20 && dark < right - 20;
    const isRight =
      found.step === step &&
      found.offset === found.wanted &&
      ['a', 'b'].every((key) => found.lines.some(({ layer }) => layer === key)) &&
      found.lines.every(isLine);
    result.checked += found.lines.length;
    if (!isRight) {
      result.wrong += 1;
      result.example ??= { number: step, ...found };
    }
  }
  return { ...result, offsets: result.offsets.size };
}

/** Tiles and slices of both traces, and how many were asked for again. */
function requests(all) {
  const urls = all.map((request) => request.url()).filter((url) => /\/(tiles|slices)\?/.test(url));
  return { count: urls.length, repeated: urls.length - new Set(urls).size };
}

/** Slices of the second trace have their colour where its own time and the offset put them. */
async function colors(page) {
  return page.evaluate(async () => {
    const { store } = await import('/core/store.js');
    const { sliceColor } = await import('/core/colors.js');
    const { fetchShown } = await import('/timeline/sources.js');
    const timeline = document.querySelector('ts-timeline');
    const canvas = document.querySelector('.tl-canvas');
    const { data } = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height);
    const { window } = store.get();
    const b = store.layers().find(({ key }) => key === 'b');
    const found = { checked: 0, wrong: 0, example: null };
    for (const track of timeline.rows.tracks.filter(({ key, kind }) => key.startsWith('b~') && kind === 'stream')) {
      const row = track.first_row;
      const place = timeline.place(row);
      if (!place || !timeline.showsSlices(row) || place.top + place.height > canvas.height) continue;
      const columns = (await fetchShown([row], window.from, window.to, 8000)).get(row);
      const xOf = (time) => ((b.shown(time) - window.from) / (window.to - window.from)) * canvas.width;
      for (let i = 0; i < columns.start.length; i += 1) {
        const left = Math.max(0, Math.round(xOf(columns.start[i])));
        const right = Math.min(canvas.width, Math.round(xOf(columns.start[i] + columns.duration[i])));
        if (right - left < 8) continue;
        const [x, y] = [right - 3, Math.floor(place.top + place.height / 2) + 1];
        const at = (y * canvas.width + x) * 4;
        const category = b.shapes.category(columns.shape[i]);
        const name = b.shapes.name(columns.shape[i]);
        const wanted = sliceColor(track.kind, track.categories[category] ?? '', category, name);
        found.checked += 1;
        if (wanted.every((part, k) => part === data[at + k])) continue;
        found.wrong += 1;
        found.example ??= { name, x, y, wanted, got: [...data.slice(at, at + 3)] };
      }
    }
    return found;
  });
}

/** A click selects an event of the second trace; its details and its neighbors are those of that trace. */
async function selected(page) {
  const canvas = await page.locator('.tl-overlay').boundingBox();
  const place = await page.evaluate(async () => {
    const { store } = await import('/core/store.js');
    const timeline = document.querySelector('ts-timeline');
    const { fetchShown } = await import('/timeline/sources.js');
    const { window } = store.get();
    const track = timeline.rows.tracks.find(({ key, kind }) => key.startsWith('b~') && kind === 'stream');
    const columns = (await fetchShown([track.first_row], window.from, window.to, 8000)).get(track.first_row);
    const longest = columns.duration.indexOf(Math.max(...columns.duration));
    const b = store.layerOf(track.first_row);
    const time = b.shown(columns.start[longest] + columns.duration[longest] / 2);
    const { top, height } = timeline.place(track.first_row);
    const share = (time - window.from) / (window.to - window.from);
    return { share: Math.min(Math.max(share, 0.01), 0.99), y: top + height / 2, start: columns.start[longest], name: b.shapes.name(columns.shape[longest]) };
  });
  await page.mouse.click(canvas.x + place.share * canvas.width, canvas.y + place.y);
  const state = await eventually(page, STATE, ({ selection }) => selection !== null);
  const name = await eventually(page, () => document.querySelector('ts-details h2')?.title ?? '', (text) => text !== '');
  const address = await eventually(page, () => location.hash, (text) => text.includes('select='));
  await page.keyboard.press('.');
  const next = await eventually(page, STATE, ({ selection }) => selection.start !== state.selection?.start);
  await settle(page);
  return {
    isOfB: state.selection.row >= 2 ** 20,
    start: state.selection.start === place.start,
    name: name === place.name,
    address: address.includes('select=b~'),
    next: next.selection.row === state.selection.row && next.selection.start > state.selection.start,
  };
}

/** Reload, Back and Forward bring the same pixels and the same selection. */
async function restored(page) {
  await page.mouse.move(2, 2);
  await page.waitForTimeout(250);
  await settle(page);
  const [first, state] = [await hash(page), await page.evaluate(STATE)];
  await page.reload();
  await settle(page);
  const reloaded = await hash(page);
  const again = await eventually(page, STATE, ({ selection }) => selection !== null);
  await page.evaluate(async () => (await import('/core/compare.js')).align({ align: 'start' }));
  await settle(page);
  const started = await hash(page);
  await page.goBack();
  await settle(page);
  const back = await hash(page);
  await page.goForward();
  await settle(page);
  return {
    reload: reloaded === first,
    selection: JSON.stringify(again.selection) === JSON.stringify(state.selection),
    differ: started !== first,
    back: back === first,
    forward: (await hash(page)) === started,
  };
}

/** By the starts, at a step, by hand; with the controls of the head and with keys. */
async function alignments(page) {
  const select = page.getByRole('combobox', { name: 'How B is aligned with A' });
  const result = {};
  const choose = async (value) => {
    await select.selectOption(value);
    await settle(page);
    return page.evaluate(STATE);
  };
  result.start = (await choose('start')).offset;
  const step = await choose('step');
  const wanted = await page.evaluate(async (number) => {
    const { store } = await import('/core/store.js');
    const [a, b] = store.layers();
    return a.steps[number].from - b.steps[number].from;
  }, step.compare.step);
  result.step = step.offset === wanted;
  await choose('manual');
  await page.getByRole('textbox', { name: 'Shift of B' }).fill('-1.5ms');
  await page.keyboard.press('Enter');
  result.hand = (await eventually(page, STATE, ({ offset }) => offset === -1_500_000)).offset;
  await page.evaluate(() => document.activeElement.blur());
  await page.keyboard.press('>');
  const moved = await eventually(page, STATE, ({ offset }) => offset !== -1_500_000);
  result.nudge = (moved.offset + 1_500_000) / (moved.window.to - moved.window.from);
  await page.waitForTimeout(250);
  result.address = await page.evaluate(() => /align=manual.*shift=-?\d/.test(location.hash));
  result.steps = (await choose('steps')).compare.align;
  return result;
}

/** The tab shows the numbers of the answer, and a kernel leads to both traces. */
async function tab(page) {
  await page.getByRole('tab', { name: 'Compare' }).click();
  await eventually(page, () => document.querySelectorAll('ts-comparison table').length, (count) => count >= 3);
  const result = await page.evaluate(async () => {
    const { getJson } = await import('/core/api.js');
    const { duration } = await import('/core/units.js');
    const { changeText } = await import('/panels/significance.js');
    const { store } = await import('/core/store.js');
    const [a, b] = store.layers();
    const answer = await getJson('diff', { a: a.trace, b: b.trace });
    const panel = document.querySelector('ts-comparison');
    const texts = new Set([...panel.querySelectorAll('td')].map((cell) => cell.textContent));
    const rows = [answer.time, answer.busy, ...answer.kernels];
    const wanted = rows.flatMap((row) => [duration(Math.trunc(row.a_ns)), duration(Math.trunc(row.b_ns)), changeText(row)]);
    return {
      wanted: wanted.length,
      missing: wanted.filter((text) => !texts.has(text)),
      kernels: answer.kernels.length,
      command: [...panel.querySelectorAll('code')].map((code) => code.textContent).at(-1),
    };
  });
  const kept = page.locator('ts-comparison table[class=data]', { hasText: 'Kernels of both traces' });
  const button = kept.locator('.row-button').first();
  await button.focus();
  await page.keyboard.press('Enter');
  await eventually(page, () => document.querySelector('ts-timeline').spans.length, (count) => count === 1);
  await settle(page);
  result.pair = await page.evaluate(async () => {
    const { store } = await import('/core/store.js');
    const timeline = document.querySelector('ts-timeline');
    const { selection, window } = store.get();
    const [span] = timeline.spans;
    const shown = span && store.shown({ row: span.row, start: span.from, duration: span.to - span.from });
    const [a, b] = store.layers();
    return {
      layers: [store.layerOf(selection.row).key, span && store.layerOf(span.row).key],
      same: !!span && a.shapes.name(selection.shape).length > 0 && span.kind === 'pair',
      isSeen: !!shown && shown.from >= window.from && shown.to <= window.to,
      step: [selection.start >= a.steps[store.get().compare.step].from, span?.from >= b.steps[store.get().compare.step].from],
    };
  });
  return result;
}

/** Another file can be chosen below the folder of the server. */
async function otherFile(page, axe) {
  await page.getByRole('combobox', { name: 'Compare with' }).selectOption('file');
  const files = await eventually(page, () => document.querySelectorAll('dialog .row-button').length, (count) => count > 0);
  const found = await violations(page, axe);
  await page.keyboard.press('Escape');
  return { files, axe: found, closed: await page.evaluate(() => !document.querySelector('dialog[open]')) };
}

/** The second trace becomes the first, with the same moment in view. */
async function swapped(page) {
  const before = await page.evaluate(STATE);
  await page.getByRole('button', { name: 'Swap' }).click();
  await eventually(page, STATE, ({ trace, b }) => trace === 1 && b === 0);
  await settle(page);
  const after = await page.evaluate(STATE);
  await page.goBack();
  await eventually(page, STATE, ({ trace, b }) => trace === 0 && b === 1);
  await settle(page);
  return {
    offset: after.offset + before.offset,
    window: Math.abs(after.window.from - (before.window.from - before.offset)) <= 1,
    back: (await page.evaluate(STATE)).trace,
  };
}

/** A second file that changed is reported, and no old picture goes on. */
async function changed(page, seen) {
  const errors = seen.console.length;
  const refuse = (route) =>
    route.fulfill({ status: 409, contentType: 'application/json', body: '{"error":"the file changed","hint":"reload"}' });
  await page.route('**/api/v1/t/1/**', refuse);
  await page.evaluate(async () => {
    const { store } = await import('/core/store.js');
    const { from, to } = store.get().steps[9];
    store.zoomTo({ from: from + 0.41 * (to - from), to: from + 0.43 * (to - from) }, { margin: 0 });
  });
  const banner = () => document.querySelector('#banner').textContent;
  const text = await eventually(page, banner, (shown) => shown !== '');
  await page.unrouteAll({ behavior: 'wait' });
  await page.reload();
  await settle(page);
  seen.console.splice(errors);
  return { text, after: await page.evaluate(banner) };
}

/** A second trace that does not exist is reported, and the first one is shown. */
async function absent(page, seen) {
  const errors = seen.console.length;
  await page.evaluate(() => (location.hash = location.hash.replace(/^#trace=0/, '#trace=0&with=77')));
  const text = await eventually(page, () => document.querySelector('#banner').textContent, (shown) => shown !== '');
  await settle(page);
  seen.console.splice(errors);
  return { text, compare: (await page.evaluate(STATE)).compare };
}

/** Without the second trace the picture is as it was. */
async function ended(page, alone) {
  await page.getByRole('button', { name: 'End', exact: true }).click();
  await page.evaluate(async () => {
    const { store } = await import('/core/store.js');
    document.querySelector('ts-timeline').setHighlight(null);
    store.set({ selection: null });
    store.zoomTo(store.extent(), { margin: 0 });
  });
  await page.mouse.move(2, 2);
  await settle(page);
  const rows = await page.evaluate(() => document.querySelectorAll('.tl-track').length);
  const tracks = await page.evaluate(async () => (await import('/core/store.js')).store.get().layout.tracks.length);
  return { rows: rows === tracks, same: (await hash(page)) === alone };
}
