// SPDX-License-Identifier: Apache-2.0
// The sentences that the pages of Plan begin with.
import { expect, it } from 'vitest';
import type { CapacityConfiguration, ImpactStep, Scaling } from '../../../web/src/lib/api';
import { isBound, rankedOf } from '../../../web/src/app/pages/plan/slo';
import { calculatedText, impactText, scalingText, type Off } from '../../../web/src/app/pages/plan/sentences';

it('reads the calculator off: most per GPU, and the cheapest', () => {
	const off = (color: string, tokens: number | null, usd: number | null, isMeasured = false): Off =>
		({ color, tokens, usd, isMeasured, low: 350, high: 900 });
	expect(calculatedText([off('b200', 3413, 0.2), off('h100', 1313, 0.1), off('a100', null, null)], 290))
		.toBe('At 290 tokens/s for each user b200 gives ~3,413 output tokens/s per GPU, 2.6 times '
			+ 'as much as h100. h100 costs least: ~$0.1 per million output tokens.');
	expect(calculatedText([off('b200', 2986, 0.2, true), off('h100', 1313, null)], 290))
		.toBe('At 290 tokens/s for each user b200 gives 2,986 output tokens/s per GPU '
			+ '(measured at 350), 2.3 times as much as h100. b200 costs least: '
			+ '$0.2 per million output tokens.');
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
		.toBe('a100 gains most: 3.3 × from TP 1 to 4 (82 % of the ideal). '
			+ 'b200 gains least: 2.3 × from TP 1 to 4 (58 % of the ideal).');
	expect(scalingText({ series: [series('h100', [1, 1, 1], [8, 2.52, 0.323]), b200] }, 'TP'))
		.toBe('Each of the 2 series gains about the same: 2.5 × from TP 1 to 8 (32 % of the ideal).');
	expect(scalingText({ series: [b200] }, 'TP'))
		.toBe('b200 gains 2.5 × from TP 1 to 8 (32 % of the ideal).');
	expect(scalingText({ series: [series('b200', [1, 1, 1])] }, 'TP')).toBe('No series has a speedup.');
});

it('names the parameter that changes the metric most, and those without an effect', () => {
	const step = (column: string, effect: number, ...interval: number[]): ImpactStep =>
		({ column, from: 1, to: 2, effect, interval, pairs: 3 } as unknown as ImpactStep);
	const tp = step('tp', 0.6, 0.5, 0.7), dtype = step('dtype', 0.01, -0.1, 0.1);
	expect(impactText([tp, dtype], 'throughput', (c) => c))
		.toBe('tp 1 → 2 changes throughput most: +60.0 %, everything else equal. '
			+ 'No effect was found for dtype.');
	expect(impactText([{ ...tp, also: ['seqs', 'batched'] }], 'throughput', (c) => c))
		.toBe('tp 1 → 2 changes throughput most: +60.0 %, everything else equal except seqs '
			+ 'and batched.');
	/* A value that runs do not say is none that can be chosen. */
	const unsaid = { ...tp, from: null, effect: -0.9, interval: [-0.95, -0.8] };
	expect(impactText([unsaid, tp], 'throughput', (c) => c))
		.toBe('tp 1 → 2 changes throughput most: +60.0 %, everything else equal.');
	expect(impactText([{ ...tp, from: null }], 'throughput', (c) => c))
		.toBe('tp not set → 2 changes throughput most: +60.0 %, everything else equal.');
	expect(impactText([dtype], 'throughput', (c) => c))
		.toBe('No parameter changes throughput beyond the scatter of these runs.');
	expect(impactText([], 'throughput', (c) => c))
		.toBe('These runs do not show what changes throughput: no parameter varies alone.');
});

it('ranks what is enough, also where a higher load would say more', () => {
	type Row = CapacityConfiguration;
	const of = (name: string, state: string, servers: number, gpus: number | null): Row =>
		({ name, state, servers, gpus: { value: gpus, low: null, high: gpus } } as unknown as Row);
	const found = of('TP8', 'found', 1, 8), bound = of('TP1', 'needs_higher_load', 5, 5);
	const names = (list: Row[]): string[][] => rankedOf(list).map((part) => part.map((c) => c.name));
	expect(names([bound, found, of('TP2', 'needs_higher_load', 4, 8), of('TP4', 'never', 0, null)]))
		.toEqual([['TP1', 'TP8'], ['TP2', 'TP4']]);
	expect(names([bound])).toEqual([['TP1'], []]);
	expect(names([of('TP4', 'one_load', 1, 4), found])).toEqual([['TP4', 'TP8'], []]);
	expect([bound, found, of('x', 'never', 0, null)].map(isBound)).toEqual([true, false, false]);
});
