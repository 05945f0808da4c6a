// SPDX-License-Identifier: Apache-2.0
// trends: one figure over commits or time, per series of comparable runs, and where it changed.
import { useCallback, useMemo, type ReactNode } from 'react';
import type { Trends as Answer } from '../../../lib/api';
import { Chart, type Click } from '../../charts/chart';
import type { Size } from '../../charts/axis';
import type { Ink } from '../../charts/ink';
import { hitOf, linesOption } from '../../charts/lines';
import {
	firstOf, LATENCY_COLUMNS, RATE_COLUMNS, useColumns, type Columns,
} from '../../common/columns';
import { Legend } from '../../common/legend';
import { Notes } from '../../common/notes';
import { Pick, PickMany } from '../../common/pick';
import { useRead } from '../../common/routes';
import { Scope } from '../../common/scope';
import { useFlipped } from '../../common/shown';
import { Num, Twin } from '../../common/twin';
import { asked } from '../../filter';
import { Link } from '../../parts/link';
import { Empty, Failure, Loading } from '../../parts/states';
import { count, when } from '../../show';
import { useFilter, usePageTarget } from '../../state';
import { choiceCodec, listCodec, navigate, textCodec, useUrlState } from '../../url';
import { Changes } from './changes';
import { commitsOf, linesOf, placeOf, shortCommit, versionsOf } from './model';
import '../../common/pages.css';

type AxisName = 'commit' | 'version' | 'day' | 'time';
const text = textCodec('');
const axisCodec = choiceCodec<AxisName | 'auto'>(['commit', 'version', 'day', 'time', 'auto'],
	'auto');
const seriesCodec = listCodec(['auto']);
const AXES: [AxisName, string][] = [['commit', 'Commits'], ['version', 'Versions'], ['day', 'Days'],
	['time', 'Runs']];
const HEIGHT = 400;

function Table({ answer }: { answer: Answer }): ReactNode {
	const target = usePageTarget();
	return <Twin title="Show as table" heads={[{ text: 'Series' }, { text: 'At' }, { text: 'Time' },
		{ text: 'Mean', isNumber: true }, { text: 'Least', isNumber: true },
		{ text: 'Most', isNumber: true }, { text: 'Runs' }]}
	rows={answer.series.flatMap((s) => s.points.map((p) => [s.name || 'All runs', placeOf(p),
		p.at === null ? '' : when(p.at), <Num key="v" v={p.value} />, <Num key="l" v={p.low} />,
		<Num key="h" v={p.high} />, <span key="r">{p.ids.slice(0, 6).map((id) => (
			<Link key={id} className="run-link" to={target(`/runs/${id}`)}>{id}</Link>))}</span>]))} />;
}

function Drawing({ answer, columns }: { answer: Answer; columns: Columns }): ReactNode {
	const { flipped, flip } = useFlipped();
	const target = usePageTarget();
	const series = useMemo(() => linesOf(answer, flipped), [answer, flipped]);
	const measure = useMemo(() => columns.measure(answer.metric), [columns, answer.metric]);
	const isCommit = answer.axis === 'commit', isNamed = isCommit || answer.axis === 'version';
	const make = useCallback((ink: Ink, size: Size) => linesOption({
		series: series.map((s) => (isCommit ? { ...s, points: s.points.map((p) =>
			({ ...p, x: shortCommit(String(p.x)) })) } : s)),
		y: measure, foot: 'Click opens the runs.',
		x: { name: isCommit ? 'Commit of the engine' : isNamed ? 'Version of the engine' : 'Time',
			kind: isNamed ? 'category' : 'time',
			categories: isCommit ? commitsOf(answer.series).map(shortCommit) : versionsOf(answer.series) },
	}, ink, size), [series, measure, isCommit, isNamed, answer]);
	const click = (c: Click): void => {
		const hit = hitOf(series, c.seriesId, c.dataIndex);
		const at = hit ? series.indexOf(hit.series) : -1;
		const ids = answer.series[at]?.points[c.dataIndex]?.ids ?? [];
		if (ids.length === 1)
			navigate(target(`/runs/${ids[0]}`));
		else if (ids.length)
			navigate(target('/compare', { sel: ids.slice(0, 50).join(',') }));
	};
	const points = answer.series.reduce((n, s) => n + s.points.length, 0);
	return (
		<>
			<Chart label={`${measure.label} over ${isCommit ? 'commits' : isNamed ? 'versions' : 'time'}: `
				+ `${count(points, 'point')} in ${count(answer.series.length, 'series', 'series')}`}
			height={HEIGHT} make={make} onClick={click} />
			<Legend label="Series" hasForms entries={series.map((s, i) => ({ id: s.id, name: s.name,
				isShown: s.isShown, n: answer.series[i].points.length }))}
			onToggle={(id) => flip(series.find((s) => s.id === id)?.name ?? id)} />
			{answer.left_out > 0 && <p className="dim small-text">{count(answer.left_out, 'run')} of the
				filter are in no series that is shown.</p>}
			<Table answer={answer} />
		</>
	);
}

function View({ columns }: { columns: Columns }): ReactNode {
	const [filter] = useFilter();
	const [chosen, setMetric] = useUrlState('m', text);
	const [axis, setAxis] = useUrlState('axis', axisCodec);
	const [by, setBy] = useUrlState('series', seriesCodec);
	const metric = chosen || firstOf(columns, [...RATE_COLUMNS, ...LATENCY_COLUMNS])
		|| columns.numbers[0]?.column || '';
	const answer = useRead('POST /api/analysis/trends', { filter: asked(filter), metric,
		axis: axis === 'auto' ? null : axis, series: by[0] === 'auto' ? null : by.filter((c) => c !== '') }, metric !== '');
	const on = axis === 'auto' ? answer.data?.axis : axis;
	const named = answer.data && by[0] === 'auto' ? Object.keys(answer.data.series[0]?.key ?? {}) : by;
	const told = named.filter((c) => c !== '' && (columns.of(c)?.distinct ?? 2) > 1);
	const isEmpty = answer.data && answer.data.series.every((s) => !s.points.length);
	return (
		<>
			<section className="card" aria-label="Trend">
				<div className="tools">
					<Pick label="Of" value={metric} onPick={setMetric} columns={columns}
						options={columns.numbers} />
					<div className="segments" role="group" aria-label="Axis">
						{AXES.map(([name, label]) => (
							<button key={name} type="button" aria-pressed={on === name}
								onClick={() => setAxis(name)}>{label}</button>
						))}
					</div>
					<PickMany label="A series per" values={told} max={16}
						columns={columns} options={columns.groups}
						onPick={(list) => setBy(list.length ? list : [''])} />
					{told.length < named.length && <span className="dim small-text">and what all runs have in
						common</span>}
				</div>
				{answer.isError ? <Failure error={answer.error} onRetry={() => void answer.refetch()} />
					: !answer.data ? <Loading />
						: isEmpty ? (
							<Empty title="Nothing to draw">
								<p>No trend is drawn: {answer.data.reason}.</p>
							</Empty>
						) : <Drawing answer={answer.data} columns={columns} />}
				{answer.data && <p className="dim small-text">{answer.data.order}</p>}
				<Notes notes={answer.data?.notes} />
			</section>
			{answer.data && !isEmpty && <Changes metric={answer.data.metric}
				series={answer.data.series} unit={answer.data.unit} reason={answer.data.reason} />}
		</>
	);
}

export default function Trends(): ReactNode {
	const columns = useColumns();
	return (
		<div className="page">
			<div className="page-head"><h1>Trends</h1><Scope /></div>
			{columns.error ? <Failure error={columns.error} onRetry={columns.retry} />
				: !columns.isReady ? <Loading /> : <View columns={columns} />}
		</div>
	);
}
