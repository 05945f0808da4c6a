// SPDX-License-Identifier: Apache-2.0
// metrics.ts: columns as a list to choose from: the most viewed ones, then groups by subject, and
// the words that find one. Pure.
import type { ColumnOption } from '../query';

export interface Choice { column: string; label: string; unit: string | null }
export interface ChoiceGroup { label: string; items: Choice[] }

/** The metrics of most questions, in this order. */
export const USUAL_METRICS = ['tokens_per_s_per_gpu', 'tokens_per_s_per_user', 'output_throughput',
	'request_throughput', 'median_ttft_ms', 'p99_ttft_ms', 'median_tpot_ms', 'p99_tpot_ms',
	'median_e2el_ms', 'usd_per_m_output'];
const USUAL = 'Most used';

/** Groups of what was measured, in the order in which they are listed. */
const MEASURED = ['Throughput', 'Latency', 'Cost and energy', 'System', 'Steady state', 'Server',
	'Client', 'Other results'];
/** Groups of what was configured, by the column's role. */
const CONFIGURED: Record<ColumnOption['role'], string> = {
	hardware: 'Hardware', engine: 'Engine', version: 'Version', precision: 'Precision',
	parallel: 'Parallelism', load: 'Load', workload: 'Workload', argument: 'Engine arguments',
	provenance: 'Provenance', harness: 'Harness', outcome: 'Other results', metric: 'Other results',
};
const GROUPS = [...MEASURED, ...Object.values(CONFIGURED).filter((g) => !MEASURED.includes(g))];

const BY_NAME: [RegExp, string][] = [
	[/^(steady_state|settled)\./, 'Steady state'],
	[/^usd_|power_|energy|(^|[._])j_per_|per_kwh?$/, 'Cost and energy'],
	[/^system\.server\.|^kv_cache|^server_startup|^prefix_cache|cached_(share|tokens)$|_startup_time$/,
		'Server'],
	[/^(client|trust|failures)\./, 'Client'],
	[/^(system|hardware|host)\./, 'System'],
	[/throughput|_per_s(_|$)|tokens_per_s/, 'Throughput'],
	[/(ttft|tpot|itl|e2el|latency|_ms|_time)/, 'Latency'],
];

export function groupOf({ column, role }: Pick<ColumnOption, 'column' | 'role'>): string {
	if (role !== 'metric' && role !== 'outcome')
		return CONFIGURED[role];
	return BY_NAME.find(([name]) => name.test(column))?.[1] ?? 'Other results';
}

const STATISTICS = ['median', 'mean', 'p50', 'p90', 'p95', 'p99', 'min', 'max', 'std'];

/** Keeps the columns of one quantity together, its median first. */
function order(label: string): [string, number] {
	const words = label.toLowerCase().split(/[ .:_]+/);
	const at = words.findIndex((w) => STATISTICS.includes(w));
	return [words.filter((_, i) => i !== at).join(' '), at < 0 ? -1 : STATISTICS.indexOf(words[at])];
}

function byOrder(a: Choice, b: Choice): number {
	const [x, m] = order(a.label), [y, n] = order(b.label);
	return x < y ? -1 : x > y ? 1 : m - n || (a.column < b.column ? -1 : 1);
}

/** P50 is the median: one name is enough where both are kept. */
function isTwin(column: string, all: ReadonlySet<string>): boolean {
	return /(^|[._])p50_/.test(column) && all.has(column.replace(/p50_/, 'median_'));
}

const plain = (text: string): string => text.toLowerCase().replace(/[_.\-/]/g, ' ');

/**
 * The columns that have all words in their label, name, unit or group, by group. present: columns
 * that some run has; null while unknown. The chosen one is always included.
 */
export function choicesOf(options: ColumnOption[], label: (column: string) => string, word: string,
	present: ReadonlySet<string> | null, chosen: string): { groups: ChoiceGroup[]; hidden: number } {
	const all = new Set(options.map((o) => o.column));
	const kept = options.filter((o) => o.column === chosen || !isTwin(o.column, all));
	const there = kept.filter((o) => o.column === chosen || !present || present.has(o.column));
	const words = plain(word).split(/\s+/).filter((w) => w !== '');
	const groups = new Map<string, Choice[]>([USUAL, ...GROUPS].map((name) => [name, []]));
	for (const o of there) {
		const group = groupOf(o), text = label(o.column);
		const found = plain(`${text} ${o.column} ${o.unit ?? ''} ${group}`);
		if (words.every((w) => found.includes(w)))
			groups.get(USUAL_METRICS.includes(o.column) ? USUAL : group)!
				.push({ column: o.column, label: text, unit: o.unit });
	}
	for (const [name, items] of groups)
		items.sort(name === USUAL ? (a, b) => USUAL_METRICS.indexOf(a.column)
			- USUAL_METRICS.indexOf(b.column) : byOrder);
	return { groups: [...groups].filter(([, items]) => items.length > 0)
		.map(([name, items]) => ({ label: name, items })), hidden: kept.length - there.length };
}
