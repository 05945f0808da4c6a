// SPDX-License-Identifier: Apache-2.0
// parallel.tsx: parallel coordinates. A drag along an axis marks that part for all other charts.
import { useCallback, useMemo, type ReactNode } from 'react';
import type { Parallel as Answer } from '../../../lib/api';
import { whole } from '../../../lib/format';
import { titleOf, type Size } from '../../charts/axis';
import { Chart, type Click, type Part } from '../../charts/chart';
import type { Table as Cells } from '../../charts/export';
import type { Ink } from '../../charts/ink';
import {
	categories, chosen, isNumeric, parallelOption, partsOf, STACKED_PX, withoutConstant,
} from '../../charts/parallel';
import { useIsBlock } from '../../common/block';
import { firstOf, varies, type Columns } from '../../common/columns';
import { PickMany } from '../../common/pick';
import { Notes } from '../../common/notes';
import { both, useRead } from '../../common/routes';
import { Twin } from '../../common/twin';
import { conditionOn, type And, type Filter } from '../../filter';
import { Link } from '../../parts/link';
import { Empty, Failure, Loading } from '../../parts/states';
import { count, showCell } from '../../show';
import { useFilter, usePageTarget } from '../../state';
import { listCodec, navigate, useUrlState } from '../../url';
import { others, rangeOf, valuesOf, without } from './brush';

const axesCodec = listCodec(['auto']);
const LINES_MAX = 1000, HEIGHT = 360, AXIS_WIDTH = 120, SMALL_PX = 600, AXES_USUAL = 9;
const USUAL = ['server.max_num_seqs', 'benchmark.request_rate', 'benchmark.max_concurrency',
	'server.tensor_parallel_size', 'system.j_per_token'];

/** The axes that are most likely to distinguish the runs. */
export function usualAxes(columns: Columns, by: string[], metrics: string[]): string[] {
	const parameters = USUAL.filter((c) => varies(columns.of(c)));
	const extra = parameters.length ? [] : columns.groups.slice(0, 2).map((c) => c.column);
	return [...new Set([...by, ...parameters, ...extra, ...metrics,
		firstOf(columns, ['median_tpot_ms', 'median_itl_ms']) ?? ''])]
		.filter((c) => c !== '' && columns.of(c)).slice(0, AXES_USUAL);
}

function Table({ answer, labels }: { answer: Answer; labels: string[] }): ReactNode {
	const target = usePageTarget();
	return <Twin title="Show as table" heads={[{ text: 'Run' }, ...labels.map((text, i) =>
		({ text, isNumber: isNumeric(answer.axes[i]) }))]}
	rows={answer.lines.map((line) => () => [
		<Link key="run" to={target(`/runs/${line.id}`)}>{line.id}</Link>,
		...line.values.map((v, i) => (v === null ? '–' : showCell(answer.axes[i].column, v))),
	])} />;
}

interface Props {
	columns: Columns;
	by: string[];
	brush: And;
	only: Filter[];
	onBrush: (next: And) => void;
	usual: string[];
}

export function Parallel({ columns, by, brush, only, onBrush, usual }: Props): ReactNode {
	const [filter] = useFilter(), isBlock = useIsBlock();
	const [axes, setAxes] = useUrlState('axes', axesCodec);
	const target = usePageTarget();
	const isAuto = axes[0] === 'auto', wanted = isAuto ? usualAxes(columns, by, usual) : axes;
	const answer = useRead('POST /api/analysis/parallel',
		{ filter: both(filter, [...only, ...others(brush, wanted)]), columns: wanted, limit: LINES_MAX },
		wanted.length > 1);
	const data = useMemo(() => (isAuto && answer.data ? withoutConstant(answer.data, by) : answer.data),
		[isAuto, answer.data, by]);
	const list = data ? data.axes.map((a) => a.column) : wanted;
	const labels = useMemo(() => (data?.axes ?? []).map((a) => {
		const m = columns.measure(a.column);
		return titleOf(m.label, m.unit);
	}), [data, columns]);
	const colourBy = (data?.axes ?? []).findIndex((a) => by.includes(a.column));
	const isStacked = innerWidth < SMALL_PX;
	const make = useCallback((ink: Ink, size: Size) => (data
		? parallelOption({ answer: data, labels, colourBy, isStacked }, ink, size) : {}),
	[data, labels, colourBy, isStacked]);
	const parts = useMemo(() => (data ? data.axes.map((a, i) =>
		partsOf(data, i, conditionOn(brush, a.column))) : null), [data, brush]);
	const marked = (index: number, spans: Part[]): void => {
		const a = data?.axes[index];
		if (!data || !a)
			return;
		if (!spans.length)
			onBrush(without(brush, [a.column]));
		else if (isNumeric(a))
			onBrush(rangeOf(brush, a.column, spans[0][0], spans[0][1]));
		else
			onBrush(valuesOf(brush, a.column, spans.flatMap(([from, to]) =>
				chosen(categories(data, index), from, to))));
	};
	const saved = { title: 'Parallel coordinates', params: { view: 'parallel', axes: list.join(','), g: by.join(',') },
		table: (): Cells => [['run', ...list], ...(data?.lines ?? []).map((line) => [line.id,
			...line.values.map((v) => (typeof v === 'boolean' ? String(v) : v))])] };
	const click = (hit: Click): void => {
		const line = data?.lines[hit.dataIndex];
		if (line)
			navigate(target(`/runs/${line.id}`));
	};
	return (
		<section className="card" role={isBlock ? 'group' : undefined} aria-label="Parallel coordinates">
			{!isBlock && <div className="card-head">
				<h2>Parallel coordinates</h2>
				<PickMany label="Axes" values={list} columns={columns} max={12} add="Add axis"
					options={columns.all.filter(varies)}
					onPick={(next) => setAxes(next.length ? next : ['auto'])} />
			</div>}
			{list.length < 2 ? <Empty title="Select at least two axes" />
				: answer.isError ? <Failure error={answer.error} onRetry={() => void answer.refetch()} />
					: !data ? <Loading />
						: !data.lines.length ? <Empty title="No runs match" /> : (
							<>
								<p className="dim small-text">
									{data.lines.length < data.total
										? `${whole(data.lines.length)} of ${count(data.total, 'run')}. `
										: ''}
									{!isBlock && 'Drag along an axis to select a part of it; the other charts then show '
										+ 'those runs only.'}
								</p>
								<div className="scroll-x" tabIndex={0} role="region" aria-label="Drawing">
									<div style={{ minWidth: isStacked ? 0 : labels.length * AXIS_WIDTH }}>
										<Chart label={`${count(data.lines.length, 'run')} over ${labels.join(', ')}`}
											height={isStacked ? labels.length * STACKED_PX : HEIGHT} make={make}
											onClick={click} onAxis={marked} axes={parts}
											saved={saved} />
									</div>
								</div>
								<Table answer={data} labels={labels} />
							</>
						)}
			<Notes notes={answer.data?.notes} />
		</section>
	);
}
