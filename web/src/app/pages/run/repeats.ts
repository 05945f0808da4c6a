// SPDX-License-Identifier: Apache-2.0
// repeats.ts: compares a run with other runs of its configuration. Pure.
import type { Row, Run } from '../../../lib/api';
import type { ColumnOption } from '../../query';
import type { And, Filter } from '../../filter';
import { count } from '../../show';
import { isInvalid } from '../runs/view';

/** Number of runs of a configuration to compare with, besides repeats of one suite. */
const LAST = 10;
export const ROWS_READ = 100;

const WORK = ['workload', 'load', 'load_kind', 'mode', 'gpu_model', 'gpus_used', 'server.model'];
/** The address of a server does not characterize it. */
const PLACES = new Set(['server.host', 'server.port', 'server.url', 'server.uds', 'server.api_key']);

/**
 * Runs of the same configuration that did not fail: by its hash where the document has one, else by
 * what is known of workload, load, GPUs and the server.
 */
export function sameConfiguration(run: Pick<Run, 'values'>, columns: ColumnOption[]): And {
	const { config_hash: hash } = run.values, known = new Map(columns.map((c) => [c.column, c]));
	const failed: Filter[] = known.has('status') ? [{ not: { column: 'status', in: ['failed'] } }] : [];
	if (typeof hash === 'string' && known.has('config_hash'))
		return { and: [{ column: 'config_hash', in: [hash] }, ...failed] };
	const differing = columns.filter((c) => c.distinct > 1 && /^(server|tags)\./.test(c.column)
		&& !PLACES.has(c.column) && !WORK.includes(c.column)).map((c) => c.column);
	return { and: [...[...WORK, ...differing].filter((c) => known.has(c)).map((column) =>
		({ column, in: [run.values[column] ?? null] })), ...failed] };
}

export interface Others {
	/** "2 repeats", "the last 10 runs of this configuration" */
	words: string;
	rows: Row[];
}

/** What repeats have in common besides their configuration. */
export const SAME_IN_REPEATS = ['suite', 'environment.server.version', 'provenance.engine_commit'];

/** rows: the same configuration, newest first. Repeats of the same suite come first. */
export function othersOf(run: Pick<Run, 'id' | 'values'>, rows: Row[]): Others | null {
	const others = rows.filter((r) => r.id !== run.id), { suite } = run.values;
	const isRepeat = (r: Row): boolean => SAME_IN_REPEATS.every((c) =>
		(r.values[c] ?? null) === (run.values[c] ?? null));
	const repeats = typeof suite === 'string' ? others.filter(isRepeat) : [];
	if (repeats.length > 1)
		return { words: count(repeats.length, 'repeat'), rows: repeats };
	const last = others.slice(0, LAST);
	if (!last.length)
		return null;
	return { words: last.length === 1 ? 'the other run of this configuration'
		: `the last ${last.length} other runs of this configuration`, rows: last };
}

export interface Difference {
	/** value / median - 1 */
	effect: number;
	median: number;
	n: number;
	/** Outside the range of all others, if there are at least three. */
	isOutside: boolean;
}

const OUTSIDE_RUNS_MIN = 3;

/** Only other runs in which the metric is not INVALID count. */
export function differenceOf(run: Pick<Run, 'values'>, others: Others, column: string): Difference | null {
	const v = run.values[column];
	const list = others.rows.flatMap((r) => {
		const w = r.values[column], spoiled = r.values['trust.invalid'];
		const invalid = new Map(r.values['verdict'] === 'INVALID'
			? [[r.id, typeof spoiled === 'string' ? spoiled : null]] : []);
		return typeof w === 'number' && Number.isFinite(w) && !isInvalid(invalid, r.id, column)
			? [w] : [];
	}).sort((a, b) => a - b);
	if (typeof v !== 'number' || !Number.isFinite(v) || !list.length)
		return null;
	const middle = list.length >> 1;
	const median = list.length % 2 ? list[middle] : (list[middle - 1] + list[middle]) / 2;
	if (median === 0)
		return null;
	return { effect: v / median - 1, median, n: list.length, isOutside: list.length >= OUTSIDE_RUNS_MIN
		&& (v < list[0] || v > list[list.length - 1]) };
}
