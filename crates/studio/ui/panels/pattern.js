// Patterns that people write in filters and searches: a part of a name, or a regular expression between slashes.

/**
 * Tests texts against a pattern. A part of a name matches in any case.
 * @param {string} text
 * @returns {{test: (name: string) => boolean, error: string|null}}
 */
export function matcher(text) {
  if (text.length > 2 && text.startsWith('/') && text.endsWith('/')) {
    try {
      const expression = new RegExp(text.slice(1, -1));
      return { test: (name) => expression.test(name), error: null };
    } catch (error) {
      // Browsers write: Invalid regular expression: /(/: Unterminated group
      const reason = error instanceof Error ? (error.message.split(': ').at(-1) ?? '') : '';
      const words = reason ? `: ${reason.charAt(0).toLowerCase()}${reason.slice(1)}` : '';
      return { test: () => false, error: `This is not a regular expression${words}.` };
    }
  }
  const part = text.toLowerCase();
  return { test: (name) => name.toLowerCase().includes(part), error: null };
}

/**
 * The pattern that matches one name only.
 * @param {string} name
 */
export function exactly(name) {
  return `/^${name.replace(/[.*+?^${}()|[\]\\/]/g, '\\$&')}$/`;
}
