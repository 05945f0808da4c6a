// SPDX-License-Identifier: Apache-2.0
// interval.tsx: an effect with its interval as a small bar about "no change", and in words.
import type { ReactNode } from 'react';

const WIDTH = 150, HEIGHT = 18;

/** "+5.2 %", "−0.3 %"; of a share, not of a difference of percentages. */
export function percent(v: number | null | undefined, digits = 2): string {
	if (v === null || v === undefined)
		return '–';
	const p = v * 100, size = Math.abs(p);
	const text = size >= 100 ? String(Math.round(size)) : String(Number(size.toPrecision(Math.max(2, digits))));
	return `${p < 0 ? '−' : p > 0 ? '+' : ''}${text} %`;
}

export function intervalText(interval: readonly number[] | null | undefined): string {
	return interval?.length === 2 ? `${percent(interval[0])} to ${percent(interval[1])}` : '';
}

/** How far the bars of a list must reach: the same for all of them, so that they compare. */
export function reachOf(effects: readonly { effect: number | null; interval: number[] | null }[]): number {
	const ends = effects.flatMap((e) => [e.effect ?? 0, ...e.interval ?? []]).map(Math.abs)
		.filter(Number.isFinite).sort((a, b) => a - b);
	const usual = ends[Math.floor((ends.length - 1) * 0.9)] ?? 0;
	return Math.min(2, Math.max(0.05, usual * 1.1));
}

interface Props {
	effect: number | null;
	interval: number[] | null;
	reach: number;
	tone: 'good' | 'bad' | 'plain';
}

export function Interval({ effect, interval, reach, tone }: Props): ReactNode {
	if (effect === null)
		return null;
	const x = (v: number): number =>
		WIDTH / 2 + (Math.max(-reach, Math.min(reach, v)) / reach) * (WIDTH / 2 - 5);
	const isCut = [effect, ...interval ?? []].some((v) => Math.abs(v) > reach);
	return (
		<svg className={`interval ${tone}`} viewBox={`0 0 ${WIDTH} ${HEIGHT}`} width={WIDTH} height={HEIGHT}
			role="img" aria-label={`${percent(effect)} ${intervalText(interval)}`}>
			<line x1={WIDTH / 2} x2={WIDTH / 2} y1="0" y2={HEIGHT} className="zero" />
			{interval?.length === 2 && (
				<rect x={x(interval[0])} width={Math.max(2, x(interval[1]) - x(interval[0]))} y="6" height="6"
					rx="3" className={isCut ? 'bar cut' : 'bar'} />
			)}
			<circle cx={x(effect)} cy={HEIGHT / 2} r="4" className="dot" />
		</svg>
	);
}
