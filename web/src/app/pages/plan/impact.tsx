// SPDX-License-Identifier: Apache-2.0
// impact: which parameter moves a metric, with caution: confounded ones are named.
import { useState, type ReactNode } from 'react';
import type { ImpactParameter, ImpactStep } from '../../../lib/api';
import { Pick } from '../../common/pick';
import { firstOf, RATE_COLUMNS, LATENCY_COLUMNS, type Columns } from '../../common/columns';
import { ForestAxis, ForestRow, rangeOf } from '../../common/forest';
import { intervalText, percent, type Tone } from '../../common/interval';
import { Explain } from '../../common/explain';
import { Notes } from '../../common/notes';
import { useRead } from '../../common/routes';
import { at, scaleOf } from '../../common/scale';
import { Num } from '../../common/twin';
import { Link } from '../../parts/link';
import { Empty, Failure, Loading } from '../../parts/states';
import { count, measured, showValue } from '../../show';
import { usePageTarget } from '../../state';
import { textCodec, useUrlState } from '../../url';
import type { ViewProps } from './index';
import { impactText, stepValue } from './sentences';
import './impact.css';

const text = textCodec('');
const SHOWN = 15, OTHERS_SHOWN = 4, LEVELS_SHOWN = 12, WIDTH = 200;
const LEVEL_RUNS_MIN = 3, SAME = 1 - 1e-9;

function levelText(p: ImpactParameter, i: number): string {
	const { value, to } = p.levels[i];
	return to === undefined ? showValue(p.column, value)
		: `${showValue(p.column, value)} to ${showValue(p.column, to)}`;
}

/** A dot per value of the parameter on one scale of the figure. */
function Levels({ p, unit }: { p: ImpactParameter; unit: string | null }): ReactNode {
	const kept = p.levels.map((l, i) => ({ l, i })).filter(({ l }) => l.n >= LEVEL_RUNS_MIN);
	const scale = scaleOf(kept.map(({ l }) => l.median));
	return (
		<ul className="levels">{kept.slice(0, LEVELS_SHOWN).map(({ l, i }) => (
			<li key={i}>
				<span className="level-name" title={levelText(p, i)}>{levelText(p, i)}</span>
				<svg viewBox={`0 0 ${WIDTH} 12`} width={WIDTH} height="12" aria-hidden="true">
					<line x1="4" x2={WIDTH - 4} y1="6" y2="6" />
					{l.median !== null && <circle cx={4 + at(scale, l.median) * (WIDTH - 8)} cy="6" r="4.5" />}
				</svg>
				<Num v={l.median} unit={unit} /><span className="dim num">n {l.n}</span>
			</li>
		))}
		{p.levels.length > Math.min(kept.length, LEVELS_SHOWN) && <li className="dim">and {p.levels.length
			- Math.min(kept.length, LEVELS_SHOWN)} more{kept.length < p.levels.length
			&& `, ${kept.length < LEVELS_SHOWN ? '' : 'some '}with fewer than ${LEVEL_RUNS_MIN} runs`}</li>}
		</ul>
	);
}

function Row({ p, columns, unit }: { p: ImpactParameter; columns: Columns; unit: string | null }): ReactNode {
	const target = usePageTarget();
	const share = p.share ?? 0;
	return (
		<article className="impact" aria-label={columns.measure(p.column).label}>
			<div className="impact-share">
				<p className="big-number" data-value={p.share ?? ''}>{p.share === null ? '–'
					: Math.round(share * 100)}<span className="unit">%</span></p>
				<svg viewBox="0 0 100 6" width="100" height="6" aria-hidden="true" className="share">
					<rect width="100" height="6" rx="3" className="ground" />
					<rect width={Math.max(1, share * 100)} height="6" rx="3" />
				</svg>
				<p className="dim small-text">of variance (one-way)</p>
			</div>
			<div className="impact-text">
				<h2 title={p.column}>{columns.measure(p.column).label} <code className="dim">{p.column}</code></h2>
				<p>{p.effect !== null && <>Range of medians: <strong
					data-value={p.effect}>{percent(p.effect)}</strong>. </>}
				{p.p_adjusted !== null && <span className="dim">p {p.p_adjusted < 0.001 ? '< 0.001'
					: `= ${measured(p.p_adjusted)}`}</span>}</p>
				{p.confounded_with.length > 0 && <p className="dim">Confounded with {p.confounded_with
					.slice(0, OTHERS_SHOWN).map((c) => `${columns.measure(c.column).label}${c.strength !== null
						? ` (${measured(c.strength)})` : ''}`).join(', ')}{p.confounded_with.length > OTHERS_SHOWN
					&& ` and ${p.confounded_with.length - OTHERS_SHOWN} more`}.</p>}
				{p.note && !(p.confounded_with.length && p.note.startsWith('moves together'))
					&& <p className="dim">{p.note}</p>}
				<p><Link to={target('/compare', { by: p.column })}>Compare its values</Link></p>
			</div>
			<Levels p={p} unit={unit} />
		</article>
	);
}

/** Columns that split the runs in the same way as an earlier one are left out and named there. */
export function merged(list: ImpactParameter[]): ImpactParameter[] {
	return list.filter((p, i) => !p.confounded_with.some((c) => (c.strength ?? 0) > SAME
		&& list.slice(0, i).some((q) => q.column === c.column && q.levels.length === p.levels.length)));
}

const valueText = (s: ImpactStep, v: ImpactStep['from']): string => stepValue(s.column, v);

/** Configurations that differ in one parameter only: the change per step of it. */
function Matched({ list, columns, better }: {
	list: ImpactStep[]; columns: Columns; better: 'higher' | 'lower' | null;
}): ReactNode {
	const [most, setMost] = useState(SHOWN), target = usePageTarget();
	if (!list.length)
		return <p className="dim">No configurations differ in one parameter alone at least three times. Vary one
			parameter alone to know what it changes.</p>;
	const range = rangeOf(list);
	const hasAlso = list.some((s) => s.also_total > 0);
	const tone = (s: ImpactStep): Tone => (!s.interval || s.interval[0] * s.interval[1] <= 0 || !better ? 'plain'
		: (s.effect > 0) === (better === 'higher') ? 'good' : 'bad');
	return (
		<>
			<div className="scroll-x" tabIndex={0} role="region" aria-label="Matched effects">
				<table className="plain-table matched">
					<thead><tr><th scope="col">Everything else equal</th><th scope="col" className="num">Change</th>
						<th scope="col" className="range-cell"><ForestAxis range={range} /></th>
						<th scope="col" className="num aside">95 % interval</th><th scope="col" className="num">Pairs</th>
						{hasAlso && <th scope="col">Changes with it</th>}</tr></thead>
					<tbody>{list.slice(0, most).map((s) => (
						<tr key={`${s.column} ${String(s.from)} ${String(s.to)}`}>
							<th scope="row"><Link to={target('/compare', { by: s.column })} title={s.column}>
								{columns.measure(s.column).label}</Link>{' '}
							<span className="one-line">{valueText(s, s.from)} → {valueText(s, s.to)}</span></th>
							<td className="num" data-value={s.effect}><strong className={`${tone(s)}-text`}>
								{tone(s) !== 'plain' && (s.effect < 0 ? '▼ ' : '▲ ')}{percent(s.effect)}</strong>
							{s.interval && <span className="dim small-text narrow-only">{intervalText(s.interval)}</span>}</td>
							<td className="range-cell"><ForestRow e={s} range={range} tone={tone(s)} /></td>
							<td className="num dim aside">{s.interval && <><span data-value={s.interval[0]}>{percent(s.interval[0])}
							</span> to <span data-value={s.interval[1]}>{percent(s.interval[1])}</span></>}</td>
							<td className="num" data-value={s.pairs}>{s.pairs}</td>
							{hasAlso && <td className="dim">{s.also.map((c) => columns.measure(c).label).join(', ')}
								{s.also_total > s.also.length && ` and ${s.also_total - s.also.length} more`}</td>}
						</tr>
					))}</tbody>
				</table>
			</div>
			{list.length > most && <button type="button" onClick={() => setMost(most + SHOWN)}>
				Show more of {count(list.length, 'effect')}</button>}
		</>
	);
}

function Shares({ list, columns, unit }: { list: ImpactParameter[]; columns: Columns; unit: string | null }): ReactNode {
	const [most, setMost] = useState(SHOWN);
	return (
		<details className="impact-shares">
			<summary>Share of the variance that each parameter explains by itself</summary>
			<p className="warn-text">These runs differ in other parameters too. Effects of parameters that are confounded
				cannot be separated, and a share does not prove a cause.</p>
			{list.slice(0, most).map((p) => <Row key={p.column} p={p} columns={columns} unit={unit} />)}
			{list.length > most && <button type="button" onClick={() => setMost(most + SHOWN)}>
				{`Show more of ${count(list.length, 'parameter')}`}</button>}
		</details>
	);
}

export function Impact({ columns, filter }: ViewProps): ReactNode {
	const [chosen, setMetric] = useUrlState('m', text);
	const metric = chosen || firstOf(columns, [...RATE_COLUMNS, ...LATENCY_COLUMNS])
		|| columns.numbers[0]?.column || '';
	const answer = useRead('POST /api/analysis/impact', { filter, metric }, metric !== '');
	const list = answer.data?.parameters ?? [];
	return (
		<section className="card" aria-label="Impact">
			<div className="tools">
				<Pick label="Metric" value={metric} onPick={setMetric} columns={columns}
					options={columns.numbers} />
				{answer.data && <span className="dim">{count(answer.data.n, 'run')}</span>}
			</div>
			{answer.data && list.length > 0 && <p className="answer" role="status">
				{impactText(answer.data.matched, columns.measure(metric).label, (c) => columns.measure(c).label)}
				{' '}<Explain topic="impact" /></p>}
			{answer.isError ? <Failure error={answer.error} onRetry={() => void answer.refetch()} />
				: !answer.data ? <Loading what="Analyzing parameters" />
					: !list.length ? (
						<Empty title="Not enough variation">
							<p>Impact needs runs with more than one value of a parameter that have the metric.</p>
						</Empty>
					) : (
						<>
							<Matched list={answer.data.matched} columns={columns} better={answer.data.better} />
							<Shares list={merged(list)} columns={columns} unit={answer.data.unit} />
						</>
					)}
			<Notes notes={answer.data?.notes} />
		</section>
	);
}
