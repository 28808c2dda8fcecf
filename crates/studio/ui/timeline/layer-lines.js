// Lines of the layers in the picture of the rows: where their steps begin, and the hatches across rows that are only
// predicted.

import { placeOf } from '../core/layer.js';

/** @typedef {import('./draw.js').Scene} Scene */
/** @typedef {import('./rows.js').Item} Item */
/** @typedef {import('../core/layer.js').Layer} Layer */
/** @typedef {{y: number, height: number}} Band  device pixels */

/** Steps have lines while they are as far apart. */
const STEP_PIXELS = 40;
/** Distance of the hatches. */
const HATCH = 7;

/**
 * Lines where steps begin, while they are far enough apart: each layer's in its own rows.
 * @param {CanvasRenderingContext2D} context
 * @param {Scene} scene
 * @param {(place: number) => string} ink of the layer at a place
 */
export function drawSteps(context, scene, ink) {
  const { layers, ratio } = scene;
  for (const { layer, view } of layers) {
    const { steps } = layer;
    const first = steps.findIndex(({ to }) => to > view.from);
    if (first < 0 || view.x(steps[first].to) - view.x(steps[first].from) < STEP_PIXELS * ratio) continue;
    context.fillStyle = ink(layer.place);
    const bands = layers.length > 1 ? bandsOf(scene, layer) : [{ y: 0, height: context.canvas.height }];
    for (const { from } of steps.slice(first)) {
      if (from > view.to) break;
      const x = Math.round(view.x(from));
      for (const { y, height } of bands) context.fillRect(x, y, 1, height);
    }
  }
}

/** Where the rows of a layer are. @param {Scene} scene @param {Layer} layer @returns {Band[]} */
function bandsOf({ rows, scroll, ratio }, layer) {
  const { pinnedHeight, pinned, items } = rows;
  const isOwn = (/** @type {Item} */ { track, isGroup }) =>
    !isGroup && track && placeOf(track.first_row) === layer.place;
  const band = (/** @type {number} */ top, /** @type {number} */ bottom) => {
    const y = Math.round(top * ratio);
    return { y, height: Math.round(bottom * ratio) - y };
  };
  const scrolled = items.filter(isOwn).map(({ y, height }) => {
    const top = y + pinnedHeight - scroll;
    return band(Math.max(top, pinnedHeight), Math.max(top + height, pinnedHeight));
  });
  return [...pinned.filter(isOwn).map(({ y, height }) => band(y, y + height)), ...scrolled];
}

/**
 * Diagonal lines across bands.
 * @param {CanvasRenderingContext2D} context @param {Band[]} bands @param {string} color
 */
export function drawHatches(context, bands, color) {
  const pattern = bands.length > 0 ? context.createPattern(hatch(color), 'repeat') : null;
  if (!pattern) return;
  context.fillStyle = pattern;
  for (const { y, height } of bands) context.fillRect(0, y + 1, context.canvas.width, height - 1);
}

/** A tile of diagonal lines. @param {string} color */
function hatch(color) {
  const canvas = new OffscreenCanvas(HATCH, HATCH);
  const context = canvas.getContext('2d');
  if (context) {
    context.strokeStyle = color;
    context.lineWidth = 1.6;
    context.beginPath();
    for (const shift of [-HATCH, 0, HATCH]) {
      context.moveTo(shift - 1, HATCH + 1);
      context.lineTo(shift + HATCH + 1, -1);
    }
    context.stroke();
  }
  return canvas;
}
