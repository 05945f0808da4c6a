// SPDX-License-Identifier: Apache-2.0
// model.ts: trends as lines, and changes as a list.
import type { TrendChange, TrendPoint, Trends, TrendSeries } from '../../../lib/api';
import type { LineSeries } from '../../charts/lines';
import { isSeen } from '../../common/shown';
import { count, when } from '../../show';

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

/** What a mark is kept under: the change's commit, else its time. */
export const markPlace = (c: TrendChange): string => c.commit ?? String(c.at);

const toneOf = (c: TrendChange): 'good' | 'bad' | 'plain' =>
	c.verdict === 'better' ? 'good' : c.verdict === 'worse' ? 'bad' : 'plain';

/** The address tells a series by its place in the answer's order of names, short and readable. */
export function linesOf(answer: Trends, flipped: string[]): LineSeries[] {
	const { axis } = answer;
	return answer.series.map((s, i) => ({
		id: s.id,
		name: s.name || 'All runs',
		isShown: isSeen(i, s.name, flipped, SHOWN_AT_FIRST),
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
		changes: s.changes.map((c) => ({ index: c.index, tone: toneOf(c), isMarked: c.is_marked })),
	}));
}

export interface Change {
	series: TrendSeries;
	change: TrendChange;
}

/** Not yet looked at first, then the largest. */
export function changesOf(series: TrendSeries[]): Change[] {
	return series
		.flatMap((s) => s.changes.map((change) => ({ series: s, change })))
		.sort(
			(a, b) =>
				Number(a.change.is_marked) - Number(b.change.is_marked) ||
				Math.abs(b.change.effect ?? 0) - Math.abs(a.change.effect ?? 0),
		);
}
