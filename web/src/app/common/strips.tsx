// SPDX-License-Identifier: Apache-2.0
// strips.tsx: quantities of a run over time, one strip below the other on one time axis. One cursor
// goes over all; a drag zooms all, a double click shows everything again.
import { useEffect, useId, useRef, useState, type KeyboardEvent, type PointerEvent, type ReactNode } from 'react';
import { measured, NOTHING } from '../show';
import {
	bandOf, pathOf, readingOf, rowsOf, stepOfView, stripsOf, summaryOf, ticksOf, timeAt, timeText, topOf,
	valueOf, viewWithin, wholeView, xOf, zoomed, type Series, type Strip, type View,
} from './series';
import { Num, Twin } from './twin';
import './strips.css';

const HEIGHT = 56, AIR = 3, DRAG_PX = 4, ZOOM = 1.6;

interface Looks {
	view: View;
	width: number;
	/** The cursor's time, in seconds. */
	at: number | null;
	/** What a drag has marked so far. */
	drag: View | null;
}

interface Hands {
	onDown: (e: PointerEvent<SVGSVGElement>) => void;
	onMove: (e: PointerEvent<SVGSVGElement>) => void;
	onUp: (e: PointerEvent<SVGSVGElement>) => void;
	onLeave: () => void;
	onDouble: () => void;
}

function Marks({ looks, height }: { looks: Looks; height: number }): ReactNode {
	const { view, width, at, drag } = looks, x = (t: number): number => xOf(t, view, width);
	return (
		<>
			{drag && <rect className="strip-drag" x={x(drag[0])} width={Math.max(0, x(drag[1]) - x(drag[0]))}
				y={0} height={height} />}
			{at !== null && <line className="strip-cursor" x1={x(at)} x2={x(at)} y1={0} y2={height} />}
		</>
	);
}

interface PlotProps { strip: Strip; looks: Looks; hands: Hands; measure?: (box: SVGSVGElement | null) => void }

function Plot({ strip, looks, hands, measure }: PlotProps): ReactNode {
	const { view, width } = looks, top = topOf(strip, view), clip = useId();
	const frame = { view, width, height: HEIGHT - 2 * AIR, top };
	return (
		<svg className="strip-plot" ref={measure} viewBox={`0 0 ${width} ${HEIGHT}`} height={HEIGHT} role="img"
			aria-label={summaryOf(strip)} preserveAspectRatio="none" onPointerDown={hands.onDown}
			onPointerMove={hands.onMove} onPointerUp={hands.onUp} onPointerLeave={hands.onLeave}
			onDoubleClick={hands.onDouble}>
			<clipPath id={clip}><rect x={0} y={-AIR} width={width} height={HEIGHT} /></clipPath>
			{ticksOf(view, width).map(({ t }) => (
				<line key={t} className="strip-grid" x1={xOf(t, view, width)} x2={xOf(t, view, width)} y1={0}
					y2={HEIGHT} />
			))}
			<g clipPath={`url(#${clip})`} transform={`translate(0 ${AIR})`}>
				{strip.lines.map((l, i) => (
					<g key={l.track.key} className={`strip-line line-${i}`}>
						<path className="band" d={bandOf(l.track, frame)} />
						<path className="line" d={pathOf(l.track, frame)} />
					</g>
				))}
			</g>
			<text className="strip-top" x={4} y={12}>{measured(top)}</text>
			<Marks looks={looks} height={HEIGHT} />
		</svg>
	);
}

function Values({ strip, at }: { strip: Strip; at: number | null }): ReactNode {
	return (
		<div className="strip-values">{strip.lines.map((l, i) => {
			const v = valueOf(l.track, at);
			return (
				<p key={l.track.key} className={`line-${i}`} data-track={l.track.key}>
					{l.label && <span className="dim">{strip.lines.length > 1 && <i className="strip-key" />}
						{l.label}</span>}
					<strong>{v === null ? NOTHING : <Num v={v} unit={strip.unit === 'requests' ? null
						: strip.unit} />}</strong>
				</p>
			);
		})}</div>
	);
}

/** Red marks where requests failed. */
function Failed({ times, looks, hands }: { times: number[]; looks: Looks; hands: Hands }): ReactNode {
	const { view, width } = looks, shown = times.filter((t) => t >= view[0] && t <= view[1]);
	return (
		<svg className="strip-plot" viewBox={`0 0 ${width} 20`} height={20} role="img"
			aria-label={`Times of ${times.length} failed requests`} preserveAspectRatio="none"
			onPointerDown={hands.onDown} onPointerMove={hands.onMove} onPointerUp={hands.onUp}
			onPointerLeave={hands.onLeave} onDoubleClick={hands.onDouble}>
			{shown.map((t, i) => <line key={i} className="strip-failed" x1={xOf(t, view, width)}
				x2={xOf(t, view, width)} y1={3} y2={17} />)}
			<Marks looks={looks} height={20} />
		</svg>
	);
}

function Axis({ view, width }: { view: View; width: number }): ReactNode {
	return (
		<svg className="strip-axis" viewBox={`0 0 ${width} 18`} height={18} preserveAspectRatio="none"
			aria-hidden="true">
			{ticksOf(view, width).map(({ t, text }) => {
				const x = xOf(t, view, width);
				return <text key={t} x={x} y={13} textAnchor={x < 20 ? 'start' : x > width - 30 ? 'end'
					: 'middle'}>{text}</text>;
			})}
		</svg>
	);
}

/** How wide the drawings are: all strips have the same column. */
function useWidth(): [number, (box: SVGSVGElement | null) => void] {
	const [width, setWidth] = useState(700), kept = useRef<ResizeObserver | null>(null);
	const measure = useRef((box: SVGSVGElement | null): void => {
		kept.current?.disconnect();
		if (!box)
			return;
		kept.current = new ResizeObserver(([entry]) =>
			setWidth(Math.max(80, Math.round(entry.contentRect.width))));
		kept.current.observe(box);
	});
	return [width, measure.current];
}

interface Props {
	series: Series;
	/** The visible part; null: everything. */
	view: View | null;
	onView: (view: View | null) => void;
	/** The values at the right are the current ones. */
	isLive?: boolean;
}

export function Strips({ series, view: wanted, onView, isLive = false }: Props): ReactNode {
	const [width, measure] = useWidth(), [at, setAt] = useState<number | null>(null);
	const [drag, setDrag] = useState<View | null>(null), [isSpoken, setSpoken] = useState(false);
	const from = useRef<{ x: number; t: number } | null>(null);
	const strips = stripsOf(series), all = wholeView(series);
	const view = wanted ? viewWithin(wanted, all) : all, step = stepOfView(view, width);
	useEffect(() => setAt((now) => (now === null || now <= all[1] ? now : null)), [all[1]]);
	const show = (next: View): void => onView(next[0] <= all[0] && next[1] >= all[1] ? null : next);
	const timeOf = (e: PointerEvent<SVGSVGElement>): { x: number; t: number } => {
		const box = e.currentTarget.getBoundingClientRect(), x = e.clientX - box.left;
		return { x, t: timeAt(x, view, box.width) };
	};
	const hands: Hands = {
		onDown: (e) => {
			if (e.button !== 0)
				return;
			from.current = timeOf(e);
			e.currentTarget.setPointerCapture(e.pointerId);
		},
		onMove: (e) => {
			const now = timeOf(e), begin = from.current;
			setSpoken(false);
			setAt(now.t);
			if (begin && Math.abs(now.x - begin.x) >= DRAG_PX)
				setDrag([Math.min(begin.t, now.t), Math.max(begin.t, now.t)]);
		},
		onUp: () => {
			if (drag)
				show(viewWithin(drag, all));
			from.current = null;
			setDrag(null);
		},
		onLeave: () => {
			if (!from.current)
				setAt(null);
		},
		onDouble: () => onView(null),
	};
	const key = (e: KeyboardEvent<HTMLDivElement>): void => {
		const now = at ?? view[0], move = (to: number): void => {
			setSpoken(true);
			setAt(Math.min(view[1], Math.max(view[0], to)));
		};
		const by = (view[1] - view[0]) / 50;
		const keys: Record<string, () => void> = {
			ArrowLeft: () => move(now - by), ArrowRight: () => move(now + by),
			Home: () => move(view[0]), End: () => move(view[1]),
			'+': () => show(zoomed(view, all, 1 / ZOOM, now)), '-': () => show(zoomed(view, all, ZOOM, now)),
			'0': () => onView(null),
			Escape: () => setAt(null),
		};
		if (!keys[e.key] || e.ctrlKey || e.metaKey || e.altKey)
			return;
		keys[e.key]();
		e.preventDefault();
		e.stopPropagation();
	};
	const looks = { view, width, at, drag };
	return (
		<>
			<div className="strips" role="group" tabIndex={0} onKeyDown={key} data-view={view.join(',')}
				aria-label="Run over time. Left and right move the cursor, + and − zoom, 0 shows everything.">
				<p className="strip-head dim small-text">
					{wanted ? <button type="button" className="small" onClick={() => onView(null)}>
						Reset zoom</button> : <span />}
					<span>{at === null ? isLive ? 'Now' : 'Last value' : `At ${timeText(at, step / 10)}`}</span>
				</p>
				{strips.map((s, i) => (
					<div className="strip" key={s.key}>
						<p className="strip-name">{s.label}{s.lines.some((l) => l.track.max) && <span
							className="dim small-text"> mean, min to max</span>}</p>
						<Plot strip={s} looks={looks} hands={hands} {...(i === 0 && { measure })} />
						<Values strip={s} at={at} />
					</div>
				))}
				{series.failed_s.length > 0 && (
					<div className="strip">
						<p className="strip-name bad-text">Failed requests</p>
						<Failed times={series.failed_s} looks={looks} hands={hands} />
						<p className="strip-values dim">{series.failed_s.length >= 600 ? 'a sample' : ''}</p>
					</div>
				)}
				<div className="strip"><Axis view={view} width={width} /></div>
				<p className="unseen" role="status">{isSpoken && at !== null
					? `${timeText(at, step / 10)}. ${strips.map((s) => readingOf(s, at)).join('. ')}` : ''}</p>
			</div>
			<Twin title="Show as table" heads={[{ text: 'Time (s)', isNumber: true },
				...strips.flatMap((s) => s.lines.map((l) => ({ text: l.label ? `${s.label}, ${l.label}`
					: s.unit ? `${s.label} (${s.unit})` : s.label, isNumber: true })))]}
			rows={rowsOf(strips).map((row) => row.map((v, i) => <Num key={i} v={v} />))} />
		</>
	);
}
