// SPDX-License-Identifier: Apache-2.0
// tracks.ts: rates and the server's own series under the rows, on the same time axis.
import { short } from '../lib/format';
import { scaleTop } from '../lib/ticks';
import { ticks } from './axis';
import { GUTTER, prepare, type Ink } from './canvas';
import type { Meta, Series } from './data';
import type { View } from './view';

export const TRACK_HEIGHT = 58;

interface Line {
	label: string;
	/** Ascending, in units; the value holds until the next time. */
	time: Float64Array;
	value: Float64Array; // NaN: not known
}

export interface Track {
	name: string;
	field: string;
	unit: string;
	lines: Line[];
	top: number; // of the scale
	isFilled: boolean;
}

/** Series of servers and GPUs: the record's names of what one track shows. */
const TOLD: { field: string; name: string; unit: string; factor: number; shown: string[] }[] = [
	{ field: 'server', name: 'Server', unit: '', factor: 1, shown: ['running', 'waiting'] },
	{ field: 'kv_usage', name: 'KV cache', unit: '%', factor: 100, shown: ['kv_usage'] },
	{ field: 'gpu_utilization', name: 'GPU use', unit: '%', factor: 1, shown: ['gpu_utilization'] },
	{ field: 'gpu_memory', name: 'GPU memory', unit: ' GB', factor: 1e-9, shown: ['gpu_memory_used'] },
	{ field: 'gpu_power', name: 'GPU power', unit: ' W', factor: 1, shown: ['gpu_power'] },
];

function steps(label: string, values: number[], bin: number): Line {
	const time = Float64Array.from({ length: values.length + 1 }, (_, k) => k * bin);
	return { label, time, value: Float64Array.from([...values, NaN]) };
}

function sampled(series: Series, unitNs: number, factor: number, hasPeers: boolean): Line {
	const whose = (series.labels ?? '').replace(/^(?:url|gpu)="([^"]*)".*$/, '$1');
	return {
		label: hasPeers ? `${series.name} ${whose}` : series.name,
		time: Float64Array.from(series.points, (p) => (p[0] * 1e6) / unitNs),
		value: Float64Array.from(series.points, (p) => (p[1] === null ? NaN : p[1] * factor)),
	};
}

function scale(lines: Line[]): number {
	let most = 0;
	for (const line of lines)
		for (const v of line.value)
			if (v > most)
				most = v;
	return scaleTop(most);
}

export function tracksOf(meta: Meta): Track[] {
	const bin = meta.rates.bin_ns / meta.unit_ns;
	const one = (name: string, field: string, unit: string, values: number[]): Track => {
		const lines = [steps(name, values, bin)];
		return { name, field, unit, lines, top: scale(lines), isFilled: true };
	};
	const tracks = [one('Output tok/s', 'tokens_per_s', ' tok/s', meta.rates.tokens_per_s),
		one('Concurrency', 'concurrency', '', meta.rates.concurrency)];
	for (const { field, name, unit, factor, shown } of TOLD) {
		const series = meta.series.filter((s) => shown.includes(s.name));
		const lines = series.map((s) =>
			sampled(s, meta.unit_ns, factor, series.length > shown.length));
		if (lines.length)
			tracks.push({ name, field, unit, lines, isFilled: lines.length === 1,
				top: unit === '%' ? 100 : scale(lines) });
	}
	return tracks;
}

/** The last index whose time is at or before t; -1: none. */
function indexAt(time: Float64Array, t: number): number {
	let low = 0, high = time.length;
	while (low < high) {
		const middle = (low + high) >> 1;
		if (time[middle] > t)
			high = middle;
		else
			low = middle + 1;
	}
	return low - 1;
}

export function valueAt(track: Track, t: number): number[] {
	return track.lines.map((line) => {
		const k = indexAt(line.time, t);
		return k < 0 || k === line.time.length - 1 && t > line.time[k] ? NaN : line.value[k];
	});
}

/** The top edge in pixels of a column: the greatest value in it, NaN where there is none. */
function columnMax(line: Line, from: number, to: number): number {
	let k = indexAt(line.time, from), most = k >= 0 && k < line.time.length - 1 ? line.value[k] : NaN;
	for (k++; k < line.time.length && line.time[k] < to; k++)
		if (!(line.value[k] <= most))
			most = line.value[k] >= 0 ? line.value[k] : most;
	return most;
}

function drawLine(
	g: CanvasRenderingContext2D, view: View, track: Track, line: Line, y0: number, paint: string,
): void {
	const high = TRACK_HEIGHT - 22, base = y0 + TRACK_HEIGHT - 7;
	g.beginPath();
	let isOpen = false;
	for (let x = 0; x < view.width; x++) {
		const v = columnMax(line, view.from + x * view.perPixel, view.from + (x + 1) * view.perPixel);
		if (Number.isNaN(v)) {
			isOpen = false;
			continue;
		}
		const y = base - Math.min(1, v / track.top) * high;
		if (track.isFilled) {
			g.rect(GUTTER + x, y, 1, base - y);
		} else if (isOpen) {
			g.lineTo(GUTTER + x, y);
		} else {
			g.moveTo(GUTTER + x, y);
			isOpen = true;
		}
	}
	if (track.isFilled) {
		g.globalAlpha = 0.75;
		g.fillStyle = paint;
		g.fill();
		g.globalAlpha = 1;
	} else {
		g.strokeStyle = paint;
		g.lineWidth = 1.5;
		g.stroke();
	}
}

export function drawTracks(
	canvas: HTMLCanvasElement, view: View, tracks: Track[], ink: Ink,
): void {
	const width = GUTTER + view.width, g = prepare(canvas, width, tracks.length * TRACK_HEIGHT);
	g.fillStyle = ink.card;
	g.fillRect(0, 0, width, tracks.length * TRACK_HEIGHT);
	g.fillStyle = ink.grid;
	for (const tick of ticks(view))
		g.fillRect(GUTTER + tick.x, 0, 1, tracks.length * TRACK_HEIGHT);
	tracks.forEach((track, k) => {
		const y = k * TRACK_HEIGHT;
		g.fillStyle = ink.line;
		g.fillRect(0, y, width, 1);
		g.textBaseline = 'middle';
		g.textAlign = 'right';
		g.fillStyle = ink.ink;
		g.fillText(track.name, GUTTER - 10, y + TRACK_HEIGHT / 2 + 4);
		g.fillStyle = ink.faint;
		g.fillText(`${short(track.top)}${track.unit === '%' ? '%' : ''}`, GUTTER - 10, y + 15);
		g.fillText('0', GUTTER - 10, y + TRACK_HEIGHT - 9);
		g.fillStyle = ink.grid;
		g.fillRect(GUTTER, y + 15, view.width, 1);
		track.lines.forEach((line, n) => {
			const paint = ink.series[(track.lines.length > 1 ? n : k) % 4];
			drawLine(g, view, track, line, y, paint);
			if (track.field !== 'server')
				return;
			g.fillStyle = paint;
			g.textAlign = 'left';
			g.fillText(line.label, GUTTER + 8 + 70 * n, y + 8);
		});
	});
	g.fillStyle = ink.line;
	g.fillRect(GUTTER - 1, 0, 1, tracks.length * TRACK_HEIGHT);
	const x = (view.cursor - view.from) / view.perPixel;
	if (x >= 0 && x <= view.width) {
		g.fillStyle = ink.faint;
		g.fillRect(GUTTER + x, 0, 1, tracks.length * TRACK_HEIGHT);
	}
}
