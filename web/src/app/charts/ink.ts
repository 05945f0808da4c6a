// SPDX-License-Identifier: Apache-2.0
// ink.ts: the theme's colours for drawings. Read again when the theme changes.

const NAMES = ['page', 'card', 'sunken', 'line', 'line-strong', 'ink', 'dim', 'faint', 'grid',
	'accent', 'accent-soft', 'good', 'warn', 'bad', 'select'] as const;

export type Ink = Record<(typeof NAMES)[number], string>;

export function readInk(): Ink {
	const style = getComputedStyle(document.documentElement);
	return Object.fromEntries(NAMES.map((name) =>
		[name, style.getPropertyValue(`--${name}`).trim()])) as Ink;
}

/** Without quotes, so that a drawing can be put into an SVG as it is. */
export const FONT = 'system-ui, -apple-system, Segoe UI, Roboto, Noto Sans, DejaVu Sans, sans-serif';
