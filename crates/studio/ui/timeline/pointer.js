// The mouse, the touchpad and the pen over the rows: the wheel zooms and pans, dragging selects an area or pans, a
// click
// selects a slice.

import { store } from '../core/store.js';
import { findSlice, placeAt, sliceAt } from './pick.js';
import { PADDING } from './rows.js';

/** @typedef {import('./timeline.js').Timeline} Timeline */

const DRAG_PIXELS = 4;
/** A notch of a wheel is 100 to 120; a pinch arrives as small values with Ctrl. */
const ZOOM_PER_UNIT = 1 / 240;
const PINCH_PER_UNIT = 1 / 60;
const LINE_PIXELS = 18;

/**
 * @typedef {{x: number, y: number, time: number, mode: 'area' | 'pan', moved: boolean, window:
 * import('../core/store.js').Span}} Drag
 */

/** Makes the timeline follow the pointer. @param {Timeline} timeline */
export function connectPointer(timeline) {
  const canvas = timeline.overlayCanvas;
  /** @type {Drag | null} */
  let drag = null;

  const at = (/** @type {MouseEvent} */ event) => {
    const { left, top } = canvas.getBoundingClientRect();
    return { x: event.clientX - left, y: event.clientY - top };
  };

  canvas.addEventListener('pointerdown', (event) => {
    if (event.button > 1) return;
    const { x, y } = at(event);
    canvas.setPointerCapture(event.pointerId);
    const mode = event.button === 1 || event.shiftKey ? 'pan' : 'area';
    drag = { x, y, time: placeAt(timeline, x, y).time, mode, moved: false, window: store.get().window };
    if (event.button === 1) event.preventDefault();
  });

  canvas.addEventListener('pointermove', (event) => {
    const { x, y } = at(event);
    hover(timeline, x, y);
    if (!drag) return;
    drag.moved ||= Math.abs(x - drag.x) >= DRAG_PIXELS || Math.abs(y - drag.y) >= DRAG_PIXELS;
    if (!drag.moved) return;
    timeline.classList.add(drag.mode === 'pan' ? 'is-panning' : 'is-selecting');
    if (drag.mode === 'pan') pan(timeline, drag, x);
    else store.selectArea(areaOf(timeline, drag, x, y), { history: 'none' });
  });

  const end = async (/** @type {PointerEvent} */ event) => {
    const was = drag;
    drag = null;
    timeline.classList.remove('is-panning', 'is-selecting');
    if (!was || event.type === 'pointercancel') return;
    if (was.moved) {
      const { area } = store.get();
      if (was.mode === 'area' && area) store.selectArea({ ...area }, { history: 'push' });
    } else if (was.mode === 'area') {
      await click(timeline, was);
    }
  };
  canvas.addEventListener('pointerup', end);
  canvas.addEventListener('pointercancel', end);
  canvas.addEventListener('pointerleave', () => store.set({ hover: null }, { history: 'none' }));

  canvas.addEventListener('dblclick', async (event) => {
    const { x, y } = at(event);
    const { row, time } = placeAt(timeline, x, y);
    const slice = row === null ? null : await findSlice(timeline, row, time);
    if (!slice) return;
    store.select(slice);
    store.zoomToSlice(slice, { margin: 0.25 });
  });

  timeline.addEventListener('wheel', (event) => wheel(timeline, event, at(event).x), { passive: false });
}

/** @param {Timeline} timeline @param {number} x @param {number} y */
function hover(timeline, x, y) {
  const { row, time } = placeAt(timeline, x, y);
  const slice = row === null ? null : sliceAt(timeline, row, time);
  store.set({ hover: { row: row ?? -1, time, slice } }, { history: 'none' });
}

/** @param {Timeline} timeline @param {Drag} drag */
async function click(timeline, drag) {
  const { row, time } = placeAt(timeline, drag.x, drag.y);
  const slice = row === null ? null : await findSlice(timeline, row, time);
  const { selection, area } = store.get();
  if (slice) store.select(slice);
  else if (selection || area) store.set({ selection: null, area: null }, { history: 'push' });
}

/** @param {Timeline} timeline @param {Drag} drag @param {number} x */
function pan(timeline, drag, x) {
  const shift = (drag.x - x) * timeline.ratio * timeline.view.nanosPerPixel;
  const window = store.clamp({ from: drag.window.from + shift, to: drag.window.to + shift });
  timeline.view.jump(window);
  store.set({ window });
  timeline.redraw();
}

/**
 * The rows and times between where the drag began and where it is.
 * @param {Timeline} timeline
 * @param {Drag} drag
 * @param {number} x
 * @param {number} y
 */
function areaOf(timeline, drag, x, y) {
  const { from: least, to: most } = store.extent();
  const time = Math.min(Math.max(timeline.view.time(x * timeline.ratio), least), most);
  const [top, bottom] = [Math.min(y, drag.y), Math.max(y, drag.y)];
  const rows = new Set();
  for (const { track } of timeline.rows.all()) {
    if (!track) continue;
    for (let lane = 0; lane < track.rows; lane += 1) {
      const place = timeline.place(track.first_row + lane);
      if (place && place.top - PADDING < bottom && place.top + place.height + PADDING > top)
        rows.add(track.first_row + lane);
    }
  }
  return {
    rows: [...rows].sort((a, b) => a - b),
    from: Math.round(Math.min(time, drag.time)),
    to: Math.round(Math.max(time, drag.time)),
  };
}

/** @param {Timeline} timeline @param {WheelEvent} event @param {number} x */
function wheel(timeline, event, x) {
  const unit = event.deltaMode === WheelEvent.DOM_DELTA_LINE ? LINE_PIXELS : 1;
  const [across, down] = [event.deltaX * unit, event.deltaY * unit];
  if (event.ctrlKey || event.metaKey) {
    event.preventDefault();
    const isPinch = Math.abs(down) < 50;
    zoomAround(timeline, x, Math.exp(down * (isPinch ? PINCH_PER_UNIT : ZOOM_PER_UNIT)), isPinch);
  } else if (event.shiftKey || Math.abs(across) > Math.abs(down)) {
    event.preventDefault();
    const shift = (across || down) * timeline.ratio * timeline.view.nanosPerPixel;
    const { from, to } = store.get().window;
    const window = store.clamp({ from: from + shift, to: to + shift });
    timeline.view.jump(window);
    store.set({ window });
    timeline.redraw();
  }
}

/**
 * Zooms so that the moment under `x` stays there.
 * @param {Timeline} timeline
 * @param {number} x CSS pixels
 * @param {number} factor below 1 zooms in
 * @param {boolean} atOnce
 */
export function zoomAround(timeline, x, factor, atOnce) {
  const { view, ratio } = timeline;
  const { from, to } = store.get().window;
  const time = view.time(x * ratio);
  const share = Math.min(1, Math.max(0, (x * ratio) / view.width));
  const length = (to - from) * factor;
  const window = store.clamp({ from: time - share * length, to: time + (1 - share) * length });
  if (atOnce) {
    view.jump(window);
    timeline.redraw();
  }
  store.set({ window });
}
