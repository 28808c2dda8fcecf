// Requests to the server: the key, errors, cancellation, and whether the server can be reached.

const KEY_NAME = 'tracesmith-key';
const BACK_OFF_MS = [500, 1000, 2000, 4000, 8000];

/** @typedef {'online' | 'offline' | 'denied'} Connection */
/** @typedef {Record<string, string | number | boolean | null | undefined>} Query */

/** The server refused a request, or could not be reached (`status` 0). */
export class ApiError extends Error {
  /** @param {number} status @param {string} message @param {string} [hint] */
  constructor(status, message, hint) {
    super(message);
    this.status = status;
    this.hint = hint;
  }
}

/** @type {Connection} */
let connection = 'online';
/** @type {Set<(state: Connection) => void>} */
const connectionListeners = new Set();
/** @type {Set<() => void>} */
const staleListeners = new Set();
let probing = false;

/**
 * Takes the key out of the page's address, so that it does not stay in the history or get copied with a link.
 * It stays in the session storage of this tab.
 */
export function takeKey() {
  const found = /(?:^#|&)key=([0-9a-fA-F]+)/.exec(location.hash);
  if (!found) return;
  sessionStorage.setItem(KEY_NAME, found[1]);
  const rest = location.hash
    .replace(/^#/, '')
    .split('&')
    .filter((part) => !part.startsWith('key='));
  const hash = rest.filter(Boolean).join('&');
  history.replaceState(history.state, '', hash ? `#${hash}` : location.pathname + location.search);
}

/**
 * A JSON answer.
 * @template T
 * @param {string} path below /api/v1
 * @param {Query} [query]
 * @param {{signal?: AbortSignal}} [options]
 * @returns {Promise<T>}
 */
export async function getJson(path, query, options = {}) {
  const response = await request('GET', address(path, query), undefined, options.signal);
  return /** @type {Promise<T>} */ (response.json());
}

/**
 * A JSON answer whose integers are exact: those that a Number cannot hold become bigint, where the browser hands out
 * the
 * source text of numbers.
 * @template T
 * @param {string} path
 * @param {Query} [query]
 * @param {{signal?: AbortSignal}} [options]
 * @returns {Promise<T>}
 */
export async function getExactJson(path, query, options = {}) {
  const response = await request('GET', address(path, query), undefined, options.signal);
  return JSON.parse(await response.text(), exactInteger);
}

/**
 * A binary answer.
 * @param {string} path
 * @param {Query} [query]
 * @param {{signal?: AbortSignal}} [options]
 */
export async function getBinary(path, query, options = {}) {
  const response = await request('GET', address(path, query), undefined, options.signal);
  return response.arrayBuffer();
}

/**
 * Sends JSON and gets a JSON answer.
 * @template T
 * @param {string} path
 * @param {unknown} body
 * @param {{signal?: AbortSignal}} [options]
 * @returns {Promise<T>}
 */
export async function postJson(path, body, options = {}) {
  const response = await request('POST', address(path), JSON.stringify(body), options.signal);
  return /** @type {Promise<T>} */ (response.json());
}

/**
 * Sends JSON and gets lines of JSON, as they come.
 * @param {string} path
 * @param {unknown} body
 * @param {(line: any) => void} listener
 */
export async function postLines(path, body, listener) {
  await readLines(await request('POST', address(path), JSON.stringify(body)), listener);
}

/**
 * Reads the server's stream of events until it ends or `signal` aborts.
 * @param {(event: import('./answers.d.ts').ServerEvent) => void} listener
 * @param {AbortSignal} signal
 */
export async function readEvents(listener, signal) {
  const response = await request('GET', address('events'), undefined, signal);
  try {
    await readLines(response, listener);
  } finally {
    if (!signal.aborted) lost();
  }
}

/** Whether the server answers. */
export function connectionState() {
  return connection;
}

/**
 * Calls `listener` when the server is lost or answers again.
 * @param {(state: Connection) => void} listener
 * @returns {() => void} ends it
 */
export function onConnection(listener) {
  connectionListeners.add(listener);
  return () => connectionListeners.delete(listener);
}

/**
 * Calls `listener` when an answer was refused because the file changed, or was read again.
 * @param {() => void} listener
 * @returns {() => void} ends it
 */
export function onStale(listener) {
  staleListeners.add(listener);
  return () => staleListeners.delete(listener);
}

/** Whether that error only says that nobody wants the answer any more. @param {unknown} error */
export function isAbort(error) {
  return error instanceof DOMException && error.name === 'AbortError';
}

/** @param {Response} response @param {(line: any) => void} listener */
async function readLines(response, listener) {
  if (!response.body) return;
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = '';
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    const lines = (rest + value).split('\n');
    rest = lines.pop() ?? '';
    for (const line of lines) if (line) listener(JSON.parse(line));
  }
}

/**
 * @param {string} _name
 * @param {unknown} value
 * @param {{source?: string}} [context]
 */
function exactInteger(_name, value, context) {
  const isRounded = typeof value === 'number' && Number.isInteger(value) && !Number.isSafeInteger(value);
  return isRounded && context?.source && /^-?\d+$/.test(context.source) ? BigInt(context.source) : value;
}

/** @param {string} path @param {Query} [query] */
function address(path, query = {}) {
  const parameters = new URLSearchParams();
  for (const [name, value] of Object.entries(query)) {
    if (value !== null && value !== undefined) parameters.set(name, String(value));
  }
  const text = parameters.toString();
  return `/api/v1/${path}${text ? `?${text}` : ''}`;
}

/**
 * @param {string} method
 * @param {string} url
 * @param {string} [body]
 * @param {AbortSignal} [signal]
 */
async function request(method, url, body, signal) {
  /** @type {Record<string, string>} */
  const headers = { 'X-TraceSmith-Key': sessionStorage.getItem(KEY_NAME) ?? '' };
  if (body !== undefined) headers['Content-Type'] = 'application/json';
  let response;
  try {
    response = await fetch(url, { method, headers, body, signal });
  } catch (error) {
    if (isAbort(error)) throw error;
    lost();
    throw new ApiError(0, 'the server does not answer', 'check that `tracesmith studio` is still running');
  }
  if (response.status === 401) {
    become('denied');
  } else {
    become('online');
  }
  if (response.ok) return response;
  if (response.status === 409 && !url.endsWith('/layout')) for (const listener of staleListeners) listener();
  /** @type {{error?: string, hint?: string}} */
  const reason = await response.json().catch(() => ({}));
  throw new ApiError(response.status, reason.error ?? `the server answered ${response.status}`, reason.hint);
}

/** @param {Connection} state */
function become(state) {
  if (state === connection) return;
  connection = state;
  for (const listener of connectionListeners) listener(state);
}

/** The server is gone: ask again, less and less often, until it answers. */
async function lost() {
  become('offline');
  if (probing) return;
  probing = true;
  for (let turn = 0; connection === 'offline'; turn += 1) {
    await new Promise((resolve) => setTimeout(resolve, BACK_OFF_MS[Math.min(turn, BACK_OFF_MS.length - 1)]));
    // A failure leaves the state as it is, and the loop goes on.
    await request('GET', address('session')).catch(() => undefined);
  }
  probing = false;
}
