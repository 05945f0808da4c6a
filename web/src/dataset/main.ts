// SPDX-License-Identifier: Apache-2.0
// main.ts: the lengths of a run's prompts and answers: three histograms and every request.
import '../lib/theme.css';
import './dataset.css';
import { columnOf, json } from '../lib/column';
import { facts, h, place, svg } from '../lib/dom';
import { short, whole } from '../lib/format';
import { multiples, roundUp } from '../lib/ticks';

interface Histogram {
	title: string;
	label: string;
	min: number;
	max: number;
	mean: number;
	edges: number[];
	counts: number[];
}

interface Meta {
	n: number;
	date: string;
	model: string | null;
	backend: string | null;
	dataset: string | null;
	histograms: Histogram[];
}

const COLOURS = ['prompt', 'output', 'total'];
const WIDTH = 620, HEIGHT = 340, LEFT = 62, RIGHT = 14, TOP = 12, BOTTOM = 46;
const PLOT_WIDTH = WIDTH - LEFT - RIGHT, PLOT_HEIGHT = HEIGHT - TOP - BOTTOM;
/** More bars than this are drawn together: no screen has the columns. */
const BARS_MAX = 500;

const tip = h('div', { class: 'tip', id: 'tip', role: 'status' });
tip.hidden = true;

interface Plot {
	figure: HTMLElement;
	body: SVGElement;
	x: (v: number) => number;
	y: (v: number) => number;
}

/** Title, axes and grid; the range of x, and of y from 0. */
function frame(
	title: string, labelX: string, labelY: string, from: number, to: number, most: number,
	hasGridX: boolean,
): Plot {
	const top = Math.max(1, most) * 1.05;
	const x = (v: number): number => LEFT + ((v - from) / (to - from)) * PLOT_WIDTH;
	const y = (v: number): number => TOP + PLOT_HEIGHT - (v / top) * PLOT_HEIGHT;
	const body = svg('svg', { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: 'img', 'aria-label': title });
	const base = TOP + PLOT_HEIGHT;
	for (const v of multiples(Math.max(1, roundUp(top / 7)), 0, top))
		body.append(svg('line', { class: 'grid', x1: LEFT, x2: WIDTH - RIGHT, y1: y(v), y2: y(v) }),
			svg('text', { x: LEFT - 8, y: y(v) + 4, 'text-anchor': 'end' }, short(v)));
	for (const v of multiples(Math.max(1, roundUp((to - from) / 9)), from, to)) {
		if (hasGridX)
			body.append(svg('line', { class: 'grid', x1: x(v), x2: x(v), y1: TOP, y2: base }));
		body.append(svg('text', { x: x(v), y: base + 17, 'text-anchor': 'middle' }, short(v)));
	}
	body.append(svg('line', { class: 'axis', x1: LEFT, x2: WIDTH - RIGHT, y1: base, y2: base }),
		svg('text', { class: 'label', x: LEFT + PLOT_WIDTH / 2, y: HEIGHT - 8,
			'text-anchor': 'middle' }, labelX),
		svg('text', { class: 'label', x: 0, y: 0, 'text-anchor': 'middle',
			transform: `translate(14 ${TOP + PLOT_HEIGHT / 2}) rotate(-90)` }, labelY));
	return { figure: h('figure', {}, h('figcaption', {}, title)), body, x, y };
}

function tipFor(element: SVGElement, title: string, rows: [string, string, string][]): void {
	element.addEventListener('pointermove', (e) => {
		tip.replaceChildren(h('b', {}, title), facts(rows));
		place(tip, (e as PointerEvent).clientX, (e as PointerEvent).clientY);
	});
	element.addEventListener('pointerleave', () => { tip.hidden = true; });
}

function range(a: number, b: number): string {
	const digits = b - a < 5 ? 2 : b - a < 50 ? 1 : 0;
	return `${a.toFixed(digits)} to ${b.toFixed(digits)}`;
}

function histogram(data: Histogram, colour: string): HTMLElement {
	// Equal lengths are one bar, as wide as a token.
	const isOne = data.min === data.max;
	const edges = isOne ? [data.min - 0.5, data.min + 0.5] : data.edges, last = edges.length - 1;
	const counts = isOne ? [data.counts.reduce((a, b) => a + b, 0)] : data.counts;
	const air = isOne ? 1.6 : (edges[last] - edges[0]) * 0.04;
	const plot = frame(data.title, data.label, 'Frequency', edges[0] - air, edges[last] + air,
		Math.max(...counts), true);
	counts.forEach((count, k) => {
		const left = plot.x(edges[k]), top = plot.y(count);
		const bar = svg('rect', { class: `bar ${colour}`, x: left, y: top, 'data-count': count,
			width: plot.x(edges[k + 1]) - left, height: TOP + PLOT_HEIGHT - top });
		// Bins with few requests are hit at any height.
		const area = svg('rect', { class: 'area', x: left, y: TOP, width: plot.x(edges[k + 1]) - left,
			height: PLOT_HEIGHT, 'data-panel': colour, 'data-bin': k });
		const what = isOne ? whole(data.min) : range(edges[k], edges[k + 1]);
		tipFor(area, what, [['count', 'Requests', whole(count)]]);
		plot.body.append(bar, area);
	});
	plot.figure.append(plot.body as Node, h('p', { class: 'dim num' },
		isOne ? `All ${whole(data.min)} tokens`
			: `${whole(data.min)} to ${whole(data.max)} tokens, mean ${data.mean.toFixed(1)}`));
	return plot.figure;
}

function stacked(prompt: Float64Array, output: Float64Array): HTMLElement {
	const n = prompt.length, step = Math.ceil(n / BARS_MAX);
	const bars: { from: number; to: number; prompt: number; output: number }[] = [];
	for (let i = 0; i < n; i += step) {
		const bar = { from: i, to: Math.min(n, i + step), prompt: 0, output: 0 };
		for (let k = i; k < bar.to; k++) {
			bar.prompt = Math.max(bar.prompt, prompt[k]);
			bar.output = Math.max(bar.output, output[k]);
		}
		bars.push(bar);
	}
	const most = bars.reduce((v, bar) => Math.max(v, bar.prompt + bar.output), 0);
	const plot = frame('Tokens per Request (Stacked)', 'Request ID', 'Tokens', -0.5, n - 0.5, most,
		false);
	for (const bar of bars) {
		const left = plot.x(bar.from - 0.5), width = plot.x(bar.to - 0.5) - left;
		const thin = width > 6 ? width * 0.8 : width, at = left + (width - thin) / 2;
		const middle = plot.y(bar.prompt), top = plot.y(bar.prompt + bar.output);
		const area = svg('rect', { class: 'area', x: left, y: TOP, width, height: PLOT_HEIGHT,
			'data-request': bar.from });
		tipFor(area, bar.to - bar.from > 1 ? `Req ${bar.from} to ${bar.to - 1} (largest)`
			: `Req ${bar.from}`, [['prompt_tokens', 'Prompt Tokens', whole(bar.prompt)],
			['output_tokens', 'Output Tokens', whole(bar.output)]]);
		plot.body.append(
			svg('rect', { class: 'prompt', x: at, y: middle, width: thin,
				height: TOP + PLOT_HEIGHT - middle }),
			svg('rect', { class: 'output', x: at, y: top, width: thin, height: middle - top }),
			area);
	}
	plot.figure.append(plot.body as Node, h('p', { class: 'legend' }, h('i', { class: 'prompt' }),
		'Prompt Tokens', h('i', { class: 'output' }), 'Output Tokens'));
	return plot.figure;
}

async function main(): Promise<void> {
	const meta = json<Meta>('meta');
	const [prompt, output] = await Promise.all([columnOf('prompt', meta.n), columnOf('output', meta.n)]);
	const words = [meta.dataset && `dataset ${meta.dataset}`, meta.model, meta.backend,
		`${whole(meta.n)} requests`, meta.date];
	document.title = `Dataset of ${meta.model ?? 'a run'} ${meta.date}`;
	(document.getElementById('app') as HTMLElement).replaceChildren(
		h('header', { class: 'head' }, h('h1', {}, 'Dataset statistics'),
			h('span', { class: 'facts' }, words.filter(Boolean).join(' · '))),
		h('main', { class: 'panels' }, ...meta.histograms.map((v, k) => histogram(v, COLOURS[k])),
			stacked(prompt, output)), tip);
	document.body.dataset['ready'] = 'yes';
}

main().catch((e: unknown) => {
	(document.getElementById('app') as HTMLElement).replaceChildren(h('p', { class: 'failure' },
		`This page cannot be shown: ${e instanceof Error ? e.message : String(e)}`));
	throw e;
});
