// SPDX-License-Identifier: Apache-2.0
// The sentences that the pages of Plan begin with.
import { expect, it } from 'vitest';
import type { ImpactStep, Scaling } from '../../../web/src/lib/api';
import { calculatedText, impactText, scalingText, type Off } from '../../../web/src/app/pages/plan/sentences';

it('reads the calculator off: most per GPU, and the cheapest', () => {
	const off = (color: string, tokens: number | null, usd: number | null): Off =>
		({ color, tokens, usd, low: 1, high: 9 });
	expect(calculatedText([off('b200', 3413, 0.2), off('h100', 1313, 0.1), off('a100', null, null)], 290))
		.toBe('At 290 tokens/s for each user b200 gives ~3,413 output tokens/s per GPU, 2.6 times '
			+ 'as much as h100. h100 costs least: ~$0.1 per million output tokens.');
	expect(calculatedText([off('', 100, null)], 20))
		.toBe('At 20 tokens/s for each user these runs give ~100 output tokens/s per GPU.');
});

it('compares scaling at the largest size that all series have', () => {
	type Series = Scaling['series'][number];
	const series = (name: string, ...points: [number, number, number][]): Series =>
		({ name, points: points.map(([x, speedup, efficiency]) =>
			({ x, speedup, efficiency })) } as Series);
	const b200 = series('b200', [1, 1, 1], [4, 2.3, 0.58], [8, 2.5, 0.32]);
	expect(scalingText({ series: [b200, series('a100', [1, 1, 1], [4, 3.29, 0.82])] }, 'TP'))
		.toBe('a100 gains 3.3 × from TP 1 → 4 (82 % of the ideal), the best; '
			+ 'b200 gains 2.3 × from TP 1 → 4 (58 % of the ideal), the least.');
	expect(scalingText({ series: [b200] }, 'TP'))
		.toBe('b200 gains 2.5 × from TP 1 → 8 (32 % of the ideal).');
	expect(scalingText({ series: [series('b200', [1, 1, 1])] }, 'TP')).toBe('No series has a speedup.');
});

it('names the parameter that changes the metric most, and those without an effect', () => {
	const step = (column: string, effect: number, ...interval: number[]): ImpactStep =>
		({ column, from: 1, to: 2, effect, interval, pairs: 3 } as unknown as ImpactStep);
	const tp = step('tp', 0.6, 0.5, 0.7), dtype = step('dtype', 0.01, -0.1, 0.1);
	expect(impactText([tp, dtype], 'throughput', (c) => c))
		.toBe('tp 1 → 2 changes throughput most: +60 %, everything else equal. '
			+ 'No effect was found for dtype.');
	expect(impactText([dtype], 'throughput', (c) => c))
		.toBe('No parameter changes throughput beyond the scatter of these runs.');
	expect(impactText([], 'throughput', (c) => c))
		.toBe('These runs do not show what changes throughput: no parameter varies alone.');
});
