// SPDX-License-Identifier: Apache-2.0
// answers.ts: conversations, constrained answers and priorities in a run's document. A result file
// has these members itself, the document of an experiment below "results".
import { measured } from '../../show';
import type { Sessions, Turn } from '../../../lib/turns';

export interface Correctness {
	requests: number;
	constrained: number;
	scored: number;
	constrained_correct_rate: number | null;
	unconstrained_correct_rate: number | null;
	wrong: [string, number][];
}

export interface Spread { n: number; mean: number; p50: number; p99: number; max: number }

/** The requests of one priority. */
export interface PriorityClass {
	priority: number;
	requests: number;
	completed: number;
	failed: number;
	[key: string]: number | Spread | null;
}

export interface Answers {
	turns: Turn[];
	sessions: Sessions | null;
	correctness: Correctness | null;
	classes: PriorityClass[];
}

type Tree = Record<string, unknown>;
const isTree = (v: unknown): v is Tree => typeof v === 'object' && v !== null && !Array.isArray(v);
const list = (v: unknown): Tree[] => (Array.isArray(v) ? v.filter(isTree) : []);

function correctnessOf(v: unknown): Correctness | null {
	if (!isTree(v) || typeof v['requests'] !== 'number')
		return null;
	const wrong = isTree(v['wrong']) ? Object.entries(v['wrong']) : [];
	return { ...v as unknown as Correctness,
		wrong: wrong.filter((w): w is [string, number] => typeof w[1] === 'number' && w[1] > 0) };
}

export function answersOf(document: unknown): Answers {
	const whole = isTree(document) ? document : {};
	const result = isTree(whole['results']) ? whole['results'] : whole;
	const ours = isTree(result['profllm']) ? result['profllm'] : {};
	return {
		turns: list(result['per_turn_metrics']).filter((t) => typeof t['turn_index'] === 'number') as
			unknown as Turn[],
		sessions: isTree(result['sessions']) ? result['sessions'] as unknown as Sessions : null,
		correctness: correctnessOf(ours['correctness']),
		classes: list(ours['priorities']) as unknown as PriorityClass[],
	};
}

/** Why an answer is wrong; names of src/client/record/record.h. */
export const WRONG: Record<string, string> = {
	parse: 'No JSON',
	schema: 'JSON that its schema forbids',
	no_match: 'No match of the pattern, choice or grammar',
	truncated: 'Cut off by the token limit',
};

const share = (v: number): string => `${Number(v.toFixed(1))} %`;

/** "196 of 200 constrained answers are correct (98 %)." and further sentences. */
export function correctnessSentence(c: Correctness): string {
	if (c.constrained_correct_rate === null)
		return `None of ${c.constrained} constrained answers was scored.`;
	const correct = Math.round((c.constrained_correct_rate / 100) * c.scored);
	const free = c.unconstrained_correct_rate;
	return `${correct} of ${c.scored} constrained answers that were scored are correct `
		+ `(${share(c.constrained_correct_rate)})`
		+ (free === null ? '.' : `; without the constraint ${share(free)} are.`);
}

export function spreadOf(c: PriorityClass, key: string): Spread | null {
	const v = c[key];
	return isTree(v) ? v as unknown as Spread : null;
}

/** How much longer the class that is served last waits than the one that is served first. */
export function classSentence(classes: PriorityClass[]): string {
	const first = classes[0], last = classes[classes.length - 1];
	if (!first || first === last)
		return '';
	const a = spreadOf(first, 'ttft_ms'), b = spreadOf(last, 'ttft_ms');
	if (!a || !b || a.p50 <= 0)
		return '';
	return `The median TTFT of priority ${last.priority} is ${measured(b.p50)} ms, `
		+ `${Number((b.p50 / a.p50).toPrecision(3))} times that of priority ${first.priority} `
		+ `(${measured(a.p50)} ms). A lower number is served earlier.`;
}

export const CLASS_TIMES: [string, string][] = [['ttft_ms', 'TTFT'], ['tpot_ms', 'TPOT'],
	['e2el_ms', 'E2EL'], ['queue_ms', 'Queue']];

/** Of the times that any class has. */
export function classTimes(classes: PriorityClass[]): [string, string][] {
	return CLASS_TIMES.filter(([key]) => classes.some((c) => spreadOf(c, key) !== null));
}
