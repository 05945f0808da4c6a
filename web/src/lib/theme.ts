// SPDX-License-Identifier: Apache-2.0
// theme.ts: the colors of theme.css for drawing, and a notification when they change.

export function colour(name: string): string {
	return getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
}

/** "#rgb", "#rrggbb" or "#rrggbbaa" as the 32 bits of a pixel (R, G, B, A in memory). */
export function pixel(hex: string): number {
	const digits = hex.length === 4 ? [...hex.slice(1)].map((c) => c + c).join('') : hex.slice(1);
	const part = (at: number, otherwise: number): number =>
		digits.length > at ? parseInt(digits.slice(at, at + 2), 16) : otherwise;
	return ((part(6, 255) << 24) | (part(4, 0) << 16) | (part(2, 0) << 8) | part(0, 0)) >>> 0;
}

/** A pixel on another, opaque one. share 0: below, 1: above. */
export function mix(below: number, above: number, share: number): number {
	let out = 0xff000000;
	for (let shift = 0; shift < 24; shift += 8) {
		const b = (below >>> shift) & 255, a = (above >>> shift) & 255;
		out |= Math.round(b + (a - b) * share) << shift;
	}
	return out >>> 0;
}

export function onThemeChange(then: () => void): void {
	matchMedia('(prefers-color-scheme: dark)').addEventListener('change', then);
}
