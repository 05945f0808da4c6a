// SPDX-License-Identifier: Apache-2.0
// trends: one metric over commits or time, per series of comparable runs, and where it changed.
import { useCallback, useMemo, useState, type ReactNode } from 'react';
import type { Trends as Answer } from '../../../lib/api';
import { Chart, type Click } from '../../charts/chart';
import type { Size } from '../../charts/axis';
import type { Ink } from '../../charts/ink';
import { hitOf, linesOption } from '../../charts/lines';
import { arrange } from '../../colour';
import { useIsBlock } from '../../common/block';
import {
	firstOf, LATENCY_COLUMNS, RATE_COLUMNS, useColumns, type Columns,
} from '../../common/columns';
import { percent } from '../../common/interval';
import { Notes } from '../../common/notes';
import { Pick, PickMany } from '../../common/pick';
import { useRead } from '../../common/routes';
import { NoRuns, Scope } from '../../common/scope';
import { useFlipped } from '../../common/shown';
import { Num, Twin } from '../../common/twin';
import { asked } from '../../filter';
import { useKeys } from '../../keys';
import { Link } from '../../parts/link';
import { Empty, Failure, Loading } from '../../parts/states';
import { count, when } from '../../show';
import { useFilter, usePageTarget } from '../../state';
import { choiceCodec, flagCodec, listCodec, navigate, textCodec, useUrlState } from '../../url';
import { Changes } from './changes';
import { SeriesList } from './list';
import {
	changesOf, commitsOf, drawable, eventsOf, linesOf, namesOf, ordered, placeOf, placesOf, relative, ONLY, shortCommit,
	spanOf, versionsOf, type Change, type Names,
} from './model';
import '../../common/pages.css';
import './trends.css';

type AxisName = 'commit' | 'version' | 'day' | 'time';
const text = textCodec('');
const axisCodec = choiceCodec<AxisName | 'auto'>(['commit', 'version', 'day', 'time', 'auto'],
	'auto');
const seriesCodec = listCodec(['auto']), relativeCodec = flagCodec();
const AXES: [AxisName, string][] = [['commit', 'Commits'], ['version', 'Versions'], ['day', 'Days'],
	['time', 'Runs']];
const HEIGHT = 400, COMMON_SHOWN = 3;
/**
 * More rules of changes and versions than this would hide the lines; the list below has them all.
 */
const EVENTS_SHOWN = 24;
const onlyCodec = choiceCodec(ONLY.map(([name]) => name), 'all');

function Table({ answer, names }: { answer: Answer; names: Names }): ReactNode {
	const target = usePageTarget();
	return <Twin title="Show as table" heads={[{ text: 'Series' }, { text: answer.axis === 'commit' ? 'Commit' : 'Date' }, { text: 'Time' },
		{ text: 'Mean', isNumber: true }, { text: 'Min', isNumber: true },
		{ text: 'Max', isNumber: true }, { text: 'Runs' }]}
	rows={answer.series.flatMap((s) => s.points.map((p) => [names.of.get(s.id) ?? s.name, placeOf(p),
		p.at === null ? '' : when(p.at), <Num key="v" v={p.value} />, <Num key="l" v={p.low} />,
		<Num key="h" v={p.high} />, <span key="r">{p.ids.slice(0, 6).map((id) => (
			<Link key={id} className="run-link" to={target(`/runs/${id}`)}>{id}</Link>))}</span>]))} />;
}

interface DrawingProps {
	answer: Answer; columns: Columns; names: Names; isRelative: boolean;
	/** The change that the reader is at. */
	now: Change | undefined;
}

function Drawing({ answer, columns, names, isRelative, now }: DrawingProps): ReactNode {
	const { flipped, flip } = useFlipped();
	const [only, setOnly] = useUrlState('only', onlyCodec);
	const target = usePageTarget();
	const series = useMemo(() => {
		const lines = linesOf(answer, flipped, names);
		arrange(lines.map((s) => s.id)); // the list is drawn before the chart, in the same colors
		return isRelative ? relative(lines) : lines;
	}, [answer, flipped, names, isRelative]);
	const measure = useMemo(() => {
		const m = columns.measure(answer.metric);
		return isRelative ? { ...m, label: `${m.label}, first = 100 %`, unit: '%' } : m;
	}, [columns, answer.metric, isRelative]);
	const isCommit = answer.axis === 'commit', isNamed = isCommit || answer.axis === 'version';
	const place = useMemo(() => placesOf(answer), [answer]);
	const events = useMemo(() => eventsOf(answer, percent), [answer]);
	const isFew = events.length <= EVENTS_SHOWN;
	const at = now && place(now.series.points[now.change.index]);
	const make = useCallback((ink: Ink, size: Size) => linesOption({
		rules: events.map((e) => ({ text: e.text, at: { x: e.x },
			isNow: e.kind === 'change' && e.place === at })).filter((rule) => isFew || rule.isNow),
		series: series.map((s) => (isCommit ? { ...s, points: s.points.map((p) =>
			({ ...p, x: shortCommit(String(p.x)) })) } : s)),
		y: measure, foot: 'Click opens the runs.',
		spans: measure.unit === '%' && !isRelative ? [] : spanOf(series),
		x: { name: isCommit ? 'Commit of the engine' : isNamed ? 'Version of the engine' : 'Time',
			kind: isNamed ? 'category' : 'time',
			categories: isCommit ? commitsOf(answer.series).map(shortCommit) : versionsOf(answer.series) },
	}, ink, size), [series, measure, isCommit, isNamed, isRelative, answer, events, isFew, at]);
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
			height={HEIGHT} make={make} onClick={click}
			saved={{ title: `${measure.label} over ${isCommit ? 'commits' : isNamed ? 'versions' : 'time'}`,
				params: { m: answer.metric } }} />
			{answer.series.length > 1 && <SeriesList series={answer.series} names={names} only={only} onOnly={setOnly}
				place={place} events={isFew ? events : []}
				isShown={(s) => series[answer.series.indexOf(s)]?.isShown ?? false}
				onToggle={(s) => flip(s.name)} />}
			<Table answer={answer} names={names} />
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
	const [isRelative, setRelative] = useUrlState('rel', relativeCodec);
	const isBlock = useIsBlock();
	const asks = useRead('POST /api/analysis/trends', { filter: asked(filter), metric,
		axis: axis === 'auto' ? null : axis, series: by[0] === 'auto' ? null : by.filter((c) => c !== '') }, metric !== '');
	const answer = useMemo(() => asks.data && { ...asks.data, series: ordered(drawable(asks.data.series)) }, [asks.data]);
	const names = useMemo(() => namesOf(answer?.series ?? [], (c) => columns.measure(c).label),
		[answer, columns]);
	const on = axis === 'auto' ? answer?.axis : axis;
	const keys = answer && by[0] === 'auto' ? Object.keys(answer.series[0]?.key ?? {}) : by;
	const listed = keys.filter((c) => c !== '' && (columns.of(c)?.distinct ?? 2) > 1);
	const isEmpty = answer && answer.series.every((s) => !s.points.length);
	const changes = useMemo(() => changesOf(answer?.series ?? []), [answer]);
	const [walked, setWalked] = useState<{ of: Change[]; at: number } | null>(null);
	const now = walked?.of === changes ? walked.at : -1;
	const walk = (by: number): void => {
		const next = now < 0 ? (by > 0 ? 0 : changes.length - 1) : (now + by + changes.length) % changes.length;
		if (changes.length)
			setWalked({ of: changes, at: next });
	};
	useKeys(isBlock ? [] : [{ key: 'n', text: 'go to the next change', act: () => walk(1) },
		{ key: 'p', text: 'go to the previous change', act: () => walk(-1) }]);
	return (
		<>
			<section className="card" role={isBlock ? 'group' : undefined} aria-label="Trend">
				{!isBlock && <>
					<div className="tools">
						<Pick label="Metric" value={metric} onPick={setMetric} columns={columns}
							options={columns.numbers} />
						<div className="segments" role="group" aria-label="X axis">
							{AXES.map(([name, label]) => (
								<button key={name} type="button" aria-pressed={on === name}
									onClick={() => setAxis(name)}>{label}</button>
							))}
						</div>
						<div className="segments" role="group" aria-label="Values">
							{[false, true].map((is) => (
								<button key={String(is)} type="button" aria-pressed={isRelative === is}
									onClick={() => setRelative(is)}>{is ? 'Relative to first' : 'Absolute'}</button>
							))}
						</div>
					</div>
					<details className="small-text">
						<summary className="dim" title={names.common.join(', ')}>Series by {count(listed.length, 'column')}
							{names.common.length > 0 && `. Common to all: ${names.common.slice(0, COMMON_SHOWN).join(', ')}`}
							{names.common.length > COMMON_SHOWN && ` and ${names.common.length - COMMON_SHOWN} more`}</summary>
						<PickMany label="Series by" values={listed} max={16}
							columns={columns} options={columns.groups}
							onPick={(list) => setBy(list.length ? list : [''])} />
					</details>
				</>}
				{metric === '' ? <NoRuns /> : asks.isError ? <Failure error={asks.error} onRetry={() => void asks.refetch()} />
					: !answer ? <Loading />
						: isEmpty ? (
							<Empty title="Nothing to draw">
								<p>No trend is drawn: {answer.reason}.</p>
								<p className="row centre">{answer.axes.filter((o) => o.axis !== on).map((o) => (
									<button key={o.axis} type="button" className="small" onClick={() => setAxis(o.axis)}>
										{AXES.find(([name]) => name === o.axis)?.[1]} would work: {count(o.runs, 'run')}</button>
								))}</p>
							</Empty>
						) : <Drawing answer={answer} columns={columns} names={names} isRelative={isRelative}
							now={changes[now]} />}
				{answer && asks.data && answer.series.length < asks.data.series.length
					&& <p className="dim small-text">{count(asks.data.series.length - answer.series.length,
						'series has', 'series have')} a single point and {asks.data.series.length
						- answer.series.length === 1 ? 'is' : 'are'} hidden.</p>}
				{answer && <p className="dim small-text">{answer.order}</p>}
				<Notes notes={answer?.notes} />
			</section>
			{answer && !isEmpty && !isBlock && <Changes metric={answer.metric} names={names}
				series={answer.series} list={changes} now={now} unit={answer.unit} reason={answer.reason}
				isJudged={answer.is_judged} />}
		</>
	);
}

export default function Trends(): ReactNode {
	const columns = useColumns(), isBlock = useIsBlock();
	return (
		<div className="page">
			{!isBlock && <div className="page-head"><h1>Trends</h1><Scope /></div>}
			{columns.error ? <Failure error={columns.error} onRetry={columns.retry} />
				: !columns.isReady ? <Loading /> : <View columns={columns} />}
		</div>
	);
}
