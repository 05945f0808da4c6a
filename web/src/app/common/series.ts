// SPDX-License-Identifier: Apache-2.0
// series.ts: quantities of a run over time, as strips that share one time axis: grouping, positions
// of values, values at a time. Pure; strips.tsx draws it.
import type { RunSeries, SeriesTrack } from '../../lib/api';
import { whole } from '../../lib/format';
import { multiples, roundUpTime, scaleTop } from '../../lib/ticks';
import { measured } from '../show';

/** What a run or a live view has; without the members of every answer. */
export type Series = Pick<RunSeries, 'duration_s' | 'tracks' | 'failed_s' | 'missing'>;

export interface StripLine { label: string; track: SeriesTrack }

export interface Strip { key: string; label: string; unit: string | null; lines: StripLine[] }

/** From, to, in seconds after the start. */
export type View = [number, number];

/** Tracks that share a strip: the first one is its key. */
const TOGETHER: { label: string; lines: [key: string, label: string][] }[] = [
	{ label: 'Requests', lines: [['requests_running', 'running'], ['requests_waiting', 'waiting']] },
	{ label: 'Requests in the server', lines: [['server_requests_running', 'running'],
		['server_requests_waiting', 'waiting']] },
];

const isConstant = (t: SeriesTrack): boolean => t.y.every((v) => v === null || v === 0);

/** In the order of the tracks. A queue that is always empty needs no line. */
export function stripsOf(series: Series): Strip[] {
	const by = new Map(series.tracks.filter((t) => t.y.some((v) => v !== null)).map((t) => [t.key, t]));
	const isUsed = new Set<string>();
	return [...by.values()].flatMap((track): Strip[] => {
		if (isUsed.has(track.key))
			return [];
		const group = TOGETHER.find((g) => g.lines.some(([key]) => key === track.key));
		if (!group)
			return [{ key: track.key, label: track.label, unit: track.unit,
				lines: [{ label: '', track }] }];
		const there = group.lines.filter(([key]) => by.has(key));
		there.forEach(([key]) => isUsed.add(key));
		const lines = there.map(([key, label]) => ({ label, track: by.get(key)! }))
			.filter((l, i) => i === 0 || !isConstant(l.track));
		return [{ key: track.key, label: group.label, unit: track.unit, lines }];
	});
}

/* ---- places ---- */

export const wholeView = (s: Series): View => [0, s.duration_s > 0 ? s.duration_s
	: Math.max(1e-3, ...s.tracks.map((t) => t.t_s[t.t_s.length - 1] ?? 0))];

const SPAN_LEAST = 1e-3; // of the whole

/** Limits a view to the whole, in order, and wide enough to draw. */
export function viewWithin(view: View, all: View): View {
	const least = (all[1] - all[0]) * SPAN_LEAST;
	const from = Math.max(all[0], Math.min(view[0], view[1])), to = Math.min(all[1], Math.max(...view));
	return to - from >= least ? [from, to] : all;
}

export function zoomed(view: View, all: View, by: number, around: number): View {
	const to = (edge: number): number => around + (edge - around) * by;
	return viewWithin([to(view[0]), to(view[1])], all);
}

export const xOf = (t: number, view: View, width: number): number =>
	(t - view[0]) / (view[1] - view[0]) * width;

export const timeAt = (x: number, view: View, width: number): number =>
	Math.min(view[1], Math.max(view[0], view[0] + x / width * (view[1] - view[0])));

/** The point nearest to a time; -1: there is none. */
export function nearest(t_s: number[], t: number): number {
	let low = 0, high = t_s.length - 1;
	if (high < 0)
		return -1;
	while (low < high) {
		const middle = (low + high) >> 1;
		if (t_s[middle] < t) low = middle + 1;
		else high = middle;
	}
	return low > 0 && t - t_s[low - 1] <= t_s[low] - t ? low - 1 : low;
}

/** The visible indexes, with one more on each side for the line. */
function seen(t: SeriesTrack, view: View): [number, number] {
	let from = 0, to = t.t_s.length - 1;
	while (from < to && t.t_s[from + 1] < view[0]) from++;
	while (to > from && t.t_s[to - 1] > view[1]) to--;
	return [from, to];
}

/** The top of a strip's scale, which begins at zero. */
export function topOf(strip: Strip, view: View): number {
	let most = 0;
	for (const { track } of strip.lines) {
		const [from, to] = seen(track, view);
		for (let i = from; i <= to; i++)
			most = Math.max(most, track.max?.[i] ?? 0, track.y[i] ?? 0);
	}
	return strip.unit === '%' ? Math.min(100, scaleTop(most)) : scaleTop(most);
}

interface Frame { view: View; width: number; height: number; top: number }

const round = (v: number): string => String(Math.round(v * 10) / 10);
const yOf = (v: number, f: Frame): number => f.height - Math.min(1, Math.max(0, v / f.top)) * f.height;

const RING = 'm-2,0a2,2 0 1,0 4,0a2,2 0 1,0 -4,0';

/** A line's path; a missing value breaks it, and one alone is a ring. */
export function pathOf(track: SeriesTrack, f: Frame): string {
	const [from, to] = seen(track, f.view);
	let path = '', isOpen = false;
	for (let i = from; i <= to; i++) {
		const v = track.y[i];
		if (v === null) {
			isOpen = false;
			continue;
		}
		const point = `${round(xOf(track.t_s[i], f.view, f.width))},${round(yOf(v, f))}`;
		const isAlone = !isOpen && (i === to || track.y[i + 1] === null);
		path += isOpen ? `L${point}` : isAlone ? `M${point}${RING}` : `M${point}`;
		isOpen = true;
	}
	return path;
}

/** The area between minimum and maximum; empty if both equal the mean. */
export function bandOf(track: SeriesTrack, f: Frame): string {
	if (!track.min || !track.max)
		return '';
	const [from, to] = seen(track, f.view), pieces: string[] = [];
	let up: string[] = [], down: string[] = [];
	const end = (): void => {
		if (up.length > 1)
			pieces.push(`M${[...up, ...down.reverse()].join('L')}Z`);
		up = [];
		down = [];
	};
	for (let i = from; i <= to; i++) {
		const low = track.min[i], high = track.max[i];
		if (low === null || high === null) {
			end();
			continue;
		}
		const x = round(xOf(track.t_s[i], f.view, f.width));
		up.push(`${x},${round(yOf(high, f))}`);
		down.push(`${x},${round(yOf(low, f))}`);
	}
	end();
	return pieces.join('');
}

/* ---- numbers and words ---- */

/** The value at a time; null: the latest one. */
export function valueOf(track: SeriesTrack, t: number | null): number | null {
	if (t !== null) {
		const i = nearest(track.t_s, t);
		return i < 0 ? null : track.y[i];
	}
	for (let i = track.y.length - 1; i >= 0; i--)
		if (track.y[i] !== null)
			return track.y[i];
	return null;
}

export interface Spread { min: number; mean: number; max: number; last: number }

export function spreadOf(track: SeriesTrack): Spread | null {
	const values = track.y.filter((v): v is number => v !== null);
	if (!values.length)
		return null;
	const ends = [...(track.min ?? []), ...(track.max ?? []), ...values]
		.filter((v): v is number => v !== null);
	return { min: ends.reduce((a, b) => Math.min(a, b)), max: ends.reduce((a, b) => Math.max(a, b)),
		mean: values.reduce((a, b) => a + b, 0) / values.length, last: values[values.length - 1] };
}

const withUnit = (v: number | null, unit: string | null): string =>
	(v === null ? 'no value' : `${measured(v)}${unit ? ` ${unit}` : ''}`);

/** "Requests: running 8, waiting 0": what is read out at a time. */
export function readingOf(strip: Strip, t: number | null): string {
	return `${strip.label}: ${strip.lines.map((l) => `${l.label ? `${l.label} ` : ''}`
		+ withUnit(valueOf(l.track, t), strip.unit)).join(', ')}`;
}

export function summaryOf(strip: Strip): string {
	return `${strip.label} over time: ${strip.lines.map((l) => {
		const s = spreadOf(l.track);
		return s ? `${l.label ? `${l.label} ` : ''}mean ${withUnit(s.mean, strip.unit)}, min `
			+ `${measured(s.min)}, max ${measured(s.max)}, last ${measured(s.last)}` : '';
	}).join('; ')}`;
}

const TICK_PX = 90;

/** A time after the start, as exactly as the step between two marks needs. */
export function timeText(t: number, step: number): string {
	const digits = Math.max(0, Math.ceil(-Math.log10(step) - 1e-9));
	if (step < 1 || t < 120)
		return `${t.toFixed(digits)} s`;
	const s = Math.round(t), rest = s % 60;
	return s < 3600 ? `${Math.floor(s / 60)}:${String(rest).padStart(2, '0')} min`
		: `${whole(Math.floor(s / 3600))}:${String(Math.floor(s % 3600 / 60)).padStart(2, '0')}:`
			+ `${String(rest).padStart(2, '0')} h`;
}

export const stepOfView = (view: View, width: number): number =>
	roundUpTime((view[1] - view[0]) * 1e9 * TICK_PX / Math.max(TICK_PX, width)) / 1e9;

export function ticksOf(view: View, width: number): { t: number; text: string }[] {
	const step = stepOfView(view, width);
	return multiples(step, view[0], view[1]).map((t) => ({ t, text: timeText(t, step) }));
}

/** A row for each time that any track has a value for: the time, then a value or null for each track. */
export function rowsOf(strips: Strip[]): (number | null)[][] {
	const tracks = strips.flatMap((s) => s.lines.map((l) => l.track));
	const at = tracks.map((t) => new Map(t.t_s.map((time, i) => [time, t.y[i]])));
	return [...new Set(tracks.flatMap((t) => t.t_s))].sort((a, b) => a - b)
		.map((t) => [t, ...at.map((m) => m.get(t) ?? null)]);
}
