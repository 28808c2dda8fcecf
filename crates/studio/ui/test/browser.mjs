// Opens Studio in Chromium and reports what a check found. A browser that cannot start ends the script with code 3,
// which
// the test that runs it takes as "skipped".

import { createRequire } from 'node:module';
import { readFileSync } from 'node:fs';

const FLAGS = [
  '--headless',
  '--no-sandbox',
  '--disable-gpu',
  '--disable-quic',
  '--no-first-run',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
  '--force-device-scale-factor=1',
];
const SETTLE_MS = 30_000;

/** The arguments of every script: folder of playwright-core, Chromium, address with its key, then the script's own. */
export const [playwright, chromium, address, ...rest] = process.argv.slice(2);

/** Runs `check` with a browser and prints its answer as JSON. */
export async function run(check) {
  let browser;
  try {
    const { chromium: launcher } = createRequire(import.meta.url)(playwright);
    browser = await launcher.launch({ executablePath: chromium, args: FLAGS });
  } catch (error) {
    console.error(`no browser: ${error.message}`);
    process.exit(3);
  }
  try {
    console.log(JSON.stringify(await check(browser)));
  } finally {
    await browser.close();
  }
}

/** A page that writes down what should not happen, and every request. */
export async function open(browser, { width = 1280, height = 800, scheme = 'light' } = {}) {
  const context = await browser.newContext({
    viewport: { width, height },
    colorScheme: scheme,
    reducedMotion: 'reduce',
  });
  const page = await context.newPage();
  const seen = { console: [], foreign: [], requests: [], failed: new Set(), dialogs: [] };
  const origin = new URL(address).origin;
  page.on('console', (message) => {
    if (['error', 'warning'].includes(message.type())) seen.console.push(message.text());
  });
  page.on('pageerror', (error) => seen.console.push(String(error.stack ?? error)));
  page.on('dialog', (dialog) => {
    seen.dialogs.push(dialog.message());
    dialog.dismiss();
  });
  page.on('request', (request) => {
    const url = request.url();
    if (!url.startsWith(origin) && !url.startsWith('data:') && !url.startsWith('blob:')) seen.foreign.push(url);
    seen.requests.push(request);
  });
  page.on('requestfailed', (request) => seen.failed.add(request));
  await page.goto(address);
  await settle(page);
  return { page, seen, context };
}

/** Waits until the picture is complete. The page's policy forbids `waitForFunction`, so it is asked from outside. */
export async function settle(page) {
  const end = Date.now() + SETTLE_MS;
  for (let still = 0; still < 3;) {
    if (Date.now() > end) throw new Error(`the picture is not complete after ${SETTLE_MS} ms`);
    await page.waitForTimeout(60);
    const isSettled = await page.evaluate(() => {
      // The panels above the rows decide how high these are.
      const above = [...document.querySelectorAll('ts-verdict, ts-findings-strip')];
      return document.querySelector('ts-timeline')?.isSettled === true && !above.some(({ isWaiting }) => isWaiting);
    });
    still = isSettled ? still + 1 : 0;
  }
}

/** Waits until `read` gives something that `accept` takes, and returns it; the last value if it never does. */
export async function eventually(page, read, accept) {
  let value;
  for (let turn = 0; turn < 100; turn += 1) {
    value = await page.evaluate(read);
    if (accept(value)) return value;
    await page.waitForTimeout(50);
  }
  return value;
}

/** A number that stands for all pixels of the rows. */
export function hash(page) {
  return page.evaluate(() => {
    const canvas = document.querySelector('.tl-canvas');
    const { data } = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height);
    let value = 0x811c9dc5;
    for (const part of new Uint32Array(data.buffer)) value = Math.imul(value ^ part, 0x01000193) >>> 0;
    return value;
  });
}

/** Shows a time range of the open trace. */
export async function show(page, from, to) {
  await page.evaluate(async (window) => (await import('/core/store.js')).store.zoomTo(window, { margin: 0 }), {
    from,
    to,
  });
  await settle(page);
}

/** Opens another trace of the session. */
export async function openTrace(page, trace) {
  await page.evaluate(async (id) => (await import('/core/store.js')).store.set({ trace: id }), trace);
  await settle(page);
}

/** Violations that axe finds in the page as it is. */
export async function violations(page, axePath) {
  await page.evaluate(readFileSync(axePath, 'utf8'));
  const found = await page.evaluate(() => globalThis.axe.run());
  return found.violations.map(
    ({ id, nodes }) =>
      `${id}: ${nodes
        .slice(0, 3)
        .map(({ html }) => html.slice(0, 160))
        .join(' | ')}`,
  );
}
