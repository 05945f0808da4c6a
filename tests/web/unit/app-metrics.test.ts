// SPDX-License-Identifier: Apache-2.0
// The list of columns that every page chooses from: order, groups, search, and what is hidden.
import { labelled } from '../../../web/src/app/common/notes';
import { choicesOf, groupOf, USUAL_METRICS } from '../../../web/src/app/common/metrics';
import type { ColumnOption } from '../../../web/src/app/query';

const option = (column: string, role: ColumnOption['role'] = 'metric',
	unit: string | null = null): ColumnOption => ({
	column, group: column.includes('.') ? column.slice(0, column.indexOf('.')) : 'metric',
	label: column, role, short: null, differs: true, same_as: null, kind: 'number', unit,
	better: 'lower', distinct: 3, missing: 0, is_constant: false, min: 1, max: 2,
});
const LABELS: Record<string, string> = { median_ttft_ms: 'Median TTFT', p99_ttft_ms: 'P99 TTFT',
	mean_ttft_ms: 'Mean TTFT', p90_ttft_ms: 'P90 TTFT', p50_ttft_ms: 'P50 TTFT',
	median_tpot_ms: 'Median TPOT', mean_itl_ms: 'Mean ITL', output_throughput: 'Output throughput' };
const label = (c: string): string => LABELS[c] ?? c;
const list = (options: ColumnOption[], word = '', present: string[] | null = null, chosen = '') =>
	choicesOf(options, label, word, present && new Set(present), chosen);
const names = (found: ReturnType<typeof list>): Record<string, string[]> =>
	Object.fromEntries(found.groups.map((g) => [g.label, g.items.map((c) => c.column)]));

it('has the ten that are used most first, in a fixed order', () => {
	const found = list([...USUAL_METRICS].reverse().map((c) => option(c)));
	expect(found.groups.map((g) => g.label)).toEqual(['Most used']);
	expect(names(found)['Most used']).toEqual(USUAL_METRICS);
});

it('groups the others by what they are about', () => {
	const groups: [string, ColumnOption['role'], string][] = [
		['total_token_throughput', 'metric', 'Throughput'],
		['output_tokens_per_s_per_slot', 'metric', 'Throughput'],
		['p95_itl_ms', 'metric', 'Latency'], ['avg_latency', 'metric', 'Latency'],
		['usd_per_m_total', 'metric', 'Cost and energy'],
		['tokens_per_s_per_kw', 'metric', 'Cost and energy'],
		['system.j_per_token', 'metric', 'Cost and energy'],
		['system.host.cpus_busy.mean', 'metric', 'System'],
		['system.server.kv_usage.max', 'outcome', 'Server'],
		['steady_state.median_ttft_ms', 'metric', 'Steady state'],
		['client.best_tpot_ms.p99', 'metric', 'Client'], ['trust.skew_ms.max', 'metric', 'Client'],
		['completed', 'metric', 'Other results'],
		['server.max_num_seqs', 'argument', 'Engine arguments'],
		['benchmark.max_concurrency', 'load', 'Load'],
		['server.tensor_parallel_size', 'parallel', 'Parallelism']];
	for (const [column, role, group] of groups)
		expect([column, groupOf({ column, role })]).toEqual([column, group]);
});

it('lists the statistics of one quantity together, the median first', () => {
	const some = ['p90_ttft_ms', 'mean_itl_ms', 'mean_ttft_ms', 'p99_ttft_ms'];
	expect(names(list(some.map((c) => option(c))))).toEqual({ 'Most used': ['p99_ttft_ms'],
		Latency: ['mean_itl_ms', 'mean_ttft_ms', 'p90_ttft_ms'] });
});

it('shows a P50 as the median, once', () => {
	const both = [option('median_ttft_ms'), option('p50_ttft_ms')];
	expect(names(list(both))).toEqual({ 'Most used': ['median_ttft_ms'] });
	expect(names(list([option('p50_ttft_ms')]))).toEqual({ Latency: ['p50_ttft_ms'] });
	expect(names(list(both, '', null, 'p50_ttft_ms'))).toHaveProperty('Latency', ['p50_ttft_ms']);
});

it('finds by label, name, unit and group, all words of it', () => {
	const options = [option('median_ttft_ms', 'metric', 'ms'),
		option('mean_ttft_ms', 'metric', 'ms'), option('output_throughput', 'metric', 'tokens/s'),
		option('system.host.cpus', 'metric', 'CPUs')];
	expect(names(list(options, 'TTFT median'))).toEqual({ 'Most used': ['median_ttft_ms'] });
	expect(names(list(options, 'tokens/s'))).toEqual({ 'Most used': ['output_throughput'] });
	expect(names(list(options, 'latency'))).toEqual({ 'Most used': ['median_ttft_ms'],
		Latency: ['mean_ttft_ms'] });
	expect(names(list(options, 'host cpu'))).toEqual({ System: ['system.host.cpus'] });
	expect(list(options, 'nothing like it').groups).toEqual([]);
});

it('hides what no run has, but never the chosen one', () => {
	const options = ['median_ttft_ms', 'p99_ttft_ms', 'power_w'].map((c) => option(c));
	const found = list(options, '', ['median_ttft_ms'], 'power_w');
	expect(names(found)).toEqual({ 'Most used': ['median_ttft_ms'], 'Cost and energy': ['power_w'] });
	expect(found.hidden).toBe(1);
	expect(list(options, '', null).hidden).toBe(0);
});

it('calls the columns of a note as the page does, and leaves its other words', () => {
	const columns = { of: (c: string) => (c === 'median_ttft_ms' || c === 'run' ? option(c) : undefined),
		measure: (c: string) => ({ column: c, label: 'Median TTFT', unit: 'ms' }) };
	expect(labelled('median_ttft_ms is DEGRADED in 3 of the runs shown; server.gpu, run.', columns))
		.toBe('Median TTFT is DEGRADED in 3 of the runs shown; server.gpu, run.');
});
