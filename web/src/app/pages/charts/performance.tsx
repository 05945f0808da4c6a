// SPDX-License-Identifier: Apache-2.0
// performance.tsx: the trade-off between speed for one user and throughput per GPU, for one
// workload. The server chooses what differs, what to draw and what to say; this page draws it.
import { useCallback, useMemo, useState, type KeyboardEvent, type ReactNode } from 'react';
import { titleOf, type Size } from '../../charts/axis';
import { Chart, type Click } from '../../charts/chart';
import {
	curvesOption, frontier, hasWhisker, looksOf, plansOf, spotsOf, tipRows, usualLines,
	type CurveOptions, type Lines, type Spot,
} from '../../charts/curves';
import type { Ink } from '../../charts/ink';
import { useIsBlock } from '../../common/block';
import type { Columns } from '../../common/columns';
import { Explain } from '../../common/explain';
import { Legend } from '../../common/legend';
import { Notes } from '../../common/notes';
import { Pick } from '../../common/pick';
import { computed, COST, Unpriced } from '../../common/prices';
import { useRead } from '../../common/routes';
import { NoRuns } from '../../common/scope';
import { Num, Twin } from '../../common/twin';
import { asked } from '../../filter';
import { useKeys } from '../../keys';
import { Link } from '../../parts/link';
import { Empty, Failure, Loading } from '../../parts/states';
import { count, measured } from '../../show';
import { idsCodec, useFilter, useIncludeInvalid, usePageTarget } from '../../state';
import { choiceCodec, listCodec, navigate, numberCodec, setParams, textCodec, useUrlState } from '../../url';
import type { Curves } from '../../../lib/api';
import { whole } from '../../../lib/format';
import { Pins, PINS_MAX } from './pins';
import { PRESETS, X_USUAL, Y_USUAL } from './presets';
import { Reading } from './reading';
import { readingText } from './view';

const NO_COLOR = '-';
const LINES: [Lines, string][] = [['best', 'Best of each'], ['all', 'Every configuration'], ['points', 'Points']];
const HEIGHT = 480, HEIGHT_SMALL = 320, SMALL_PX = 600;

const text = textCodec('');
const xCodec = textCodec(X_USUAL), yCodec = textCodec(Y_USUAL);
const atCodec = numberCodec(NaN);
const hideCodec = listCodec();
const linesCodec = choiceCodec<Lines | 'auto'>(['auto', 'best', 'all', 'points'], 'auto');
const logCodec = choiceCodec<'auto' | '1' | '0'>(['auto', '1', '0'], 'auto');

const isLog = (word: string): boolean | null => (word === 'auto' ? null : word === '1');

interface ToolsProps { columns: Columns; x: string; y: string; answer: Curves | undefined; lines: Lines }

function Tools({ columns, x, y, answer, lines }: ToolsProps): ReactNode {
	const [, setX] = useUrlState('x', xCodec);
	const [, setY] = useUrlState('y', yCodec);
	const [color, setColor] = useUrlState('color', text);
	const [, setLines] = useUrlState('lines', linesCodec);
	const [logX, setLogX] = useUrlState('lx', logCodec);
	const [logY, setLogY] = useUrlState('ly', logCodec);
	const used = answer?.color ?? '';
	const numbers = useMemo(() => [...columns.numbers, ...computed(columns)], [columns]);
	return (
		<div className="tools">
			<Pick label="Y axis" value={y} onPick={setY} columns={columns} options={numbers} />
			<Pick label="X axis" value={x} onPick={setX} columns={columns} options={numbers} />
			<Pick label="Color by" value={color === NO_COLOR ? '' : color || used} none="nothing"
				onPick={(c) => setColor(c || NO_COLOR)} columns={columns} options={columns.groups} />
			<div className="segments" role="group" aria-label="Lines">
				{LINES.map(([name, label]) => (
					<button key={name} type="button" aria-pressed={lines === name}
						onClick={() => setLines(name)}>{label}</button>
				))}
			</div>
			<div className="row tight">
				<button type="button" className="small" aria-pressed={logX === '1'}
					onClick={() => setLogX(logX === '1' ? '0' : '1')}>Log X</button>
				<button type="button" className="small" aria-pressed={logY === '1'}
					onClick={() => setLogY(logY === '1' ? '0' : '1')}>Log Y</button>
			</div>
		</div>
	);
}

type HeadProps = Omit<ToolsProps, 'lines'>;

function Head({ columns, x, y, answer }: HeadProps): ReactNode {
	const [, setWorkload] = useUrlState('w', text);
	const own = computed(columns).map((c) => c.column);
	const has = (column: string): boolean => columns.of(column) !== undefined || own.includes(column);
	const there = PRESETS.filter(([, a, b]) => has(a) && has(b));
	return (
		<div className="performance-head">
			<label className="pick workload">
				<span>Workload</span>
				<select value={answer?.workload ?? ''} onChange={(e) => setWorkload(e.target.value)}>
					{(answer?.workloads ?? []).map((w) => (
						<option key={w.key} value={w.key}>{w.label} ({count(w.runs, 'run')})</option>
					))}
				</select>
			</label>
			<div className="row tight presets" role="group" aria-label="Presets">
				{there.map(([label, a, b]) => (
					<button key={label} type="button" className="small" aria-pressed={a === x && b === y}
						onClick={() => setParams({ x: xCodec.write(a), y: yCodec.write(b), at: null, pin: null })}>
						{label}</button>
				))}
			</div>
		</div>
	);
}

function Table({ spots, x, y }: { spots: Spot[]; x: CurveOptions['x']; y: CurveOptions['y'] }): ReactNode {
	const target = usePageTarget();
	const heads = [{ text: 'Run' }, { text: 'Color' }, { text: 'Configuration' }, { text: 'Load', isNumber: true },
		{ text: titleOf(x.label, x.unit), isNumber: true }, { text: titleOf(y.label, y.unit), isNumber: true },
		{ text: 'On frontier' }, { text: 'Verdict' }];
	return <Twin title="Show as table" heads={heads} rows={spots.map(({ point, line, id }) => () => [
		<Link key="run" to={target(`/runs/${id}`)}>{id}</Link>, line.color, line.name,
		<Num key="load" v={point.load} />, <Num key="x" v={point.x} />, <Num key="y" v={point.y} />,
		point.is_frontier ? 'yes' : '',
		point.is_invalid ? 'INVALID' : point.is_degraded ? 'DEGRADED' : ''])} />;
}

interface DrawingProps { answer: Curves; columns: Columns; lines: Lines }

function Drawing({ answer, columns, lines }: DrawingProps): ReactNode {
	const [hidden, setHidden] = useUrlState('hide', hideCodec);
	const [pins, setPins] = useUrlState('pin', idsCodec);
	const [, setAt] = useUrlState('at', atCodec);
	const [isAll, setAll] = useIncludeInvalid();
	const [logX] = useUrlState('lx', logCodec);
	const [logY] = useUrlState('ly', logCodec);
	const [pointed, setPointed] = useState<string | null>(null);
	const [focus, setFocus] = useState<number | null>(null);
	const target = usePageTarget();
	const looks = useMemo(() => looksOf(answer.colors,
		columns.of(answer.color ?? '')?.kind === 'number'), [answer, columns]);
	const spots = useMemo(() => spotsOf(answer.lines, looks), [answer, looks]);
	const [x, y] = useMemo(() => [columns.measure(answer.x.column), columns.measure(answer.y.column)],
		[columns, answer]);
	const options = useMemo((): CurveOptions => ({ spots, looks, x, y, lines, pointed, focus,
		pins: pins.slice(0, PINS_MAX), at: answer.at, isLogX: isLog(logX), isLogY: isLog(logY),
		isShown: (color) => !hidden.includes(color) }),
	[spots, looks, x, y, lines, pointed, focus, pins, answer, logX, logY, hidden]);
	const seen = useMemo(() => spots.filter((s) => options.isShown(s.line.color)), [spots, options]);
	const make = useCallback((ink: Ink, size: Size) => curvesOption(options, ink, size), [options]);
	const open = (s: Spot | undefined): void => {
		if (s)
			navigate(target(`/runs/${s.id}`));
	};
	const pin = (s: Spot | undefined): void => {
		if (s)
			setPins((now) => (now.includes(s.id) ? now.filter((id) => id !== s.id)
				: [...now, s.id].slice(-PINS_MAX)), { replace: true });
	};
	const spotOf = (c: Click): Spot | undefined => (c.seriesId === 'dots' ? seen[c.dataIndex] : undefined);
	const pressed = (event: KeyboardEvent): void => {
		const colors = [...looks.keys()].filter(options.isShown), now = focus === null ? undefined : spots[focus];
		const row = (color: string): Spot[] => frontier(seen.filter((s) => s.line.color === color));
		const step = { ArrowRight: [0, 1], ArrowLeft: [0, -1], ArrowUp: [-1, 0], ArrowDown: [1, 0] }[event.key];
		if (step && colors.length) {
			event.preventDefault();
			const color = colors[(Math.max(0, colors.indexOf(now?.line.color ?? '')) + step[0] + colors.length)
				% colors.length];
			const list = row(color), i = now ? list.indexOf(now) : -1;
			const next = list[Math.min(list.length - 1, Math.max(0, (now && !step[0] ? i : 0) + (now ? step[1] : 0)))];
			if (next)
				setFocus(spots.indexOf(next));
		} else if (event.key === 'Enter')
			open(now);
		else if (event.key === ' ') {
			event.preventDefault();
			pin(now);
		}
	};
	useKeys([{ key: 'Escape', text: 'remove the last pin', act: () => setPins((now) => now.slice(0, -1),
		{ replace: true }) }]);
	const pinned = pins.slice(0, PINS_MAX).flatMap((id) => spots.filter((s) => s.id === id).slice(0, 1))
		.map((s) => ({ id: s.id, ids: s.point.ids, name: s.name, x: s.point.x, y: s.point.y, rows: tipRows(s) }));
	const { invalid, would_lead: wouldLead } = answer.left_out, isBlock = useIsBlock();
	const missing = answer.left_out.missing - Math.max(0, ...answer.trust.map((t) => t.failed));
	const workload = answer.workloads.find((w) => w.key === answer.workload)?.label;
	const common = answer.common.length
		? `In common: ${answer.common.map((c) => `${c.label} ${c.value}`).join(' · ')}` : '';
	const reading = readingText(answer, x, y), label = `${y.label} against ${x.label}`;
	const spoken = focus !== null ? spots[focus] : undefined;
	const saved = useMemo(() => ({
		title: label, params: { w: answer.workload ?? '' }, notes: [[answer.sentence, reading].filter(Boolean).join(' '), common].filter(Boolean),
		legend: () => answer.colors.filter((c) => c.key && c.points > 0 && options.isShown(c.key)).map((c) => ({ name: c.key,
			colour: looks.get(c.key)?.drawn() ?? '', shape: looks.get(c.key)?.shape ?? '' })),
		table: () => [['run', 'color', 'configuration', 'load', answer.x.column, answer.y.column, 'on_frontier',
			'degraded', 'invalid', 'runs'], ...seen.map((s) => [s.id, s.line.color, s.line.name, s.point.load, s.point.x,
			s.point.y, String(s.point.is_frontier), String(s.point.is_degraded), String(s.point.is_invalid),
			s.point.ids.join(' ')])],
	}), [label, answer, reading, common, options, looks, seen]);
	return (
		<>
			<p className="answer"><strong>{answer.sentence}</strong> <span className="dim">{reading}</span>
				{' '}<Explain topic="winner" /></p>
			<div tabIndex={0} role="application" className="chart-keys" onKeyDown={pressed}
				aria-label={`${label}. Arrow keys go from point to point, Enter opens, space pins.`}>
				<Chart label={`${answer.sentence} ${label}, ${count(seen.length, 'point')}`} make={make}
					height={innerWidth < SMALL_PX ? HEIGHT_SMALL : HEIGHT} saved={saved}
					onClick={(c) => pin(spotOf(c))} onDouble={(c) => open(spotOf(c))}
					over={(size) => answer.at !== null && <Reading plan={plansOf(options, size).x} size={size}
						at={answer.at} label={titleOf(x.label, x.unit)}
						onMove={(at) => setAt(at, { replace: true })} />} />
			</div>
			<p className="unseen" aria-live="polite">{spoken && `${spoken.name}: ${y.label} `
				+ `${measured(spoken.point.y)}, ${x.label} ${measured(spoken.point.x)}`}</p>
			<Legend label={answer.color ? columns.measure(answer.color).label : 'Colors'} hasForms onPoint={setPointed}
				entries={answer.colors.filter((c) => c.points > 0).map((c) => ({ id: c.key, name: c.key || 'missing', n: c.points,
					isShown: options.isShown(c.key), place: looks.get(c.key)?.place ?? 0,
					colour: looks.get(c.key)?.css ?? '' }))}
				onToggle={(id) => setHidden((now) => (now.includes(id) ? now.filter((h) => h !== id)
					: [...now, id]), { replace: true })}
				onOnly={(id) => setHidden((now) => {
					const rest = answer.colors.map((c) => c.key).filter((key) => key !== id);
					return rest.every((key) => now.includes(key)) && !now.includes(id) ? [] : rest;
				}, { replace: true })} />
			{isBlock && answer.workloads.length > 1 && workload && <p className="dim small-text">Workload: {workload}</p>}
			<p className="dim small-text common">
				{common && <span>{common}. </span>}
				<span>{answer.shown < answer.total && `${whole(answer.shown)} of `}{count(answer.total, 'point')}
					{missing > 0 && `; ${count(missing, 'run')} ${missing === 1 ? 'lacks' : 'lack'} one of the metrics`}. </span>
				{invalid > 0 && <span>{`${whole(invalid)} INVALID ${isAll ? 'shown as crosses' : 'left out'}`
					+ `${wouldLead ? ' (would lead)' : ''}`}: <button type="button" className="text"
					onClick={() => setAll(!isAll)}>{isAll ? 'hide' : 'show'}</button></span>}
				{seen.some((s) => hasWhisker(s.point, lines)) && <span> Thin lines: where the median of repeats lies with
					95 %; of up to 6 repeats, min to max.</span>}
			</p>
			<Pins pins={pinned} x={x} y={y} onRemove={(id) => setPins((now) => now.filter((p) => p !== id),
				{ replace: true })} />
			<Table spots={seen} x={x} y={y} />
		</>
	);
}

export function Performance({ columns }: { columns: Columns }): ReactNode {
	const [filter] = useFilter();
	const [x] = useUrlState('x', xCodec);
	const [wantedY] = useUrlState('y', yCodec);
	/* Where no run says its GPUs, a chart of all of them would be empty. */
	const y = wantedY === Y_USUAL && !columns.of(Y_USUAL) && columns.of('output_throughput')
		? 'output_throughput' : wantedY;
	const [color] = useUrlState('color', text);
	const [w] = useUrlState('w', text);
	const [at] = useUrlState('at', atCodec);
	const [wanted] = useUrlState('lines', linesCodec);
	const body = { filter: asked(filter), x, y, ...(w && { workload: w }), ...(Number.isFinite(at) && { at }),
		...(color && { color: color === NO_COLOR ? null : color }) };
	const answer = useRead('POST /api/analysis/curves', body);
	const lines = wanted !== 'auto' ? wanted : usualLines(answer.data?.lines ?? []);
	const isBlock = useIsBlock();
	return (
		<section className="card performance" role={isBlock ? 'group' : undefined} aria-label="Performance">
			{!isBlock && <Head columns={columns} x={x} y={y} answer={answer.data} />}
			{!isBlock && <Tools columns={columns} x={x} y={y} answer={answer.data} lines={lines} />}
			{[x, y].includes(COST) && <Unpriced gpus={answer.data?.unpriced ?? []} />}
			{answer.isError ? <Failure error={answer.error} onRetry={() => void answer.refetch()} />
				: !answer.data ? <Loading />
					: !answer.data.workloads.length ? <NoRuns />
					: answer.data.shown === 0 ? (
						<Empty title={answer.data.sentence.replace(/\..*$/s, '') || 'No run has both metrics'}>
							<p>Choose other metrics, another
								workload or a wider filter.</p>
						</Empty>
					) : <Drawing answer={answer.data} columns={columns} lines={lines} />}
			<Notes notes={answer.data?.notes} />
		</section>
	);
}
