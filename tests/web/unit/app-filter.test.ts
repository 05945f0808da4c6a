// SPDX-License-Identifier: Apache-2.0
import {
	asked, checkFilter, checkWhole, conditionOn, countConditions, EVERYTHING, onlyValue, selectedValues,
	tidy, toggleValue, whole, withCondition, withoutPart, withRange, type And,
} from '../../../web/src/app/filter';
import {
	binsOf, conditionText, differing, endsOf, exportTarget, EXPORT_URL_MAX, facetRows, filterText,
	goneOf, isSpread, nextSort, parseBound, parseValues, sortCodec, SORTS_MAX, writeBound, writeValues,
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
	expect(whole(checkWhole(twice))).toEqual({ or: [checkWhole(twice)] });
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
	expect(conditionText({ column: 'timestamp', range: { max: 0 } })).toBe('≤ 1970-01-01 00:00');
});

const option = (more: Partial<ColumnOption>): ColumnOption => ({ column: 'tp', group: 'server',
	label: 'tp', kind: 'number', unit: null, better: null, distinct: 3, missing: 2, is_constant: false,
	min: 1, max: 8, ...more });
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
		facet({ column: 'c', missing: 1 }), facet({ column: 'd', distinct: 0, missing: 9 })]))
		.toEqual(new Set(['a', 'c']));
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
	const at = Date.UTC(2026, 2, 1, 14, 5) / 1000;
	expect(['2026-03-01 14:05', '2026-03-01T14:05Z', '2026-03-01T15:05+01:00', '2026-13-01', String(at)]
		.map((t) => parseBound('timestamp', t))).toEqual([at, at, at, undefined, at]);
	expect(parseBound('timestamp', '2026-03-01')).toBe(Date.UTC(2026, 2, 1) / 1000);
	for (const v of [at, at + 0.5, 0, 'inf', -3] as const)
		for (const column of ['timestamp', 'a'])
			expect(parseBound(column, writeBound(column, v))).toBe(v);
	expect(writeBound('a', undefined)).toBe('');
});

it('gives a link for an export, unless the filter is too long for one', () => {
	const body = { filter: { and: [] }, shown: 'all', sort: [{ column: 'a', descending: true }],
		columns: ['a', 'b'], format: 'csv' as const };
	expect(exportTarget(body)).toBe('/api/export/csv?format=csv&shown=all&filter=%7B%22and%22%3A%5B%5D%7D'
		+ '&columns=a%2Cb&sort=-a');
	expect(exportTarget({ ...body, columns: ['x'.repeat(EXPORT_URL_MAX)] })).toBe(null);
});

it('knows which part of a link was refused', () => {
	expect(goneOf('/filter/and/2/not/column')).toEqual({ part: 'filter', at: 2 });
	expect(goneOf('/filter/and/0')).toEqual({ part: 'filter', at: 0 });
	expect(goneOf('/columns/5')).toEqual({ part: 'columns', at: 5 });
	expect(goneOf('/sort/1/column')).toEqual({ part: 'sort', at: 1 });
	for (const other of ['/filter', '/filter/or/1', '/statistics/0', '/limit', '/columns/x', undefined])
		expect(goneOf(other)).toBe(null);
});
