// SPDX-License-Identifier: Apache-2.0
// multiples.tsx: both sides over the load in small panels: a panel per value of one column, in it a
// color per configuration, or per value of one column where these are many. Either the change, or the metric itself with the baseline dim and dashed and
// the other side solid: small changes cannot be seen there.
import { useMemo, useState, type ReactNode } from 'react';
import type { Compare, CompareMetric } from '../../../lib/api';
import { planAxis, titleOf, type Plan } from '../../charts/axis';
import { arrange, cssColour } from '../../colour';
import { Mark } from '../../common/mark';
import type { Columns } from '../../common/columns';
import { percent } from '../../common/interval';
import { measured } from '../../show';
import {
	loadOf, panelColumns, panelsOf, PANELS_MAX, type At, type Configured, type Panel,
} from './configured';

const WIDTH = 300, HEIGHT = 190, LEFT = 48, RIGHT = 10, TOP = 8, BOTTOM = 26;

const place = (p: Plan, v: number): number => {
	const f = p.scale === 'linear' ? (x: number): number => x : Math.log;
	return (f(v) - f(p.min)) / (f(p.max) - f(p.min) || 1);
};

const EFFECT_SEEN = 0.2;
const changeOf = (p: At): number => 100 * (p.b / p.a - 1);

interface PanelProps {
	panel: Panel; x: Plan; y: Plan; sides: [string, string]; load: string; unit: string | null; isChange: boolean;
}

function Drawn({ panel, x, y, sides, load, unit, isChange }: PanelProps): ReactNode {
	const px = (v: number): number => LEFT + place(x, v) * (WIDTH - LEFT - RIGHT);
	const py = (v: number): number => HEIGHT - BOTTOM - place(y, v) * (HEIGHT - TOP - BOTTOM);
	const shown = (p: At): number => (isChange ? changeOf(p) : p.b);
	const path = (points: At[], v: (p: At) => number): string =>
		points.map((p, i) => `${i ? 'L' : 'M'}${px(p.load).toFixed(1)} ${py(v(p)).toFixed(1)}`).join('');
	return (
		<svg className="multiple" viewBox={`0 0 ${WIDTH} ${HEIGHT}`} role="img"
			aria-label={`${panel.name || 'All'}: ${panel.lines.length} configurations over ${load}`}>
			{y.ticks.map((v) => <g key={v}><line x1={LEFT} x2={WIDTH - RIGHT} y1={py(v)} y2={py(v)} className="grid" />
				<text x={LEFT - 6} y={py(v) + 4} textAnchor="end">{y.format(v)}</text></g>)}
			{isChange && <line x1={LEFT} x2={WIDTH - RIGHT} y1={py(0)} y2={py(0)} className="zero" />}
			{x.ticks.map((v) => <text key={v} x={px(v)} y={HEIGHT - 8} textAnchor="middle">{x.format(v)}</text>)}
			{panel.lines.map((l) => <g key={l.name} style={{ color: cssColour(l.color) }}>
				{!isChange && <path className="line dim-side" d={path(l.points, (p) => p.a)} />}
				<path className="line" d={path(l.points, shown)} />
				{l.points.map((p) => <circle key={p.load} cx={px(p.load)} cy={py(shown(p))} r="3.5"
					data-load={p.load} data-sides={`${p.a} ${p.b}`}>
					<title>{`${p.name}\n${sides[0]}: ${measured(p.a)} ${unit ?? ''}\n`
						+ `${sides[1]}: ${measured(p.b)} ${unit ?? ''} (${percent(p.b / p.a - 1)})`}</title></circle>)}
			</g>)}
		</svg>
	);
}

interface Props {
	answer: Compare; m: CompareMetric; sides: [string, string]; columns: Columns; by: Map<string, Configured>;
}

export function Multiples({ answer, m, sides, columns, by }: Props): ReactNode {
	const matched = answer.matched_by, load = loadOf(matched);
	const choices = useMemo(() => panelColumns(matched, m.configurations.flatMap((c) =>
		by.get(c.configuration) ?? [])), [matched, m, by]);
	const [chosen, setChosen] = useState<number | null>(null);
	const [wanted, setWanted] = useState<boolean | null>(null);
	const isChange = wanted ?? Math.abs(m.effect ?? 0) < EFFECT_SEEN;
	const column = chosen !== null && choices.includes(chosen) ? chosen : choices[0] ?? -1;
	const panels = useMemo(() => panelsOf(matched, by, m, column), [matched, by, m, column]);
	const names = [...new Set(panels.flatMap((p) => p.lines.map((l) => l.color)))].sort((a, b) =>
		a.localeCompare(b, undefined, { numeric: true }));
	const isShared = panels.some((p) => p.lines.some((l) => l.color !== l.name));
	const points = panels.flatMap((p) => p.lines.flatMap((l) => l.points));
	if (load < 0 || new Set(points.map((p) => p.load)).size < 2)
		return null;
	arrange(names);
	const measure = columns.measure(m.metric), loadName = columns.measure(matched[load]).label;
	const x = planAxis(points.map((p) => p.load), { isVertical: false, px: WIDTH - LEFT - RIGHT,
		scale: points.every((p) => p.load > 0) ? 'log2' : 'linear' });
	const valuesOf = (list: At[]): number[] => (isChange ? [0, ...list.map(changeOf)]
		: list.flatMap((p) => [p.a, p.b]));
	/* Changes are compared across panels; the metric has another size in each. */
	const planOf = (list: At[]): Plan => planAxis(valuesOf(isChange ? points : list), { isVertical: true,
		px: HEIGHT - TOP - BOTTOM, from: isChange ? undefined : 'zero', ...isChange ? { scale: 'linear' as const, unit: null }
			: { unit: m.unit } });
	return (
		<section className="multiples-part" aria-label="Over the load">
			<div className="card-head">
				<h3>{isChange ? `Change of ${measure.label} (%)` : titleOf(measure.label, m.unit)} over {loadName}</h3>
				<div className="segments" role="group" aria-label="Y axis">
					{[true, false].map((is) => <button key={String(is)} type="button" aria-pressed={isChange === is}
						onClick={() => setWanted(is)}>{is ? 'Change' : 'Metric'}</button>)}
				</div>
				{choices.length > 1 && (
					<label className="pick"><span>Panel per</span>
						<select value={column} onChange={(e) => setChosen(Number(e.target.value))}>
							{choices.map((c) => <option key={c} value={c}>{columns.measure(matched[c]).label}</option>)}
						</select></label>
				)}
			</div>
			<div className="multiples">{panels.slice(0, PANELS_MAX).map((panel) => (
				<figure key={panel.name}>
					{panel.name && <figcaption>{panel.name}</figcaption>}
					<Drawn panel={panel} x={x} sides={sides} load={loadName} unit={m.unit}
						isChange={isChange} y={planOf(panel.lines.flatMap((l) => l.points))} />
				</figure>
			))}</div>
			<ul className="legend" aria-label="Lines">
				{!isChange && [' dim-side', ''].map((look, i) => (
					<li key={look}><svg width="26" height="10" aria-hidden="true"><path className={`line${look}`}
						d="M0 5H26" /></svg> {sides[i]}</li>
				))}
				{names.length > 1 && names.map((name) => (
					<li key={name}><Mark form={0} colour={cssColour(name)} /> {name}</li>
				))}
				{isShared && <li className="dim">a line per configuration</li>}
			</ul>
		</section>
	);
}
