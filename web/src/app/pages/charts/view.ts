// SPDX-License-Identifier: Apache-2.0
// view.ts: which view of Charts an address shows, and the texts of the performance chart.
import type { Curves } from '../../../lib/api';
import { titleOf } from '../../charts/axis';
import type { ColumnOption } from '../../query';
import { measured } from '../../show';

export type Name = 'performance' | 'any' | 'distribution' | 'parallel';
export const VIEWS: [Name, string][] = [['performance', 'Performance'], ['any', 'Any two metrics'],
	['distribution', 'Distribution'], ['parallel', 'Parallel coordinates']];
export const USUAL_VIEW: Name = 'performance';
/** Parameters of addresses from before there were views. */
const OWN_OF_ANY = ['g', 'axes', 'brush', 'm', 'join'];

/** Which view an address shows: the one it names, else the one whose parameters it has. */
export function viewOf(search: string): Name {
	const params = new URLSearchParams(search), named = params.get('view');
	if (named === null && OWN_OF_ANY.some((key) => params.has(key)))
		return 'any';
	return VIEWS.find(([name]) => name === named)?.[0] ?? USUAL_VIEW;
}

interface Named { label: string; unit: string | null }

/** The reading line's text: each color's best measured value at it or better. */
export function readingText(answer: Curves, x: Named, y: Named): string {
	const found = answer.reading.filter((r) => r.y !== null);
	if (answer.at === null || !found.length)
		return '';
	const way = answer.x.better === 'lower' ? 'or less' : 'or more';
	return `${titleOf(y.label, y.unit)} at ${measured(answer.at)} ${x.unit ?? x.label} ${way}: `
		+ `${found.map((r) => `${r.color || 'all'} ${measured(r.y ?? 0)}`).join(', ')}.`;
}

/** "+12 %" against the first pin. */
export function againstFirst(v: number, first: number): string {
	if (!Number.isFinite(v / first) || first === 0)
		return '';
	const percent = (v / first - 1) * 100;
	return `${percent < 0 ? '−' : '+'}${Math.abs(percent).toFixed(1)}\u00a0%`;
}

export const pinText = (p: { name: string; ids: number[]; rows: [string, string][] }): string =>
	[p.name, ...p.rows.map(([label, value]) => `${label}\t${value}`),
		`Runs\t${p.ids.join(' ')}`].join('\n');

/** Metrics of the machine, as Y axes in one click: names differ with what was watched. */
const MACHINE: [string, RegExp][] = [
	['GPU utilization', /^system\..*gpu.*util|^system\.avg_gpu_utilization$/],
	['GPU memory', /^system\.peak_gpu_memory_gb$/],
	['GPU power', /^system\..*power.*mean|^system\.power_mean_w$/],
	['Energy per token', /^system\.j_per_token$/],
	['Tokens per joule', /^system\.tokens_per_s_per_w$/],
	['CPU', /^system\.host.*cpus_busy.*mean/],
	['KV cache', /^(system|server_metrics)\..*kv_cache.*(mean|max)|kv_cache_usage/],
];

/** Those that some run in the store has: label and column. */
export function machineMetrics(numbers: ColumnOption[]): [string, string][] {
	return MACHINE.flatMap(([label, pattern]): [string, string][] => {
		const found = numbers.find((c) => pattern.test(c.column));
		return found ? [[label, found.column]] : [];
	});
}
