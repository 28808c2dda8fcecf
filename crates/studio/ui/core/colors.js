// Colours of categories and slices, in light and dark. The hues are those of Okabe and Ito, which people with any
// kind of colour vision tell apart; slices of one category differ in lightness, by their name.

/** @typedef {'light' | 'dark'} Theme */
/** @typedef {'auto' | Theme} ThemeChoice */
/** @typedef {readonly [red: number, green: number, blue: number]} Rgb */
/** @typedef {import('./answers.d.ts').TrackKind} TrackKind */

import { causeOf } from './causes.js';

const THEME_NAME = 'tracesmith-theme';
const preference = matchMedia('(prefers-color-scheme: dark)');

/** Hue, saturation, lightness for light and for dark, in degrees and percent. */
const HUES = {
  blue: [205, 72, 52, 56],
  orange: [36, 88, 52, 56],
  green: [158, 60, 40, 44],
  purple: [322, 42, 60, 62],
  sky: [200, 62, 64, 62],
  vermilion: [17, 76, 52, 56],
  yellow: [50, 78, 50, 58],
  slate: [220, 12, 58, 55],
  teal: [178, 52, 42, 46],
  violet: [262, 42, 62, 66],
};
/** @typedef {keyof typeof HUES} Hue */

/** @type {Record<string, Hue>} */
const CATEGORIES = {
  compute: 'blue',
  communication: 'orange',
  copy: 'green',
  other: 'purple',
  wait: 'vermilion',
  launch: 'sky',
  memory: 'green',
  call: 'slate',
  range: 'teal',
  operator: 'violet',
};

/** Causes of idle time: by who must act. The host's own work and waits stand out. @type {Record<string, Hue>} */
const CAUSES = {
  host_busy: 'vermilion',
  host_sync: 'yellow',
  host_allocation: 'purple',
  host_copy: 'green',
  host_lock: 'violet',
  host_module: 'teal',
  host_call: 'orange',
  profiler_overhead: 'slate',
  launch_gap: 'sky',
  dispatch: 'blue',
  unknown: 'slate',
  before_recording: 'violet',
  start: 'slate',
  end: 'slate',
  other_stream: 'teal',
  communication: 'orange',
};
/** For causes that have no colour of their own, by their place among the causes. @type {Hue[]} */
const CAUSE_ORDER = ['vermilion', 'yellow', 'sky', 'slate'];

/** Lightness and hue of the variants of a colour, by the hash of the name. */
const VARIANTS = /** @type {const} */ ([
  [0, 0],
  [-8, 6],
  [7, -8],
  [-4, -9],
  [10, 5],
  [3, 12],
]);

/** @type {Map<string, Rgb>} */
const colors = new Map();

/** The theme in use. @returns {Theme} */
export function theme() {
  const choice = themeChoice();
  if (choice !== 'auto') return choice;
  return preference.matches ? 'dark' : 'light';
}

/** @returns {ThemeChoice} */
export function themeChoice() {
  const choice = localStorage.getItem(THEME_NAME);
  return choice === 'light' || choice === 'dark' ? choice : 'auto';
}

/** @param {ThemeChoice} choice */
export function chooseTheme(choice) {
  localStorage.setItem(THEME_NAME, choice);
  applyTheme();
  document.dispatchEvent(new CustomEvent('themechange'));
}

/** Sets the page's colour scheme. */
export function applyTheme() {
  const choice = themeChoice();
  document.documentElement.style.colorScheme = choice === 'auto' ? 'light dark' : choice;
}

/** Calls `listener` when the theme changes. @param {() => void} listener */
export function onTheme(listener) {
  preference.addEventListener('change', listener);
  document.addEventListener('themechange', listener);
}

/**
 * Colour of a category of a kind of track. For idle tracks the category is a cause.
 * @param {TrackKind | string} trackKind
 * @param {string} category
 * @param {number} [index] its place among the categories of the track
 * @param {Theme} [scheme]
 * @returns {Rgb}
 */
export function categoryColor(trackKind, category, index = 0, scheme = theme()) {
  return colorOf(hueOf(trackKind, category, index), [0, 0], scheme);
}

/** Colour of a cause of idle time. @param {string} cause @param {number} [index] @returns {Rgb} */
export function causeColor(cause, index = 3) {
  return categoryColor('idle', cause, index);
}

/**
 * Colour of a slice: its category's, lighter or darker by the name.
 * @param {TrackKind | string} trackKind
 * @param {string} category
 * @param {number} index of the category
 * @param {string} name
 * @param {Theme} [scheme]
 * @returns {Rgb}
 */
export function sliceColor(trackKind, category, index, name, scheme = theme()) {
  const hue = hueOf(trackKind, category, index);
  if (trackKind === 'idle') return colorOf(hue, [0, 0], scheme);
  return colorOf(hue, VARIANTS[hash(name) % VARIANTS.length], scheme);
}

/** CSS text of a colour. @param {Rgb} color @param {number} [alpha] */
export function css([red, green, blue], alpha = 1) {
  return alpha === 1 ? `rgb(${red}, ${green}, ${blue})` : `rgba(${red}, ${green}, ${blue}, ${alpha})`;
}

/** Black or white, whichever is read better on that colour. @param {Rgb} color */
export function inkOn(color) {
  return luminance(color) > 0.2 ? '#0b0d12' : '#ffffff';
}

/** Relative luminance as WCAG defines it. @param {Rgb} color */
export function luminance(color) {
  const [red, green, blue] = color.map((part) => {
    const share = part / 255;
    return share <= 0.03928 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
}

/** @param {string} trackKind @param {string} category @param {number} index @returns {Hue} */
function hueOf(trackKind, category, index) {
  if (trackKind !== 'idle') return CATEGORIES[category] ?? 'slate';
  return CAUSES[causeOf(category) ?? category] ?? CAUSE_ORDER[Math.min(index, CAUSE_ORDER.length - 1)];
}

/**
 * @param {Hue} name
 * @param {readonly [lighter: number, turned: number]} variant
 * @param {Theme} scheme
 * @returns {Rgb}
 */
function colorOf(name, [lighter, turned], scheme) {
  const key = `${name} ${lighter} ${scheme}`;
  let color = colors.get(key);
  if (!color) {
    const [hue, saturation, light, dark] = HUES[name];
    color = rgb(hue + turned, saturation, (scheme === 'light' ? light : dark) + lighter);
    colors.set(key, color);
  }
  return color;
}

/** @param {number} hue @param {number} saturation @param {number} lightness @returns {Rgb} */
function rgb(hue, saturation, lightness) {
  const chroma = (saturation / 100) * Math.min(lightness / 100, 1 - lightness / 100);
  const part = (/** @type {number} */ n) => {
    const k = (n + hue / 30) % 12;
    return Math.round(255 * (lightness / 100 - chroma * Math.max(-1, Math.min(k - 3, 9 - k, 1))));
  };
  return [part(0), part(8), part(4)];
}

/** FNV-1a. @param {string} text */
function hash(text) {
  let value = 0x811c9dc5;
  for (let i = 0; i < text.length; i += 1) value = Math.imul(value ^ text.charCodeAt(i), 0x01000193);
  return (value ^ (value >>> 15)) >>> 0;
}
