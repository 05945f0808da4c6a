// SPDX-License-Identifier: Apache-2.0
import { answersOf, classSentence, classTimes, correctnessSentence } from
	'../../../web/src/app/pages/run/answers';
import { highest, type Turn } from '../../../web/src/lib/turns';

const turn = (more: object): Turn[] => [{ turn_index: 0, num_samples: 1, completed: 1, failed: 0, ...more }];

it('takes p99 for the band, else the highest percentile above the median', () => {
	expect(highest(turn({ p50_ttft_ms: 1, p99_ttft_ms: 2, 'p99.9_ttft_ms': 3 }))).toBe('p99');
	expect(highest(turn({ p50_ttft_ms: 1, p90_ttft_ms: 2, p75_ttft_ms: 3 }))).toBe('p90');
	expect(highest(turn({ p50_ttft_ms: 1 }))).toBe('');
});

it('finds what a result says of its answers, and what the document of an experiment does', () => {
	const result = { sessions: { n: 2 }, per_turn_metrics: turn({}), profllm: {
		correctness: { requests: 4, scored: 3, wrong: { schema: 1, parse: 0 } },
		priorities: [{ priority: 0 }, { priority: 5 }] } };
	for (const document of [result, { config: {}, results: result }]) {
		const a = answersOf(document);
		expect([a.turns.length, a.sessions?.n, a.classes.length]).toEqual([1, 2, 2]);
		expect(a.correctness?.wrong).toEqual([['schema', 1]]);
	}
	const nothing = { turns: [], sessions: null, correctness: null, classes: [] };
	for (const document of [null, 'text', {}, { profllm: { correctness: null } },
		{ per_turn_metrics: 3 }])
		expect(answersOf(document)).toEqual(nothing);
});

it('says how many answers are correct', () => {
	const c = { requests: 300, constrained: 200, scored: 199, constrained_correct_rate: 196 / 1.99,
		unconstrained_correct_rate: 40, wrong: [] };
	expect(correctnessSentence(c)).toBe('196 of 199 constrained answers that were scored are correct '
		+ '(98.5 %); without the constraint 40 % are.');
	expect(correctnessSentence({ ...c, unconstrained_correct_rate: null })).toMatch(/\(98\.5 %\)\.$/);
	expect(correctnessSentence({ ...c, constrained_correct_rate: null }))
		.toBe('None of 200 constrained answers was scored.');
});

it('says what the class that is served last waits for', () => {
	const of = (priority: number, p50: number) => ({ priority, requests: 9, completed: 9, failed: 0,
		ttft_ms: { n: 9, mean: p50, p50, p99: p50 * 2, max: p50 * 3 }, queue_ms: null });
	expect(classSentence([of(0, 20), of(5, 50)])).toBe('The median TTFT of priority 5 is 50 ms, '
		+ '2.5 times that of priority 0 (20 ms). A lower number is served earlier.');
	expect(classTimes([of(0, 20), of(5, 50)]).map(([, name]) => name)).toEqual(['TTFT']);
	expect([classSentence([of(0, 20)]), classSentence([])]).toEqual(['', '']);
});
