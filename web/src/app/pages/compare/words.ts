// SPDX-License-Identifier: Apache-2.0
// words.ts: verdicts as sentences.
import type { CompareDelta, CompareMetric } from '../../../lib/api';
import { count } from '../../show';

export type Verdict = CompareDelta['verdict'];
export type Tone = 'good' | 'bad' | 'plain';

export function toneOf(verdict: string): Tone {
	return verdict === 'better' ? 'good' : verdict === 'worse' ? 'bad' : 'plain';
}

export function verdictText(d: Pick<CompareDelta, 'verdict' | 'needed'>): string {
	switch (d.verdict as string) {
		case 'better':
			return 'better';
		case 'worse':
			return 'worse';
		case 'changed':
			return 'changed';
		case 'missing':
			return 'missing';
		case 'not enough data':
			return d.needed
				? `not enough data: needs ${count(d.needed, 'repeat')} a side`
				: 'not enough data';
		default:
			return 'no evidence of a difference';
	}
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
		metrics.find((m) => m.column === wanted) ??
		usual.map((name) => metrics.find((m) => m.column === name)).find((m) => m !== undefined) ??
		metrics[0]
	);
}
