// SPDX-License-Identifier: Apache-2.0
// range.tsx: the histogram of a number, with two handles that are also two fields.
import { useEffect, useRef, useState, type ReactNode } from 'react';
import type { Bound, RangeCondition } from '../../filter';
import type { Bin } from '../../query';
import { isTime, measured, showCell } from '../../show';
import { BARS, barsOf, parseBound, RANGE_STEPS, roundBound, writeBound } from './view';

interface Props {
	column: string;
	label: string;
	min: number;
	max: number;
	bins: Bin[];
	now: RangeCondition | undefined;
	onChange: (min: Bound | null, max: Bound | null) => void;
}

const SETTLE_MS = 150;
const HEIGHT = 44;

const finite = (b: Bound | undefined, otherwise: number): number =>
	(typeof b === 'number' ? b : otherwise);

function Bars({ bins, min, max, low, high }: {
	bins: Bin[]; min: number; max: number; low: number; high: number;
}): ReactNode {
	const bars = barsOf(bins, min, max), most = Math.max(1, ...bars);
	const size = (max - min) / BARS, width = 100 / BARS;
	return (
		<svg className="bars" viewBox={`0 0 100 ${HEIGHT}`} preserveAspectRatio="none" aria-hidden="true">
			{bars.map((n, i) => {
				const height = n ? Math.max(2, (n / most) * HEIGHT) : 0;
				const isIn = min + (i + 1) * size >= low && min + i * size <= high;
				return <rect key={i} x={i * width} y={HEIGHT - height} height={height}
					width={width - 0.5} className={isIn ? 'in' : 'out'} />;
			})}
		</svg>
	);
}

function Field({ column, label, value, end, onDone }: {
	column: string; label: string; value: Bound | undefined; end: number;
	onDone: (v: Bound | null) => void;
}): ReactNode {
	const [text, setText] = useState<string | null>(null);
	const done = (): void => {
		if (text === null)
			return;
		const bound = parseBound(column, text);
		if (bound !== undefined || text.trim() === '')
			onDone(bound ?? null);
		setText(null);
	};
	return (
		<input type="text" aria-label={label} placeholder={isTime(column) ? showCell(column, end) : measured(end)}
			value={text ?? writeBound(column, value)}
			onChange={(event) => setText(event.target.value)} onBlur={done}
			onKeyDown={(event) => {
				if (event.key === 'Enter')
					done();
			}} />
	);
}

export function Range({ column, label, min, max, bins, now, onChange }: Props): ReactNode {
	const [draft, setDraft] = useState<[number, number] | null>(null);
	const timer = useRef<ReturnType<typeof setTimeout> | undefined>(undefined);
	useEffect(() => () => clearTimeout(timer.current), []);
	const low = draft?.[0] ?? Math.max(min, finite(now?.range.min, min));
	const high = draft?.[1] ?? Math.min(max, finite(now?.range.max, max));
	const move = (next: [number, number]): void => {
		setDraft(next);
		clearTimeout(timer.current);
		timer.current = setTimeout(() => {
			onChange(next[0] <= min ? null : next[0], next[1] >= max ? null : next[1]);
			setDraft(null);
		}, SETTLE_MS);
	};
	const handle = (which: 0 | 1): ReactNode => (
		<input type="range" min={min} max={max} step="any" value={which ? high : low}
			aria-label={`${label}, ${which ? 'at most' : 'at least'}`}
			aria-valuetext={showCell(column, which ? high : low)}
			onKeyDown={(event) => {
				const way = { ArrowLeft: -1, ArrowDown: -1, ArrowRight: 1, ArrowUp: 1,
					PageDown: -10, PageUp: 10 }[event.key];
				if (way === undefined)
					return;
				event.preventDefault();
				const v = roundBound(column,
					(which ? high : low) + (way * (max - min)) / RANGE_STEPS * 2, min, max);
				move(which ? [low, Math.max(low, v)] : [Math.min(high, v), high]);
			}}
			onChange={(event) => {
				const v = roundBound(column, Number(event.target.value), min, max);
				move(which ? [low, Math.max(low, v)] : [Math.min(high, v), high]);
			}} />
	);
	return (
		<div className="range">
			<Bars bins={bins} min={min} max={max} low={low} high={high} />
			{max > min && <div className="handles">{handle(0)}{handle(1)}</div>}
			<div className="ends">
				<Field column={column} label={`${label}, at least`} end={min}
					value={draft ? (draft[0] <= min ? undefined : draft[0]) : now?.range.min}
					onDone={(v) => onChange(v, now?.range.max ?? null)} />
				<span className="dim" aria-hidden="true">to</span>
				<Field column={column} label={`${label}, at most`} end={max}
					value={draft ? (draft[1] >= max ? undefined : draft[1]) : now?.range.max}
					onDone={(v) => onChange(now?.range.min ?? null, v)} />
			</div>
		</div>
	);
}
