// SPDX-License-Identifier: Apache-2.0
// scaling: the benefit of more of something at one load: medians, speedup and efficiency.
import { useCallback, useMemo, type ReactNode } from 'react';
import type { Curves, Scaling as Answer } from '../../../lib/api';
import { whole } from '../../../lib/format';
import { Chart } from '../../charts/chart';
import type { Ink } from '../../charts/ink';
import { keyId, type Size } from '../../charts/axis';
import { adopt, arrange } from '../../colour';
import { linesOption, savedLines, type LineSeries } from '../../charts/lines';
import { columnsOf, firstOf, inOrder, tellingOf, RATE_COLUMNS, type Columns } from '../../common/columns';
import { Legend } from '../../common/legend';
import { Notes } from '../../common/notes';
import { Pick, PickMany } from '../../common/pick';
import { useRead } from '../../common/routes';
import { isSeen, useFlipped } from '../../common/shown';
import { Num } from '../../common/twin';
import { Empty, Failure, Loading } from '../../parts/states';
import { count, given, measured, NOTHING } from '../../show';
import { listCodec, textCodec, useUrlState } from '../../url';
import { shortHead } from '../runs/view';
import type { ViewProps } from './index';
import { scalingText } from './sentences';
import { versionText, withNames } from './names';

const text = textCodec('');
const seriesCodec = listCodec(['auto']);
const HEIGHT = 380, EFFICIENCY_HEIGHT = 170, SHOWN_AT_FIRST = 6;
const BY = ['server.tensor_parallel_size', 'server.data_parallel_size', 'server.pipeline_parallel_size',
	'gpus_used', 'benchmark.max_concurrency', 'benchmark.request_rate', 'server.max_num_seqs'] as const;

/** Columns that are the load themselves. */
const LOADS: string[] = ['benchmark.max_concurrency', 'benchmark.request_rate', 'load'];
const ALL_LOADS = 'all';

const share = (v: number | null): string => (v === null ? NOTHING : `${Math.round(v * 100)} %`);

function linesOf(answer: Answer, flipped: string[], colors: readonly string[]): LineSeries[] {
	adopt(colors, answer.series.map((s) => [keyId(s.key), s.name]));
	arrange(answer.series.map((s) => keyId(s.key)));
	return answer.series.map((s, i) => {
		const id = keyId(s.key);
		return { id, name: s.name || 'All runs', isShown: isSeen(i, id, flipped, SHOWN_AT_FIRST), changes: [],
			points: s.points.map((p) => ({ x: p.x, value: p.median, low: p.low, high: p.high, facts: [
				['At', given(p.x)], ['Speedup', p.speedup === null ? NOTHING : `${measured(p.speedup)} ×`],
				['Efficiency', share(p.efficiency)], ['From', count(p.n, 'run')]] })) };
	});
}

function Table({ answer, columns }: { answer: Answer; columns: Columns }): ReactNode {
	return (
		<section className="card" aria-label="Speedup and efficiency">
			<h2>Speedup and efficiency</h2>
			<div className="scroll-x" tabIndex={0} role="region" aria-label="Table of speedup and efficiency">
				<table className="plain-table scaled">
					<thead><tr><th scope="col">Series</th>
						<th scope="col" className="num" title={answer.by}>
							{shortHead(answer.by, columns.measure(answer.by).label).split(/(?<=_)/).flatMap((part, i) =>
								(i ? [<wbr key={i} />, part] : [part]))}</th>
						<th scope="col" className="num aside">Runs</th>
						<th scope="col" className="num">Median {columns.measure(answer.metric).label}
							{answer.unit && ` (${answer.unit})`}</th>
						<th scope="col" className="num">Speedup</th>
						<th scope="col" className="num">Efficiency</th></tr></thead>
					<tbody>{answer.series.flatMap((s) => s.points.map((p, i) => (
						<tr key={`${keyId(s.key)} ${p.x}`}>
							{i === 0 && <th scope="rowgroup" rowSpan={s.points.length}>
								{s.name || 'All runs'}<span className="dim">{versionText(s)}</span></th>}
							<td className="num">{given(p.x)}</td>
							<td className="num aside" data-value={p.n}>{whole(p.n)}</td>
							<td className="num"><Num v={p.median} /></td>
							<td className="num">{p.speedup === null ? NOTHING : <span data-value={p.speedup}>{p.speedup.toFixed(2)} ×</span>}</td>
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

/** Ideal lines from the smallest value of each series on. */
const idealOf = (answer: Answer, lines: LineSeries[]): LineSeries[] => lines.map((line, i) => {
	const [first] = answer.series[i].points, { better } = answer;
	const at = (x: number): number => (answer.ideal === 'constant' ? first.median
		: first.median * (better === 'lower' ? first.x / x : x / first.x));
	return { ...line, id: `ideal ${line.id}`, idealOf: line.id, points: answer.series[i].points.map((p) =>
		({ x: p.x, value: at(p.x), low: null, high: null, facts: [] })) };
});

const efficiencyOf = (answer: Answer, lines: LineSeries[]): LineSeries[] => lines.map((line, i) => ({ ...line,
	points: answer.series[i].points.flatMap((p) => (p.efficiency === null ? [] : [{ x: p.x,
		value: p.efficiency * 100, low: null, high: null, facts: [] }])) }));

function Drawing({ answer, columns, workload }: { answer: Answer; columns: Columns; workload: Curves }): ReactNode {
	const { flipped, flip } = useFlipped();
	const series = useMemo(() => linesOf(answer, flipped, workload.colors.map((c) => c.key)),
		[answer, flipped, workload]);
	const [x, y] = useMemo(() => [columns.measure(answer.by), columns.measure(answer.metric)],
		[columns, answer]);
	const make = useCallback((ink: Ink, size: Size) => linesOption({ y, foot: '', spans: [0],
		series: [...idealOf(answer, series).filter((s) => s.isShown), ...series],
		x: { name: x.label, kind: 'number', categories: [] } }, ink, size), [answer, series, x, y]);
	const makeEfficiency = useCallback((ink: Ink, size: Size) => linesOption({ foot: '', spans: [0, 100],
		series: efficiencyOf(answer, series), y: { column: '', label: 'Efficiency', unit: '%' },
		x: { name: x.label, kind: 'number', categories: [] } }, ink, size), [answer, series, x]);
	return (
		<>
			<Chart label={`${y.label} over ${x.label}; dashed: ideal`} height={HEIGHT} make={make}
				saved={savedLines(`${y.label} over ${x.label}`, series, answer.by, answer.metric)} />
			<Chart label={`Efficiency over ${x.label}`} height={EFFICIENCY_HEIGHT} make={makeEfficiency}
				saved={savedLines(`Efficiency over ${x.label}`, efficiencyOf(answer, series), answer.by,
					'efficiency_percent')} />
			<Legend label="Series" hasForms onToggle={flip} entries={series.map((s, i) =>
				({ id: s.id, name: s.name, isShown: s.isShown, n: answer.series[i].n }))} />
			<p className="dim small-text">Dashed: ideal, {answer.ideal === 'constant' ? 'the same at every'
				: 'in proportion to'} {x.label}.</p>
		</>
	);
}

/** Loads of the workload, ascending; usual: the largest that most colors were measured at. */
export function loadsOf(workload: Pick<Curves, 'lines'>): { all: number[]; usual: number | null } {
	const colors = new Map<number, Set<string>>();
	for (const line of workload.lines)
		for (const { load } of line.points)
			if (load !== null)
				colors.set(load, (colors.get(load) ?? new Set()).add(line.color));
	const all = [...colors.keys()].sort((a, b) => a - b);
	const most = Math.max(0, ...all.map((load) => colors.get(load)?.size ?? 0));
	return { all, usual: all.filter((load) => colors.get(load)?.size === most).at(-1) ?? null };
}

export function Scaling({ columns, filter, workload }: ViewProps): ReactNode {
	const [chosen, setMetric] = useUrlState('m', text);
	const [chosenBy, setBy] = useUrlState('by', text);
	const [chosenLoad, setLoad] = useUrlState('load', text);
	const [series, setSeries] = useUrlState('series', seriesCodec);
	const metric = chosen || firstOf(columns, RATE_COLUMNS) || columns.numbers[0]?.column || '';
	const parameters = columns.groups.filter((c) => c.kind !== 'text' && c.kind !== 'bool');
	const by = chosenBy || firstOf(columns, BY) || parameters[0]?.column || '';
	const loads = useMemo(() => loadsOf(workload), [workload]);
	const load = LOADS.includes(by) || chosenLoad === ALL_LOADS ? null
		: loads.all.find((l) => String(l) === chosenLoad) ?? loads.usual;
	const answer = useRead('POST /api/analysis/scaling', { metric, by,
		filter: load === null ? filter : { and: [...filter ? [filter] : [], { column: 'load', in: [load] }] },
		series: series[0] === 'auto' ? null : series.filter((c) => c !== '') }, metric !== '' && by !== '');
	const data = useMemo(() => answer.data && { ...answer.data, series: withNames(inOrder(answer.data.series)) }, [answer.data]);
	const all = answer.data && series[0] === 'auto' ? columnsOf(answer.data.series.map((s) => s.key))
		: series;
	const told = series[0] === 'auto' ? tellingOf(all, answer.data?.series.map((s) => s.key) ?? [])
		: all.filter((c) => c !== '');
	const isEmpty = !by || (answer.data && !answer.data.series.some((s) => s.points.length > 1));
	return (
		<>
			<section className="card" aria-label="Scaling">
				<div className="tools">
					<Pick label="Metric" value={metric} onPick={setMetric} columns={columns}
						options={columns.numbers} />
					<Pick label="Scale by" value={by} onPick={setBy} columns={columns} options={parameters} />
					{!LOADS.includes(by) && loads.all.length > 1 && (
						<label className="pick"><span>Load</span>
							<select value={load === null ? ALL_LOADS : String(load)}
								onChange={(e) => setLoad(e.target.value)}>
								{loads.all.map((l) => <option key={l} value={String(l)}>{given(l)}</option>)}
								<option value={ALL_LOADS}>all</option>
							</select></label>
					)}
					<PickMany label="Series by" values={told} max={16}
						columns={columns} options={columns.groups.filter((c) => c.column !== by)}
						onPick={(list) => setSeries(list.length ? list : [''])} />
					{told.length < all.length && <span className="dim small-text">
						{all.length - told.length} more are the same in all, or follow from these</span>}
				</div>
				{data && !isEmpty && <p className="answer" role="status">
					{scalingText(data, columns.measure(data.by).label)}</p>}
				{answer.isError ? <Failure error={answer.error} onRetry={() => void answer.refetch()} />
					: isEmpty ? (
						<Empty title="No scaling series found">
							<p>Scaling needs runs that differ in one parameter and in nothing that makes a series.
								Remove columns from the series, or choose another parameter or load.</p>
						</Empty>
					) : !data ? <Loading /> : <Drawing answer={data} columns={columns} workload={workload} />}
				<Notes notes={answer.data?.notes} />
			</section>
			{data && !isEmpty && <Table answer={data} columns={columns} />}
		</>
	);
}
