// SPDX-License-Identifier: Apache-2.0
// timeline.tsx: every request of the run as a row, with the drawing of `bench serve --plot-timeline`.
import { useEffect, useMemo, useRef, useState, type ReactNode } from 'react';
import type { Requests } from '../../../timeline/data';
import { STATES } from '../../../timeline/data';
import { AXIS_HEIGHT, drawAxis } from '../../../timeline/axis';
import { GUTTER, ink } from '../../../timeline/canvas';
import { GROUPS, SORTS, type Group, type Sort } from '../../../timeline/order';
import { Rows } from '../../../timeline/rows';
import { View } from '../../../timeline/view';
import { duration } from '../../../lib/format';
import { Num, Twin } from '../../common/twin';
import { useGet } from '../../common/routes';
import { Icon } from '../../parts/icon';
import { Empty, Failure, Loading } from '../../parts/states';
import { count } from '../../show';
import { useTheme } from '../../theme';
import { LIMITS_MS, requestsOf, spanOf, type Arrays } from './arrays';

const LEGEND: [string, string][] = [['ttft', 'TTFT'],
	['itl-low', `ITL < ${LIMITS_MS[0]} ms`], ['itl-mid', `ITL ${LIMITS_MS[0]} to ${LIMITS_MS[1]} ms`],
	['itl-high', `ITL > ${LIMITS_MS[1]} ms`], ['waited', 'Queued in client'], ['ended', 'Failed']];
const ZOOM = 1.4, PAN_PIXELS = 80, ROW_MAX = 20;

interface Parts { view: View; draw: () => void; readTheme: () => void; scroller: HTMLElement }

/** The wheel with Ctrl zooms, a drag pans; keys while the rows have the focus. */
function listen({ view, scroller }: Parts, point: (i: number) => void, rows: Rows): () => void {
	let drag: { x: number; left: number } | null = null;
	const stop = new AbortController(), { signal } = stop;
	const x = (e: MouseEvent): number => e.clientX - scroller.getBoundingClientRect().left - GUTTER;
	scroller.addEventListener('wheel', (e) => {
		if (!e.ctrlKey && !e.metaKey)
			return;
		view.zoom(Math.exp(Math.max(-1, Math.min(1, e.deltaY * 0.0022))), x(e));
		e.preventDefault();
	}, { passive: false, signal });
	scroller.addEventListener('pointerdown', (e) => {
		if (e.button !== 0 || e.offsetX >= scroller.clientWidth)
			return;
		drag = { x: e.clientX, left: view.from };
		scroller.setPointerCapture(e.pointerId);
	}, { signal });
	scroller.addEventListener('pointermove', (e) => {
		if (drag) {
			view.from = drag.left;
			view.pan(drag.x - e.clientX);
			return;
		}
		const row = rows.rowAt(e.clientY - scroller.getBoundingClientRect().top);
		view.cursor = view.from + x(e) * view.perPixel;
		view.hovered = row < 0 ? -1 : view.requestAt(row, view.cursor);
		point(view.hovered);
		view.changed();
	}, { signal });
	scroller.addEventListener('pointerup', () => { drag = null; }, { signal });
	scroller.addEventListener('pointerleave', () => {
		view.hovered = -1;
		view.cursor = NaN;
		view.changed();
	}, { signal });
	scroller.addEventListener('scroll', () => view.changed(), { signal });
	scroller.addEventListener('keydown', (e) => {
		const keys: Record<string, () => void> = {
			'+': () => view.zoom(1 / ZOOM), '-': () => view.zoom(ZOOM), f: () => view.fit(),
			ArrowLeft: () => view.pan(-PAN_PIXELS), ArrowRight: () => view.pan(PAN_PIXELS),
		};
		if (!keys[e.key] || e.ctrlKey || e.metaKey || e.altKey)
			return;
		keys[e.key]();
		e.preventDefault();
		e.stopPropagation();
	}, { signal });
	return () => stop.abort();
}

function useDrawing(r: Requests, point: (i: number) => void) {
	const axis = useRef<HTMLCanvasElement>(null), canvas = useRef<HTMLCanvasElement>(null);
	const scroller = useRef<HTMLDivElement>(null), spacer = useRef<HTMLDivElement>(null);
	const parts = useRef<Parts | null>(null);
	const theme = useTheme();
	useEffect(() => {
		const view = new View(r, spanOf(r));
		const rows = new Rows(view, scroller.current!, spacer.current!, canvas.current!);
		let colours = ink();
		const draw = (): void => {
			rows.draw(colours);
			drawAxis(axis.current!, view, colours);
		};
		const made: Parts = { view, draw, scroller: scroller.current!, readTheme: () => {
			colours = ink();
			rows.readTheme();
			view.changed();
		} };
		view.onDraw(draw);
		const room = scroller.current!.clientHeight;
		view.setRowHeight(Math.max(4, Math.min(ROW_MAX, Math.floor(room / Math.max(1, view.rows.length)))));
		parts.current = made;
		const unlisten = listen(made, point, rows);
		const resized = new ResizeObserver(() => view.changed());
		resized.observe(scroller.current!);
		view.drawNow();
		return () => {
			unlisten();
			resized.disconnect();
			parts.current = null;
		};
	}, [r, point]);
	useEffect(() => parts.current?.readTheme(), [theme]);
	return { axis, canvas, scroller, spacer, parts };
}

function requestText(r: Requests, i: number): string {
	if (i < 0)
		return 'Hover over a request for its times. Ctrl + wheel zooms, dragging pans. Keys in the chart: '
			+ '+ − ← → and f.';
	const ns = (units: number): string => duration(units * r.unitNs);
	const place = r.session && r.session[i] >= 0
		? ` (session ${r.session[i]}, turn ${(r.turn?.[i] ?? 0) + 1})` : '';
	return `Request ${i}${place}: TTFT ${ns(r.ttft[i])}, E2EL ${ns(r.whole[i])}, longest `
		+ `gap ${ns(r.longest[i])}; ${r.prompt[i]} prompt and ${r.output[i]} output tokens`
		+ (r.state[i] ? `; ${STATES[r.state[i]]}` : '');
}

function Drawing({ r, errors }: { r: Requests; errors: (string | null)[] }): ReactNode {
	const [hovered, setHovered] = useState(-1);
	const [sort, setSort] = useState<Sort>('sample');
	const [group, setGroup] = useState<Group>(r.session ? 'session' : 'request');
	const { axis, canvas, scroller, spacer, parts } = useDrawing(r, setHovered);
	const act = (then: (view: View) => void): void => {
		if (parts.current)
			then(parts.current.view);
	};
	const rows = Array.from({ length: r.n }, (_, i) => [i, <Num key="t" v={r.ttft[i] / 1000} />,
		<Num key="w" v={r.whole[i] / 1000} />, <Num key="g" v={r.longest[i] / 1000} />,
		r.prompt[i], r.output[i], errors[i] ? errors[i] : STATES[r.state[i]]]);
	return (
		<>
			<div className="tools">
				<ul className="legend">{LEGEND.map(([kind, name]) => (
					<li key={kind}><i className={`swatch ${kind}`} />{name}</li>
				))}</ul>
				{r.session && (
					<label className="pick push"><span>Group by</span>
						<select value={group} onChange={(e) => {
							const next = e.target.value as Group;
							setGroup(next);
							act((view) => view.setRows(sort, 'all', next));
						}}>
							{Object.entries(GROUPS).map(([key, name]) =>
								<option key={key} value={key}>{name}</option>)}
						</select>
					</label>
				)}
				<label className={`pick ${r.session ? '' : 'push'}`}><span>Sort</span>
					<select value={sort} onChange={(e) => {
						const next = e.target.value as Sort;
						setSort(next);
						act((view) => view.setRows(next, 'all'));
					}}>
						{Object.entries(SORTS).map(([key, name]) =>
							<option key={key} value={key}>{name}</option>)}
					</select>
				</label>
				<div className="row tight">
					<button type="button" className="small icon" aria-label="Zoom in"
						onClick={() => act((v) => v.zoom(1 / ZOOM))}><Icon name="plus" /></button>
					<button type="button" className="small" onClick={() => act((v) => v.zoom(ZOOM))}
						aria-label="Zoom out">−</button>
					<button type="button" className="small" onClick={() => act((v) => v.fit())}>Fit to width</button>
				</div>
			</div>
			<div className="timeline">
				<canvas ref={axis} aria-hidden="true" style={{ height: AXIS_HEIGHT }} />
				<div className="timeline-rows" ref={scroller} tabIndex={0} role="application"
					aria-label="Requests over time">
					<canvas ref={canvas} role="img" aria-label={`${count(r.n, 'request')} over time`} />
					<div ref={spacer} />
				</div>
			</div>
			<p className="dim small-text" aria-live="off">{requestText(r, hovered)}</p>
			<Twin title="Show as table" rows={rows} heads={[{ text: 'Request', isNumber: true },
				{ text: 'TTFT (ms)', isNumber: true }, { text: 'E2EL (ms)', isNumber: true },
				{ text: 'Longest gap (ms)', isNumber: true }, { text: 'Prompt tokens', isNumber: true },
				{ text: 'Output tokens', isNumber: true }, { text: 'State' }]} />
		</>
	);
}

export function Timeline({ id }: { id: number }): ReactNode {
	const answer = useGet('GET /api/data/experiments/{id}/arrays', `/api/data/experiments/${id}/arrays`);
	const arrays = answer.data as Arrays | undefined;
	const r = useMemo(() => (arrays ? requestsOf(arrays) : null), [arrays]);
	if (answer.isError)
		return <Failure error={answer.error} onRetry={() => void answer.refetch()} />;
	if (!arrays)
		return <Loading what="Loading the requests" />;
	if (!r) {
		return (
			<Empty title="Request start times are not recorded">
				<p>The timeline needs the start time of each request.</p>
			</Empty>
		);
	}
	return <Drawing r={r} errors={arrays.errors ?? []} />;
}
