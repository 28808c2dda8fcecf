// Checks the timeline of a running server: pixels at computed places, keys, the address, accessibility.
// node timeline.mjs PLAYWRIGHT CHROMIUM ADDRESS AXE [PICTURE FOLDER]

import { eventually, hash, open, openTrace, rest, run, settle, show, violations } from './browser.mjs';

const [axePath, pictures] = rest;

await run(async (browser) => {
  const { page, seen, context } = await open(browser, { width: 1600, height: 1400 });
  const report = {};
  report.first = await page.evaluate(() => ({
    key: location.hash.includes('key='),
    rows: document.querySelectorAll('[role=treeitem]').length,
  }));
  report.heights = await heights(page);
  report.slices = await slices(page, [255, 255, 255]);
  report.keys = await keys(page);
  report.pointer = await pointer(page);
  report.restored = await restored(page);
  report.table = await table(page);
  report.axe = { light: await violations(page, axePath) };
  await page.emulateMedia({ colorScheme: 'dark' });
  await settle(page);
  report.axe.dark = await violations(page, axePath);
  report.darkSlices = await slices(page, [20, 23, 28]);
  await page.emulateMedia({ colorScheme: 'light' });
  report.lost = await lost(page, context, seen);
  report.changed = await changed(page, seen);
  report.switched = await switched(page);
  report.traces = await everyTrace(page);
  report.console = seen.console;
  report.foreign = seen.foreign;
  report.dialogs = seen.dialogs;
  return report;
});

/** Far out: the height of a column is its share of the row, to a pixel. */
async function heights(page) {
  return page.evaluate(async () => {
    const { store } = await import('/core/store.js');
    const { decodeTiles, CELLS } = await import('/timeline/tiles.js');
    const timeline = document.querySelector('ts-timeline');
    const { layout, trace, window } = store.get();
    const canvas = document.querySelector('.tl-canvas');
    const context = canvas.getContext('2d');
    const perPixel = (window.to - window.from) / canvas.width;
    const level = Math.max(0, Math.floor(Math.log2(perPixel)));
    const size = 2 ** level;
    const result = { checked: 0, wrong: 0, rows: 0, example: null };
    for (const track of layout.tracks) {
      const place = timeline.place(track.first_row);
      const isSpans = !['counter', 'memory'].includes(track.kind);
      if (
        !isSpans ||
        !place ||
        place.top < 0 ||
        place.top + place.height > canvas.height ||
        timeline.showsSlices(track.first_row)
      )
        continue;
      result.rows += 1;
      const count = Math.ceil(layout.span_ns / size / CELLS);
      const key = sessionStorage.getItem('tracesmith-key');
      const shares = new Float64Array(count * CELLS);
      for (let tile = 0; tile < count; tile += 1) {
        const query = `level=${level}&first=${tile}&count=1&rows=${track.first_row}`;
        const path = `/api/v1/t/${trace}/${layout.generation}/tiles?${query}`;
        const answer = await fetch(path, { headers: { 'X-TraceSmith-Key': key } });
        const cells = decodeTiles(await answer.arrayBuffer()).get(track.first_row);
        for (let i = 0; i < CELLS; i += 1)
          shares[tile * CELLS + i] = cells.shares.reduce((sum, plane) => sum + plane[i], 0) / 255;
      }
      const top = Math.round(place.top);
      const height = Math.round(place.top + place.height) - top;
      const { data } = context.getImageData(0, top, canvas.width, height);
      for (let x = 0; x < canvas.width; x += 1) {
        const [from, to] = [(window.from + x * perPixel) / size, (window.from + (x + 1) * perPixel) / size];
        let sum = 0;
        for (let cell = Math.floor(from); cell < Math.min(to, shares.length); cell += 1) {
          sum += shares[cell] * (Math.min(to, cell + 1) - Math.max(from, cell));
        }
        const wanted = (sum / (to - from)) * height;
        let colored = 0;
        for (let y = 0; y < height; y += 1) {
          const at = (y * canvas.width + x) * 4;
          const spread =
            Math.max(data[at], data[at + 1], data[at + 2]) - Math.min(data[at], data[at + 1], data[at + 2]);
          if (spread > 24) colored += 1;
        }
        result.checked += 1;
        const isRight = Math.abs(colored - wanted) <= 1.01 || (wanted > 0 && wanted < 1 && colored === 1);
        if (!isRight) {
          result.wrong += 1;
          result.example ??= { track: track.label, x, wanted, colored, height };
        }
      }
    }
    return result;
  });
}

/** Close up: every slice of five pixels or more has its colour, and gaps have none. */
async function slices(page, paper) {
  const spans = await page.evaluate(async () => {
    const { store } = await import('/core/store.js');
    const { span_ns: span, work } = store.get().layout;
    const [first, last] = work ?? [0, span];
    const length = last - first;
    return [0.013, 0.113, 0.307, 0.519, 0.711, 0.923].flatMap((share) =>
      [50, 500].map((part) => ({ from: first + length * share, to: first + length * (share + 1 / part) })),
    );
  });
  const result = { checked: 0, wrong: 0, gaps: 0, wrongGaps: 0, example: null };
  for (const { from, to } of spans) {
    await show(page, from, to);
    const part = await page.evaluate(async (empty) => {
      const { store } = await import('/core/store.js');
      const { sliceColor } = await import('/core/colors.js');
      const { fetchSlices } = await import('/timeline/slices.js');
      const { ticks, tickStep } = await import('/timeline/ticks.js');
      const timeline = document.querySelector('ts-timeline');
      const { layout, trace, window, shapes, steps } = store.get();
      const canvas = document.querySelector('.tl-canvas');
      const context = canvas.getContext('2d', { willReadFrequently: true });
      const { data } = context.getImageData(0, 0, canvas.width, canvas.height);
      const pixel = (x, y) => Array.from(data.slice((y * canvas.width + x) * 4, (y * canvas.width + x) * 4 + 3));
      const perPixel = (window.to - window.from) / canvas.width;
      const xOf = (time) => (time - window.from) / perPixel;
      const lines = new Set([
        ...ticks(window.from, window.to, tickStep(perPixel, 110)).map((time) => Math.round(xOf(time))),
        ...steps.map((step) => Math.round(xOf(step.from))),
      ]);
      const found = { checked: 0, wrong: 0, gaps: 0, wrongGaps: 0, example: null };
      for (const track of layout.tracks) {
        for (let row = track.first_row; row < track.first_row + track.rows; row += 1) {
          const place = timeline.place(row);
          if (!timeline.showsSlices(row) || !place || place.top < 0 || place.top + place.height > canvas.height)
            continue;
          const columns = (await fetchSlices(trace, layout.generation, [row], window.from, window.to, 8000)).get(row);
          const y = Math.floor(place.top + place.height / 2) + 1;
          let last = -Infinity;
          for (let i = 0; i < columns.start.length; i += 1) {
            const left = Math.max(0, Math.round(xOf(columns.start[i])));
            const right = Math.min(canvas.width, Math.round(xOf(columns.start[i] + columns.duration[i])));
            if (left - last >= 6) {
              const x = Math.floor((last + left) / 2);
              if (last >= 0 && !lines.has(x)) {
                found.gaps += 1;
                if (pixel(x, y).some((part, k) => part !== empty[k])) found.wrongGaps += 1;
              }
            }
            last = Math.max(last, Math.ceil(xOf(columns.start[i] + columns.duration[i])));
            if (columns.duration[i] / perPixel < 5 || right - left < 4) continue;
            // Wide slices have text in the middle, but never in their last pixels.
            const x = right - left >= 30 ? right - 3 : Math.floor((left + right) / 2);
            if (lines.has(x)) continue;
            const category = shapes.category(columns.shape[i]);
            const wanted = sliceColor(
              track.kind,
              track.categories[category] ?? '',
              category,
              shapes.name(columns.shape[i]),
            );
            found.checked += 1;
            if (pixel(x, y).some((part, k) => part !== wanted[k])) {
              found.wrong += 1;
              found.example ??= { track: track.label, row, x, y, left, right, wanted, got: pixel(x, y) };
            }
          }
        }
      }
      return found;
    }, paper);
    for (const name of ['checked', 'wrong', 'gaps', 'wrongGaps']) result[name] += part[name];
    result.example ??= part.example;
  }
  return result;
}

/** Keys change the window or the selection, and both the address and the live region report it. */
async function keys(page) {
  const state = () => page.evaluate(async () => (await import('/core/store.js')).store.get().window);
  const live = (accept) => eventually(page, () => document.querySelector('#live').textContent, accept);
  const result = {};
  const span = await page.evaluate(async () => (await import('/core/store.js')).store.span());
  await show(page, span * 0.4, span * 0.6);
  const before = await state();
  await page.keyboard.press('w');
  await settle(page);
  const zoomed = await state();
  result.zoom = (before.to - before.from) / (zoomed.to - zoomed.from);
  await page.keyboard.press('d');
  await settle(page);
  const panned = await state();
  await page.evaluate(() => (document.querySelector('#live').textContent = ''));
  await page.keyboard.press('a');
  await page.keyboard.press('d');
  result.pan = (panned.from - zoomed.from) / (zoomed.to - zoomed.from);
  result.live = await live((text) => text.startsWith('Window'));
  const parts = await eventually(
    page,
    () => location.hash,
    (text) => text.includes('from='),
  );
  result.address = {
    from: Number(/from=([\d.]+)/.exec(parts)?.[1]),
    to: Number(/to=([\d.]+)/.exec(parts)?.[1]),
    window: panned,
  };
  await page.keyboard.press('.');
  result.selected = await live((text) => text.startsWith('Selected'));
  const one = await page.evaluate(async () => (await import('/core/store.js')).store.get().selection);
  await page.keyboard.press('n');
  const two = await eventually(
    page,
    async () => (await import('/core/store.js')).store.get().selection,
    (slice) => slice && slice.start !== one?.start,
  );
  result.same = one !== null && two !== null && one.shape === two.shape && two.start > one.start && one.row === two.row;
  await page.keyboard.press('f');
  await settle(page);
  const focused = await state();
  result.focused = focused.from <= two.start && focused.to >= two.start + two.duration;
  await page.keyboard.press('m');
  result.marks = (await page.evaluate(async () => (await import('/core/store.js')).store.get().marks)).length;
  await page.keyboard.press('m');
  await page.keyboard.press('g');
  await page.keyboard.type('1us..3us');
  await page.keyboard.press('Enter');
  result.goTo = await eventually(
    page,
    async () => (await import('/core/store.js')).store.get().window,
    ({ from }) => from < 2000,
  );
  await page.keyboard.press('Escape');
  result.cleared = await page.evaluate(async () => (await import('/core/store.js')).store.get().selection === null);
  await page.keyboard.press('Home');
  await settle(page);
  const whole = await state();
  result.whole = whole.from === 0 && Math.abs(whole.to - span) < 1;
  await page.locator('[role=treeitem]').first().focus();
  await page.keyboard.press('ArrowDown');
  result.treeFocus = await page.evaluate(
    () =>
      document.activeElement.getAttribute('role') === 'treeitem' &&
      document.activeElement.getAttribute('aria-level') === '2',
  );
  await page.keyboard.press('ArrowLeft');
  await page.keyboard.press('ArrowLeft');
  result.folded = await page.evaluate(() => document.activeElement.getAttribute('aria-expanded'));
  await page.keyboard.press('ArrowRight');
  return result;
}

/** Dragging selects, the wheel zooms at the pointer. */
async function pointer(page) {
  const result = {};
  const { x, y, width } = await page.locator('.tl-overlay').boundingBox();
  const ruler = await page.locator('.tl-ruler').boundingBox();
  const get = (name) => page.evaluate(async (key) => (await import('/core/store.js')).store.get()[key], name);
  const drag = async (fromX, fromY, toX, toY) => {
    await page.mouse.move(fromX, fromY);
    await page.mouse.down();
    await page.mouse.move((fromX + toX) / 2, (fromY + toY) / 2);
    await page.mouse.move(toX, toY);
    await page.mouse.up();
  };
  const { from, to } = await get('window');
  await drag(ruler.x + width * 0.25, ruler.y + 10, ruler.x + width * 0.5, ruler.y + 10);
  const time = await get('area');
  result.time = [(time.from - from) / (to - from), (time.to - from) / (to - from), time.rows.length];
  await drag(x + width * 0.5, y + 40, x + width * 0.75, y + 100);
  const area = await get('area');
  result.area = [(area.from - from) / (to - from), (area.to - from) / (to - from), area.rows.length];
  await page.keyboard.press('Escape');
  result.cleared = (await get('area')) === null;
  await page.mouse.move(x + width * 0.25, y + 60);
  await page.keyboard.down('Control');
  await page.mouse.wheel(0, -240);
  await page.keyboard.up('Control');
  await settle(page);
  const zoomed = await get('window');
  const share = 0.25;
  result.zoom = (to - from) / (zoomed.to - zoomed.from);
  result.drift =
    Math.abs(zoomed.from + share * (zoomed.to - zoomed.from) - (from + share * (to - from))) /
    (zoomed.to - zoomed.from);
  await page.keyboard.press('Home');
  await settle(page);
  return result;
}

/** Reload, Back and Forward bring the same pixels. */
async function restored(page) {
  const span = await page.evaluate(async () => (await import('/core/store.js')).store.span());
  await page.mouse.move(2, 2);
  await show(page, span * 0.31, span * 0.33);
  const first = await hash(page);
  await show(page, span * 0.61, span * 0.611);
  const second = await hash(page);
  await page.reload();
  await settle(page);
  const reloaded = await hash(page);
  await page.goBack();
  await settle(page);
  const back = await hash(page);
  await page.goForward();
  await settle(page);
  const forward = await hash(page);
  return { differ: first !== second, reload: reloaded === second, back: back === first, forward: forward === second };
}

/** The text alternative lists the events in view. */
async function table(page) {
  const [from, to] = await page.evaluate(async () => {
    const { layout } = (await import('/core/store.js')).store.get();
    return layout.work ?? [0, layout.span_ns];
  });
  await show(page, from, to);
  await page.keyboard.press('e');
  const rows = await eventually(
    page,
    () => document.querySelectorAll('dialog .events tbody tr').length,
    (count) => count > 0,
  );
  const images = await page.evaluate(() => document.querySelectorAll('dialog img').length);
  await page.keyboard.press('Escape');
  return { rows, images, closed: await page.evaluate(() => !document.querySelector('dialog[open]')) };
}

/** Another trace begins with its own window, and Back shows the one before as it was. */
async function switched(page) {
  const state = () =>
    page.evaluate(async () => {
      const { store } = await import('/core/store.js');
      const { trace, window } = store.get();
      return { trace, window, first: store.firstWindow() };
    });
  const span = await page.evaluate(async () => (await import('/core/store.js')).store.span());
  await show(page, span * 0.2, span * 0.3);
  const before = await state();
  await page.selectOption('ts-traces select', '1');
  await page.waitForTimeout(200);
  await settle(page);
  const other = await state();
  await page.goBack();
  await page.waitForTimeout(200);
  await settle(page);
  const back = await state();
  const isSame = (a, b) => Math.abs(a.from - b.from) <= 1 && Math.abs(a.to - b.to) <= 1;
  return {
    opened: other.trace === 1 && isSame(other.window, other.first),
    back: back.trace === before.trace && isSame(back.window, before.window),
  };
}

/** Without a server the page says so, and goes on when it is back. */
async function lost(page, context, seen) {
  const errors = seen.console.length;
  await context.setOffline(true);
  await page.keyboard.press('.');
  const banner = () => ({
    hidden: document.querySelector('#banner').hidden,
    text: document.querySelector('#banner').textContent,
  });
  const during = await eventually(page, banner, ({ hidden }) => !hidden);
  await context.setOffline(false);
  const after = await eventually(page, banner, ({ hidden }) => hidden);
  // The browser itself writes that requests failed.
  seen.console.splice(errors);
  return { during: during.text, after: after.hidden };
}

/** A file that changed while it was open is reported, and no old picture goes on. */
async function changed(page, seen) {
  const errors = seen.console.length;
  const refuse = (route) =>
    route.fulfill({ status: 409, contentType: 'application/json', body: '{"error":"the file changed","hint":"reload"}' });
  await page.route('**/api/v1/t/*/layout', refuse);
  await page.route('**/tiles?*', refuse);
  await page.route('**/slices?*', refuse);
  const span = await page.evaluate(async () => (await import('/core/store.js')).store.span());
  await page.evaluate(
    async (middle) => (await import('/core/store.js')).store.zoomTo({ from: middle, to: middle + 77 }),
    Math.round(span * 0.777),
  );
  const text = await eventually(
    page,
    () => document.querySelector('#banner').textContent,
    (banner) => banner !== '',
  );
  await page.unrouteAll({ behavior: 'wait' });
  await page.reload();
  await settle(page);
  const after = await page.evaluate(() => document.querySelector('#banner').hidden);
  seen.console.splice(errors);
  return { text, after };
}

/** Every trace of the session gets a complete picture. */
async function everyTrace(page) {
  const traces = await page.evaluate(async () => (await import('/core/store.js')).store.get().session.traces);
  const shown = [];
  for (const { id, name } of traces) {
    await openTrace(page, id);
    shown.push({
      name,
      ...(await page.evaluate(() => ({
        rows: document.querySelectorAll('[role=treeitem]').length,
        holes: document.querySelector('ts-timeline').isSettled ? 0 : 1,
      }))),
    });
    if (pictures) await page.screenshot({ path: `${pictures}/trace-${id}.png` });
  }
  return shown;
}
