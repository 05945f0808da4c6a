// SPDX-License-Identifier: Apache-2.0
// canvas.ts: a canvas with the screen's resolution, and its colors.
import { colour } from '../lib/theme';

/** Pixels of names and scales at the left of every plot. */
export const GUTTER = 92;

export const FONT = '11px system-ui, -apple-system, "Segoe UI", Roboto, "DejaVu Sans", sans-serif';

export interface Ink {
	card: string; ink: string; dim: string; faint: string; grid: string; line: string;
	accent: string; bad: string; select: string; series: string[];
}

export function ink(): Ink {
	const of = (name: string): string => colour(name);
	return {
		card: of('card'), ink: of('ink'), dim: of('dim'), faint: of('faint'), grid: of('grid'),
		line: of('line'), accent: of('accent'), bad: of('bad'), select: of('select'),
		series: [1, 2, 3, 4].map((k) => of(`series-${k}`)),
	};
}

/** Dots per pixel; more than two cost time without a visible difference. */
export function density(): number {
	return Math.min(2, Math.max(1, devicePixelRatio || 1));
}

/** Sets the size in pixels, and returns a context that counts in pixels too. */
export function prepare(
	canvas: HTMLCanvasElement, width: number, height: number,
): CanvasRenderingContext2D {
	const dots = density();
	const [w, h] = [Math.max(1, Math.round(width * dots)), Math.max(1, Math.round(height * dots))];
	if (canvas.width !== w || canvas.height !== h) {
		canvas.width = w;
		canvas.height = h;
		canvas.style.width = `${width}px`;
		canvas.style.height = `${height}px`;
	}
	const context = canvas.getContext('2d', { alpha: false });
	if (!context)
		throw new Error('this browser cannot draw');
	context.setTransform(dots, 0, 0, dots, 0, 0);
	context.font = FONT;
	return context;
}
