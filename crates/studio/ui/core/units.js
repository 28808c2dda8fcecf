// Numbers as people read them: times, bytes, shares, counts. The commands round in the same way.

const TIME_UNITS = /** @type {const} */ ([
  [1e9, 's'],
  [1e6, 'ms'],
  [1e3, 'µs'],
  [1, 'ns'],
]);
const BYTE_UNITS = ['B', 'KiB', 'MiB', 'GiB', 'TiB'];

/**
 * A duration as the commands print it: `812 ns`, `3.50 µs`, `12.04 ms`, `1.500 s`.
 * @param {number} ns
 */
export function duration(ns) {
  if (!Number.isFinite(ns)) return '–';
  const size = Math.abs(ns);
  if (size < 1000) return `${Math.round(ns)} ns`;
  const [unit, name] = TIME_UNITS.find(([factor]) => size >= factor) ?? TIME_UNITS[3];
  return `${(ns / unit).toFixed(name === 's' ? 3 : 2)} ${name}`;
}

/**
 * A moment of the trace, with the digits that tell it from a moment `step` ns away: `1.234 567 s`.
 * @param {number} ns
 * @param {number} [step]
 */
export function moment(ns, step = 1) {
  const size = Math.max(Math.abs(ns), step);
  const [unit, name] = TIME_UNITS.find(([factor]) => size >= factor) ?? TIME_UNITS[3];
  const digits = Math.max(0, Math.min(9, Math.ceil(Math.log10(unit / step) - 1e-9)));
  return `${groupDigits((ns / unit).toFixed(digits))} ${name}`;
}

/**
 * A time that a person typed: `1.5ms`, `200 us`, `3s`, or nanoseconds without a unit.
 * @param {string} text
 * @returns {number | null}
 */
export function parseTime(text) {
  const match = /^\s*([0-9]*\.?[0-9]+)\s*(ns|us|µs|ms|s|m|min)?\s*$/i.exec(text.replace(/[ _,](?=\d)/g, ''));
  if (!match) return null;
  const units = /** @type {Record<string, number>} */ ({
    ns: 1,
    us: 1e3,
    µs: 1e3,
    ms: 1e6,
    s: 1e9,
    m: 6e10,
    min: 6e10,
  });
  return Number(match[1]) * units[(match[2] ?? 'ns').toLowerCase()];
}

/** Bytes as the commands print them: `512 B`, `1.5 KiB`, `64.0 MiB`. @param {number} count */
export function bytes(count) {
  let unit = 0;
  let value = count;
  while (Math.abs(value) >= (unit === 0 ? 1024 : 1023.95) && unit < BYTE_UNITS.length - 1) {
    value /= 1024;
    unit += 1;
  }
  return `${unit === 0 ? value : value.toFixed(1)} ${BYTE_UNITS[unit]}`;
}

/** A share of 1 in percent, as the commands print it: `27.8 %`. @param {number} share */
export function percent(share) {
  return Number.isFinite(share) ? `${(share * 100).toFixed(1)} %` : '–';
}

/** A count with thousands separators. @param {number} value */
export function count(value) {
  return Math.round(value).toLocaleString('en-US');
}

/** A value of a counter in its unit. @param {number} value @param {string} [unit] */
export function quantity(value, unit = '') {
  if (!Number.isFinite(value)) return '–';
  if (unit === 'bytes' || unit === 'B') return bytes(value);
  return `${significant(value, 4)}${unit ? ` ${unit}` : ''}`;
}

/** @param {number} value @param {number} digits */
function significant(value, digits) {
  if (Math.abs(value) >= 10 ** digits) return count(value);
  return value.toPrecision(digits).includes('e') ? value.toPrecision(digits) : trimZeros(value.toPrecision(digits));
}

/** @param {string} text */
function trimZeros(text) {
  return text.includes('.') ? text.replace(/\.?0+$/, '') : text;
}

/** Groups the digits after the point by three. @param {string} text */
function groupDigits(text) {
  const [whole, fraction] = text.split('.');
  return fraction === undefined ? whole : `${whole}.${fraction.replace(/(\d{3})(?=\d)/g, '$1\u202f')}`;
}
