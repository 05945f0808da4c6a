// SPDX-License-Identifier: Apache-2.0
// sentences.ts: the answers that the views of Plan begin with.
import type { ImpactStep, Scaling } from '../../../lib/api';
import { percent } from '../../common/interval';
import { given, measured, showValue } from '../../show';

const STILL_NAMED = 4;

/**
 * What is read off the frontier of a color at one speed. isMeasured: the slowest configuration of
 * the frontier is faster than that, and these are its own values.
 */
export interface Off {
	color: string; tokens: number | null; usd: number | null; isMeasured: boolean;
	/** The speeds that were measured on its frontier. */
	low: number | null; high: number | null;
}

/** "~1,313" is interpolated, "1,313" was measured. */
export const offText = (r: Off, v: number): string => `${r.isMeasured ? '' : '~'}${measured(v)}`;

/** Which gives most per GPU at this speed, and which is cheapest where prices are known. */
export function calculatedText(rows: readonly Off[], speed: number): string {
	const [first, second] = rows.filter((r) => r.tokens !== null);
	const cheapest = rows.filter((r) => r.usd !== null).sort((a, b) => a.usd! - b.usd!).at(0);
	const ratio = second?.tokens && first.tokens ? first.tokens / second.tokens : null;
	const price = (r: Off): string => `${r.isMeasured ? '' : '~'}$${measured(r.usd!)}`;
	return `At ${measured(speed)} tokens/s for each user ${first.color || 'these runs'} `
		+ `give${first.color ? 's' : ''} ${offText(first, first.tokens!)} output tokens/s per GPU`
		+ `${first.isMeasured && first.low !== null ? ` (measured at ${measured(first.low)})` : ''}`
		+ `${ratio === null ? '' : `, ${ratio.toFixed(1)} times as much as ${second.color}`}.`
		+ `${cheapest ? ` ${cheapest.color || 'These runs'} cost${cheapest.color ? 's' : ''} least: `
			+ `${price(cheapest)} per million output tokens.` : ''}`;
}

const LEVEL = 0.02; // series that differ by less gain alike

/** Which series gains most from the largest size that all of them have, and which least. */
export function scalingText(answer: Pick<Scaling, 'series'>, by: string): string {
	const drawn = answer.series.filter((s) => s.points.length > 1);
	const sizes = drawn.map((s) => s.points.map((p) => p.x));
	const shared = (sizes[0] ?? []).filter((x) => sizes.every((list) => list.includes(x))).at(-1);
	const ends = drawn.flatMap((s) => {
		const first = s.points[0];
		const last = s.points.find((p) => p.x === shared && p !== first)
			?? s.points[s.points.length - 1];
		return last.efficiency === null || last.speedup === null ? [] : [{
			name: s.name || 'All runs', from: first.x, to: last.x, speedup: last.speedup,
			efficiency: last.efficiency }];
	}).sort((a, b) => b.efficiency - a.efficiency);
	const text = (o: (typeof ends)[number], how = ''): string =>
		`${o.name} gains ${how}${o.speedup.toFixed(1)} × from ${by} `
		+ `${given(o.from)} to ${given(o.to)} (${Math.round(o.efficiency * 100)} % of the ideal).`;
	if (!ends.length)
		return 'No series has a speedup.';
	const [best, worst] = [ends[0], ends[ends.length - 1]];
	if (ends.length > 1 && worst.efficiency >= (1 - LEVEL) * best.efficiency
		&& ends.every((o) => o.from === best.from && o.to === best.to))
		return text({ ...best, name: `Each of the ${ends.length} series` }, 'about the same: ');
	return ends.length === 1 ? text(best) : `${text(best, 'most: ')} ${text(worst, 'least: ')}`;
}

/** A value of a step; runs that do not say which value they had. */
export const stepValue = (column: string, v: ImpactStep['from']): string =>
	(v === null ? 'not set' : showValue(column, v));

/**
 * What changes the metric most, and what does not change it; from the steps, the largest first. A
 * step between two values precedes one from runs without a value, which users cannot choose.
 */
export function impactText(list: ImpactStep[], metric: string, label: (column: string) => string): string {
	const isSure = (s: ImpactStep): boolean => (s.interval ? s.interval[0] * s.interval[1] > 0 : false);
	const most = list.find((s) => isSure(s) && s.from !== null && s.to !== null) ?? list.find(isSure);
	const others = list.filter((s) => !list.some((o) => o.column === s.column && isSure(o)));
	const still = [...new Set(others.map((s) => label(s.column)))];
	if (!most)
		return list.length ? `No parameter changes ${metric} beyond the scatter of these runs.`
			: `These runs do not show what changes ${metric}: no parameter varies alone.`;
	const step = `${stepValue(most.column, most.from)} → ${stepValue(most.column, most.to)}`;
	const also = (most.also ?? []).map(label).join(' and ');
	return `${label(most.column)} ${step} changes ${metric} most: ${percent(most.effect)}, `
		+ `everything else equal${also ? ` except ${also}` : ''}.${still.length
			? ` No effect was found for ${still.slice(0, STILL_NAMED).join(', ')}.` : ''}`;
}
