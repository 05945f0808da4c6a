// SPDX-License-Identifier: Apache-2.0
// impact: which parameter moves a metric, with caution: confounded ones are named.
import { useState, type ReactNode } from 'react';
import type { ImpactParameter } from '../../../lib/api';
import { Pick } from '../../common/pick';
import { firstOf, RATE_COLUMNS, LATENCY_COLUMNS, type Columns } from '../../common/columns';
import { percent } from '../../common/interval';
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
import './impact.css';

const text = textCodec('');
const SHOWN = 15, OTHERS_SHOWN = 4, LEVELS_SHOWN = 12, WIDTH = 200;

function levelText(p: ImpactParameter, i: number): string {
	const { value, to } = p.levels[i];
	return to === undefined ? showValue(p.column, value)
		: `${showValue(p.column, value)} to ${showValue(p.column, to)}`;
}

/** A dot per value of the parameter on one scale of the figure. */
function Levels({ p, unit }: { p: ImpactParameter; unit: string | null }): ReactNode {
	const scale = scaleOf(p.levels.map((l) => l.median));
	return (
		<ul className="levels">{p.levels.slice(0, LEVELS_SHOWN).map((l, i) => (
			<li key={i}>
				<span className="level-name" title={levelText(p, i)}>{levelText(p, i)}</span>
				<svg viewBox={`0 0 ${WIDTH} 12`} width={WIDTH} height="12" aria-hidden="true">
					<line x1="4" x2={WIDTH - 4} y1="6" y2="6" />
					{l.median !== null && <circle cx={4 + at(scale, l.median) * (WIDTH - 8)} cy="6" r="4.5" />}
				</svg>
				<Num v={l.median} unit={unit} /><span className="dim num">n {l.n}</span>
			</li>
		))}
		{p.levels.length > LEVELS_SHOWN && <li className="dim">and {p.levels.length - LEVELS_SHOWN} more</li>}
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
				{p.confounded_with.length > 0 && <p className="warn-text">Confounded with {p.confounded_with
					.slice(0, OTHERS_SHOWN).map((c) => `${columns.measure(c.column).label}${c.strength !== null
						? ` (${measured(c.strength)})` : ''}`).join(', ')}{p.confounded_with.length > OTHERS_SHOWN
					&& ` and ${p.confounded_with.length - OTHERS_SHOWN} more`}: their effects cannot be separated.</p>}
				{p.note && !(p.confounded_with.length && p.note.startsWith('moves together'))
					&& <p className="dim">{p.note}</p>}
				<p><Link to={target('/compare', { by: p.column })}>Compare its values</Link></p>
			</div>
			<Levels p={p} unit={unit} />
		</article>
	);
}

export function Impact({ columns, filter }: ViewProps): ReactNode {
	const [chosen, setMetric] = useUrlState('m', text);
	const [most, setMost] = useState(SHOWN);
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
			{answer.isError ? <Failure error={answer.error} onRetry={() => void answer.refetch()} />
				: !answer.data ? <Loading what="Analyzing parameters" />
					: !list.length ? (
						<Empty title="Not enough variation">
							<p>Impact needs runs with more than one value of a parameter that have the metric.</p>
						</Empty>
					) : (
						<>
							<p className="dim">What goes along with the figure in these runs; that it is the cause
								follows only from runs in which nothing else differs.</p>
							{list.slice(0, most).map((p) => (
								<Row key={p.column} p={p} columns={columns} unit={answer.data.unit} />
							))}
							{list.length > most && <button type="button" onClick={() => setMost(most + SHOWN)}>
								{`Show more of ${count(list.length, 'parameter')}`}</button>}
						</>
					)}
			<Notes notes={answer.data?.notes} />
		</section>
	);
}
