// SPDX-License-Identifier: Apache-2.0
import { shortNames, shortValue, type Named } from '../../../web/src/app/pages/runs/names';
import { isListed, suggestions } from '../../../web/src/app/pages/runs/panel';
import { since, toggled } from '../../../web/src/app/pages/runs/quick';
import { idsOf, isJudged, linesOf, metricFirst, spreadText } from '../../../web/src/app/pages/runs/view';
import type { ColumnOption, Facet } from '../../../web/src/app/query';
import type { Values } from '../../../web/src/app/api';

const row = (id: number, name: string | null, values: Values = {}): Named =>
	({ id, name, kind: 'serve', values });
const names = (rows: Named[], shown: string[] = []): string[] => [...shortNames(rows, shown).values()];

const GPUS = ['h100-80gb', 'h200-141gb', 'a100-80gb', 'mi300x-192gb', 'b200-192gb'];
const TP = 'server.tensor_parallel_size', C = 'benchmark.max_concurrency';
const grid = (): Named[] => GPUS.flatMap((gpu, g) => [1, 2, 4, 8].flatMap((tp, t) =>
	[1, 2, 4, 8, 16, 32, 64].map((c, k) => row(100 * g + 10 * t + k,
		`gpu=${gpu}-tensor_parallel_size=${tp}-max_concurrency=${c}`,
		{ 'server.gpu': gpu, [TP]: tp, [C]: c }))));

it('shows the first metric next to the names on a phone', () => {
	const option = (column: string, group: string): [string, ColumnOption] =>
		[column, { column, group, kind: 'number' } as ColumnOption];
	const options = new Map([option(C, 'benchmark'), option('median_ttft_ms', 'metric')]);
	expect(metricFirst(['verdict', C, 'median_ttft_ms'], options))
		.toEqual(['median_ttft_ms', 'verdict', C]);
	expect(metricFirst(['verdict', C], options)).toEqual(['verdict', C]);
});

it('leaves out a column of verdicts that is empty', () => {
	const facet = (column: string, missing: number, ...values: string[]): Facet => ({ column, missing,
		others: 0, distinct: values.length,
		values: values.map((value) => ({ value, count: 1, selected: false })) });
	const is = (...counts: Facet[]): boolean => isJudged(counts, 100, new Map());
	expect(is(facet('verdict', 99, 'VALID'), facet('status', 0, 'completed'))).toBe(false);
	expect(is(facet('verdict', 99, 'INVALID'), facet('status', 0, 'completed'))).toBe(true);
	expect(is(facet('verdict', 90, 'VALID'), facet('status', 0, 'completed'))).toBe(true);
	expect(is(facet('verdict', 100), facet('status', 0, 'completed', 'failed'))).toBe(true);
	expect(is(facet('verdict', 100), facet('status', 0, 'completed'))).toBe(false);
	expect(isJudged(undefined, 0, new Map([['verdict', { distinct: 1 } as ColumnOption]]))).toBe(true);
});

it('splits names with keys before each key, whatever their values hold', () => {
	const list = names(grid());
	expect(list).toContain('b200 TP4 c64');
	expect(new Set(list).size).toBe(140);
});

it('falls back to the short forms where every part is shown as a column', () => {
	const list = names(grid(), ['server.gpu', TP, C]);
	expect(list).toContain('mi300x TP8 c1');
	expect(new Set(list).size).toBe(140);
});

it('keeps the memory of a GPU where it tells two of them apart', () => {
	expect(names([row(1, 'gpu=h100-80gb'), row(2, 'gpu=h100-94gb')])).toEqual(['h100-80gb', 'h100-94gb']);
});

it('keeps of long values what tells them apart, and drops what a column shows under another name', () => {
	const rows = ['meta-llama/Llama-3.1-8B-Instruct',
		'meta-llama/Llama-3.1-70B-Instruct'].flatMap((model, m) =>
		['h100-80gb', 'b200-192gb'].map((gpu, g) => row(2 * m + g,
			`model=${model}-gpu=${gpu}-tensor_parallel_size=2`,
			{ gpu_model: gpu })));
	expect(names(rows)).toEqual(['8B h100', '8B b200', '70B h100', '70B b200']);
	expect(names(rows, ['gpu_model'])).toEqual(['8B', '8B', '70B', '70B']);
	expect(names([row(1, 'model=a-b-1-c'), row(2, 'model=a-b-2-c')])).toEqual(['a-b-1-c', 'a-b-2-c']);
});

it('keeps the word before a number', () => {
	expect(names([row(1, 'commit-01'), row(2, 'commit-02')])).toEqual(['commit 01', 'commit 02']);
});

it('drops a part only where its place repeats a shown column in every row', () => {
	const nightly = [24, 8].flatMap((n, i) => [8, 32].map((c, k) =>
		row(10 * i + k, `nightly-${n}-c${c}`, { [C]: c })));
	expect(names(nightly, [C])).toEqual(['nightly 24', 'nightly 24', 'nightly 8', 'nightly 8']);
	expect(names(nightly, [])).toEqual([
		'nightly 24 c8', 'nightly 24 c32', 'nightly 8 c8', 'nightly 8 c32']);
});

it('drops what all rows share, and the folders of values', () => {
	expect(names([row(1, 'model=meta-llama/Llama-8B-dtype=fp8-seed=0'),
		row(2, 'model=meta-llama/Llama-70B-dtype=fp8-seed=0')])).toEqual(['Llama-8B', 'Llama-70B']);
	expect(names([row(1, 'big_run_a100'), row(2, 'big_run_h100')])).toEqual(['a100', 'h100']);
});

it('names a run alone by all of its name, one without a name by kind and number', () => {
	expect(names([row(7, 'my_run-3')])).toEqual(['my run 3']);
	expect(names([row(290, null)])).toEqual(['serve 290']);
	expect([...shortNames([{ ...row(3, ''), kind: null }], []).values()]).toEqual(['run 3']);
	expect(names([row(1, 'same'), row(2, 'same')])).toEqual(['same', 'same']);
});

it('uses columns that differ where rows of one name have nothing else', () => {
	expect(names([row(1, 'same', { [TP]: 1, 'a.b': 'x' }), row(2, 'same', { [TP]: 2, 'a.b': 'x' })],
		[TP, 'a.b'])).toEqual(['TP1', 'TP2']);
});

it('never cuts inside a part', () => {
	const [first] = names([row(1, 'alpha beta gamma delta epsilon zeta'), row(2, 'one two')]);
	expect(first).toBe('alpha beta gamma … zeta');
	expect(names([row(1, 'a'.repeat(40)), row(2, 'b')])[0]).toBe('a'.repeat(40));
});

it('writes values as people do', () => {
	expect([shortValue('benchmark.request_rate', 8), shortValue('request_rate', 'inf'),
		shortValue('server.enforce_eager', true), shortValue('enforce_eager', 'false'),
		shortValue('server.swap', 4), shortValue('server.dtype', 'fp8'),
		shortValue('server.enable_prefix_caching', true), shortValue('enable_prefix_caching', false)])
		.toEqual(['8/s', 'inf', 'enforce eager', 'no enforce eager', 'swap 4', 'fp8',
			'prefix caching on',
			'prefix caching off']);
});

it('lists the repeats of rows that are open below them, with the spread in percent', () => {
	const run = (id: number, v: number) => ({ id, flags: [], values: { median_ttft_ms: v } });
	const folded = { ...run(3, 110), n: 2, ids: [3, 1], spread: { median_ttft_ms: 5.5 } };
	const lines = linesOf([folded, run(2, 7)], new Map([[3, [run(3, 115.5), run(1, 104.5)]]]));
	expect(lines.map((l) => [l.id, l.isMember ?? false])).toEqual(
		[[3, false], [3, true], [1, true], [2, false]]);
	expect(idsOf(folded)).toEqual([3, 1]);
	expect(idsOf(run(2, 7))).toEqual([2]);
	expect(spreadText(folded, 'median_ttft_ms')).toBe('±5.0 %');
	expect(spreadText({ ...folded, spread: { median_ttft_ms: 22 } }, 'median_ttft_ms')).toBe('±20 %');
	expect(spreadText(run(2, 7), 'median_ttft_ms')).toBe('');
});

it('turns quick filters on and off, next to others', () => {
	const day = since(1_000_000, 86_400), failed = { column: 'status', in: ['failed'] };
	expect(day).toEqual({ column: 'timestamp', range: { min: 910_800 } });
	const both = toggled(toggled({ and: [] }, day), failed);
	expect(both).toEqual({ and: [day, failed] });
	expect(toggled(both, day)).toEqual({ and: [failed] });
	expect(toggled(both, since(1_000_000, 7 * 86_400)).and).toHaveLength(2);
});

it('suggests parameters that differ, once, and not how the client works', () => {
	const option = (column: string, role: ColumnOption['role'], same_as: string | null = null) => ({
		column, group: column.slice(0, column.indexOf('.')), label: column, role, short: null,
		differs: true, same_as, kind: 'number', unit: null, better: null, distinct: 30, missing: 0,
		is_constant: false, min: 0, max: 9 }) as ColumnOption;
	const items = [option('benchmark.seed', 'harness'), option('server.max_num_seqs', 'argument'),
		option('gpu_model', 'hardware'), option('hardware.gpu', 'hardware', 'gpu_model'),
		option('output_throughput', 'metric'), option('hardware.cpu.clock_mhz', 'provenance')];
	expect(suggestions(items, { and: [] })).toEqual(['server.max_num_seqs', 'gpu_model']);
	expect(suggestions(items, { and: [{ column: 'benchmark.seed', in: [1] }] })).toEqual(
		['server.max_num_seqs', 'gpu_model', 'benchmark.seed']);
	expect(items.filter(isListed).map((o) => o.column)).toEqual(['server.max_num_seqs', 'gpu_model',
		'hardware.gpu', 'output_throughput']);
});
