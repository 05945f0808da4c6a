// SPDX-License-Identifier: Apache-2.0
// resources: how hard the machine works for what it gives, over any set of runs.
import { useCallback, useMemo, type ReactNode } from 'react';
import type { Resources as Answer } from '../../../lib/api';
import { Chart, type Click } from '../../charts/chart';
import type { Ink } from '../../charts/ink';
import { titleOf, type Size } from '../../charts/axis';
import { pointOf, scatterOption, type Group } from '../../charts/scatter';
import {
	firstOf, GROUP_COLUMNS, RATE_COLUMNS, useColumns, type Columns,
} from '../../common/columns';
import { Legend } from '../../common/legend';
import { Pick } from '../../common/pick';
import { Notes } from '../../common/notes';
import { useRead } from '../../common/routes';
import { Scope } from '../../common/scope';
import { isSeen, useFlipped } from '../../common/shown';
import { Num, Twin } from '../../common/twin';
import { asked } from '../../filter';
import { Link } from '../../parts/link';
import { Empty, Failure, Loading } from '../../parts/states';
import { count, showValue } from '../../show';
import { useFilter, usePageTarget } from '../../state';
import { navigate, textCodec, useUrlState } from '../../url';
import '../../common/pages.css';

const text = textCodec('');
const HEIGHT = 420, SHOWN_AT_FIRST = 12;

/** Questions in a click: what is drawn up. The names of a metric differ with what was watched. */
const QUESTIONS: [string, RegExp][] = [
	['GPU utilisation', /^system\..*gpu.*util|^system\.avg_gpu_utilization$/],
	['GPU memory', /^system\.peak_gpu_memory_gb$/],
	['Power', /^system\..*power.*mean|^system\.power_mean_w$/],
	['Energy per token', /^system\.j_per_token$/],
	['Tokens per joule', /^system\.tokens_per_s_per_w$/],
	['CPU', /^system\.host.*cpus_busy.*mean/],
	['KV cache', /^(system|server_metrics)\..*kv_cache.*(mean|max)|kv_cache_usage/],
];

export function questions(columns: Columns): [string, string][] {
	return QUESTIONS.flatMap(([name, pattern]): [string, string][] => {
		const found = columns.numbers.find((c) => pattern.test(c.column));
		return found ? [[name, found.column]] : [];
	});
}

/** Points by the value of the colour's column, the largest group first. */
export function byValue(answer: Answer, color: string, flipped: string[]): Group[] {
	const by = new Map<string, Group>();
	for (const p of answer.points) {
		const id = color ? showValue(color, p.values[color] ?? null) : 'all';
		const g = by.get(id) ?? { id, name: color ? id : 'All runs', points: [], isShown: true };
		g.points.push({ id: p.id, x: p.x, y: p.y, is_degraded: p.is_degraded, is_frontier: false });
		by.set(id, g);
	}
	return [...by.values()].sort((a, b) => b.points.length - a.points.length)
		.map((g, i) => ({ ...g, isShown: isSeen(i, g.id, flipped, SHOWN_AT_FIRST) }));
}

function Drawing({ answer, color, columns }: { answer: Answer; color: string; columns: Columns }): ReactNode {
	const { flipped, flip } = useFlipped();
	const target = usePageTarget();
	const groups = useMemo(() => byValue(answer, color, flipped), [answer, color, flipped]);
	const [x, y] = useMemo(() => [columns.measure(answer.x.column), columns.measure(answer.y.column)],
		[columns, answer]);
	const make = useCallback((ink: Ink, size: Size) => scatterOption({ groups, x, y, join: 'none',
		isLogX: false, isLogY: false }, ink, size), [groups, x, y]);
	const click = (hit: Click): void => {
		const found = pointOf(groups, hit);
		if (found)
			navigate(target(`/runs/${found.point.id}`));
	};
	return (
		<>
			<Chart label={`${y.label} against ${x.label}, ${count(answer.shown, 'run')}`} height={HEIGHT}
				make={make} onClick={click} />
			<Legend label="Groups" hasForms onToggle={flip} entries={groups.map((g) =>
				({ id: g.id, name: g.name, isShown: g.isShown, n: g.points.length }))} />
			<p className="dim small-text">{count(answer.shown, 'run')} of {count(answer.total, 'run')} drawn
				{answer.left_out > 0 && '; the others have not both figures, or do not count'}.</p>
			<Twin title="Show as table" heads={[{ text: 'Run' }, { text: 'Group' },
				{ text: titleOf(x.label, x.unit), isNumber: true },
				{ text: titleOf(y.label, y.unit), isNumber: true }]}
			rows={groups.flatMap((g) => g.points.map((p) => () => [
				<Link key="r" to={target(`/runs/${p.id}`)}>{p.id}</Link>, g.name,
				<Num key="x" v={p.x} />, <Num key="y" v={p.y} />]))} />
		</>
	);
}

function View({ columns }: { columns: Columns }): ReactNode {
	const [filter] = useFilter();
	const [chosenX, setX] = useUrlState('x', text);
	const [chosenY, setY] = useUrlState('y', text);
	const [chosenColor, setColor] = useUrlState('c', text);
	const list = questions(columns);
	const x = chosenX || firstOf(columns, RATE_COLUMNS) || columns.numbers[0]?.column || '';
	const y = chosenY || list[0]?.[1]
		|| columns.numbers.find((c) => c.group === 'system')?.column || '';
	const color = chosenColor === '-' ? '' : chosenColor || firstOf(columns, GROUP_COLUMNS) || '';
	const answer = useRead('POST /api/analysis/resources',
		{ filter: asked(filter), x, y, color: color || null }, x !== '' && y !== '');
	if (!y)
		return <Empty title="No run was watched" icon="warning"><p>Runs of <code>profllm run</code> with
			telemetry tell utilisation, memory and power.</p></Empty>;
	return (
		<section className="card" aria-label="Resources">
			<div className="tools">
				<div className="segments" role="group" aria-label="What is watched">
					{list.map(([name, column]) => (
						<button key={column} type="button" aria-pressed={y === column}
							onClick={() => setY(column)}>{name}</button>
					))}
				</div>
				<Pick label="Y axis" value={y} onPick={setY} columns={columns} options={columns.numbers} />
				<Pick label="X axis" value={x} onPick={setX} columns={columns} options={columns.numbers} />
				<Pick label="Color by" value={color} none="nothing" columns={columns}
					options={columns.groups} onPick={(c) => setColor(c || '-')} />
			</div>
			{answer.isError ? <Failure error={answer.error} onRetry={() => void answer.refetch()} />
				: !answer.data ? <Loading />
					: !answer.data.shown ? <Empty title="No run has both figures"><p>Choose another figure or a
						wider filter.</p></Empty>
						: <Drawing answer={answer.data} color={color} columns={columns} />}
			<Notes notes={answer.data?.notes} />
		</section>
	);
}

export default function Resources(): ReactNode {
	const columns = useColumns();
	return (
		<div className="page">
			<div className="page-head"><h1>Resources</h1><Scope /></div>
			{columns.error ? <Failure error={columns.error} onRetry={columns.retry} />
				: !columns.isReady ? <Loading /> : <View columns={columns} />}
		</div>
	);
}
