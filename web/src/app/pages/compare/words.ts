// SPDX-License-Identifier: Apache-2.0
// words.ts: how a verdict is shown, and which metric comes first. The words are the API's.
import type { Compare, Comparison, CompareMetric } from '../../../lib/api';
import { intervalText, percent, type Tone } from '../../common/interval';
import { count } from '../../show';

export function toneOf(verdict: string): Tone {
	return verdict.startsWith('better') ? 'good' : verdict.startsWith('worse') ? 'bad' : 'plain';
}

type Counts = Pick<CompareMetric, 'higher' | 'lower' | 'equal' | 'n_configurations'>;

/** The numbers of configurations in which the metric rose and fell. */
export function countsText(m: Counts): string {
	if (!m.n_configurations)
		return '';
	const most = m.higher >= m.lower ? m.higher : m.lower;
	const all = count(m.n_configurations, 'configuration');
	return m.equal === m.n_configurations ? `equal in ${all}`
		: `${m.higher >= m.lower ? 'higher' : 'lower'} in ${most} of ${all}`;
}

/** Configurations that got better, stayed equal, got worse; null: the metric has no better direction. */
export function sidesOf(m: Pick<CompareMetric, 'higher' | 'lower' | 'equal' | 'better'>):
{ better: number; same: number; worse: number } | null {
	return m.better === 0 ? null : { same: m.equal, better: m.better > 0 ? m.higher : m.lower,
		worse: m.better > 0 ? m.lower : m.higher };
}

const SPEED = /throughput|goodput|per_second|per_s_|_ms$|latency|time/;

/** The names of a metric's two directions: [better, worse]. */
const directionsOf = (m: CompareMetric): [string, string] => (m.better === 0 ? ['higher', 'lower']
	: SPEED.test(m.metric) ? ['faster', 'slower'] : ['better', 'worse']);

/** The answer in one sentence; mainly: where it got worse. */
export function answerOf(c: Comparison, m: CompareMetric, mainly: string | null = null): string {
	const [up, down] = directionsOf(m), n = m.n_configurations;
	const good = m.better < 0 ? m.lower : m.higher, bad = m.better < 0 ? m.higher : m.lower;
	const change = `${percent(m.effect)}${m.interval?.length === 2
		? ` (${Math.round(c.level * 100)} % interval ${intervalText(m.interval)})` : ''}`;
	const all = `${n} matched ${n === 1 ? 'configuration' : 'configurations'}`;
	const counted = (some: number): string => (n === 1 ? '' : ` in ${some} of ${all}`);
	const least = `${Number((m.effect_min * 100).toPrecision(3))} %`;
	switch (m.verdict) {
	case 'not_comparable': return `Not comparable: ${m.reason ?? 'different work was done'}.`;
	case 'not_enough_data':
		return `Not enough data: ${(m.reason ?? m.words).replace(/ of it$/, ' of this metric')}.`;
	case 'no_change': return `${c.side} and ${c.baseline} differ by less than ${least} over ${all}: `
		+ `${change}.`;
	case 'mixed': return `${c.side} is ${up} in ${good}, ${down} in ${bad} of ${all}: ${change}`
		+ `${mainly ? `; mainly ${down} at ${mainly}` : ''}.`;
	default: {
		const isUp = (m.effect ?? 0) * (m.better || 1) > 0;
		const where = mainly && !isUp ? `; most at ${mainly}` : '';
		return `${c.side} is ${isUp ? up : down}${counted(isUp ? good : bad)}: ${change}`
			+ `${m.verdict.endsWith('small') ? `, which is less than ${least}` : ''}${where}.`;
	}
	}
}

/** The metric at the top: the one asked for, or the first with a result. */
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

/** Configurations without a counterpart have their own list, so their number is enough here. */
const shortNotice = (note: string): string =>
	note.replace(/^(\d+ configurations? of .*? without a counterpart in .*?): .*$/s, '$1');

/** The notes for the shown comparison, each once, without notes about groups outside it. */
export function noticesOf(answer: Pick<Compare, 'groups' | 'notes'>, c: Comparison): string[] {
	const others = answer.groups.map((g) => g.name)
		.filter((name) => name !== c.side && name !== c.baseline);
	const isOfOthers = (note: string): boolean =>
		others.some((name) => note.startsWith(`${name} mixes `));
	return [...new Set([...answer.notes.filter((n) => !isOfOthers(n)), ...c.notes].map(shortNotice))];
}

/** "no value is on both sides of max_num_seqs", without the counts before it. */
export const shortReason = (reason: string): string => reason.slice(reason.lastIndexOf('; ') + 1).trim();

/** The reason why all of these metrics have no answer, if it is the same for all. */
export function commonReason(metrics: readonly CompareMetric[]): string | null {
	const [first] = metrics;
	return metrics.length > 1 && metrics.every((m) => m.reason === first.reason)
		? first.reason : null;
}

/** Reasons that some of these metrics share, but not all, each with its metrics. */
export function sharedReasons(metrics: readonly CompareMetric[]): Map<string, CompareMetric[]> {
	const by = new Map<string, CompareMetric[]>();
	for (const m of metrics)
		if (m.reason !== null)
			by.set(m.reason, [...by.get(m.reason) ?? [], m]);
	return new Map([...by].filter(([, list]) => list.length > 1 && list.length < metrics.length));
}

/** The comparison that is shown: the one asked for, else the first that could be made. */
export const shownComparison = (comparisons: readonly Comparison[], group: number): Comparison | undefined =>
	comparisons.find((c) => c.group === group) ?? comparisons.find((c) => !c.refused
		&& c.metrics.some((m) => m.value !== null)) ?? comparisons[0];

/** The group that has most configurations in common with another one; -1: none has any. */
export function bestBaseline(answer: Pick<Compare, 'groups' | 'configurations'>): number {
	const shared = answer.groups.map((_, g) => answer.configurations.filter((c) =>
		c.ids[g]?.length && c.ids.some((ids, other) => other !== g && ids.length)).length);
	const most = Math.max(0, ...shared);
	return most > 0 ? shared.indexOf(most) : -1;
}
