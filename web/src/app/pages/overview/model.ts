// SPDX-License-Identifier: Apache-2.0
// model.ts: the overview's question, its texts, and links to the runs that it counts.
import type { Filter } from '../../filter';
import type { Codec } from '../../url';
import { shortCommit } from '../trends/model';
import type {
	Overview, OverviewCell, OverviewChange, OverviewLoad, OverviewRequest, OverviewVersion,
} from '../../../lib/api';

export type Rank = NonNullable<OverviewRequest['rank']>;
export const RANKS: [Rank | 'auto', string][] = [['auto', 'Low load per user, others per GPU'],
	['user', 'Tokens/s per user'], ['gpu', 'Output tokens/s per GPU'], ['kw', 'Tokens/s per kW'],
	['ttft', 'P99 TTFT'], ['usd', '$ per million output tokens']];

export interface Need { user: number | null; ttft: number | null }

const positive = (text: string | undefined): number | null => {
	const v = Number(text);
	return text !== undefined && text.trim() !== '' && Number.isFinite(v) && v > 0 ? v : null;
};

/** "user:50,ttft:200" in the address. */
export const needCodec: Codec<Need> = {
	read: (text) => {
		const parts = new Map((text ?? '').split(',').map((p) => p.split(':') as [string, string]));
		return { user: positive(parts.get('user')), ttft: positive(parts.get('ttft')) };
	},
	write: ({ user, ttft }) => [user !== null && `user:${user}`, ttft !== null && `ttft:${ttft}`]
		.filter(Boolean).join(',') || null,
};

/** Only chosen values; the server has defaults for the rest. */
export function questionOf(workload: string, rank: Rank | 'auto', need: Need): OverviewRequest {
	const { user, ttft } = need;
	return {
		...workload && { workload },
		...rank !== 'auto' && { rank },
		...(user !== null || ttft !== null) && { need: {
			...user !== null && { tokens_per_s_per_user: user },
			...ttft !== null && { p99_ttft_ms: ttft } } },
	};
}

export const LOAD_NAMES: Record<OverviewLoad['name'], string> =
	{ low: 'Low load', middle: 'Middle', high: 'High' };

/** What decides a column, in words; of the choice "auto" it depends on the load. */
export function rankText(rank: Rank | 'auto', load: OverviewLoad, isOnly: boolean): string {
	const by = rank !== 'auto' ? rank : load.name === 'low' && !isOnly ? 'user' : 'gpu';
	return { user: 'fastest per user', gpu: 'most per GPU', kw: 'most per kW', ttft: 'shortest P99 TTFT',
		usd: 'cheapest' }[by];
}

/** A text of the answer as the column's value: numbers and booleans are texts there. */
function valuesOf(name: string): (string | number | boolean)[] {
	const v = Number(name);
	return name === 'true' || name === 'false' ? [name, name === 'true']
		: name.trim() !== '' && Number.isFinite(v) ? [name, v] : [name];
}

/** The runs of a cell that were left out because they are INVALID. */
export function invalidFilter(answer: Overview, row: string, load: OverviewLoad): { and: Filter[] } {
	const and: Filter[] = [{ column: 'verdict', in: ['INVALID'] }];
	if (answer.workload)
		and.push({ column: 'workload', in: [answer.workload] });
	if (answer.rows_by !== null)
		and.push({ column: answer.rows_by, in: valuesOf(row) });
	if (load.value !== null)
		and.push({ column: 'load', in: [load.value] });
	return { and };
}

export function leftOutText(cell: Pick<OverviewCell, 'invalid'>): string {
	return `${cell.invalid} INVALID left out`;
}

/** Runs on both sides of a change, as the page Compare's groups. */
export function sidesOf(c: OverviewChange): string {
	return JSON.stringify([
		{ name: c.previous ? `until ${shortCommit(c.previous)}` : 'before', ids: c.before_ids },
		{ name: c.commit ? `from ${shortCommit(c.commit)}` : 'after', ids: c.after_ids },
	]);
}

/** The runs of both versions, the older one first, as the page Compare's groups. */
export function versionSides(v: OverviewVersion): string {
	return JSON.stringify([v.older, v.newer].map((version) => ({ name: version, filter: { and: [
		{ column: v.by, in: [v.name] },
		{ column: 'environment.server.version', in: [version] }] } })));
}
