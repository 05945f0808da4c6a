// SPDX-License-Identifier: Apache-2.0
// model.ts: trends as lines, and changes as a list.
import type { TrendChange, TrendPoint, Trends, TrendSeries } from '../../../lib/api';
import type { LineSeries } from '../../charts/lines';
import { isSeen } from '../../common/shown';
import { tellingColumns } from '../compare/configured';
import { shortValue } from '../runs/names';
import { count, showValue, when } from '../../show';

export const SHOWN_AT_FIRST = 4;

export const shortCommit = (commit: string): string =>
	/^[0-9a-f]{12,}$/i.test(commit) ? commit.slice(0, 8) : commit;

/** All versions of all series, in the order that each series has them in. */
export function versionsOf(series: TrendSeries[]): string[] {
	const out: string[] = [];
	for (const s of series) {
		let at = 0;
		for (const { version } of s.points) {
			if (version === null) continue;
			const old = out.indexOf(version);
			if (old < 0) out.splice(at, 0, version);
			at = (old < 0 ? at : old) + 1;
		}
	}
	return out;
}

/** All commits of all series, in the order of their times. */
export function commitsOf(series: TrendSeries[]): string[] {
	const at = new Map<string, number>();
	for (const s of series)
		for (const p of s.points)
			if (p.commit !== null)
				at.set(p.commit, Math.min(at.get(p.commit) ?? Infinity, p.at ?? Infinity));
	return [...at].sort(([a, x], [b, y]) => x - y || a.localeCompare(b)).map(([commit]) => commit);
}

export function placeOf(p: Pick<TrendPoint, 'at' | 'commit'>): string {
	if (p.commit !== null) return shortCommit(p.commit);
	return p.at === null ? '–' : when(p.at);
}

/** The runs on both sides of a change, as the page Compare's groups. */
export const sidesOf = (c: TrendChange): string =>
	JSON.stringify([
		{
			name: c.commit_before ? `until ${shortCommit(c.commit_before)}` : 'before',
			ids: c.before_ids,
		},
		{ name: c.commit ? `from ${shortCommit(c.commit)}` : 'after', ids: c.after_ids },
	]);

/** The key of a mark: the change's commit, else its time. */
export const markPlace = (c: TrendChange): string => c.commit ?? String(c.at);

const toneOf = (c: TrendChange): 'good' | 'bad' | 'plain' =>
	c.verdict === 'better' ? 'good' : c.verdict === 'worse' ? 'bad' : 'plain';

export type Only = 'all' | 'changed' | 'improved';
export const ONLY: [Only, string][] = [['all', 'All'], ['changed', 'Changed'], ['improved', 'Improved']];

export const isOf = (s: TrendSeries, only: Only): boolean =>
	only === 'all' ||
	s.changes.some((c) => !c.is_marked && (only === 'changed' || c.verdict === 'better'));

/** The change shown first in a series' row: its newest unreviewed one, else its newest. */
export const badgeOf = (s: TrendSeries): TrendChange | undefined =>
	[...s.changes].reverse().find((c) => !c.is_marked) ?? s.changes.at(-1);

/** The largest unreviewed change of a series; 0: it has none. */
const openEffect = (s: TrendSeries): number =>
	Math.max(0, ...s.changes.map((c) => (c.is_marked ? 0 : Math.abs(c.effect ?? 0))));

/** Series with more than one point, which can be drawn, or all if there are none. */
export function drawable(series: TrendSeries[]): TrendSeries[] {
	const lines = series.filter((s) => s.points.length > 1);
	return lines.length ? lines : series;
}

/** Latest changes first, unreviewed ones before the others; then by number of points. */
export const ordered = (series: TrendSeries[]): TrendSeries[] =>
	[...series].sort(
		(a, b) =>
			openEffect(b) - openEffect(a) ||
			Number(b.changes.length > 0) - Number(a.changes.length > 0) ||
			b.points.length - a.points.length,
	);

/** How many of the ordered series are drawn at first: those with an unreviewed change, else the first few. */
export function shownAtFirst(series: TrendSeries[]): number {
	const open = series.filter((s) => openEffect(s) > 0).length;
	return open ? Math.min(open, SHOWN_AT_FIRST) : SHOWN_AT_FIRST;
}

export interface Names {
	/** What all series have in common. */
	common: string[];
	/** By the series' number: what differs. */
	of: Map<string, string>;
}

/**
 * The common part in full, texts without labels; the differing part in short form ("h100-80gb · TP4
 * · c64"). A column that follows from the others is not named.
 */
export function namesOf(series: TrendSeries[], label: (column: string) => string): Names {
	const columns = [...new Set(series.flatMap((s) => Object.keys(s.key)))];
	const rows = series.map((s) => columns.map((c) => s.key[c] ?? null));
	const isCommon = (c: string): boolean =>
		new Set(series.map((s) => JSON.stringify(s.key[c] ?? null))).size < 2;
	const text = (s: TrendSeries, c: string): string => {
		const v = s.key[c] ?? null;
		return typeof v === 'string' && v !== '' ? v : `${label(c)} ${showValue(c, v)}`;
	};
	const differing = tellingColumns(columns, rows).map((i) => columns[i]).filter((c) => !isCommon(c));
	const word = (s: TrendSeries, c: string): string => {
		const v = s.key[c] ?? null;
		return v === null || v === '' ? `${label(c)} not set` : shortValue(c, v);
	};
	return {
		common: series.length
			? columns
					.filter((c) => isCommon(c) && (series[0].key[c] ?? null) !== null)
					.map((c) => text(series[0], c))
			: [],
		of: new Map(
			series.map((s) => [
				s.id,
				differing.length
					? differing.map((c) => word(s, c)).join(' · ')
					: series.length > 1
						? s.name
						: 'All runs',
			]),
		),
	};
}

const NOISE = 0.1;

/**
 * A tenth around the median of the shown values: an axis that includes it does not exaggerate small
 * changes.
 */
export function spanOf(series: LineSeries[]): number[] {
	const values = series
		.filter((s) => s.isShown)
		.flatMap((s) => s.points.map((p) => p.value))
		.sort((a, b) => a - b);
	const median = values[values.length >> 1];
	return median === undefined ? [] : [median * (1 - NOISE), median * (1 + NOISE)];
}

/** Every value as a share of the first of its series, in percent. */
export function relative(series: LineSeries[]): LineSeries[] {
	return series.map((s) => {
		const first = s.points[0]?.value ?? 0;
		const share = (v: number): number => (100 * v) / first;
		return {
			...s,
			points:
				first > 0
					? s.points.map((p) => ({
							...p,
							value: share(p.value),
							low: p.low === null ? null : share(p.low),
							high: p.high === null ? null : share(p.high),
						}))
					: [],
			changes: first > 0 ? s.changes : [],
			levels: (s.levels ?? []).map((l) => ({
				...l,
				low: share(l.low),
				high: share(l.high),
			})),
		};
	});
}

/** The answer's series are ordered; the address names one in full. */
export function linesOf(answer: Trends, flipped: string[], names: Names): LineSeries[] {
	const { axis } = answer;
	const first = shownAtFirst(answer.series);
	return answer.series.map((s, i) => ({
		id: s.id,
		name: names.of.get(s.id) ?? s.name,
		isShown: isSeen(i, s.name, flipped, first),
		points: s.points.map((p) => ({
			x:
				axis === 'commit'
					? (p.commit ?? '')
					: axis === 'version'
						? (p.version ?? '')
						: (p.at ?? 0),
			value: p.value,
			low: p.low,
			high: p.high,
			facts: [
				[
					'At',
					p.commit !== null && p.at !== null
						? `${shortCommit(p.commit)}, ${when(p.at)}`
						: placeOf(p),
				],
				['From', count(p.n, 'run')],
			],
		})),
		levels: s.levels,
		changes: s.changes.map((c) => ({ index: c.index, tone: toneOf(c), isMarked: c.is_marked })),
	}));
}

export interface Change {
	series: TrendSeries;
	change: TrendChange;
}

/** Unreviewed ones first, then the largest. */
export function changesOf(series: TrendSeries[]): Change[] {
	return series
		.flatMap((s) => s.changes.map((change) => ({ series: s, change })))
		.sort(
			(a, b) =>
				Number(a.change.is_marked) - Number(b.change.is_marked) ||
				Math.abs(b.change.effect ?? 0) - Math.abs(a.change.effect ?? 0),
		);
}

/** A point's position along the axis that all series share, 0 to 1. */
export function placesOf(answer: Pick<Trends, 'axis' | 'series'>): (p: TrendPoint) => number {
	const { axis, series } = answer;
	if (axis === 'commit' || axis === 'version') {
		const all = axis === 'commit' ? commitsOf(series) : versionsOf(series);
		const at = new Map(all.map((name, i) => [name, i / Math.max(1, all.length - 1)]));
		return (p) => at.get(p[axis] ?? '') ?? 0;
	}
	const times = series.flatMap((s) => s.points.map((p) => p.at ?? NaN)).filter(Number.isFinite);
	const from = Math.min(...times), span = Math.max(...times) - from || 1;
	return (p) => ((p.at ?? from) - from) / span;
}

export interface TrendEvent {
	place: number;
	x: number | string;
	text: string;
	kind: 'change' | 'version';
}
const VERSIONS_NAMED = 8;

type Lines = Pick<Trends, 'axis' | 'series'>;

function xOf(p: TrendPoint, axis: string): number | string {
	if (axis === 'commit') return shortCommit(p.commit ?? '');
	return axis === 'version' ? p.version ?? '' : p.at ?? 0;
}

/** Where series changed; of those at one place the largest. */
function changesAlong(answer: Lines, percent: (v: number) => string): TrendEvent[] {
	const place = placesOf(answer), out = new Map<number, TrendEvent & { effect: number }>();
	for (const { points, changes } of answer.series)
		for (const c of changes) {
			const p = points[c.index], at = place(p), effect = Math.abs(c.effect ?? 0);
			if (effect >= (out.get(at)?.effect ?? 0))
				out.set(at, { place: at, x: xOf(p, answer.axis), kind: 'change', effect,
					text: c.effect === null ? 'change' : percent(c.effect) });
		}
	return [...out.values()].map(({ effect: _, ...event }) => event);
}

/** Where a version of the engine came first after another one. */
function versionsAlong(answer: Lines): TrendEvent[] {
	const place = placesOf(answer), out = new Map<string, TrendEvent>();
	for (const { points } of answer.series)
		for (let i = 1; i < points.length; i++) {
			const { version } = points[i], at = place(points[i]);
			if (version !== null && version !== points[i - 1].version
				&& at < (out.get(version)?.place ?? Infinity))
				out.set(version, { place: at, x: xOf(points[i], answer.axis), kind: 'version',
					text: version });
		}
	return [...out.values()].sort((a, b) => a.place - b.place).slice(-VERSIONS_NAMED);
}

/**
 * Events along the axis: changes of the series, and new versions if the axis itself is not
 * versions.
 */
export const eventsOf = (answer: Lines, percent: (v: number) => string): TrendEvent[] =>
	[...changesAlong(answer, percent), ...answer.axis === 'version' ? [] : versionsAlong(answer)]
		.sort((a, b) => a.place - b.place);
