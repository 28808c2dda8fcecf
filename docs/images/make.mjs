// Makes the pictures of Studio in this folder, from the demo trace.
//
//   cargo build -p tracesmith && node docs/images/make.mjs
//
// Needs Chromium and playwright-core, where ci/test installs them, or the paths CHROMIUM and PLAYWRIGHT.
// TRACESMITH names another program than target/debug/tracesmith.

import { spawn, spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const folder = dirname(fileURLToPath(import.meta.url));
const root = join(folder, '../..');
const target = process.env.CARGO_TARGET_DIR ?? join(root, 'target');
const program = process.env.TRACESMITH ?? join(target, 'debug/tracesmith');
const playwright = process.env.PLAYWRIGHT ?? join(target, 'tools/node_modules/playwright-core');
const browserPath = process.env.CHROMIUM ?? '/usr/bin/chromium';

const SIZE = { width: 1280, height: 800 };
const MOST_BYTES = 150_000;
/** WebP by the browser's own encoder: small, and sharp enough for text. */
const QUALITIES = [0.9, 0.8, 0.7, 0.6, 0.5];

/** The pictures: a name, a colour scheme, and what is done before. */
const PICTURES = [
  { name: 'studio', scheme: 'light', prepare: overview },
  { name: 'studio-kernel', scheme: 'dark', prepare: kernel },
];

const work = mkdtempSync(join(tmpdir(), 'tracesmith-images-'));
const trace = join(work, 'tracesmith-demo.sbt');
let server;
try {
  const made = spawnSync(program, ['demo', '-q', '-o', trace], { cwd: work, stdio: ['ignore', 'ignore', 'inherit'] });
  if (made.status !== 0) throw new Error(`${program} demo failed`);
  server = spawn(program, ['studio', 'tracesmith-demo.sbt', '--no-browser', '--port', '0'], {
    cwd: work,
    stdio: ['ignore', 'pipe', 'ignore'],
  });
  const address = await new Promise((resolve, reject) => {
    server.stdout.once('data', (text) => resolve(String(text).trim()));
    server.once('exit', () => reject(new Error(`${program} studio ended`)));
  });
  const { chromium } = createRequire(import.meta.url)(playwright);
  const browser = await chromium.launch({
    executablePath: browserPath,
    args: ['--headless', '--no-sandbox', '--disable-gpu', '--force-device-scale-factor=1', '--hide-scrollbars'],
  });
  for (const picture of PICTURES) await take(browser, address, picture);
  await browser.close();
} finally {
  server?.kill();
  rmSync(work, { recursive: true, force: true });
}

/** Takes a picture and writes it as WebP. */
async function take(browser, address, { name, scheme, prepare }) {
  const context = await browser.newContext({ viewport: SIZE, colorScheme: scheme, reducedMotion: 'reduce' });
  const page = await context.newPage();
  await page.goto(address);
  await settle(page);
  await prepare(page);
  await settle(page);
  const png = await page.screenshot();
  const packed = await pack(browser, png);
  const path = join(folder, `${name}.webp`);
  writeFileSync(path, packed);
  console.log(`${path}: ${statSync(path).size} bytes`);
  await context.close();
}

/** The best quality that is small enough. An empty page encodes: that of Studio allows no pictures of others. */
async function pack(browser, png) {
  const page = await browser.newPage();
  for (const quality of QUALITIES) {
    const text = await page.evaluate(
      async ([source, share]) => {
        const image = new Image();
        image.src = `data:image/png;base64,${source}`;
        await image.decode();
        const canvas = new OffscreenCanvas(image.width, image.height);
        canvas.getContext('2d').drawImage(image, 0, 0);
        const blob = await canvas.convertToBlob({ type: 'image/webp', quality: share });
        const bytes = new Uint8Array(await blob.arrayBuffer());
        return btoa(Array.from(bytes, (byte) => String.fromCharCode(byte)).join(''));
      },
      [png.toString('base64'), quality],
    );
    const packed = Buffer.from(text, 'base64');
    if (packed.length < MOST_BYTES) {
      await page.close();
      return packed;
    }
  }
  throw new Error(`the picture is larger than ${MOST_BYTES} bytes`);
}

/** The first glance, with the longest gap of a step selected: why it exists, and the line of code. */
async function overview(page) {
  await page.evaluate(async () => {
    const { store } = await import('/core/store.js');
    const { getJson } = await import('/core/api.js');
    const { trace: id, layout, steps } = store.get();
    const { first_row: row } = layout.tracks.find(({ kind }) => kind === 'idle');
    const { from, to } = steps[Math.min(3, steps.length - 1)];
    let [time, longest] = [from, null];
    for (;;) {
      const gap = await getJson(`t/${id}/neighbor`, { row, time, direction: 'next' });
      if (!gap || gap.start >= to) break;
      if (!longest || gap.duration > longest.duration) longest = gap;
      time = gap.start;
    }
    store.zoomTo({ from: steps[1]?.from ?? from, to: steps[5]?.to ?? to }, { margin: 0.02 });
    if (longest) store.select(longest);
  });
}

/** A kernel close up: its launch, stack, dependencies and other runs. */
async function kernel(page) {
  await page.evaluate(async () => {
    const { store } = await import('/core/store.js');
    const { getJson } = await import('/core/api.js');
    const { trace: id } = store.get();
    const { rows } = await getJson(`t/${id}/analysis/kernels`, { limit: 1 });
    const { results } = await getJson(`t/${id}/search`, { q: rows[0].name, in: 'names', limit: 4 });
    const { row, start, duration, shape } = results.at(-1);
    store.select({ row, start, duration, shape }, { reveal: true });
    store.zoomTo({ from: start - 40 * duration, to: start + 60 * duration }, { margin: 0 });
    document.querySelector('#page').style.setProperty('--dock', '42%');
  });
}

/** Waits until the picture and the panels are complete. */
async function settle(page) {
  for (let still = 0, turn = 0; still < 5; turn += 1) {
    if (turn > 300) throw new Error('the page is not complete');
    await page.waitForTimeout(100);
    const isSettled = await page.evaluate(
      () =>
        document.querySelector('ts-timeline')?.isSettled === true &&
        !document.querySelector('[aria-busy=true], .waiting') &&
        document.querySelector('ts-verdict')?.childElementCount > 0,
    );
    still = isSettled ? still + 1 : 0;
  }
}
