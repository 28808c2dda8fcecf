// Opens a profile in the real speedscope, in a headless Chromium, and prints what it has loaded.
//
//   node speedscope.js PLAYWRIGHT CHROMIUM SPEEDSCOPE PROFILE
//
// PLAYWRIGHT is the folder of npm's playwright-core, SPEEDSCOPE that of npm's speedscope. Prints JSON: what the page shows as
// its title and as the totals of functions, of the profile that it opens first, and the file that its export button gives,
// which holds all profiles as speedscope has them in memory. Exits with 3 when the browser cannot be started, so that tests
// can tell "cannot" from "wrong".
'use strict';
const fs = require('fs');
const http = require('http');
const os = require('os');
const path = require('path');

const [playwright, chromium, speedscope, profile] = process.argv.slice(2);
// A machine that runs tests has other things to do: everything here takes a few seconds where it is idle.
const PATIENCE_MILLIS = 120_000;
// speedscope draws with WebGL, which Chromium does by itself where there is no GPU.
const BROWSER_ARGUMENTS = ['--no-sandbox', '--enable-unsafe-swiftshader', '--disable-quic', '--no-first-run',
  '--disable-background-networking', '--disable-component-update', '--disable-sync', '--disable-dev-shm-usage'];
const TYPES = {'.html': 'text/html', '.js': 'text/javascript', '.css': 'text/css', '.json': 'application/json',
  '.wasm': 'application/wasm', '.png': 'image/png', '.woff2': 'font/woff2'};

/** Serves speedscope, and the profile beside it. */
function serve() {
  const app = path.join(speedscope, 'dist', 'release');
  const server = http.createServer((request, response) => {
    const wanted = decodeURIComponent(new URL(request.url, 'http://localhost').pathname);
    const page = wanted === '/' ? '/index.html' : wanted;
    const file = wanted === '/profile.json' ? profile : path.join(app, path.normalize(page));
    fs.readFile(file, (error, bytes) => {
      response.writeHead(error ? 404 : 200, {'Content-Type': TYPES[path.extname(file)] || 'application/octet-stream'});
      response.end(bytes);
    });
  });
  return new Promise(resolve => server.listen(0, '127.0.0.1', () => resolve(server)));
}

async function startBrowser(folder) {
  try {
    return await require(playwright).chromium.launchPersistentContext(folder, {
      executablePath: chromium, args: BROWSER_ARGUMENTS, acceptDownloads: true, timeout: PATIENCE_MILLIS,
    });
  } catch (error) {
    console.error('speedscope: the browser does not start:', String(error).split('\n')[0]);
    process.exit(3);
  }
}

/** In the page: the rows of its table of functions, each a list of texts. A list of profiles is there too, but hidden. */
function rowsOf() {
  const shown = [...document.querySelectorAll('tr')].filter(row => row.offsetParent !== null);
  return shown.map(row => [...row.querySelectorAll('td')].map(cell => cell.innerText.trim()));
}

async function main() {
  setTimeout(() => {
    console.error('speedscope: no answer in time');
    process.exit(1);
  }, 3 * PATIENCE_MILLIS).unref();
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'speedscope-'));
  const browser = await startBrowser(folder);
  const server = await serve();
  try {
    const origin = `http://127.0.0.1:${server.address().port}`;
    const page = await browser.newPage();
    const troubles = [];
    page.on('pageerror', error => troubles.push(String(error)));
    page.on('dialog', dialog => { troubles.push(dialog.message()); dialog.dismiss(); });
    page.setDefaultTimeout(PATIENCE_MILLIS);
    await page.goto(`${origin}/#profileURL=${encodeURIComponent(origin + '/profile.json')}&view=sandwich`);
    // The first of that name: functions may have it too, and stand below.
    const button = page.getByText('Export').first();
    await button.waitFor();
    await page.locator('td:visible').first().waitFor();
    const rows = (await page.evaluate(rowsOf)).filter(row => row.length > 0);
    const [download] = await Promise.all([page.waitForEvent('download'), button.click()]);
    const loaded = JSON.parse(fs.readFileSync(await download.path(), 'utf8'));
    console.log(JSON.stringify({title: await page.title(), rows, loaded, troubles}));
  } finally {
    await browser.close();
    server.close();
    fs.rmSync(folder, {recursive: true, force: true});
  }
}

main().then(() => process.exit(0), error => {
  console.error('speedscope:', error);
  process.exit(1);
});
