// SPDX-License-Identifier: Apache-2.0
// colour.ts: a colour per key that stays when other keys come and go.
//
// A key prefers the place that its name hashes to; when another holds it, the next free one. Places
// are kept as long as the page is open.

export const COLOURS = 12;
const taken = new Map<string, number>();
const holders = new Map<number, number>();

function hash(text: string): number {
	let h = 2166136261;
	for (let i = 0; i < text.length; i++)
		h = Math.imul(h ^ text.charCodeAt(i), 16777619);
	return (h ^ (h >>> 15)) >>> 0;
}

function place(key: string): number {
	const held = taken.get(key);
	if (held !== undefined)
		return held;
	const first = hash(key) % COLOURS;
	const fewest = Math.min(...Array.from({ length: COLOURS }, (_, i) => holders.get(i) ?? 0));
	let at = first;
	while ((holders.get(at) ?? 0) > fewest)
		at = (at + 1) % COLOURS;
	taken.set(key, at);
	holders.set(at, (holders.get(at) ?? 0) + 1);
	return at;
}

/** The name of a custom property, for style sheets: var(--series-3). */
export function colourName(key: string): string {
	return `series-${place(key) + 1}`;
}

export const cssColour = (key: string): string => `var(--${colourName(key)})`;

/** The colour itself, for drawing. Ask again when the theme changes. */
export function drawnColour(key: string): string {
	return getComputedStyle(document.documentElement)
		.getPropertyValue(`--${colourName(key)}`).trim();
}
