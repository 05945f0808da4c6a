// SPDX-License-Identifier: Apache-2.0
// columns.ts: the columns' labels, and what each can be used for.
import { useMemo } from 'react';
import type { Cell } from '../api';
import { useOptions, type ColumnOption } from '../query';
import { columnLabel } from '../show';
import type { Measure } from '../charts/scatter';

export interface Columns {
	all: ColumnOption[];
	isReady: boolean;
	error: unknown;
	retry: () => void;
	of: (column: string) => ColumnOption | undefined;
	measure: (column: string) => Measure;
	/** Measured numbers, which can be used for an axis. */
	numbers: ColumnOption[];
	/** Columns to group by: more than one value, but not one per run. */
	groups: ColumnOption[];
}

/** Metrics that follow from prices and the power of boards: no run has them by itself. */
export const COMPUTED: Record<string, { label: string; unit: string } | undefined> = {
	usd_per_m_output: { label: '$/M output tokens', unit: '$/M output tokens' },
	tokens_per_s_per_kw: { label: 'Output tokens/s per kW', unit: 'tokens/s/kW' },
};

/** Some run has a number there; a machine without a GPU has null in every GPU column. */
const isNumber = (c: ColumnOption): boolean =>
	(c.kind === 'number' || c.kind === 'mixed') && (c.distinct > 0 || typeof c.min === 'number');
const GROUPS_MAX = 60;

/** What users set: suggested for filters and comparisons; the rest is found by its group or by search. */
export const SET_ROLES: ColumnOption['role'][] = ['hardware', 'engine', 'version', 'precision', 'parallel',
	'load', 'workload', 'argument'];

/** Some of these runs differ in it; distinct is 0 where there are too many values to count. */
export const varies = (c: ColumnOption | undefined): boolean =>
	c !== undefined && (c.distinct > 1 || (c.distinct === 0 && !c.is_constant));

/** Whether a column's values make groups rather than measurements. */
export function canGroup(c: ColumnOption): boolean {
	return c.better === null && c.distinct > 1 && c.distinct <= GROUPS_MAX && c.group !== 'metric'
		&& c.column !== 'run_id' && c.column !== 'timestamp';
}

/** A label that another column also has is distinguished by its group. */
export function labels(all: ColumnOption[]): Map<string, string> {
	const seen = new Map<string, number>(), plain = (c: ColumnOption): string =>
		c.label || columnLabel(c.column);
	for (const c of all)
		seen.set(plain(c), (seen.get(plain(c)) ?? 0) + 1);
	return new Map(all.map((c) => [c.column, (seen.get(plain(c)) ?? 0) > 1
		&& c.column.includes('.') ? `${plain(c)} (${c.group})` : plain(c)]));
}

export function useColumns(): Columns {
	const options = useOptions();
	return useMemo(() => {
		const all = options.data?.items ?? [];
		const by = new Map(all.map((c) => [c.column, c])), names = labels(all);
		return {
			all, isReady: options.data !== undefined, error: options.error,
			retry: () => void options.refetch(),
			of: (column: string) => by.get(column),
			measure: (column: string) => ({ column,
				unit: by.get(column)?.unit ?? COMPUTED[column]?.unit
					?? (/_ms$/.test(column) ? 'ms' : null),
				label: names.get(column) ?? COMPUTED[column]?.label ?? columnLabel(column) }),
			numbers: all.filter(isNumber),
			groups: all.filter(canGroup),
		};
	// Only the answer and its error matter.
	}, [options.data, options.error]);
}

/** The first of these with more than one value in the runs; else the first that the runs have. */
export function firstOf(columns: Columns, wanted: readonly string[]): string | undefined {
	return wanted.find((c) => varies(columns.of(c)))
		?? wanted.find((c) => columns.of(c) !== undefined);
}

/** A group that lacks a value has no key for it. */
export const columnsOf = (keys: readonly Record<string, Cell>[]): string[] =>
	[...new Set(keys.flatMap((key) => Object.keys(key)))];

/** Of these columns, those in which the keys of the groups differ. */
export function differingOf(columns: readonly string[], keys: readonly Record<string, Cell>[]): string[] {
	return columns.filter((c) => new Set(keys.map((key) => key[c] ?? null)).size > 1);
}

/** Of those, without the ones that follow from earlier ones: a GPU's default of an argument. */
export function tellingOf(columns: readonly string[], keys: readonly Record<string, Cell>[]): string[] {
	const kept: string[] = [];
	for (const c of differingOf(columns, keys)) {
		const seen = new Map<string, Cell>();
		const follows = keys.every((key) => {
			const group = JSON.stringify(kept.map((k) => key[k] ?? null)), v = key[c] ?? null;
			if (!seen.has(group))
				seen.set(group, v);
			return seen.get(group) === v;
		});
		if (!follows)
			kept.push(c);
	}
	return kept;
}

/** Sorts series by their number: 1, 2, 4, and not by the number of runs; those without one are last. */
export function inOrder<T extends { key: Record<string, Cell> }>(series: T[]): T[] {
	const keys = series.map((s) => s.key), [by] = differingOf(columnsOf(keys), keys);
	const size = (s: T): number => (by === undefined ? 0 : Number(s.key[by] ?? Infinity));
	return by === undefined || !keys.every((key) => typeof (key[by] ?? 0) === 'number') ? series
		: [...series].sort((a, b) => (size(a) === size(b) ? 0 : size(a) - size(b)));
}

export const GROUP_COLUMNS = ['gpu_model', 'server.model', 'benchmark.model', 'hardware.gpu',
	'server.tensor_parallel_size', 'suite', 'source', 'mode', 'name'] as const;
export const RATE_COLUMNS = ['output_throughput', 'request_throughput', 'total_token_throughput',
	'requests_per_second', 'tokens_per_second'] as const;
export const LATENCY_COLUMNS = ['median_ttft_ms', 'p95_ttft_ms', 'median_tpot_ms', 'median_e2el_ms',
	'avg_latency'] as const;
