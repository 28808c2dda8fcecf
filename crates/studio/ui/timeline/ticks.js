// Places of the ticks of a time axis: round times, 1, 2 or 5 times a power of ten apart.

/**
 * The distance of ticks that are at least `pixels` apart.
 * @param {number} nanosPerPixel @param {number} pixels
 */
export function tickStep(nanosPerPixel, pixels) {
  const least = Math.max(1, nanosPerPixel * pixels);
  const power = 10 ** Math.floor(Math.log10(least));
  const factor = [1, 2, 5, 10].find((candidate) => candidate * power >= least * (1 - 1e-9)) ?? 10;
  return factor * power;
}

/**
 * The times of ticks from `from` to `to`.
 * @param {number} from @param {number} to @param {number} step
 */
export function ticks(from, to, step) {
  const times = [];
  for (let n = Math.ceil(from / step); n * step <= to; n += 1) times.push(n * step);
  return times;
}
