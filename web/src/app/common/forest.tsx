// SPDX-License-Identifier: Apache-2.0
// forest.tsx: a forest plot: a row per effect about "no change", one range for all rows, the same to
// both sides; the axis is the head of the rows' column.
import type { ReactNode } from 'react';
import { intervalText, percent, roundPercent, type Tone } from './interval';

const WIDTH = 260, ROW = 22, HEAD = 26, SIDE = 26;
const REACH_MIN = 0.02, REACH_MAX = 10, TICKS_MAX = 3, FEW = 6, WILD = 3;
/** From this reach on only the ends have room for their numbers. */
const WIDE = 5;

export interface Effect { effect: number | null; interval: number[] | null }
export interface Range { reach: number; step: number }

/**
 * The range of a list's plot, in whole steps of 1, 2 or 5: to the farthest end, unless that is so
 * far beyond nine tenths of the ends that one outlier would flatten the others.
 */
export function rangeOf(effects: readonly Effect[]): Range {
	const ends = effects.flatMap((e) => [e.effect ?? 0, ...e.interval ?? []]).map(Math.abs)
		.filter(Number.isFinite).sort((a, b) => a - b);
	const usual = ends[Math.floor((ends.length - 1) * 0.9)] ?? 0, farthest = ends.at(-1) ?? 0;
	const held = ends.length < FEW || farthest <= WILD * usual ? farthest : usual;
	const wanted = Math.min(REACH_MAX, Math.max(REACH_MIN, held * 1.05));
	const power = 10 ** Math.floor(Math.log10(wanted / TICKS_MAX));
	const step = [1, 2, 5, 10].map((k) => k * power).find((s) => wanted / s <= TICKS_MAX + 1e-9) ?? 10 * power;
	return { reach: Number((Math.ceil(wanted / step - 1e-9) * step).toPrecision(12)), step };
}

export function ticksOf({ reach, step }: Range): number[] {
	const n = Math.round(reach / step);
	return Array.from({ length: 2 * n + 1 }, (_, i) => Number(((i - n) * step).toPrecision(12)));
}

const across = (range: Range, v: number): number =>
	WIDTH / 2 + Math.max(-1, Math.min(1, v / range.reach)) * (WIDTH / 2 - SIDE);

export function ForestAxis({ range }: { range: Range }): ReactNode {
	return (
		<svg className="forest" viewBox={`0 0 ${WIDTH} ${HEAD}`} width={WIDTH} height={HEAD} role="img"
			aria-label={`Axis from ${roundPercent(-range.reach)} to ${roundPercent(range.reach)}`}>
			{ticksOf(range).map((v) => (
				<g key={v}>
					{(v === 0 || Math.abs(v) === range.reach
						|| (range.reach < WIDE && range.reach / range.step < TICKS_MAX - 0.5)) && (
						<text x={across(range, v)} y={14} textAnchor="middle">{v === 0 ? '0' : v < -1 ? '' : roundPercent(v)}</text>)}
					<line x1={across(range, v)} x2={across(range, v)} y1={HEAD - 6} y2={HEAD} className="tick" />
				</g>
			))}
		</svg>
	);
}

/** An end beyond the range is an arrow. */
function Arrow({ range, to }: { range: Range; to: 1 | -1 }): ReactNode {
	const x = across(range, to * range.reach), y = ROW / 2;
	return <path className="dot" data-clipped={to} d={`M${x} ${y - 5}L${x + to * 9} ${y}L${x} ${y + 5}Z`} />;
}

export function ForestRow({ e, range, tone }: { e: Effect; range: Range; tone: Tone }): ReactNode {
	const { effect, interval } = e;
	if (effect === null)
		return null;
	const [low, high] = interval?.length === 2 ? interval : [effect, effect];
	const isBeyond = Math.abs(effect) > range.reach;
	return (
		<svg className={`forest ${tone}`} viewBox={`0 0 ${WIDTH} ${ROW}`} width={WIDTH} height={ROW} role="img"
			data-effect={effect} data-interval={interval?.join(' ') ?? ''}
			aria-label={`${percent(effect)}${interval ? `, interval ${intervalText(interval)}` : ''}`}>
			{ticksOf(range).map((v) => <line key={v} x1={across(range, v)} x2={across(range, v)} y1="0" y2={ROW}
				className={v === 0 ? 'zero' : 'tick'} />)}
			{interval && <rect className="bar" x={across(range, low)} y={ROW / 2 - 3} height="6" rx="1"
				width={Math.max(2, across(range, high) - across(range, low))} />}
			{low < -range.reach && <Arrow range={range} to={-1} />}
			{high > range.reach && <Arrow range={range} to={1} />}
			{!isBeyond && <circle className="dot" cx={across(range, effect)} cy={ROW / 2} r="4.5" />}
		</svg>
	);
}
