// Numbers in memory: element types, their texts, and shapes.

/** @typedef {import('./answers.d.ts').NumberType} NumberType */

/** @type {NumberType[]} */
export const TYPES = ['f32', 'f16', 'bf16', 'f64', 'i32', 'i64', 'u8', 'i8', 'i16', 'u16', 'u32', 'u64'];

/** @type {Record<NumberType, number>} */
const WIDTHS = { u8: 1, i8: 1, u16: 2, i16: 2, f16: 2, bf16: 2, u32: 4, i32: 4, f32: 4, u64: 8, i64: 8, f64: 8 };

/** Bytes of an element. @param {NumberType} type */
export function widthOf(type) {
  return WIDTHS[type];
}

/** The type of that name, f32 for any other. @param {string} name @returns {NumberType} */
export function typeOf(name) {
  return TYPES.find((type) => type === name) ?? 'f32';
}

/** The bytes of a text of hex digits. @param {string} hex */
export function bytesOf(hex) {
  const bytes = new Uint8Array(hex.length / 2);
  for (let i = 0; i < bytes.length; i += 1) bytes[i] = Number.parseInt(hex.slice(2 * i, 2 * i + 2), 16);
  return bytes;
}

/**
 * The element at an offset, exact and as short as possible.
 * @param {DataView} view
 * @param {number} offset
 * @param {NumberType} type
 */
export function textAt(view, offset, type) {
  switch (type) {
    case 'u8':
      return String(view.getUint8(offset));
    case 'i8':
      return String(view.getInt8(offset));
    case 'u16':
      return String(view.getUint16(offset, true));
    case 'i16':
      return String(view.getInt16(offset, true));
    case 'u32':
      return String(view.getUint32(offset, true));
    case 'i32':
      return String(view.getInt32(offset, true));
    case 'u64':
      return String(view.getBigUint64(offset, true));
    case 'i64':
      return String(view.getBigInt64(offset, true));
    case 'f16':
      return numberText(half(view.getUint16(offset, true)));
    case 'bf16':
      return shortFloat(bfloat(view.getUint16(offset, true)));
    case 'f32':
      return shortFloat(view.getFloat32(offset, true));
    default:
      return numberText(view.getFloat64(offset, true));
  }
}

/** A number for a person: at most six digits. @param {number|null} value */
export function rounded(value) {
  if (value === null) return '–';
  if (Number.isInteger(value) && Math.abs(value) < 1e9) return value.toLocaleString('en-US');
  const text = value.toPrecision(6);
  return text.includes('e') ? text : String(Number(text));
}

/** Half precision: one sign bit, five bits of the exponent, ten of the fraction. @param {number} bits */
function half(bits) {
  const sign = bits & 0x8000 ? -1 : 1;
  const exponent = (bits >> 10) & 0x1f;
  const fraction = (bits & 0x3ff) / 1024;
  if (exponent === 0) return sign * fraction * 2 ** -14;
  if (exponent === 0x1f) return fraction === 0 ? sign * Infinity : NaN;
  return sign * (1 + fraction) * 2 ** (exponent - 15);
}

/** The upper half of single precision. @param {number} bits */
function bfloat(bits) {
  const view = new DataView(new ArrayBuffer(4));
  view.setUint16(0, bits);
  return view.getFloat32(0);
}

/** The fewest digits that single precision reads as the same number. @param {number} value */
function shortFloat(value) {
  if (!Number.isFinite(value)) return numberText(value);
  for (let digits = 1; digits < 10; digits += 1) {
    const text = Number(value.toPrecision(digits));
    if (Math.fround(text) === value) return numberText(text);
  }
  return numberText(value);
}

/** @param {number} value */
function numberText(value) {
  if (Number.isNaN(value)) return 'NaN';
  if (!Number.isFinite(value)) return value > 0 ? 'inf' : '-inf';
  return Object.is(value, -0) ? '-0' : String(value);
}

/**
 * A shape that a person typed: `64x128`, `2, 64, 128`. Null if it is none.
 * @param {string} text
 * @returns {number[]|null}
 */
export function parseShape(text) {
  const parts = text
    .trim()
    .split(/[\s,x×*]+/)
    .filter(Boolean);
  const sizes = parts.map(Number);
  const isShape = sizes.length > 0 && sizes.length <= 8 && sizes.every((size) => Number.isInteger(size) && size > 0);
  return isShape ? sizes : null;
}

/**
 * Rows and columns of a shape: the last size is that of a row. One that does not fit is cut at its end.
 * @param {number[]|null} shape
 * @param {number} elements
 * @returns {{rows: number, columns: number, sizes: number[]}}
 */
export function matrixOf(shape, elements) {
  const sizes = shape ?? squareOf(elements);
  const columns = Math.max(1, Math.min(sizes.at(-1) ?? 1, elements));
  const wanted = sizes.slice(0, -1).reduce((product, size) => product * size, 1);
  return { rows: Math.max(1, Math.min(wanted, Math.floor(elements / columns))), columns, sizes };
}

/** Without a shape, lines of 16 elements. @param {number} elements */
function squareOf(elements) {
  const columns = Math.min(16, Math.max(1, elements));
  return [Math.max(1, Math.ceil(elements / columns)), columns];
}

/** The index of an element in each dimension. @param {number} index @param {number[]} sizes */
export function indexText(index, sizes) {
  const parts = [];
  let rest = index;
  for (const size of [...sizes].reverse()) {
    parts.unshift(rest % size);
    rest = Math.floor(rest / size);
  }
  return `[${parts.join(', ')}]`;
}
