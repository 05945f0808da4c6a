// SPDX-License-Identifier: Apache-2.0
// axis.ts: the time axis above the rows.
import { multiples, roundUpTime } from '../lib/ticks';
import { GUTTER, prepare, type Ink } from './canvas';
import type { View } from './view';

export const AXIS_HEIGHT = 26;
const TICK_PIXELS = 110;

export interface Tick { x: number; label: string }

/** "12.5 s", above a minute "2:05". Decimals as the step needs them. */
export function tickLabel(ns: number, step: number): string {
	const s = ns / 1e9;
	const digits = Math.max(0, Math.ceil(-Math.log10(step / 1e9) - 1e-9));
	if (Math.abs(s) < 60 || digits > 0)
		return `${s.toFixed(digits)} s`;
	const whole = Math.round(Math.abs(s)), two = (v: number): string => String(v).padStart(2, '0');
	const hours = Math.floor(whole / 3600), minutes = Math.floor(whole / 60) % 60;
	return `${s < 0 ? '-' : ''}${hours ? `${hours}:${two(minutes)}` : minutes}:${two(whole % 60)}`;
}

/** Places of round times, in pixels of the plot. */
export function ticks(view: View): Tick[] {
	const unit = view.r.unitNs, perPixel = view.perPixel * unit, from = view.from * unit;
	const step = roundUpTime(perPixel * TICK_PIXELS);
	return multiples(step, from, from + view.width * perPixel)
		.map((ns) => ({ x: (ns - from) / perPixel, label: tickLabel(ns, step) }));
}

export function drawAxis(canvas: HTMLCanvasElement, view: View, ink: Ink): void {
	const width = GUTTER + view.width, g = prepare(canvas, width, AXIS_HEIGHT);
	g.fillStyle = ink.card;
	g.fillRect(0, 0, width, AXIS_HEIGHT);
	g.fillStyle = ink.dim;
	g.textBaseline = 'middle';
	g.textAlign = 'right';
	g.fillText(view.group === 'session' ? 'Session' : 'Request ID', GUTTER - 10, AXIS_HEIGHT / 2);
	g.textAlign = 'center';
	for (const tick of ticks(view)) {
		g.fillStyle = ink.line;
		g.fillRect(GUTTER + tick.x, AXIS_HEIGHT - 5, 1, 5);
		g.fillStyle = ink.dim;
		if (tick.x > 20 && tick.x < view.width - 20)
			g.fillText(tick.label, GUTTER + tick.x, AXIS_HEIGHT / 2 - 1);
	}
	g.fillStyle = ink.line;
	g.fillRect(0, AXIS_HEIGHT - 1, width, 1);
}
