// SPDX-License-Identifier: Apache-2.0
import {
	asked, checkFilter, checkWhole, conditionOn, countConditions, EVERYTHING, onlyValue, selectedValues,
	tidy, toggleValue, whole, withCondition, withoutPart, withRange, type And,
} from '../../../web/src/app/filter';
import {
	barsOf, binsOf, BARS, cellText, conditionText, counting, differing, endsOf, exportTarget,
	EXPORT_URL_MAX,
	facetRows, filterText, goneOf, isInvalid, isParameter, isSpread, judgedOf, nextSort, parseBound,
	parseValues, ranksOf, roundBound, sharesMinute, sortCodec, SORTS_MAX, usable, writeBound,
	writeValues,
} from '../../../web/src/app/pages/runs/view';
import type { ColumnOption, Facet, Sort } from '../../../web/src/app/query';

it('builds a filter from clicks, one condition per column', () => {
	let f: And = EVERYTHING;
	expect(asked(f)).toBe(null);
	f = toggleValue(f, 'tp', 2);
	f = toggleValue(f, 'gpu', 'H100');
	f = toggleValue(f, 'tp', 4);
	f = toggleValue(f, 'tp', null);
	expect(f).toEqual({ and: [{ column: 'tp', in: [2, 4, null] }, { column: 'gpu', in: ['H100'] }] });
	expect(selectedValues(f, 'tp')).toEqual([2, 4, null]);
	f = toggleValue(f, 'tp', 2);
	f = withRange(f, 'rate', 1, null);
	f = withRange(f, 'rate', 1, 'inf');
	expect(conditionOn(f, 'rate')).toEqual({ column: 'rate', range: { min: 1, max: 'inf' } });
	f = withRange(f, 'rate', null, null);
	f = onlyValue(f, 'gpu', false);
	expect(f).toEqual({ and: [{ column: 'tp', in: [4, null] }, { column: 'gpu', in: [false] }] });
	f = toggleValue(toggleValue(f, 'tp', 4), 'tp', null);
	expect(withoutPart(f, 0)).toEqual(EVERYTHING);
	expect(selectedValues(withCondition(EVERYTHING, 'a', { column: 'a', missing: true }), 'a'))
		.toEqual([null]);
});

it('keeps 1, "1" and true apart', () => {
	const f = toggleValue(toggleValue(toggleValue(EVERYTHING, 'a', 1), 'a', '1'), 'a', true);
	expect(selectedValues(f, 'a')).toEqual([1, '1', true]);
	expect(selectedValues(toggleValue(f, 'a', '1'), 'a')).toEqual([1, true]);
});

it('makes any tree one with an and outermost and one condition per column', () => {
	expect(checkWhole({ column: 'a', text: 'x' })).toEqual({ and: [{ column: 'a', text: 'x' }] });
	expect(checkWhole({ or: [] })).toEqual({ and: [{ or: [] }] });
	const twice = { and: [{ column: 'a', text: 'x' }, { column: 'a', text: 'y' }] };
	expect(checkWhole(twice)).toEqual({ and: [{ column: 'a', text: 'x' },
		{ and: [{ column: 'a', text: 'y' }] }] });
	expect(countConditions(checkWhole(twice))).toBe(2);
	expect(whole(checkWhole(twice))).toEqual({ or: [checkWhole(twice), { or: [] }] });
	expect(whole(EVERYTHING)).toBe(null);
	expect(tidy({ and: [{ or: [{ not: { and: [] } }] }, { column: 'a', in: [] }] })).toBe(null);
	expect(tidy({ and: [{ or: [{ column: 'a', in: [1] }, { and: [] }] }] }))
		.toEqual({ and: [{ or: [{ column: 'a', in: [1] }] }] });
	expect(() => checkFilter({ column: 'a' })).toThrow();
});

it('says filters in words', () => {
	const f: And = { and: [{ column: 'tp', in: [1, 2, 4, 8, null] },
		{ not: { column: 'a', missing: true } },
		{ or: [{ column: '*', text: 'h100' }, { and: [{ column: 't', range: { min: 5 } },
			{ column: 't', range: { min: 1, max: 1 } }] }] }] };
	expect(filterText(f, (c) => c.toUpperCase())).toBe('TP: 1, 2, 4 + 2 and not (A: missing) and '
		+ '(any text: contains “h100” or (T: ≥ 5 and T: 1))');
	expect(conditionText({ column: 'timestamp', range: { max: 0 } })).toBe('≤ 1970-01-01 05:30');
});

const option = (more: Partial<ColumnOption>): ColumnOption => ({ column: 'tp', group: 'server',
	label: 'tp', role: 'parallel', short: 'TP', differs: true, same_as: null, kind: 'number', unit: null,
	better: null, distinct: 3, missing: 2, is_constant: false, min: 1, max: 8, ...more });
const facet = (more: Partial<Facet>): Facet => ({ column: 'tp', distinct: 1, missing: 0, others: 0,
	values: [], ...more });

it('lists what is there, what only others have, and what is selected', () => {
	const all = option({ values: [{ value: 8, count: 5 }, { value: 1, count: 4 },
		{ value: 2, count: 3 }] });
	const now = facet({ values: [{ value: 8, count: 2, selected: false }], missing: 1 });
	const f: And = { and: [{ column: 'tp', in: [16] }] };
	expect(facetRows(all, now, f)).toEqual([
		{ value: 1, count: 0, isSelected: false }, { value: 2, count: 0, isSelected: false },
		{ value: 8, count: 2, isSelected: false }, { value: 16, count: 0, isSelected: true },
		{ value: null, count: 1, isSelected: false }]);
	const none = option({ missing: 0, kind: 'text', values: [{ value: 'b', count: 1 }] });
	expect(facetRows(none, undefined, EVERYTHING)).toEqual([{ value: 'b', count: 0, isSelected: false }]);
});

it('spreads numbers that are too many for a list', () => {
	const bins = [{ from: 0, to: 1, count: 4 }, { from: 1, to: 2, count: 1 }];
	expect(isSpread(option({ histogram: bins }))).toBe(true);
	expect(isSpread(option({}))).toBe(false);
	expect(isSpread(option({ kind: 'mixed', histogram: bins }))).toBe(false);
	expect(endsOf(option({ min: 0, max: 'inf', histogram: bins }))).toEqual([0, 2]);
	expect(endsOf(option({ min: null, max: null }))).toBe(null);
	expect(binsOf(facet({ histogram: bins }))).toBe(bins);
	expect(binsOf(facet({ values: [{ value: 1.5, count: 2, selected: false }] })))
		.toEqual([{ from: 1.5, to: 1.5, count: 2 }]);
});

it('tells columns that differ', () => {
	expect(differing([facet({ column: 'a', distinct: 2 }), facet({ column: 'b' }),
		facet({ column: 'c', missing: 1 }), facet({ column: 'd', distinct: 0, missing: 9 }),
		facet({ column: 'many', distinct: 0, others: 70_000 })]))
		.toEqual(new Set(['a', 'c', 'many']));
});

it('orders by clicks: one way, the other, not at all; shift adds', () => {
	let sort: Sort[] = [];
	sort = nextSort(sort, 'a', false, true);
	expect(sort).toEqual([{ column: 'a', descending: true }]);
	sort = nextSort(sort, 'b', true, false);
	sort = nextSort(sort, 'a', true, true);
	expect(sort).toEqual([{ column: 'a', descending: false }, { column: 'b', descending: false }]);
	sort = nextSort(sort, 'a', true, true);
	expect(sort).toEqual([{ column: 'b', descending: false }]);
	expect(nextSort(nextSort([], 'a', false, false), 'c', false, true))
		.toEqual([{ column: 'c', descending: true }]);
	for (const c of ['c', 'd', 'e', 'g'])
		sort = nextSort(sort, c, true, false);
	expect(sort).toHaveLength(SORTS_MAX);
	expect(sortCodec.read(sortCodec.write(sort))).toEqual(sort);
	expect(sortCodec.write(sortCodec.read(null))).toBe(null);
	expect(sortCodec.read('-,,-b')).toEqual([{ column: 'b', descending: true }]);
	const odd = ['tags.a,b', '-a', '50%'].map((column, i) => ({ column, descending: i > 1 }));
	expect(sortCodec.read(sortCodec.write(odd))).toEqual(odd);
});

it('reads values as somebody types them, and writes them so that they read the same', () => {
	expect(parseValues('1, 2.5,missing, true, abc, "x, y", "7"', 'mixed'))
		.toEqual([1, 2.5, null, true, 'abc', 'x, y', '7']);
	expect(parseValues('1, true', 'text')).toEqual(['1', 'true']);
	expect(parseValues(' , ', undefined)).toEqual([]);
	for (const kind of ['text', 'number', 'mixed', 'bool', undefined] as const)
		for (const values of [['a', 'b,c'], ['say "x", y'], ['1', 'true', 'missing'], [null],
			['a b']])
			expect(parseValues(writeValues(values, kind), kind)).toEqual(values);
	expect(parseValues(writeValues([1, true, -0.5], 'mixed'), 'mixed')).toEqual([1, true, -0.5]);
});

it('reads ends of ranges: numbers, and dates where there are times', () => {
	expect(['5', '-1e3', ' 0 ', 'inf', '-inf', '', 'x', '2026-03-01'].map((t) => parseBound('a', t)))
		.toEqual([5, -1000, 0, 'inf', '-inf', undefined, undefined, undefined]);
	const at = new Date(2026, 2, 1, 14, 5).getTime() / 1000;
	expect(['2026-03-01 14:05', '2026-03-01T08:35Z', '2026-03-01T09:35+01:00', '2026-13-01', String(at)]
		.map((t) => parseBound('timestamp', t))).toEqual([at, at, at, undefined, at]);
	expect(parseBound('timestamp', '2026-03-01')).toBe(new Date(2026, 2, 1).getTime() / 1000);
	for (const v of [at, at + 0.5, 0, 'inf', -3] as const)
		for (const column of ['timestamp', 'a'])
			expect(parseBound(column, writeBound(column, v))).toBe(v);
	expect(writeBound('a', undefined)).toBe('');
});

it('gives a link for an export, unless the filter is too long for one', () => {
	const body = { filter: { and: [] }, shown: 'all', sort: [{ column: 'a', descending: true }],
		columns: ['a', 'b'], format: 'csv' as const };
	expect(exportTarget(body)).toBe('/api/export/csv?format=csv&shown=all&filter=%7B%22and%22%3A%5B%5D%7D'
		+ '&columns=%5B%22a%22%2C%22b%22%5D&sort=-a');
	expect(exportTarget({ ...body, columns: ['x'.repeat(EXPORT_URL_MAX)] })).toBe(null);
	const target = exportTarget({ ...body, columns: ['run_id', 'tags.a,b'] }) ?? '';
	expect(JSON.parse(new URL(target, 'http://x').searchParams.get('columns') ?? ''))
		.toEqual(['run_id', 'tags.a,b']);
	for (const column of ['tags.a,b', '-a'])
		expect(exportTarget({ ...body, sort: [{ column, descending: false }] })).toBe(null);
});

it('lets the handles of a range stop between its ends, also in a short time', () => {
	const from = Date.UTC(2026, 2, 1, 12, 3, 20) / 1000;
	for (const span of [0.5, 40, 40 * 60, 5 * 3600, 30 * 86_400, 3 * 365 * 86_400]) {
		const at = [...Array(101).keys()].map((i) =>
			roundBound('timestamp', from + (span * i) / 100, from, from + span));
		expect(new Set(at).size).toBeGreaterThan(90);
		expect([at[0], at[100]]).toEqual([from, from + span]);
	}
	expect(roundBound('timestamp', from + 4321, from, from + 30 * 86_400) % 3600).toBe(0);
	expect(roundBound('a', 0.30000000000000004, 0, 1)).toBe(0.3);
	expect(roundBound('a', 512.4, 0, 1000)).toBe(512);
});

it('knows which part of a link was refused', () => {
	expect(goneOf('/filter/and/2/not/column')).toEqual({ part: 'filter', at: 2 });
	expect(goneOf('/filter/and/0')).toEqual({ part: 'filter', at: 0 });
	expect(goneOf('/columns/5')).toEqual({ part: 'columns', at: 5 });
	expect(goneOf('/sort/1/column')).toEqual({ part: 'sort', at: 1 });
	for (const other of ['/filter', '/filter/or/1', '/statistics/0', '/limit', '/columns/x', undefined])
		expect(goneOf(other)).toBe(null);
});

const metric = (column: string, better: 'higher' | 'lower' | null): ColumnOption =>
	({ column, better, group: 'metric', kind: 'number', label: column }) as ColumnOption;

it('ranks sound runs only, and calls none the best while rows are missing', () => {
	const options = new Map([metric('rate', 'higher'), metric('ttft', 'lower'), metric('n', null)]
		.map((o) => [o.column, o]));
	const rows = [10, 20, 30, 40, 80].map((rate, i) => ({ id: i, flags: [], values: { rate, n: rate,
		ttft: 100 - rate, verdict: i === 4 ? 'INVALID' : 'VALID', status: 'completed' } }));
	const invalid = new Map([[4, null]]);
	const best = (complete: boolean, column: string): number[] =>
		[...ranksOf(rows, ['rate', 'ttft', 'n'], options, invalid, complete).get(column) ?? []]
			.filter(([, r]) => r.isBest).map(([id]) => id);
	expect(best(true, 'rate')).toEqual([1, 2, 3]);
	expect(best(true, 'ttft')).toEqual([1, 2, 3]);
	expect(best(true, 'n')).toEqual([]);
	expect(best(false, 'rate')).toEqual([]);
	expect(ranksOf(rows, ['rate'], options, invalid, true).get('rate')?.get(0)?.share).toBe(0.25);
	expect(ranksOf(rows, ['rate'], options, invalid, true).get('rate')?.has(4)).toBe(false);
	expect(ranksOf(rows, ['rate'], options, new Map([[4, 'itl,ttft']]), true).get('rate')?.get(4)?.isBest)
		.toBe(true);
	expect(ranksOf(rows.slice(0, 3), ['rate'], options, invalid, true).size).toBe(0);
});

it('doubts a metric, not the run', () => {
	expect(['median_ttft_ms', 'tokens_per_s_per_gpu', 'tokens_per_s_per_user',
		'total_tokens_per_s_per_gpu',
		'p99_itl_ms', 'output_throughput', 'duration'].map(judgedOf)).toEqual(['ttft',
		'output_throughput',
		'tpot', 'total_token_throughput', 'itl', 'output_throughput', undefined]);
	const invalid = new Map<number, string | null>([[1, 'itl,tpot'], [2, null]]);
	expect([[1, 'median_itl_ms'], [1, 'median_ttft_ms'], [1, 'duration'], [2, 'duration'], [3, 'itl']]
		.map(([id, c]) => isInvalid(invalid, id as number, c as string)))
		.toEqual([true, false, false, true, false]);
	expect(usable(EVERYTHING, 'p99_ttft_ms').and.length).toBe(3);
	expect(counting(EVERYTHING, 'ttft').and).toEqual([{ not: { column: 'status', in: ['failed'] } },
		{ not: { and: [{ column: 'verdict', in: ['INVALID'] },
			{ or: [{ column: 'trust.invalid', missing: true },
				{ column: 'trust.invalid', text: 'ttft' }] }] } }]);
	expect(usable({ and: [{ column: 'a', in: [1] }] }, 'duration')).toEqual({ and: [
		{ and: [{ column: 'a', in: [1] }] }, { not: { column: 'status', in: ['failed'] } },
		{ not: { and: [{ column: 'verdict', in: ['INVALID'] },
			{ or: [{ column: 'trust.invalid', missing: true }] }] } },
		{ column: 'duration', range: { min: 1e-9 } }] });
});

it('shows every kind of nothing as a blank cell', () => {
	expect([undefined, null, '', 0, false].map((v) => cellText('server.a', v)))
		.toEqual(['', '', '', '0', 'false']);
	expect(sharesMinute([60, 119, null])).toBe(true);
	expect(sharesMinute([60, 120, undefined])).toBe(false);
});

it('knows parameters from metrics and names', () => {
	const option = (column: string, group: string): ColumnOption =>
		({ column, group, better: null }) as ColumnOption;
	expect([option('server.dtype', 'server'), option('name', 'run'), option('timestamp', 'run'),
		metric('x', 'lower'), undefined].map(isParameter))
		.toEqual([true, false, false, false, false]);
});

it('draws a spread in bars of equal width that hold all rows', () => {
	const sum = (list: number[]): number => Math.round(list.reduce((a, b) => a + b, 0));
	const dense = barsOf(
		[{ from: 6000, to: 6000, count: 36 }, { from: 7500, to: 7500, count: 24 }], 6000, 7500);
	expect(dense).toHaveLength(BARS);
	expect([dense[0], dense[BARS - 1], sum(dense)]).toEqual([36, 24, 60]);
	expect(barsOf([{ from: 0, to: 24, count: 48 }], 0, 24)).toEqual(new Array(BARS).fill(2));
	expect(sum(barsOf([{ from: 5, to: 5, count: 3 }], 5, 5))).toBe(3);
});
