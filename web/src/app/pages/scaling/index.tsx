// SPDX-License-Identifier: Apache-2.0
// scaling: what more of something brings: medians, speed-up and efficiency against its least.
import { useCallback, useMemo, type ReactNode } from 'react';
import type { Scaling as Answer } from '../../../lib/api';
import { Chart } from '../../charts/chart';
import type { Ink } from '../../charts/ink';
import { keyId, type Size } from '../../charts/axis';
import { linesOption, type LineSeries } from '../../charts/lines';
import { firstOf, RATE_COLUMNS, useColumns, type Columns } from '../../common/columns';
import { Legend } from '../../common/legend';
import { Notes } from '../../common/notes';
import { Pick, PickMany } from '../../common/pick';
import { useRead } from '../../common/routes';
import { Scope } from '../../common/scope';
import { isSeen, useFlipped } from '../../common/shown';
import { Num } from '../../common/twin';
import { asked } from '../../filter';
import { Empty, Failure, Loading } from '../../parts/states';
import { count, given, measured, NOTHING } from '../../show';
import { useFilter } from '../../state';
import { listCodec, textCodec, useUrlState } from '../../url';
import '../../common/pages.css';

const text = textCodec('');
const seriesCodec = listCodec(['auto']);
const HEIGHT = 380, SHOWN_AT_FIRST = 6;
const BY = ['server.tensor_parallel_size', 'server.data_parallel_size', 'server.pipeline_parallel_size',
	'benchmark.max_concurrency', 'benchmark.request_rate', 'server.max_num_seqs'] as const;

const share = (v: number | null): string => (v === null ? NOTHING : `${Math.round(v * 100)} %`);

function linesOf(answer: Answer, flipped: string[]): LineSeries[] {
	return answer.series.map((s, i) => {
		const id = keyId(s.key);
		return { id, name: s.name || 'All runs', isShown: isSeen(i, id, flipped, SHOWN_AT_FIRST), changes: [],
			points: s.points.map((p) => ({ x: p.x, value: p.median, low: p.low, high: p.high, facts: [
				['At', given(p.x)], ['Speed-up', p.speedup === null ? NOTHING : `${measured(p.speedup)} ×`],
				['Efficiency', share(p.efficiency)], ['From', count(p.n, 'run')]] })) };
	});
}

function Table({ answer, columns }: { answer: Answer; columns: Columns }): ReactNode {
	return (
		<section className="card" aria-label="Speed-up and efficiency">
			<h2>Speed-up and efficiency</h2>
			<div className="scroll-x" tabIndex={0} role="region" aria-label="Table of speed-up and efficiency">
				<table className="plain-table">
					<thead><tr><th scope="col">Series</th>
						<th scope="col" className="num">{columns.measure(answer.by).label}</th>
						<th scope="col" className="num">Runs</th>
						<th scope="col" className="num">Median {columns.measure(answer.metric).label}</th>
						<th scope="col" className="num">Speed-up</th>
						<th scope="col" className="num">Efficiency</th></tr></thead>
					<tbody>{answer.series.flatMap((s) => s.points.map((p, i) => (
						<tr key={`${keyId(s.key)} ${p.x}`}>
							{i === 0 && <th scope="rowgroup" rowSpan={s.points.length}>
								{s.name || 'All runs'}</th>}
							<td className="num">{given(p.x)}</td><td className="num">{p.n}</td>
							<td className="num"><Num v={p.median} unit={answer.unit} /></td>
							<td className="num"><Num v={p.speedup} unit={p.speedup === null ? null : '×'} /></td>
							<td className="num" data-value={p.efficiency ?? ''}><strong className={
								p.efficiency !== null && p.efficiency < 0.5 ? 'warn-text' : ''}>
								{share(p.efficiency)}</strong></td>
						</tr>
					)))}</tbody>
				</table>
			</div>
		</section>
	);
}

function Drawing({ answer, columns }: { answer: Answer; columns: Columns }): ReactNode {
	const { flipped, flip } = useFlipped();
	const series = useMemo(() => linesOf(answer, flipped), [answer, flipped]);
	const [x, y] = useMemo(() => [columns.measure(answer.by), columns.measure(answer.metric)],
		[columns, answer]);
	const make = useCallback((ink: Ink, size: Size) => linesOption({ series, y, foot: '',
		x: { name: x.label, kind: 'number', categories: [] } }, ink, size), [series, x, y]);
	return (
		<>
			<Chart label={`${y.label} over ${x.label}`} height={HEIGHT} make={make} />
			<Legend label="Series" hasForms onToggle={flip} entries={series.map((s, i) =>
				({ id: s.id, name: s.name, isShown: s.isShown, n: answer.series[i].n }))} />
		</>
	);
}

function View({ columns }: { columns: Columns }): ReactNode {
	const [filter] = useFilter();
	const [chosen, setMetric] = useUrlState('m', text);
	const [chosenBy, setBy] = useUrlState('by', text);
	const [series, setSeries] = useUrlState('series', seriesCodec);
	const metric = chosen || firstOf(columns, RATE_COLUMNS) || columns.numbers[0]?.column || '';
	const parameters = columns.groups.filter((c) => c.kind !== 'text' && c.kind !== 'bool');
	const by = chosenBy || firstOf(columns, BY) || parameters[0]?.column || '';
	const answer = useRead('POST /api/analysis/scaling', { filter: asked(filter), metric, by,
		series: series[0] === 'auto' ? null : series.filter((c) => c !== '') }, metric !== '' && by !== '');
	const named = answer.data && series[0] === 'auto' ? Object.keys(answer.data.series[0]?.key ?? {})
		: series;
	const told = named.filter((c) => c !== '' && (columns.of(c)?.distinct ?? 2) > 1);
	const isEmpty = !by || (answer.data && !answer.data.series.some((s) => s.points.length > 1));
	return (
		<>
			<section className="card" aria-label="Scaling">
				<div className="tools">
					<Pick label="Of" value={metric} onPick={setMetric} columns={columns}
						options={columns.numbers} />
					<Pick label="Over" value={by} onPick={setBy} columns={columns} options={parameters} />
					<PickMany label="A series per" values={told} max={16}
						columns={columns} options={columns.groups.filter((c) => c.column !== by)}
						onPick={(list) => setSeries(list.length ? list : [''])} />
					{told.length < named.length && <span className="dim small-text">and what all runs have in
						common</span>}
				</div>
				{answer.isError ? <Failure error={answer.error} onRetry={() => void answer.refetch()} />
					: isEmpty ? (
						<Empty title="Nothing was scaled in these runs">
							<p>It takes runs that differ in one parameter and in nothing that makes a series.
								Take columns away from the series, or choose another parameter.</p>
						</Empty>
					) : !answer.data ? <Loading /> : <Drawing answer={answer.data} columns={columns} />}
				<Notes notes={answer.data?.notes} />
			</section>
			{answer.data && !isEmpty && <Table answer={answer.data} columns={columns} />}
		</>
	);
}

export default function Scaling(): ReactNode {
	const columns = useColumns();
	return (
		<div className="page">
			<div className="page-head"><h1>Scaling</h1><Scope /></div>
			{columns.error ? <Failure error={columns.error} onRetry={columns.retry} />
				: !columns.isReady ? <Loading /> : <View columns={columns} />}
		</div>
	);
}
