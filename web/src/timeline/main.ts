// SPDX-License-Identifier: Apache-2.0
// main.ts: the page of a run's timeline.
import '../lib/theme.css';
import './timeline.css';
import { h } from '../lib/dom';
import { clock, duration, whole } from '../lib/format';
import { onThemeChange } from '../lib/theme';
import { AXIS_HEIGHT, drawAxis } from './axis';
import { bar } from './bar';
import { ink } from './canvas';
import { load, type Meta, type Requests } from './data';
import { Hover } from './hover';
import { Input } from './input';
import { Rows } from './rows';
import { heading, summary } from './summary';
import { drawTracks, TRACK_HEIGHT, tracksOf } from './tracks';
import { View } from './view';

const app = document.getElementById('app') as HTMLElement;

/** Tall enough to read while they fit, thin lines when they are many. */
function rowHeightFor(n: number, room: number): number {
	return Math.max(4, Math.min(22, Math.floor(room / Math.max(1, n))));
}

function show(meta: Meta, r: Requests): View {
	const view = new View(r, Math.max(1, meta.span_ns / meta.unit_ns));
	const axis = h('canvas', { 'aria-hidden': 'true' });
	const canvas = h('canvas', { 'aria-label': 'Requests over time', role: 'img' });
	const spacer = h('div'), lower = h('canvas', { 'aria-label': 'Rates over time', role: 'img' });
	const scroller = h('div', { class: 'scroller', tabindex: '0' }, canvas, spacer);
	const plot = h('main', { class: 'plot' }, axis, scroller, lower);
	const rows = new Rows(view, scroller, spacer, canvas), tools = bar(view, meta, rows);
	const hover = new Hover(r, meta), tracks = tracksOf(meta);
	const where = h('span', { class: 'num', id: 'where' });
	const key = (k: string): HTMLElement => h('kbd', {}, k);
	app.replaceChildren(heading(meta), summary(meta), tools.element, plot,
		h('footer', { class: 'foot' }, where, h('span', { class: 'space' }),
			h('span', {}, key('Ctrl'), ' + wheel or ', key('+'), ' ', key('-'), ' zoom'),
			h('span', {}, 'drag or ', key('←'), ' ', key('→'), ' pan'),
			h('span', {}, key('Shift'), ' + drag selects a time'),
			h('span', {}, key('f'), ' fit'), h('span', {}, key('/'), ' find'),
			h('span', {}, key('n'), ' next failed')), hover.element);
	// Before the first drawing, so that the rows know their size.
	axis.style.height = `${AXIS_HEIGHT}px`;
	lower.style.height = `${tracks.length * TRACK_HEIGHT}px`;
	new Input(view, rows, tools, hover, plot, scroller, lower, tracks);
	let colours = ink();
	view.onDraw(() => {
		rows.draw(colours);
		drawAxis(axis, view, colours);
		drawTracks(lower, view, tracks, colours);
		const to = view.from + view.width * view.perPixel, at = (t: number): string =>
			clock(Math.max(0, Math.min(t, view.span)) * r.unitNs);
		const first = Math.floor(rows.top) + 1;
		const last = Math.min(view.rows.length, Math.floor(rows.top + rows.visible));
		const time = duration((to - view.from) * r.unitNs), n = view.rows.length;
		where.textContent = `${at(view.from)} to ${at(to)} (${time}), `
			+ `rows ${whole(Math.min(first, last))} to ${whole(last)} of ${whole(n)}`
			+ (view.rows.length < r.n ? ` (${whole(r.n)} requests)` : '');
	});
	onThemeChange(() => {
		colours = ink();
		rows.readTheme();
		view.changed();
	});
	view.setRowHeight(rowHeightFor(view.rows.length, scroller.clientHeight));
	tools.rowHeight.value = String(view.rowHeight);
	const resized = new ResizeObserver(() => view.changed());
	resized.observe(plot);
	resized.observe(scroller);
	view.drawNow();
	return view;
}

declare global {
	interface Window {
		/** For tests: what was read, once it is drawn. */
		timeline?: { meta: Meta; requests: Requests; view: View };
	}
}

async function main(): Promise<void> {
	const bar = h('progress', { max: '1' });
	app.replaceChildren(h('div', { class: 'loading' }, 'Reading the timeline ... ', h('br'), bar));
	// The page is shown before the first large piece is unpacked.
	await new Promise((then) => setTimeout(then));
	const [meta, requests] = await load((share) => { bar.value = share; });
	document.title = `Timeline of ${meta.facts['model'] ?? 'a run'} ${meta.facts['date'] ?? ''}`;
	const view = show(meta, requests);
	window.timeline = { meta, requests, view };
}

main().catch((e: unknown) => {
	app.replaceChildren(h('p', { class: 'failure' },
		`This page cannot be shown: ${e instanceof Error ? e.message : String(e)}`));
	throw e;
});
