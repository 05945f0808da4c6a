// SPDX-License-Identifier: Apache-2.0
// scatter.tsx: throughput against latency, or any two figures.
import { useCallback, useMemo, useState, type ReactNode } from 'react';
import { Chart, type Click } from '../../charts/chart';
import {
	groupsOf, pointOf, pointRows, scatterOption, type Group, type Join, type Measure,
} from '../../charts/scatter';
import { isWide, titleOf, type Size } from '../../charts/axis';
import { drawnColour, placeOf, shapeOf } from '../../colour';
import { useIsBlock } from '../../common/block';
import { inOrder, type Columns } from '../../common/columns';
import { Legend } from '../../common/legend';
import { Pick, PickMany } from '../../common/pick';
import { Notes } from '../../common/notes';
import { both, useRead } from '../../common/routes';
import { Num, Twin } from '../../common/twin';
import { isEverything, type And, type Filter } from '../../filter';
import { Link } from '../../parts/link';
import { Empty, Failure, Loading } from '../../parts/states';
import { count } from '../../show';
import { whole } from '../../../lib/format';
import { idsCodec, useFilter, usePageTarget } from '../../state';
import { choiceCodec, listCodec, navigate, useUrlState } from '../../url';
import type { Ink } from '../../charts/ink';
import { others, rangeOf, span, without } from './brush';
import { useFacts } from './facts';
import { Pins, PINS_MAX, type Pinned } from './pins';
import { machineMetrics } from './view';

const joinCodec = choiceCodec<Join>(['frontier', 'none'], 'frontier');
const logCodec = choiceCodec<'auto' | '1' | '0'>(['auto', '1', '0'], 'auto');
const flipCodec = listCodec();
const JOINS: [Join, string][] = [['frontier', 'Best of each'], ['none', 'Points']];
const HEIGHT = 440;

interface Props {
	columns: Columns;
	x: string;
	y: string;
	by: string[];
	brush: And;
	/** In addition to the filter: the chosen workload. */
	only: Filter[];
	onX: (column: string) => void;
	onY: (column: string) => void;
	onBy: (columns: string[]) => void;
	onBrush: (next: And) => void;
}

interface ToolsProps extends Props {
	isMarking: boolean;
	isLogX: boolean;
	isLogY: boolean;
	onMarking: (on: boolean) => void;
}

function Tools(props: ToolsProps): ReactNode {
	const { columns, x, y, by, isMarking, isLogX, isLogY } = props;
	const [join, setJoin] = useUrlState('join', joinCodec);
	const [, setLogX] = useUrlState('lx', logCodec);
	const [, setLogY] = useUrlState('ly', logCodec);
	const machine = machineMetrics(columns.numbers);
	return (
		<div className="tools">
			<Pick label="X axis" value={x} onPick={props.onX} columns={columns} options={columns.numbers} />
			<Pick label="Y axis" value={y} onPick={props.onY} columns={columns} options={columns.numbers} />
			<PickMany label="Color by" values={by} onPick={props.onBy} columns={columns}
				options={columns.groups} max={4} />
			{machine.length > 0 && <span className="pick"><span>System</span>
				<div className="segments" role="group" aria-label="System metric as Y axis">
					{machine.map(([label, column]) => (
						<button key={column} type="button" aria-pressed={y === column}
							onClick={() => props.onY(column)}>{label}</button>
					))}
				</div></span>}
			<div className="segments" role="group" aria-label="Lines">
				{JOINS.map(([name, label]) => (
					<button key={name} type="button" aria-pressed={join === name}
						onClick={() => setJoin(name)}>{label}</button>
				))}
			</div>
			<div className="row tight">
				<button type="button" className="small" aria-pressed={isLogX}
					onClick={() => setLogX(isLogX ? '0' : '1')}>Log X</button>
				<button type="button" className="small" aria-pressed={isLogY}
					onClick={() => setLogY(isLogY ? '0' : '1')}>Log Y</button>
				<button type="button" className="small" aria-pressed={isMarking}
					title="Draw a rectangle: the other charts then show its runs"
					onClick={() => props.onMarking(!isMarking)}>Select area</button>
			</div>
		</div>
	);
}

function Table({ groups, x, y }: { groups: Group[]; x: Measure; y: Measure }): ReactNode {
	const target = usePageTarget();
	const rows = groups.flatMap((g) => g.points.map((p) => () => [
		<Link key="run" to={target(`/runs/${p.id}`)}>{p.id}</Link>, g.name,
		<Num key="x" v={p.x} />, <Num key="y" v={p.y} />, p.is_frontier ? 'yes' : '',
		p.is_degraded ? 'DEGRADED' : '',
	]));
	return <Twin title="Show as table" rows={rows} heads={[{ text: 'Run' }, { text: 'Group' },
		{ text: titleOf(x.label, x.unit), isNumber: true },
		{ text: titleOf(y.label, y.unit), isNumber: true }, { text: 'On frontier' },
		{ text: 'Verdict' }]} />;
}

export function Scatter(props: Props): ReactNode {
	const { columns, x, y, by, brush, only, onBrush } = props;
	const [filter] = useFilter();
	const [join] = useUrlState('join', joinCodec);
	const [logX] = useUrlState('lx', logCodec);
	const [logY] = useUrlState('ly', logCodec);
	const [flipped, setFlipped] = useUrlState('flip', flipCodec);
	const [isMarking, setMarking] = useState(false);
	const [pins, setPins] = useUrlState('pin', idsCodec);
	const isBlock = useIsBlock();
	const target = usePageTarget();
	const answer = useRead('POST /api/analysis/pareto',
		{ filter: both(filter, [...only, ...others(brush, [x, y])]), x, y, group: by.filter((c) => c !== '') },
		x !== '' && y !== '');
	const groups = useMemo(() => groupsOf(inOrder(answer.data?.groups ?? []), flipped), [answer.data, flipped]);
	const measures = useMemo(() => [columns.measure(x), columns.measure(y)], [columns, x, y]);
	const facts = useFacts(isBlock ? [] : pins.slice(0, PINS_MAX), [x, y], columns, !isBlock);
	const { ask } = facts;
	const [isLogX, isLogY] = useMemo(() => {
		const all = groups.filter((g) => g.isShown).flatMap((g) => g.points);
		const is = (word: string, values: number[], unit: string | null): boolean =>
			(word === 'auto' ? isWide(values, unit) : word === '1');
		return [is(logX, all.map((p) => p.x), measures[0].unit), is(logY, all.map((p) => p.y), measures[1].unit)];
	}, [groups, logX, logY, measures]);
	const area = useMemo(() => {
		const across = span(brush, x), up = span(brush, y);
		return across && up ? { x: across, y: up } : null;
	}, [brush, x, y]);
	const make = useCallback((ink: Ink, size: Size) => scatterOption({ groups, x: measures[0], y: measures[1],
		join, isLogX, isLogY, pins: pins.slice(0, PINS_MAX), ask }, ink, size),
	[groups, measures, join, isLogX, isLogY, pins, ask]);
	const hitOf = (hit: Click): number | undefined => (isMarking ? undefined : pointOf(groups, hit)?.point.id);
	const pin = (id: number | undefined): void => {
		if (id !== undefined)
			setPins((now) => (now.includes(id) ? now.filter((other) => other !== id) : [...now, id].slice(-PINS_MAX)),
				{ replace: true });
	};
	const open = (id: number | undefined): void => {
		if (id !== undefined)
			navigate(target(`/runs/${id}`));
	};
	const pinned = pins.slice(0, PINS_MAX).flatMap((id): Pinned[] => groups.filter((g) => g.isShown)
		.flatMap((g) => g.points.filter((p) => p.id === id).map((p) => ({ id, ids: [id], x: p.x, y: p.y,
			name: facts.known.get(id)?.name ?? g.name,
			rows: [...pointRows(p, measures[0], measures[1]), ...facts.known.get(id)?.rows ?? []] }))));
	const marked = (next: { x: [number, number]; y: [number, number] } | null): void => {
		const rest = without(brush, [x, y]);
		onBrush(next ? rangeOf(rangeOf(rest, x, ...next.x), y, ...next.y) : rest);
	};
	const saved = useMemo(() => ({
		title: `${measures[1].label} against ${measures[0].label}`, params: { view: 'any', x, y, g: by.join(',') },
		legend: () => groups.filter((g) => g.isShown && groups.length > 1).map((g) => ({ name: g.name,
			colour: drawnColour(g.id), shape: shapeOf(placeOf(g.id)) })),
		table: () => [['run', 'group', x, y, 'on_frontier', 'degraded'], ...groups.filter((g) => g.isShown)
			.flatMap((g) => g.points.map((p) => [p.id, g.name, p.x, p.y, String(p.is_frontier),
				String(p.is_degraded)]))],
	}), [groups, measures, x, y, by]);
	const total = answer.data?.total ?? 0, shown = answer.data?.shown ?? 0;
	return (
		<section className="card" role={isBlock ? 'group' : undefined}
			aria-label={`${measures[1].label} against ${measures[0].label}`}>
			{!isBlock && <Tools {...props} isMarking={isMarking} onMarking={setMarking} isLogX={isLogX} isLogY={isLogY} />}
			{answer.isError ? <Failure error={answer.error} onRetry={() => void answer.refetch()} />
				: !answer.data ? <Loading />
					: shown === 0 ? (
						<Empty title="No run has both metrics">
							<p>{count(total, 'run')} match{isEverything(filter) ? '' : ' the filter'}. Choose
								other metrics or a wider filter.</p>
						</Empty>
					) : (
						<>
							<Chart label={`${measures[1].label} against ${measures[0].label}, `
								+ `${count(shown, 'run')} in ${count(groups.length, 'group')}`}
							height={HEIGHT} make={make} onClick={(hit) => pin(hitOf(hit))} onDouble={(hit) => open(hitOf(hit))}
								isBrushing={isMarking}
							area={area} onArea={marked} saved={saved} />
							<Legend label="Groups" hasForms entries={groups.map((g) =>
								({ id: g.id, name: g.name, isShown: g.isShown, n: g.points.length }))}
							onToggle={(id) => setFlipped((now) => (now.includes(id)
								? now.filter((w) => w !== id) : [...now, id]), { replace: true })} />
							<p className="dim small-text">
								{shown < total ? `${whole(shown)} of ${count(total, 'run')}. The others lack one of the `
									+ 'metrics or are beyond the limit.' : `${count(total, 'run')}.`}
							</p>
							<Pins pins={pinned} x={measures[0]} y={measures[1]} onRemove={pin} />
							<Table groups={groups} x={measures[0]} y={measures[1]} />
						</>
					)}
			<Notes notes={answer.data?.notes} />
		</section>
	);
}
