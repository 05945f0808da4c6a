// SPDX-License-Identifier: Apache-2.0
// view.ts: the Runs page without its drawing: order, columns, and facets as rows of a list.
import type { Cell } from '../../api';
import {
	isCondition, selectedValues, type And, type Bound, type Condition, type Filter,
} from '../../filter';
import type { Bin, ColumnOption, Facet, Item as Row, Sort } from '../../query';
import { columnLabel, count, isTime, showCell, showValue, when } from '../../show';
import { choiceCodec, flagCodec, listCodec, plain, type Codec } from '../../url';

export const PAGE_ROWS = 150;
export const ROWS_MAX = 100_000; /* listed; beyond, a table is no way to look at runs */
export const SORTS_MAX = 4;
export const DIFFERING_MAX = 400;
export const SEARCH_FROM = 20; /* values, from which on a list has a search box */
/** A row of the table: a run, several repeats as one, or one of the repeats below their row. */
export interface Line extends Row { isMember?: boolean }

/** The rows, with the repeats of opened ones below them. */
export function linesOf(rows: Row[], open: ReadonlyMap<number, Row[]>): Line[] {
	return rows.flatMap((row) => [row, ...(open.get(row.id) ?? []).map((m) =>
		({ ...m, isMember: true }))]);
}

/** The runs of a row: several where repeats are one. */
export const idsOf = (row: Row): number[] => row.ids ?? [row.id];

/** "±0.8 %": half the range of repeats in percent of their median; empty where there is none. */
export function spreadText(row: Row, column: string): string {
	const half = row.spread?.[column], middle = row.values[column];
	if (half === undefined || typeof middle !== 'number' || middle === 0)
		return '';
	const share = Math.abs(half / middle) * 100;
	return `±${share < 9.95 ? share.toFixed(1) : share.toFixed(0)} %`;
}

/** The columns that every row needs for its name and its verdict. */
export const LEAD_COLUMNS = ['name', 'run_id', 'verdict', 'status'];
export const BEST_ROWS = 3;
const STATISTICS = ['output_throughput', 'request_throughput', 'median_ttft_ms', 'p99_ttft_ms',
	'median_tpot_ms', 'median_itl_ms', 'median_e2el_ms', 'avg_latency', 'failed'];
export const STATISTICS_SHOWN = 5;

const USUAL_SORT: Sort[] = [{ column: 'timestamp', descending: true }];

/** Like listCodec, but also escapes a - at the front of a name, as it means descending. */
function sortText(sort: Sort[]): string {
	return sort.map((s) => (s.descending ? '-' : '') + s.column.replace(/[%,]/g, encodeURIComponent)
		.replace(/^-/, '%2D')).join(',');
}

export const sortCodec: Codec<Sort[]> = {
	read: (text) => {
		if (text === null)
			return USUAL_SORT;
		return text.split(',').filter((w) => w !== '' && w !== '-').slice(0, SORTS_MAX)
			.map((w) => (w.startsWith('-') ? { column: plain(w.slice(1)), descending: true }
				: { column: plain(w), descending: false }));
	},
	write: (sort) => (sortText(sort) === sortText(USUAL_SORT) ? null : sortText(sort)),
};

/** Empty: the server's default columns. */
export const columnsCodec = listCodec();
export const statisticsCodec = listCodec();
export const differingCodec = flagCodec();
export const groupCodec = choiceCodec<'configuration' | 'none'>(['configuration', 'none'], 'configuration');

/** A click on a column's head: best first, then reversed, then unsorted. */
export function nextSort(sort: Sort[], column: string, isAdded: boolean, firstDown: boolean): Sort[] {
	if (column.startsWith('=')) // the index has no order of it
		return sort;
	const now = sort.find((s) => s.column === column);
	const others = isAdded ? sort.filter((s) => s.column !== column) : [];
	if (!now)
		return [...others.slice(0, SORTS_MAX - 1), { column, descending: firstDown }];
	if (now.descending !== firstDown)
		return others;
	const turned = { column, descending: !now.descending };
	return isAdded ? sort.map((s) => (s.column === column ? turned : s)) : [turned];
}

export function byName(options: ColumnOption[]): Map<string, ColumnOption> {
	return new Map(options.map((o) => [o.column, o]));
}

export function labelOf(column: string, options: Map<string, ColumnOption>): string {
	if (isTime(column))
		return column === 'received' ? 'Received' : 'Date';
	return options.get(column)?.label || columnLabel(column);
}

const HEADS: Record<string, string> = {
	tensor_parallel_size: 'TP', pipeline_parallel_size: 'PP', data_parallel_size: 'DP',
	expert_parallel_size: 'EP', max_concurrency: 'Concurrency', request_rate: 'Request rate',
	dataset_name: 'Dataset', model: 'Model', gpu: 'GPU', random_input_len: 'Input tokens',
	random_output_len: 'Output tokens', engine_commit: 'Commit', num_prompts: 'Prompts',
	version: 'Version', verdict: 'Verdict',
};

export const shortHead = (column: string, label: string): string =>
	HEADS[column.slice(column.lastIndexOf('.') + 1)] ?? label;

/** A label that is short enough for the head of a table. */
export function headOf(column: string, options: Map<string, ColumnOption>): string {
	if (column.startsWith('='))
		return labelOf(column, options);
	return shortHead(column, labelOf(column, options));
}

/** The first word of a parameter's name, or its unit: the small line below a label. */
export function placeOf(column: string, options: Map<string, ColumnOption>): string {
	const option = options.get(column);
	if (column.startsWith('='))
		return 'formula';
	if (option?.unit)
		return option.unit;
	return column.includes('.') ? column.slice(0, column.indexOf('.')) : '';
}

/** Parameters: not measured, and not a name of the run. */
export function isParameter(option: ColumnOption | undefined): boolean {
	return option !== undefined && option.group !== 'metric' && option.better === null
		&& !isTime(option.column) && !['name', 'run_id', 'suite'].includes(option.column);
}

export function isNumber(option: ColumnOption | undefined, column = ''): boolean {
	if (column.startsWith('='))
		return true;
	return (option?.kind === 'number' || (option?.kind === 'mixed' && option.group === 'metric'))
		&& !isTime(option.column);
}

/** Where few columns fit next to the names, the first metric is before the parameters. */
export function metricFirst(columns: string[], options: Map<string, ColumnOption>): string[] {
	const first = columns.find((c) => options.get(c)?.group === 'metric' && isNumber(options.get(c)));
	return first === undefined ? columns : [first, ...columns.filter((c) => c !== first)];
}

/**
 * A cell of the table: missing values of any kind are blank, and the title says which kind it is.
 */
export function cellText(column: string, v: Cell | undefined): string {
	return v === undefined || v === null || v === '' ? '' : showCell(column, v);
}

/** Whether two of these times fall into the same minute, so that minutes do not tell them apart. */
export function sharesMinute(times: (Cell | undefined)[]): boolean {
	const minutes = times.filter((t): t is number => typeof t === 'number')
		.map((t) => Math.floor(t / 60));
	return new Set(minutes).size < minutes.length;
}

export interface Rank { share: number; isBest: boolean }
/** By column and number of the run. */
export type Ranks = Map<string, Map<number, Rank>>;

/** Metrics that are judged one by one, as trust.invalid lists them. */
const JUDGED = ['ttft', 'tpot', 'itl', 'e2el', 'request_throughput', 'request_goodput',
	'input_throughput', 'output_throughput', 'total_token_throughput'];
const MADE_OF: [string, string][] = [['total_tokens_per_s_per_gpu', 'total_token_throughput'],
	['tokens_per_s_per_user', 'tpot'], ['output_tokens_per_s', 'output_throughput'],
	['tokens_per_s_per', 'output_throughput'], ['per_output_token', 'output_throughput']];

/** The judged metric that a column is about; undefined: none. */
export function judgedOf(column: string): string | undefined {
	return MADE_OF.find(([part]) => column.includes(part))?.[1] ?? JUDGED.find((m) => column.includes(m));
}

/** The INVALID metrics of each run: a list, or null for all of them. */
export type Invalid = Map<number, string | null>;

export function isInvalid(invalid: Invalid, id: number, column: string): boolean {
	const list = invalid.get(id), metric = judgedOf(column);
	return list === null || (list !== undefined && metric !== undefined
		&& list.split(',').includes(metric));
}

/** Runs that count for a metric: the rule of analyses (docs/guide/dashboard.md). */
export function counting(filter: And, metric: string | undefined): And {
	const list = 'trust.invalid';
	return { and: [...(filter.and.length ? [{ and: filter.and }] : []),
		{ not: { column: 'status', in: ['failed'] } },
		{ not: { and: [{ column: 'verdict', in: ['INVALID'] }, { or: [{ column: list, missing: true },
			...(metric ? [{ column: list, text: metric }] : [])] }] } }] };
}

/** Those of them with a number in the column. */
export function usable(filter: And, column: string): And {
	return { and: [...counting(filter, judgedOf(column)).and, { column, range: { min: SMALLEST } }] };
}

const SMALLEST = 1e-9; /* a rate or a latency of 0 was never measured */

/**
 * The length of each metric's bar, and its best three. Failed runs and metrics that are INVALID are
 * excluded. Nothing is called best while more rows are to come.
 */
export function ranksOf(rows: Row[], columns: string[], options: Map<string, ColumnOption>,
	invalid: Invalid, isComplete: boolean): Ranks {
	const out: Ranks = new Map();
	for (const column of columns) {
		const better = options.get(column)?.better;
		const list = better ? rows.flatMap(({ id, values }) => {
			const v = values[column];
			const isUsed = values.status !== 'failed' && !isInvalid(invalid, id, column);
			return isUsed && typeof v === 'number' && Number.isFinite(v) && v >= 0
				? [{ id, v }] : [];
		}) : [];
		const most = list.reduce((m, { v }) => Math.max(m, v), 0);
		if (list.length <= BEST_ROWS || most <= 0)
			continue;
		const sorted = list.map(({ v }) => v).sort((a, b) => (better === 'higher' ? b - a : a - b));
		const limit = sorted[BEST_ROWS - 1], isFlat = sorted[0] === sorted[sorted.length - 1];
		out.set(column, new Map(list.map(({ id, v }) => [id, { share: v / most, isBest: isComplete
			&& !isFlat && (better === 'higher' ? v >= limit : v <= limit) }])));
	}
	return out;
}

const GROUPS: [string, string][] = [['run', 'Run'], ['metric', 'Results'], ['server', 'Server'],
	['benchmark', 'Load'], ['hardware', 'Hardware'], ['system', 'System'],
	['environment', 'Environment'], ['provenance', 'Provenance'], ['tags', 'Tags']];

const JUDGED_SHARE = 0.1;

/**
 * Whether the column of verdicts says something: a tenth of the runs have one, or one is not VALID, or a
 * run ended in another way than others.
 */
export function isJudged(counts: readonly Facet[] | undefined, runs: number,
	options: Map<string, ColumnOption>): boolean {
	const facet = counts?.find((f) => f.column === 'verdict');
	const status = (counts?.find((f) => f.column === 'status') ?? options.get('status'))?.distinct ?? 0;
	if (status > 1 || !facet)
		return status > 1 || (options.get('verdict')?.distinct ?? 0) > 0;
	return runs - facet.missing >= Math.max(1, JUDGED_SHARE * runs)
		|| facet.values.some((v) => v.value !== null && v.value !== 'VALID');
}

export interface Section { name: string; label: string; items: ColumnOption[] }

/** Columns grouped by subject: the well-known groups first, then servers by their role. */
export function sections(items: Iterable<ColumnOption>): Section[] {
	const named = new Map(GROUPS);
	const by = new Map<string, ColumnOption[]>(GROUPS.map(([name]) => [name, []]));
	for (const item of items)
		by.set(item.group, [...by.get(item.group) ?? [], item]);
	return [...by].filter(([, list]) => list.length > 0).map(([name, list]) => ({
		name, label: named.get(name) ?? name.charAt(0).toUpperCase() + name.slice(1),
		items: list.sort((a, b) => (a.column < b.column ? -1 : 1)),
	}));
}

export function defaultStatistics(options: Map<string, ColumnOption>): string[] {
	return STATISTICS.filter((c) => options.has(c)).slice(0, STATISTICS_SHOWN);
}

/** Columns whose rows are not all the same; distinct is 0 where there are too many values to count. */
export function differing(facets: Facet[]): Set<string> {
	return new Set(facets.filter((f) => f.distinct > 1 || (f.distinct === 1 && f.missing > 0)
		|| (f.distinct === 0 && f.others > 1)).map((f) => f.column));
}

/** True for numbers that are too many for a list: they get a histogram instead. */
export const isSpread = (option: ColumnOption): boolean =>
	option.kind === 'number' && option.histogram !== undefined;

/** The histogram of the current rows; if only a few values are left, one bin for each. */
export function binsOf(facet: Facet | undefined): Bin[] {
	if (facet?.histogram)
		return facet.histogram;
	return (facet?.values ?? []).flatMap(({ value, count: n }) =>
		(typeof value === 'number' ? [{ from: value, to: value, count: n }] : []));
}

export const BARS = 24;

/** The same rows in bars of equal width over the whole range. */
export function barsOf(bins: Bin[], min: number, max: number): number[] {
	const bars = new Array<number>(BARS).fill(0), size = (max - min) / BARS;
	const at = (v: number): number => Math.min(BARS - 1, Math.max(0, Math.floor((v - min) / size)));
	for (const b of bins) {
		if (!(size > 0) || b.to <= b.from) {
			bars[size > 0 ? at(b.from) : 0] += b.count;
			continue;
		}
		for (let i = at(b.from); i <= at(b.to); i++) {
			const low = Math.max(b.from, min + i * size);
			const high = Math.min(b.to, min + (i + 1) * size);
			bars[i] += b.count * Math.max(0, high - low) / (b.to - b.from);
		}
	}
	return bars;
}

/** The ends of a column's numbers over all runs; infinite ones have no place on a scale. */
export function endsOf(option: ColumnOption): [number, number] | null {
	const bins = option.histogram ?? [];
	if (typeof option.min === 'number' && typeof option.max === 'number')
		return [option.min, option.max];
	return bins.length ? [bins[0].from, bins[bins.length - 1].to] : null;
}

export interface FacetRow { value: Cell; count: number; isSelected: boolean }

/**
 * The values of a column with their rows now: those of the filtered set, those that only others
 * have (0), and what is selected. Numbers by size, texts by rows; missing comes last.
 */
export function facetRows(option: ColumnOption, facet: Facet | undefined, filter: And): FacetRow[] {
	const chosen = selectedValues(filter, option.column);
	const rows = new Map<Cell, FacetRow>();
	const put = (value: Cell, n: number): void => {
		if (!rows.has(value))
			rows.set(value, { value, count: n, isSelected: chosen.includes(value) });
	};
	for (const { value, count: n } of facet?.values ?? [])
		if (value !== null)
			put(value, n);
	for (const { value } of option.values ?? [])
		if (value !== null)
			put(value, 0);
	for (const value of chosen)
		if (value !== null)
			put(value, 0);
	const list = [...rows.values()];
	if (list.every((row) => typeof row.value === 'number'))
		list.sort((a, b) => (a.value as number) - (b.value as number));
	const isMissing = chosen.includes(null);
	if (option.missing > 0 || (facet?.missing ?? 0) > 0 || isMissing)
		list.push({ value: null, count: facet?.missing ?? 0, isSelected: isMissing });
	return list;
}

/* ---- the filter in words ---- */

const NAMED_MAX = 3;

export function conditionText(c: Condition): string {
	if ('in' in c) {
		const names = c.in.slice(0, NAMED_MAX).map((v) => showValue(c.column, v)).join(', ');
		return c.in.length > NAMED_MAX ? `${names} + ${c.in.length - NAMED_MAX}` : names;
	}
	if ('text' in c)
		return `contains “${c.text}”`;
	if ('missing' in c)
		return c.missing ? 'missing' : 'present';
	const { min, max } = c.range;
	const show = (v: Cell | undefined): string => showCell(c.column, v);
	if (min !== undefined && max !== undefined)
		return min === max ? show(min) : `${show(min)} to ${show(max)}`;
	if (min !== undefined)
		return `≥ ${show(min)}`;
	return max === undefined ? 'any number' : `≤ ${show(max)}`;
}

export function filterText(f: Filter, label: (column: string) => string): string {
	if (isCondition(f))
		return `${f.column === '*' ? 'any text' : label(f.column)}: ${conditionText(f)}`;
	if ('not' in f)
		return `not (${filterText(f.not, label)})`;
	const parts = ('and' in f ? f.and : f.or).map((part) => {
		const text = filterText(part, label);
		return isCondition(part) || 'not' in part ? text : `(${text})`;
	});
	if (parts.length === 0)
		return 'and' in f ? 'everything' : 'nothing';
	return parts.join('and' in f ? ' and ' : ' or ');
}

/* ---- values as typed by users ---- */

function typed(word: string, kind: ColumnOption['kind'] | undefined): Cell {
	if (word.length > 1 && word.startsWith('"') && word.endsWith('"'))
		return word.slice(1, -1).replace(/""/g, '"');
	if (word === 'missing' || word === 'null')
		return null;
	if (kind !== 'text' && (word === 'true' || word === 'false'))
		return word === 'true';
	if (kind !== 'text' && word !== '' && Number.isFinite(Number(word)))
		return Number(word);
	return word;
}

/** "1, 2, missing": values; "quotes" keep a comma or a number as text, "" is one of them in it. */
export function parseValues(text: string, kind: ColumnOption['kind'] | undefined): Cell[] {
	const words = text.match(/\s*"(?:[^"]|"")*"\s*(?=,|$)|[^,]+/g) ?? [];
	return words.map((w) => w.trim()).filter((w) => w !== '').map((w) => typed(w, kind));
}

export function writeValues(values: Cell[], kind: ColumnOption['kind'] | undefined): string {
	return values.map((v) => {
		if (v === null)
			return 'missing';
		const text = String(v);
		const isPlain = typeof v !== 'string' || (!/[",]/.test(text) && typed(text, kind) === v);
		return isPlain ? text : `"${text.replace(/"/g, '""')}"`;
	}).join(', ');
}

/** An end of a range: a number, "inf", or for times a local date. undefined: none of these. */
export function parseBound(column: string, text: string): Bound | undefined {
	const word = text.trim();
	if (word === 'inf' || word === '-inf')
		return word;
	if (word !== '' && Number.isFinite(Number(word)))
		return Number(word);
	if (!isTime(column) || !/^\d{4}-\d\d-\d\d/.test(word))
		return undefined;
	const ms = Date.parse(/[zZ]|[+-]\d\d:?\d\d$/.test(word.slice(10)) ? word
		: `${word.replace(' ', 'T')}${word.length > 10 ? '' : 'T00:00'}`);
	return Number.isFinite(ms) ? ms / 1000 : undefined;
}

/** The inverse of parseBound; times in whole minutes. */
export function writeBound(column: string, v: Bound | undefined): string {
	if (v === undefined)
		return '';
	return isTime(column) && typeof v === 'number' && v % 60 === 0 ? when(v) : String(v);
}

/** Positions of a handle between the ends of a range. */
export const RANGE_STEPS = 200;
const TIME_STEPS = [1, 5, 10, 30, 60, 300, 600, 1800, 3600, 6 * 3600, 86_400]; /* seconds */

/**
 * Where a handle of a range stops: a number with few digits, for times a whole minute, hour or day,
 * as far as at least RANGE_STEPS of them are between the ends.
 */
export function roundBound(column: string, v: number, min: number, max: number): number {
	const finest = (max - min) / RANGE_STEPS;
	const times = isTime(column) ? TIME_STEPS.filter((s) => s <= finest) : [];
	const step = times.length ? times[times.length - 1] : 10 ** Math.floor(Math.log10(finest));
	if (v <= min || v >= max)
		return v <= min ? min : max;
	return Math.min(max, Math.max(min, Number((Math.round(v / step) * step).toPrecision(15))));
}

/* ---- exports ---- */

export const EXPORT_URL_MAX = 6000;

export interface ExportBody {
	filter: Filter | null;
	shown: string;
	sort: Sort[];
	columns: string[] | null;
	format: 'csv' | 'jsonl';
}

/** An order that a link cannot express: its columns are joined by commas, a - means descending. */
const isAmbiguous = (s: Sort): boolean =>
	s.column.includes(',') || (!s.descending && s.column.startsWith('-'));

/**
 * A link that downloads, or null when the request is too long for one or cannot be expressed in
 * one.
 */
export function exportTarget(body: ExportBody): string | null {
	if (body.sort.some(isAmbiguous))
		return null;
	const params = new URLSearchParams({ format: body.format, shown: body.shown });
	if (body.filter)
		params.set('filter', JSON.stringify(body.filter));
	if (body.columns)
		params.set('columns', JSON.stringify(body.columns));
	if (body.sort.length)
		params.set('sort', body.sort.map((s) => (s.descending ? '-' : '') + s.column).join(','));
	const target = `/api/export/csv?${params}`;
	return target.length > EXPORT_URL_MAX ? null : target;
}

export const runsText = (n: number): string => count(n, 'run');

/** STORE_FULL_SHARE of src/results/store/store.h. */
const FULL_SHARE = 0.8;

export const isNearlyFull = (used: number, limit: number): boolean => used > FULL_SHARE * limit;

/* ---- columns that are gone ---- */

export interface Gone { part: 'filter' | 'columns' | 'sort'; at: number }

/**
 * Which part of a link or a preset the server refused, by its pointer: the last run with a column
 * may have been deleted since. null: the error is about something else.
 */
export function goneOf(pointer: string | undefined): Gone | null {
	const found = /^\/(?:(filter)\/and|(columns|sort))\/(\d+)(?:\/|$)/.exec(pointer ?? '');
	return found && { part: (found[1] ?? found[2]) as Gone['part'], at: Number(found[3]) };
}
