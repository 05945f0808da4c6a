// SPDX-License-Identifier: Apache-2.0
// configured.ts: configurations by the values of the columns that they are matched on: short names, and
// panels with a line per configuration over the load.
import type { Compare, CompareMetric, Comparison } from '../../../lib/api';
import type { Cell } from '../../api';
import { shortValue } from '../runs/names';

export interface Configured { name: string; short: string; values: Cell[]; ids: number[][] }

const LOADS = ['benchmark.max_concurrency', 'benchmark.request_rate', 'benchmark.batch_size'];
export const PANELS_MAX = 12, LINES_MAX = 8;

/** The column of the load among those that were matched on; -1: it does not differ. */
export const loadOf = (matched: readonly string[]): number =>
	matched.findIndex((c) => LOADS.includes(c));

/** The group that is the baseline of all comparisons. */
export const baselineOf = (answer: Pick<Compare, 'groups' | 'comparisons'>): number =>
	Math.max(0, answer.groups.findIndex((_, i) => answer.comparisons.every((c) => c.group !== i)));

const key = (v: Cell | undefined): string => JSON.stringify(v ?? null);
const lastWord = (column: string): string => column.slice(column.lastIndexOf('.') + 1);
const wordOf = (column: string, v: Cell | undefined): string =>
	(v === null || v === undefined ? '' : shortValue(column, v));

type Rows = readonly (readonly Cell[])[];

/**
 * Columns that differ and do not follow from another one: of two equivalent ones only the first.
 */
export function tellingColumns(matched: readonly string[], rows: Rows): number[] {
	const follows = (of: number, from: number): boolean => {
		const seen = new Map<string, string>();
		return rows.every((r) => {
			const old = seen.get(key(r[from]));
			if (old === undefined)
				seen.set(key(r[from]), key(r[of]));
			return old === undefined || old === key(r[of]);
		});
	};
	const load = loadOf(matched), out: number[] = [];
	const isConstant = (i: number): boolean => rows.length > 1
		&& rows.every((r) => key(r[i]) === key(rows[0][i]));
	matched.forEach((_, i) => {
		if (i === load || (!isConstant(i) && !out.some((k) => follows(i, k))))
			out.push(i);
	});
	return out;
}

/** Short names of some configurations: what differs among them; where that is not enough, the whole name. */
function shortOf(some: Compare['configurations'], matched: readonly string[]): string[] {
	const telling = tellingColumns(matched, some.map((c) => c.values));
	const short = some.map((c) => telling.map((i) => wordOf(matched[i], c.values[i]))
		.filter((w) => w !== '').join(' · '));
	const times = new Map<string, number>();
	for (const s of short)
		times.set(s, (times.get(s) ?? 0) + 1);
	return short.map((s, i) => (s !== '' && times.get(s) === 1 ? s : some[i].configuration));
}

/**
 * All configurations of the answer by their names; those in all groups, and the others, are named
 * separately.
 */
export function configuredOf(answer: Pick<Compare, 'configurations' | 'matched_by'>,
	groups: readonly number[] = []): Map<string, Configured> {
	const { configurations, matched_by: matched } = answer;
	const isCommon = (c: Compare['configurations'][number]): boolean =>
		groups.every((g) => c.ids[g]?.length);
	const common = configurations.filter(isCommon), others = configurations.filter((c) => !isCommon(c));
	return new Map([common, others].flatMap((some) => {
		const short = shortOf(some, matched);
		return some.map(({ configuration: name, ids, values }, i): [string, Configured] =>
			[name, { name, ids, values, short: short[i] }]);
	}));
}

/** Sentences name configurations by all that is matched; here by what tells them apart. */
export function inShort(c: Comparison, by: Map<string, Configured>): Comparison {
	const names = [...by.values()].filter((o) => o.short !== o.name && o.name !== 'all runs')
		.sort((a, b) => b.name.length - a.name.length);
	const short = (text: string): string => names.reduce((now, o) =>
		(now.includes(o.name) ? now.replaceAll(o.name, o.short) : now), text);
	return { ...c, notes: c.notes.map(short), metrics: c.metrics.map((m) => ({ ...m,
		reason: m.reason === null ? null : short(m.reason) })) };
}

/** A configuration at a load: both sides of the metric. */
export interface At { load: number; a: number; b: number; name: string }
/** Color: its name, or where lines are many the value of one column. */
export interface PanelLine { name: string; color: string; points: At[] }
export interface Panel { name: string; lines: PanelLine[] }

const distinct = (rows: readonly Configured[], column: number): number =>
	new Set(rows.map((r) => key(r.values[column]))).size;

/**
 * The columns that can tell panels apart: few enough values; those that leave few enough lines in a
 * panel come first, else the order of the match is kept.
 */
export function panelColumns(matched: readonly string[], rows: readonly Configured[]): number[] {
	const load = loadOf(matched);
	const columns = tellingColumns(matched, rows.map((r) => r.values)).filter((i) => i !== load);
	const lines = (column: number): number => {
		const others = columns.filter((c) => c !== column);
		return new Set(rows.map((r) => others.map((c) => key(r.values[c])).join())).size;
	};
	const fit = columns.filter((c) => distinct(rows, c) > 1 && distinct(rows, c) <= PANELS_MAX);
	return [...fit.filter((c) => lines(c) <= LINES_MAX), ...fit.filter((c) => lines(c) > LINES_MAX)];
}

/** Panels by a column's values (-1: one panel), each with a line per configuration over the load. */
export function panelsOf(matched: readonly string[], by: Map<string, Configured>, m: CompareMetric,
	column: number): Panel[] {
	const load = loadOf(matched), panels = new Map<string, Map<string, At[]>>();
	const rows = m.configurations.flatMap((c) => {
		const known = by.get(c.configuration);
		return known && c.baseline !== null && c.value !== null && !c.not_comparable
			? [{ ...known, a: c.baseline, b: c.value }] : [];
	});
	const rest = tellingColumns(matched, rows.map((r) => r.values))
		.filter((i) => i !== load && i !== column), nameOf = (r: Configured): string =>
		rest.map((i) => wordOf(matched[i], r.values[i])).filter((w) => w !== '').join(' · ');
	const isMany = new Set(rows.map(nameOf)).size > LINES_MAX, colors = new Map<string, string>();
	const coloring = rest.find((i) => isMany && distinct(rows, i) > 1 && distinct(rows, i) <= LINES_MAX);
	for (const r of rows) {
		const at = Number(r.values[load]);
		if (load < 0 || r.values[load] === null || !Number.isFinite(at))
			continue;
		const panel = column < 0 ? ''
			: wordOf(matched[column], r.values[column]) || `${lastWord(matched[column])} not set`;
		const line = nameOf(r);
		colors.set(line, coloring === undefined ? line : wordOf(matched[coloring], r.values[coloring])
			|| `${lastWord(matched[coloring])} not set`);
		const lines = panels.get(panel) ?? new Map<string, At[]>();
		panels.set(panel, lines);
		lines.set(line, [...lines.get(line) ?? [], { load: at, a: r.a, b: r.b, name: r.short }]);
	}
	const byName = <T>(x: [string, T], y: [string, T]): number =>
		x[0].localeCompare(y[0], undefined, { numeric: true });
	return [...panels].sort(byName).map(([name, lines]) => ({ name,
		lines: [...lines].sort(byName).map(([line, points]) => ({ name: line,
			color: colors.get(line) ?? line,
			points: points.sort((p, q) => p.load - q.load) })) }));
}

/** Why a configuration of one group is missing in another one: "c128 only in B", else the combination. */
export function aloneReason(one: Configured, all: Iterable<Configured>, matched: readonly string[],
	group: number, other: number, name: string): string {
	const rows = [...all], there = rows.filter((r) => (r.ids[other]?.length ?? 0) > 0);
	const own = rows.filter((r) => (r.ids[group]?.length ?? 0) > 0).length;
	const column = tellingColumns(matched, rows.map((r) => r.values)).find((i) =>
		there.every((r) => key(r.values[i]) !== key(one.values[i])));
	if (column === undefined || own === 0)
		return 'this combination';
	const word = wordOf(matched[column], one.values[column]);
	return `${word || `no ${lastWord(matched[column])}`} only in ${name}`;
}

const MAINLY_SHARE = 0.5;

/**
 * Where most of the change is: if a column explains more than half of the variance of the
 * logarithms of the ratios, its value with the largest change in the given direction. Null:
 * nowhere.
 */
export function mainlyAt(matched: readonly string[], by: Map<string, Configured>, m: CompareMetric,
	way: number): string | null {
	const rows = m.configurations.flatMap((c) => {
		const known = by.get(c.configuration);
		return known && !c.not_comparable && c.baseline !== null && c.value !== null
			&& c.baseline > 0 && c.value > 0
			? [{ values: known.values, d: Math.log(c.value / c.baseline) }] : [];
	});
	const mean = rows.reduce((sum, r) => sum + r.d, 0) / rows.length;
	const total = rows.reduce((sum, r) => sum + (r.d - mean) ** 2, 0);
	let best = MAINLY_SHARE * total, text: string | null = null;
	for (const i of total > 0 ? tellingColumns(matched, rows.map((r) => r.values)) : []) {
		const parts = new Map<string, typeof rows>();
		for (const r of rows)
			parts.set(key(r.values[i]), [...parts.get(key(r.values[i])) ?? [], r]);
		let between = 0, most = 0, at: Cell | undefined;
		for (const list of parts.values()) {
			const d = list.reduce((sum, r) => sum + r.d, 0) / list.length;
			between += list.length * (d - mean) ** 2;
			if (d * way > most) {
				most = d * way;
				at = list[0].values[i];
			}
		}
		if (parts.size > 1 && parts.size <= rows.length / 2 && between > best && most > 0) {
			best = between;
			text = wordOf(matched[i], at) || null;
		}
	}
	return text;
}
