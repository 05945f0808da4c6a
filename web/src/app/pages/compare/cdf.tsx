// SPDX-License-Identifier: Apache-2.0
// cdf.tsx: the distributions of one latency in a run of each side, in one chart.
import { useState, type ReactNode } from 'react';
import type { RunSketches } from '../../../lib/api';
import { planAxis, titleOf } from '../../charts/axis';
import { useGet } from '../../common/routes';

/** No wider than a narrow screen, where the texts would become too small to read. */
export const widthWithin = (most: number): number => Math.min(most, Math.max(260, innerWidth - 100));

const WIDTH_MOST = 480, HEIGHT = 220, LEFT = 48, RIGHT = 12, TOP = 8, BOTTOM = 30;
const SHARES = [0, 0.25, 0.5, 0.75, 1];

type Sketch = RunSketches['metrics'][number];

const points = (s: Sketch): [number, number][] =>
	s.value.flatMap((v, i) => (v === null ? [] : [[v, s.p[i]] as [number, number]]));

const useSketches = (run: number): ReturnType<typeof useGet<'GET /api/data/experiments/{id}/sketches'>> =>
	useGet('GET /api/data/experiments/{id}/sketches', `/api/data/experiments/${run}/sketches`);

export function Cdf({ runs, names }: { runs: [number, number]; names: [string, string] }): ReactNode {
	const [wanted, setWanted] = useState('ttft_ms');
	const [a, b] = [useSketches(runs[0]), useSketches(runs[1])];
	if (!a.data || !b.data)
		return a.error || b.error ? <p className="dim">The distributions could not be read.</p> : null;
	const both = a.data.metrics.flatMap((m) => {
		const other = b.data.metrics.find((o) => o.key === m.key);
		return other && points(m).length > 1 && points(other).length > 1 ? [[m, other] as const] : [];
	});
	const pair = both.find(([m]) => m.key === wanted) ?? both[0];
	if (!pair)
		return <p className="dim">{[...a.data.missing, ...b.data.missing][0] ?? 'No distribution of both runs.'}</p>;
	const width = widthWithin(WIDTH_MOST), lines = pair.map(points);
	const plan = planAxis(lines.flatMap((l) => l.map(([v]) => v)),
		{ isVertical: false, px: width - LEFT - RIGHT, unit: pair[0].unit });
	const f = plan.scale === 'linear' ? (v: number): number => v : Math.log;
	const x = (v: number): number => LEFT + (f(Math.max(v, plan.min)) - f(plan.min)) / (f(plan.max) - f(plan.min) || 1)
		* (width - LEFT - RIGHT);
	const y = (p: number): number => HEIGHT - BOTTOM - p * (HEIGHT - TOP - BOTTOM);
	return (
		<figure className="cdf multiples-part" aria-label="Distributions">
			<div className="segments" role="group" aria-label="Metric of the distributions">{both.map(([m]) => (
				<button key={m.key} type="button" aria-pressed={m.key === pair[0].key}
					onClick={() => setWanted(m.key)}>{m.label}</button>
			))}</div>
			<svg className="multiple" viewBox={`0 0 ${width} ${HEIGHT}`} role="img"
				aria-label={`${pair[0].label}: share of values up to each, ${names.join(' and ')}`}>
				{SHARES.map((p) => <g key={p}><line className="grid" x1={LEFT} x2={width - RIGHT} y1={y(p)} y2={y(p)} />
					<text x={LEFT - 6} y={y(p) + 4} textAnchor="end">{p * 100} %</text></g>)}
				{plan.ticks.map((v) => <text key={v} x={x(v)} y={HEIGHT - 12} textAnchor="middle">{plan.format(v)}</text>)}
				{lines.map((l, i) => <path key={i} className={`line ${i ? '' : 'dim-side'}`} data-values={l.map(([v]) => v).join(' ')}
					d={l.map(([v, p], k) => `${k ? 'L' : 'M'}${x(v).toFixed(1)} ${y(p).toFixed(1)}`).join('')} />)}
			</svg>
			<figcaption className="dim small-text">Share of values up to {titleOf(pair[0].label, pair[0].unit)}: {names[0]}
				{' '}dashed (run {runs[0]}), {names[1]} solid (run {runs[1]})
				{pair.some((s) => s.is_spoiled) && `; not to be trusted: ${pair.find((s) => s.is_spoiled)?.spoiled_by ?? ''}`}
			</figcaption>
		</figure>
	);
}
