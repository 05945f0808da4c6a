// SPDX-License-Identifier: Apache-2.0
// colour.ts: eight colors, each with its own shape, in the order of the legend; and a ramp for
// numbers in their order.
//
// A key keeps its place as long as the page is open, so that filtering or hiding does not change
// the color of the others.

export const COLOURS = 8;
export const RAMP = 5;
const places = new Map<string, number>();

/** Shapes in a box of 10 by 10: circle, square, triangle, diamond, triangle down, pin, cross, star. */
export const SHAPES = [
	'M5 .7a4.3 4.3 0 1 1 0 8.6a4.3 4.3 0 0 1 0-8.6z',
	'M1.2 1.2h7.6v7.6H1.2z',
	'M5 .6L9.7 9.2H.3z',
	'M5 0L10 5L5 10L0 5z',
	'M5 9.4L.3 .8H9.7z',
	'M5 10C3 7.4 1 5.6 1 3.6a4 3.6 0 0 1 8 0C9 5.6 7 7.4 5 10z',
	'M3.4 .4h3.2v3h3v3.2h-3v3H3.4v-3h-3V3.4h3z',
	'M5 0L6.5 3.3L10 3.8L7.4 6.2L8.1 9.8L5 8L1.9 9.8L2.6 6.2L0 3.8L3.5 3.3z',
] as const;

/** The ninth series has the first colour again, but the second shape. */
export const shapeOf = (place: number): string =>
	SHAPES[(place + Math.floor(place / COLOURS)) % SHAPES.length];

/**
 * The places of another chart's legend for those keys whose name it has: a GPU has one color on all
 * pages.
 */
export function adopt(order: readonly string[], keys: Iterable<readonly [key: string, name: string]>): void {
	for (const [key, name] of keys)
		if (order.includes(name))
			places.set(key, order.indexOf(name));
}

/** Gives the keys of one legend their places: the first has the first one that is free. */
export function arrange(keys: readonly string[]): void {
	const held = new Set<number>(), late: string[] = [];
	for (const key of new Set(keys)) {
		const place = places.get(key);
		if (place === undefined || held.has(place))
			late.push(key);
		else
			held.add(place);
	}
	let next = 0;
	for (const key of late) {
		while (held.has(next))
			next++;
		places.set(key, next);
		held.add(next);
	}
}

export function placeOf(key: string): number {
	const place = places.get(key);
	if (place !== undefined)
		return place;
	places.set(key, 0);
	return 0;
}

/** The name of a custom property, for style sheets: var(--series-3). */
export function colourName(key: string | number): string {
	const place = typeof key === 'number' ? key : placeOf(key);
	return `series-${place % COLOURS + 1}`;
}

export const cssColour = (key: string | number): string => `var(--${colourName(key)})`;

const property = (name: string): string =>
	getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();

/** The colour itself, for drawing. Ask again when the theme changes. */
export const drawnColour = (key: string | number): string => property(colourName(key));

/** Where between two steps of the ramp the i-th of n is: the lower step, and the share of the next. */
export function rampAt(i: number, n: number): [number, number] {
	const at = n > 1 ? i / (n - 1) * (RAMP - 1) : RAMP - 1, low = Math.min(Math.floor(at), RAMP - 2);
	return [low, at - low];
}

export function cssRamp(i: number, n: number): string {
	const [low, share] = rampAt(i, n);
	return `color-mix(in srgb, var(--ramp-${low + 1}), `
		+ `var(--ramp-${low + 2}) ${Math.round(share * 100)}%)`;
}

export function drawnRamp(i: number, n: number): string {
	const [low, share] = rampAt(i, n);
	const [a, b] = [low + 1, low + 2].map((k) => property(`ramp-${k}`).match(/[0-9a-f]{2}/gi) ?? []);
	return `#${a.map((part, k) => Math.round(parseInt(part, 16) * (1 - share)
		+ parseInt(b[k] ?? part, 16) * share).toString(16).padStart(2, '0')).join('')}`;
}
