// The replay of the open trace, as the parts of its tab share it: the child's state, the chosen call, and its buffers.

import { ApiError, getJson, postJson } from '../core/api.js';
import { store } from '../core/store.js';
import { choose, chosen } from '../panels/choices.js';
import { ReplayError, ask, start } from './client.js';
import { typeOf } from './numbers.js';

/** @typedef {import('./answers.d.ts').Call} Call */
/** @typedef {import('./answers.d.ts').BufferEntry} BufferEntry */
/** @typedef {import('./answers.d.ts').BufferDifference} BufferDifference */
/** @typedef {'before'|'after'} Side */
/** @typedef {'none'|'starting'|'ready'|'ended'} Status */

/** Calls of one request. */
const CALLS_AT_ONCE = 10_000;
/** Changed ranges of each buffer. */
const RANGES = 4096;

/** Dispatches `change` when anything but the contents of memory has changed, and `moved` when contents may have. */
export class ReplayModel extends EventTarget {
  /** @type {import('./answers.d.ts').ReplayInfo|null} */
  info = null;
  /** @type {Status} */
  status = 'none';
  /** @type {import('./answers.d.ts').Ready|null} */
  ready = null;
  /** @type {import('./answers.d.ts').Position|null} */
  position = null;
  /** @type {Call[]} */
  calls = [];
  /** @type {BufferEntry[]} Buffers of the chosen call. */
  buffers = [];
  /** What the chosen call changed, by address. Null if that is not known. @type {Map<string, BufferDifference>|null} */
  changed = null;
  /** @type {import('./answers.d.ts').Progress|null} */
  progress = null;
  /** What is being done, in words. */
  doing = '';
  /** The last error of a step. @type {Error|null} */
  error = null;
  #requests = 0;
  #isRefreshing = false;
  #isStale = false;

  /** @param {number} trace */
  constructor(trace) {
    super();
    this.trace = trace;
  }

  /** Whether recorded calls are run. */
  get isLive() {
    return this.status === 'ready' && this.ready?.offline === null;
  }

  /** Whether a request is being handled. */
  get isBusy() {
    return this.#requests > 0;
  }

  /** The chosen call. @returns {Call|null} */
  get call() {
    const number = Number(chosen('replay-call', '-1'));
    return this.calls.find((call) => call.number === number) ?? this.calls[0] ?? null;
  }

  /** @returns {Side} */
  get side() {
    return chosen('replay-side', 'after') === 'before' ? 'before' : 'after';
  }

  /** The position that is shown: a number of calls. */
  get place() {
    const call = this.call;
    return call ? call.place + (this.side === 'after' ? 1 : 0) : 0;
  }

  get type() {
    return typeOf(chosen('replay-type', 'f32'));
  }

  /** The chosen buffer, or the first that the call changed, or its first. @returns {BufferEntry|null} */
  get buffer() {
    const pointer = chosen('replay-buffer', '');
    const all = this.buffers;
    const found = all.find((buffer) => pointerOf(buffer) === pointer);
    return found ?? all.find((buffer) => this.changeOf(buffer) !== null) ?? all[0] ?? null;
  }

  /**
   * Bytes that the call changed from where the call points to up to the next argument in the same buffer. Allocators
   * of programs put many tensors into one buffer. Null if nothing changed there, or if that is not known.
   * @param {BufferEntry} buffer
   * @returns {{bytes: number, isAll: boolean}|null}
   */
  changeOf(buffer) {
    const change = this.changed?.get(buffer.address);
    if (!change) return null;
    const offsets = this.buffers.filter(({ address }) => address === buffer.address).map(offsetOf);
    const from = offsetOf(buffer);
    const to = Math.min(change.bytes, ...offsets.filter((offset) => offset > from));
    if (from === 0 && to === change.bytes) return { bytes: change.different_bytes, isAll: true };
    let bytes = 0;
    for (const [offset, size] of change.ranges)
      bytes += Math.max(0, Math.min(offset + size, to) - Math.max(offset, from));
    return bytes > 0 ? { bytes, isAll: change.ranges.length === change.range_count } : null;
  }

  /** Reads how the replay is. If a child runs, goes on with it. */
  async load() {
    this.info = await getJson(`t/${this.trace}/replay`);
    if (this.info?.state === 'ready' && this.info.ready) await this.#begin(this.info.ready);
    else if (this.info?.is_recording && this.info.can_look && this.info.state === 'none') await this.start(false);
    else if (this.info?.state === 'starting') await this.start(this.info.mode === 'run');
    else this.status = this.info?.state === 'ended' ? 'ended' : 'none';
    this.#changed();
  }

  /** @param {boolean} run whether recorded calls are run */
  async start(run) {
    this.status = 'starting';
    this.error = null;
    try {
      const ready = await this.#work(run ? 'Preparing the GPU' : 'Reading the recording', (onProgress) =>
        start(this.trace, run, onProgress),
      );
      await this.#begin(ready);
    } catch (error) {
      this.#failed(error);
    }
  }

  async stop() {
    await postJson(`t/${this.trace}/replay/stop`, {});
    this.status = 'ended';
    this.error = new ApiError(0, 'the replay was stopped');
    this.#changed();
  }

  /**
   * Chooses a call, and the moment before or after it.
   * @param {number} number
   * @param {Side} [side]
   */
  select(number, side = this.side) {
    choose({ 'replay-call': String(number), 'replay-side': side === 'after' ? '' : side });
    this.refresh();
  }

  /** Steps by some calls. @param {number} count */
  step(count) {
    const at = this.calls.findIndex((call) => call === this.call);
    const next = this.calls[Math.min(Math.max(at + count, 0), this.calls.length - 1)];
    if (next) this.select(next.number);
  }

  /** @param {string} pointer */
  selectBuffer(pointer) {
    choose({ 'replay-buffer': pointer });
    this.#changed();
    this.moved();
  }

  /** Contents may have changed. */
  moved() {
    this.dispatchEvent(new Event('moved'));
  }

  /**
   * Sends a request for the chosen position.
   * @template T
   * @param {string} doing what it does, in words
   * @param {Record<string, unknown>} request
   * @returns {Promise<T & {position: import('./answers.d.ts').Position}>}
   */
  async ask(doing, request) {
    try {
      const answer = await this.#work(doing, (onProgress) =>
        ask(this.trace, { place: this.place, ...request }, onProgress),
      );
      this.position = answer.position;
      return /** @type {T & {position: import('./answers.d.ts').Position}} */ (answer);
    } catch (error) {
      if (error instanceof ReplayError && error.ended) this.#failed(error);
      throw error;
    }
  }

  /**
   * Brings the chosen position and its buffers up to date. Steps that come while one is being made are made together.
   */
  async refresh() {
    this.#isStale = true;
    this.#changed();
    if (this.#isRefreshing) return;
    this.#isRefreshing = true;
    try {
      while (this.#isStale && this.status === 'ready') {
        this.#isStale = false;
        await this.#step();
      }
    } finally {
      this.#isRefreshing = false;
      this.#changed();
    }
  }

  async #step() {
    const call = this.call;
    if (!call) return;
    this.error = null;
    try {
      /** @type {Map<string, BufferDifference>|null} */
      let changed = null;
      if (this.isLive && this.side === 'after') {
        /** @type {import('./answers.d.ts').Changes} */
        const found = await this.ask(`Running call ${call.number}`, {
          do: 'changes',
          call: call.number,
          type: this.type,
          ranges: RANGES,
        });
        changed = new Map(found.buffers.map((buffer) => [buffer.address, buffer]));
      }
      /** @type {import('./answers.d.ts').Buffers} */
      const { buffers } = await this.ask('Going to the call', { do: 'buffers', call: call.number });
      // Another call, or the other side of this one, is next.
      if (this.#isStale) return;
      this.changed = changed;
      this.buffers = withChanged(buffers, changed);
      this.moved();
    } catch (error) {
      this.error = error instanceof Error ? error : new Error(String(error));
      this.changed = null;
    }
  }

  /** @param {import('./answers.d.ts').Ready} ready */
  async #begin(ready) {
    this.ready = ready;
    this.position = ready.position;
    this.status = 'ready';
    this.calls = [];
    for (let from = 0; this.calls.length < ready.calls;) {
      /** @type {import('./answers.d.ts').Calls} */
      const { calls } = await this.ask('Reading the calls', { do: 'calls', from, limit: CALLS_AT_ONCE, place: 0 });
      if (calls.length === 0) break;
      this.calls.push(...calls);
      from = calls[calls.length - 1].number + 1;
    }
    await this.refresh();
  }

  /**
   * @template T
   * @param {string} doing
   * @param {(onProgress: import('./client.js').OnProgress) => Promise<T>} work
   * @returns {Promise<T>}
   */
  async #work(doing, work) {
    this.#requests += 1;
    this.doing = doing;
    this.#changed();
    try {
      return await work((progress) => {
        this.progress = progress;
        this.#changed();
      });
    } finally {
      this.#requests -= 1;
      this.progress = null;
      this.#changed();
    }
  }

  /** @param {unknown} error */
  #failed(error) {
    this.status = 'ended';
    this.error = error instanceof Error ? error : new Error(String(error));
    store.announce(`The replay ended: ${this.error.message}`);
    this.#changed();
  }

  #changed() {
    this.dispatchEvent(new Event('change'));
  }
}

/** Where a call points to in a buffer. @param {BufferEntry} buffer */
export function pointerOf({ pointer, address }) {
  return pointer ?? address;
}

/** The offset of that in the buffer. @param {BufferEntry} buffer */
export function offsetOf(buffer) {
  return Number(BigInt(pointerOf(buffer)) - BigInt(buffer.address));
}

/**
 * The memory that a call points to, once each, and then other buffers that it changed.
 * @param {BufferEntry[]} buffers
 * @param {Map<string, BufferDifference>|null} changed
 */
function withChanged(buffers, changed) {
  /** @type {Map<string, BufferEntry>} */
  const all = new Map();
  for (const buffer of buffers) if (!all.has(pointerOf(buffer))) all.set(pointerOf(buffer), buffer);
  const known = new Set(buffers.map(({ address }) => address));
  for (const [address, { bytes, memory, variable }] of changed ?? [])
    if (!known.has(address)) all.set(address, { address, bytes, memory, variable });
  return [...all.values()];
}
