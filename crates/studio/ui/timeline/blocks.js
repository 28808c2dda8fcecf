// A cache of what the server sends for blocks of time: a block has a level and an index (it covers `2^bits` ns from
// `index * 2^bits`) and holds one entry for each row that was asked for. It asks for nothing twice, asks for the most
// wanted blocks first, gives up what nobody wants any more, and forgets what was not used for longest.

import { isAbort } from '../core/api.js';

/** @typedef {{level: number, index: number, rows: number[]}} Wish */
/**
 * @typedef {{block: Block<any>, rows: Set<number>, controller: AbortController, since: number, isGivenUp: boolean,
 *   isOld: boolean}}
 * Pending
 */
/**
 * @template E
 * @typedef {{key: number, rows: Map<number, E>, old: Set<number>, bytes: number, isKept: boolean}} Block rows that are
 * old are shown until they come anew
 */
/**
 * @template E
 * @typedef {object} Source
 * @property {(wish: Wish, signal: AbortSignal) => Promise<Map<number, E>>} fetch
 * @property {(entry: E) => number} bytes
 * @property {() => void} onArrival
 */

const MAX_PENDING = 4;
/** Nobody waits for it any more, but what comes soon is cheaper to keep than to ask for again. */
const GIVE_UP_AFTER_MS = 1500;
const RETRY_AFTER_MS = 2000;
/** Keys are level and index in one number. */
const LEVELS = 64;

/**
 * Blocks by level and index.
 * @template E
 */
export class BlockCache {
  /** In the order of use. @type {Map<number, Block<E>>} */
  #blocks = new Map();
  #bytes = 0;
  #budget;
  #source;
  /** @type {Set<Pending>} */
  #pending = new Set();
  /** @type {Wish[]} */
  #queue = [];
  /** Counts how often everything was forgotten. */
  #epoch = 0;
  /** @type {Map<number, number>} */
  #failed = new Map();

  /** @param {number} budget bytes @param {Source<E>} source */
  constructor(budget, source) {
    this.#budget = budget;
    this.#source = source;
  }

  get bytes() {
    return this.#bytes;
  }

  get isIdle() {
    return this.#pending.size === 0 && this.#queue.length === 0;
  }

  /** Forgets everything: another trace, or another content. */
  clear() {
    for (const { controller } of this.#pending) controller.abort();
    this.#epoch += 1;
    this.#pending.clear();
    this.#queue = [];
    this.#blocks.clear();
    this.#failed.clear();
    this.#bytes = 0;
  }

  /**
   * From that moment on the content is another. What is here is shown until it has come anew.
   * @param {number} from @param {number} bits of the time that a block of level 0 covers
   */
  age(from, bits) {
    const isOld = (/** @type {number} */ key) =>
      (Math.floor(key / LEVELS) + 1) * 2 ** ((key % LEVELS) + bits) > from;
    for (const block of this.#blocks.values()) if (isOld(block.key)) block.old = new Set(block.rows.keys());
    for (const pending of this.#pending) if (isOld(pending.block.key)) pending.isOld = true;
    this.#queue = [];
    this.#failed.clear();
  }

  /** @param {number} level @param {number} index @param {number} row @returns {E | undefined} */
  get(level, index, row) {
    return this.#blocks.get(index * LEVELS + level)?.rows.get(row);
  }

  /** Marks a block as used, so that it stays. @param {number} level @param {number} index */
  touch(level, index) {
    const key = index * LEVELS + level;
    const block = this.#blocks.get(key);
    if (!block) return;
    this.#blocks.delete(key);
    this.#blocks.set(key, block);
  }

  /** Keeps a block whatever happens. @param {number} level @param {number} index */
  keep(level, index) {
    this.#block(index * LEVELS + level).isKept = true;
  }

  /**
   * Asks for these blocks, the first ones first. What was wanted before and is no more, is given up.
   * @param {Wish[]} wishes
   */
  want(wishes) {
    const now = performance.now();
    const keys = new Set(wishes.map(({ level, index }) => index * LEVELS + level));
    for (const pending of this.#pending) {
      if (keys.has(pending.block.key) || pending.block.isKept || now - pending.since < GIVE_UP_AFTER_MS) continue;
      // It stays pending until it ends: it may have arrived already.
      pending.isGivenUp = true;
      pending.controller.abort();
    }
    this.#queue = wishes.filter((wish) => this.#missing(wish).length > 0);
    this.#next();
  }

  /** Stops asking; what is on its way still arrives. */
  pause() {
    this.#queue = [];
  }

  /** @param {Wish} wish */
  #missing({ level, index, rows }) {
    const key = index * LEVELS + level;
    const retry = this.#failed.get(key);
    if (retry !== undefined && performance.now() < retry) return [];
    const block = this.#blocks.get(key);
    return rows.filter((row) => {
      if (block?.rows.has(row) && !block.old.has(row)) return false;
      for (const { block: asked, rows, isOld } of this.#pending) {
        if (asked.key === key && !isOld && rows.has(row)) return false;
      }
      return true;
    });
  }

  #next() {
    const active = () => [...this.#pending].filter(({ isGivenUp }) => !isGivenUp).length;
    while (active() < MAX_PENDING && this.#queue.length > 0) {
      const wish = /** @type {Wish} */ (this.#queue.shift());
      const rows = this.#missing(wish);
      if (rows.length > 0) this.#ask({ ...wish, rows });
    }
  }

  /** @param {Wish} wish */
  async #ask(wish) {
    const controller = new AbortController();
    const epoch = this.#epoch;
    const block = this.#block(wish.index * LEVELS + wish.level);
    const since = performance.now();
    const pending = { block, rows: new Set(wish.rows), controller, since, isGivenUp: false, isOld: false };
    this.#pending.add(pending);
    try {
      const entries = await this.#source.fetch(wish, controller.signal);
      // What arrived although it was given up is kept too, unless it is of another trace.
      if (epoch !== this.#epoch) return;
      this.#put(block, entries, pending.isOld);
    } catch (error) {
      if (epoch !== this.#epoch) return;
      if (!isAbort(error)) {
        this.#failed.set(block.key, performance.now() + RETRY_AFTER_MS);
        setTimeout(() => this.#source.onArrival(), RETRY_AFTER_MS);
      }
    } finally {
      this.#pending.delete(pending);
      this.#next();
    }
    this.#source.onArrival();
  }

  /** @param {Block<E>} block @param {Map<number, E>} entries @param {boolean} isOld */
  #put(block, entries, isOld) {
    this.#blocks.delete(block.key);
    this.#blocks.set(block.key, block);
    for (const [row, entry] of entries) {
      const before = block.rows.get(row);
      if (before && isOld && !block.old.has(row)) continue;
      const bytes = this.#source.bytes(entry) - (before ? this.#source.bytes(before) : 0);
      block.rows.set(row, entry);
      if (isOld) block.old.add(row);
      else block.old.delete(row);
      block.bytes += bytes;
      this.#bytes += bytes;
    }
    for (const [key, { bytes, isKept }] of this.#blocks) {
      if (this.#bytes <= this.#budget) break;
      if (isKept || key === block.key) continue;
      this.#blocks.delete(key);
      this.#bytes -= bytes;
    }
  }

  /** @param {number} key @returns {Block<E>} */
  #block(key) {
    const found = this.#blocks.get(key);
    if (found) return found;
    const block = { key, rows: new Map(), old: new Set(), bytes: 0, isKept: false };
    this.#blocks.set(key, block);
    return block;
  }
}

/** Rows as the server reads them: `0-39,42`. @param {number[]} rows in order */
export function rowRanges(rows) {
  const parts = [];
  for (let i = 0; i < rows.length; i += 1) {
    const first = rows[i];
    while (rows[i + 1] === rows[i] + 1) i += 1;
    parts.push(first === rows[i] ? `${first}` : `${first}-${rows[i]}`);
  }
  return parts.join(',');
}
