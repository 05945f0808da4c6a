// SPDX-License-Identifier: Apache-2.0
// distribution.tsx: the spread of one metric in each group: a box, a histogram, and the numbers.
import type { ReactNode } from 'react';
import type { DistributionGroup } from '../../../lib/api';
import { whole } from '../../../lib/format';
import { keyId, keyName, titleOf, USUAL_SIZE } from '../../charts/axis';
import { boxesHeight, boxesOption } from '../../charts/boxes';
import { ChartMenu } from '../../charts/menu';
import { arrange, cssColour } from '../../colour';
import { useIsBlock } from '../../common/block';
import { inOrder, type Columns } from '../../common/columns';
import { Mark } from '../../common/mark';
import { Pick } from '../../common/pick';
import { Notes } from '../../common/notes';
import { both, useRead } from '../../common/routes';
import { at, scaleOf, type Scale } from '../../common/scale';
import { Num } from '../../common/twin';
import type { And, Filter } from '../../filter';
import { Empty, Failure, Loading } from '../../parts/states';
import { measured } from '../../show';
import { useFilter } from '../../state';
import { textCodec, useUrlState } from '../../url';
import { others } from './brush';

const text = textCodec('');
const WIDTH = 260, HEIGHT = 34, GROUPS_SHOWN = 24;

/** Whiskers from the 5th to the 95th percentile, dots at the ends, a box, the median. */
function Box({ q, scale, colour }: { q: number[]; scale: Scale; colour: string }): ReactNode {
	const x = (v: number): number => 6 + at(scale, v) * (WIDTH - 12), middle = HEIGHT / 2;
	const [min, p5, p25, p50, p75, p95, max] = q.map(x);
	return (
		<svg className="box" viewBox={`0 0 ${WIDTH} ${HEIGHT}`} width={WIDTH} height={HEIGHT}
			aria-hidden="true" style={{ color: colour }}>
			<line x1={p5} x2={p95} y1={middle} y2={middle} className="whisker" />
			<line x1={p5} x2={p5} y1={middle - 5} y2={middle + 5} className="whisker" />
			<line x1={p95} x2={p95} y1={middle - 5} y2={middle + 5} className="whisker" />
			<rect x={p25} width={Math.max(1, p75 - p25)} y={middle - 9} height="18" rx="2"
				className="body" />
			<line x1={p50} x2={p50} y1={middle - 9} y2={middle + 9} className="median" />
			<circle cx={min} cy={middle} r="2" className="end" />
			<circle cx={max} cy={middle} r="2" className="end" />
		</svg>
	);
}

function Bars({ edges, counts, colour }: { edges: number[]; counts: number[]; colour: string }): ReactNode {
	const most = Math.max(1, ...counts), w = 120 / Math.max(1, counts.length);
	return (
		<svg className="bars" viewBox="0 0 120 34" width="120" height="34" role="img"
			style={{ color: colour }} aria-label={`Histogram from ${measured(edges[0] ?? 0)} to `
				+ `${measured(edges[edges.length - 1] ?? 0)}: ${counts.join(', ')}`}>
			{counts.map((n, i) => (
				<rect key={i} x={i * w + 0.5} width={Math.max(0.5, w - 1)} y={33 - (n / most) * 32}
					height={(n / most) * 32} />
			))}
			<line x1="0" x2="120" y1="33.5" y2="33.5" />
		</svg>
	);
}

function Row({ g, scale }: { g: DistributionGroup; scale: Scale }): ReactNode {
	const colour = cssColour(keyId(g.key)), q = g.quantiles;
	return (
		<tr>
			<th scope="row"><span className="row tight">
				<Mark form={0} colour={colour} />{keyName(g.key, g.name)}
			</span></th>
			<td className="num" data-value={g.n}>{whole(g.n)}</td>
			<td className="aside">{q.length === 7 && <Box q={q} scale={scale} colour={colour} />}</td>
			<td className="aside"><Bars {...g.histogram} colour={colour} /></td>
			<td className="num"><Num v={q[1]} /></td>
			<td className="num aside"><Num v={q[2]} /></td>
			<td className="num"><strong><Num v={q[3]} /></strong></td>
			<td className="num aside"><Num v={q[4]} /></td>
			<td className="num"><Num v={q[5]} /></td>
		</tr>
	);
}

interface Props { columns: Columns; by: string[]; brush: And; only: Filter[]; usual: string }

export function Distribution({ columns, by, brush, only, usual }: Props): ReactNode {
	const [filter] = useFilter(), isBlock = useIsBlock();
	const [chosen, setMetric] = useUrlState('m', text);
	const metric = chosen || usual, measure = columns.measure(metric);
	const answer = useRead('POST /api/analysis/distribution',
		{ filter: both(filter, [...only, ...others(brush, [metric])]), metric, group: by.filter((c) => c !== '') },
		metric !== '');
	const found = (answer.data?.groups ?? []).filter((g) => g.n > 0);
	const groups = found.length > GROUPS_SHOWN ? found : inOrder(found);
	arrange(groups.map((g) => keyId(g.key)));
	const drawn = groups.slice(0, GROUPS_SHOWN);
	const saved = { title: `Distribution of ${measure.label}`,
		params: { view: 'distribution', m: metric, g: by.join(',') },
		table: () => [['group', 'runs', 'min', 'p5', 'p25', 'median', 'p75', 'p95', 'max'],
			...groups.map((g) => [keyName(g.key, g.name), g.n, ...g.quantiles])] };
	const scale = scaleOf(groups.flatMap((g) => g.quantiles));
	return (
		<section className="card" role={isBlock ? 'group' : undefined} aria-label={`Distribution of ${measure.label}`}>
			{!isBlock && <div className="card-head">
				<h2>Distribution</h2>
				<Pick label="Metric" value={metric} onPick={setMetric} columns={columns}
					options={columns.numbers} />
				<ChartMenu title={saved.title} saved={saved} size={{ ...USUAL_SIZE, height: boxesHeight(drawn.length) }}
					make={(ink, size) => boxesOption(drawn, measure, ink, size)} />
			</div>}
			{answer.isError ? <Failure error={answer.error} onRetry={() => void answer.refetch()} />
				: !answer.data ? <Loading />
					: !groups.length ? <Empty title={`No run has ${measure.label}`} /> : (
						<div className="scroll-x" tabIndex={0} role="group" aria-label="Distributions">
							<table className="plain-table spread">
								<thead><tr>
									<th scope="col">Group</th><th scope="col" className="num">Runs</th>
									<th scope="col" className="aside">{titleOf(measure.label, measure.unit)}, {measured(scale.min)} to{' '}
										{measured(scale.max)}{scale.isLog && ', logarithmic'}</th>
									<th scope="col" className="aside">Histogram</th>
									{['P5', 'P25', 'Median', 'P75', 'P95'].map((h) =>
										<th key={h} scope="col" className={/25|75/.test(h) ? 'num aside' : 'num'}>{h}</th>)}
								</tr></thead>
								<tbody>{drawn.map((g) =>
									<Row key={keyId(g.key)} g={g} scale={scale} />)}</tbody>
							</table>
						</div>
					)}
			{groups.length > GROUPS_SHOWN
				&& <p className="dim">The {GROUPS_SHOWN} largest of {groups.length} groups.</p>}
			<Notes notes={answer.data?.notes} />
		</section>
	);
}
