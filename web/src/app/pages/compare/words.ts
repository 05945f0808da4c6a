// SPDX-License-Identifier: Apache-2.0
// words.ts: what a verdict looks like, and which metric leads. Its words are the API's.
import type { Compare, CompareMetric } from '../../../lib/api';
import { count } from '../../show';

export type Tone = 'good' | 'bad' | 'plain';

export function toneOf(verdict: string): Tone {
	return verdict.startsWith('better') ? 'good' : verdict.startsWith('worse') ? 'bad' : 'plain';
}

type Counts = Pick<CompareMetric, 'higher' | 'lower' | 'equal' | 'n_configurations'>;

/** In how many configurations the figure rose and fell. */
export function countsText(m: Counts): string {
	if (!m.n_configurations)
		return '';
	const most = m.higher >= m.lower ? m.higher : m.lower;
	const all = count(m.n_configurations, 'configuration');
	return m.equal === m.n_configurations ? `equal in ${all}`
		: `${m.higher >= m.lower ? 'higher' : 'lower'} in ${most} of ${all}`;
}

/** What leads the page: the metric asked for, or the first with something to say. */
export function headlineOf(metrics: CompareMetric[], wanted: string): CompareMetric | undefined {
	const usual = [
		'output_throughput',
		'request_throughput',
		'total_token_throughput',
		'median_ttft_ms',
	];
	return (
		metrics.find((m) => m.metric === wanted) ??
		usual.map((name) => metrics.find((m) => m.metric === name)).find((m) => m !== undefined) ??
		metrics[0]
	);
}

/** Every note of a comparison once; those of one side name it where there are several. */
export function noticesOf(answer: Pick<Compare, 'notes' | 'comparisons'>): string[] {
	const isMany = answer.comparisons.length > 1;
	return [...new Set([...answer.notes, ...answer.comparisons.flatMap((c) =>
		c.notes.map((n) => (isMany && !n.includes(c.side) ? `${c.side}: ${n}` : n)))])];
}
