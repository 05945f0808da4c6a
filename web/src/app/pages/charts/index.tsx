// SPDX-License-Identifier: Apache-2.0
// charts: the performance of one workload; or any two metrics, distributions, parallel coordinates.
import { useMemo, type ReactNode } from 'react';
import { adopt } from '../../colour';
import { asked, isEverything, whole, type And, type Filter } from '../../filter';
import { Icon } from '../../parts/icon';
import { Empty, Failure, Loading } from '../../parts/states';
import { useIsBlock } from '../../common/block';
import { Scope, partText } from '../../common/scope';
import {
	firstOf, GROUP_COLUMNS, LATENCY_COLUMNS, RATE_COLUMNS, useColumns, type Columns,
} from '../../common/columns';
import { PickMany } from '../../common/pick';
import { useRead } from '../../common/routes';
import { useKeys } from '../../keys';
import { Link } from '../../parts/link';
import { useApply } from '../../query';
import { count } from '../../show';
import { useFilter, usePageTarget, useShown } from '../../state';
import { listCodec, navigate, textCodec, useSearch, useUrlState } from '../../url';
import { brushCodec, merged } from './brush';
import { Distribution } from './distribution';
import { Parallel } from './parallel';
import { Performance } from './performance';
import { Scatter } from './scatter';
import { USUAL_VIEW, viewOf, VIEWS, type Name } from './view';
import '../../common/pages.css';

const text = textCodec('');
const groupCodec = listCodec(['auto']);

function Brushed({ brush, only, columns, onClear }: {
	brush: And; only: Filter[]; columns: Columns; onClear: () => void;
}): ReactNode {
	const [filter] = useFilter();
	const target = usePageTarget();
	if (isEverything(brush))
		return null;
	const whole = JSON.stringify(merged(filter, { and: [...brush.and, ...only] }));
	return (
		<div className="brushed" role="status">
			<span>Selected: {brush.and.map((part) => partText(part, columns)).join('; ')}</span>
			<Link className="button small" to={target('/charts', { f: whole })}>
				<Icon name="filter" />Use as filter
			</Link>
			<Link className="button small" to={target('/runs', { f: whole })}>Show these runs</Link>
			<button type="button" className="small" onClick={onClear}>Clear</button>
		</div>
	);
}

const WORKLOADS_LISTED = 50, TOGETHER = 'all', OF_WORKLOADS = /(^|\.)(model|workload|dataset_name|\w+_len)$/;

/**
 * Numbers of different workloads cannot be compared: shows one of them, and all together only if
 * asked for.
 */
function Workloads({ value, onValue }: { value: string; onValue: (w: string) => void }): ReactNode {
	const [filter] = useFilter(), [shown] = useShown();
	const answer = useApply({ filter: whole(filter), shown, limit: 0, facets: ['workload'],
		facet_values: WORKLOADS_LISTED });
	const facet = answer.data?.facets[0];
	if ((facet?.distinct ?? 0) < 2)
		return null;
	return (
		<label className="pick workload">
			<span>Workload</span>
			<select value={value} onChange={(e) => onValue(e.target.value)}>
				{(facet?.values ?? []).flatMap((v) => (typeof v.value === 'string'
					? [<option key={v.value} value={v.value}>{v.value} ({count(v.count, 'run')})</option>] : []))}
				<option value={TOGETHER}>{`all ${facet?.distinct ?? ''} together`}</option>
			</select>
		</label>
	);
}

/**
 * The performance chart of these runs: its workload is the usual one here too, and its colors
 * apply.
 */
function useUsual(): { workload: string; color: string | null; isPending: boolean } {
	const [filter] = useFilter();
	const answer = useRead('POST /api/analysis/curves', { filter: asked(filter) });
	useMemo(() => {
		const names = answer.data?.colors.map((c) => c.key) ?? [];
		adopt(names, names.map((name) => [name, name]));
	}, [answer.data]);
	return { workload: answer.data?.workload ?? '', color: answer.data?.color ?? null, isPending: answer.isPending };
}

/** Any two metrics come with the other two drawings, so that an area selected in one holds in all. */
function View({ columns, view }: { columns: Columns; view: Name }): ReactNode {
	const [x, setX] = useUrlState('x', text);
	const [y, setY] = useUrlState('y', text);
	const [groups, setGroups] = useUrlState('g', groupCodec);
	const [brush, setBrush] = useUrlState('brush', brushCodec);
	const xs = x || firstOf(columns, RATE_COLUMNS) || columns.numbers[0]?.column || '';
	const ys = y || firstOf(columns, LATENCY_COLUMNS) || columns.numbers[1]?.column || xs;
	const performance = useUsual();
	const usual = performance.color !== null && columns.of(performance.color) ? performance.color
		: firstOf(columns, GROUP_COLUMNS);
	const by = useMemo(() => (groups[0] === 'auto' ? (usual ? [usual] : []) : groups), [groups, usual]);
	const [w, setW] = useUrlState('w', text);
	const isAny = view === 'any', isBlock = useIsBlock();
	/* Coloring by a part of the workload requires several workloads. */
	const chosen = w || (by.some((c) => OF_WORKLOADS.test(c)) ? TOGETHER : performance.workload || TOGETHER);
	const only = useMemo((): Filter[] => (chosen === TOGETHER ? [] : [{ column: 'workload', in: [chosen] }]), [chosen]);
	const has = (name: Name): boolean => view === name || (isAny && !isBlock);
	useKeys([{ key: 'Escape', text: 'clear the selected area', act: () => setBrush({ and: [] }) }]);
	if (performance.isPending)
		return <Loading />;
	return (
		<>
			{!isBlock && <Brushed brush={brush} only={only} columns={columns} onClear={() => setBrush({ and: [] })} />}
			{!isBlock && <div className="tools">
				<Workloads value={chosen} onValue={setW} />
				{!isAny && <PickMany label="Color by" values={by} max={4} columns={columns} options={columns.groups}
					onPick={(list) => setGroups(list.length ? list : [''])} />}
			</div>}
			{isAny && <Scatter columns={columns} x={xs} y={ys} by={by} brush={brush} only={only} onX={setX} onY={setY}
				onBy={(list) => setGroups(list.length ? list : [''])} onBrush={setBrush} />}
			{has('distribution') && <Distribution columns={columns} by={by} brush={brush} only={only} usual={ys} />}
			{has('parallel') && <Parallel columns={columns} by={by} brush={brush} only={only} onBrush={setBrush}
				usual={[xs, ys]} />}
		</>
	);
}

function Views(): ReactNode {
	const now = viewOf(useSearch()), target = usePageTarget();
	return (
		<div className="segments" role="group" aria-label="View">
			{VIEWS.map(([name, label]) => (
				<button key={name} type="button" aria-pressed={now === name} onClick={() =>
					navigate(target('/charts', name === USUAL_VIEW ? {} : { view: name }))}>{label}</button>
			))}
		</div>
	);
}

export default function Charts(): ReactNode {
	const columns = useColumns();
	const view = viewOf(useSearch()), isBlock = useIsBlock();
	return (
		<div className="page charts-page">
			{!isBlock && <div className="page-head"><h1>Charts</h1><Views /><Scope /></div>}
			{columns.error ? <Failure error={columns.error} onRetry={columns.retry} />
				: !columns.isReady ? <Loading />
					: columns.numbers.length < 1 ? (
						<Empty title="Nothing to draw yet" icon="upload">
							<p><Link to="/upload">Upload results</Link> and they appear here.</p>
						</Empty>
					) : view === 'performance' ? <Performance columns={columns} />
						: <View columns={columns} view={view} />}
		</div>
	);
}
