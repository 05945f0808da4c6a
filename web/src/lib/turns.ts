// SPDX-License-Identifier: Apache-2.0
// turns.ts: conversations by turn as three small charts and a table, for the page of --plot-turns
// and for the dashboard. It shows the members "sessions" and "per_turn_metrics" of a result; the
// sentence above the charts is the result's own.
import './turns.css';
import { h, svg } from './dom';
import { short, whole } from './format';
import { multiples, roundUp, scaleTop } from './ticks';

interface Stats { n: number; mean: number; p50: number; p99: number; max: number }

/** A member of per_turn_metrics; its percentiles are those that the run computed. */
export interface Turn {
	turn_index: number;
	num_samples: number;
	completed: number;
	failed: number;
	context_tokens?: Stats | null;
	cached_tokens?: Stats | null;
	cached_share?: number | null;
	[key: string]: unknown;
}

export interface Sessions {
	n: number;
	completed: number;
	failed: number;
	unfinished: number;
	turns_summary?: string | null;
	[key: string]: unknown;
}

/** Median, and the upper end of the band; null: unknown. */
interface Value { median: number | null; high: number | null }

interface Panel {
	key: string;
	title: string;
	unit: string;
	high: string; // name of the band's upper end; '': no band
	of: (t: Turn) => Value;
	/** A second line, dashed. */
	beside?: { name: string; of: (t: Turn) => number | null };
}

const WIDTH = 420, HEIGHT = 230, LEFT = 54, RIGHT = 12, TOP = 10, BOTTOM = 40;
const PLOT_WIDTH = WIDTH - LEFT - RIGHT, PLOT_HEIGHT = HEIGHT - TOP - BOTTOM;
const ROWS_SHOWN = 200;
/** More turns than this have no dots: they would be one band. */
const DOTS_MAX = 40;

const number = (v: unknown): number | null => (typeof v === 'number' && Number.isFinite(v) ? v : null);

/** "p99" where the result has it, else its highest percentile above the median; '': none. */
export function highest(turns: Turn[]): string {
	const all = Object.keys(turns[0] ?? {}).map((k) => /^p([\d.]+)_ttft_ms$/.exec(k)?.[1])
		.filter((p): p is string => p !== undefined && Number(p) > 50)
		.sort((a, b) => Number(b) - Number(a));
	const p = all.includes('99') ? '99' : all[0];
	return p === undefined ? '' : `p${p}`;
}

function panelsOf(turns: Turn[]): Panel[] {
	const high = highest(turns);
	const stats = (s: Stats | null | undefined): Value =>
		({ median: number(s?.p50), high: number(s?.p99) });
	const panels: Panel[] = [
		{ key: 'ttft', title: 'TTFT', unit: 'ms', high,
			of: (t) => ({ median: t.completed ? number(t['median_ttft_ms']) : null,
				high: t.completed ? number(t[`${high}_ttft_ms`]) : null }) },
		{ key: 'context', title: 'Context length', unit: 'tokens', high: 'p99',
			of: (t) => stats(t.context_tokens) },
		{ key: 'cached', title: 'Cached prompt tokens', unit: '', high: 'p99',
			of: (t) => stats(t.cached_tokens),
			beside: { name: 'context', of: (t) => number(t.context_tokens?.p50) } },
	];
	return panels.filter((p) => turns.some((t) => p.of(t).median !== null));
}

type Point = [number, number];

/** Runs of turns that have the value; a gap breaks a line. */
function runs<T>(turns: Turn[], of: (t: Turn) => T | null): { turn: number; value: T }[][] {
	const out: { turn: number; value: T }[][] = [];
	let isOpen = false;
	for (const t of turns) {
		const value = of(t);
		if (value !== null && !isOpen)
			out.push([]);
		isOpen = value !== null;
		if (value !== null)
			out[out.length - 1].push({ turn: t.turn_index + 1, value });
	}
	return out;
}

const path = (points: Point[]): string => points.map(([x, y], k) =>
	`${k ? 'L' : 'M'}${x.toFixed(1)} ${y.toFixed(1)}`).join('');

interface Drawn { figure: HTMLElement; cursor: SVGElement; x: (turn: number) => number }

/** An empty chart and its scales. */
interface Frame {
	body: SVGElement;
	cursor: SVGElement;
	x: (turn: number) => number;
	y: (v: number) => number;
}

function frame(label: string, last: number, most: number): Frame {
	const top = scaleTop(most), base = TOP + PLOT_HEIGHT;
	const x = (turn: number): number => LEFT + ((turn - 0.5) / last) * PLOT_WIDTH;
	const y = (v: number): number => base - (v / top) * PLOT_HEIGHT;
	const body = svg('svg', { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: 'img', 'aria-label': label });
	const text = (at: Record<string, string | number>, words: string): void =>
		body.append(svg('text', at, words));
	for (const v of multiples(roundUp(top / 6), 0, top)) {
		body.append(svg('line', { class: 'grid', x1: LEFT, x2: WIDTH - RIGHT, y1: y(v), y2: y(v) }));
		text({ x: LEFT - 7, y: y(v) + 4, 'text-anchor': 'end' }, short(v));
	}
	const step = Math.max(1, roundUp(last / 10));
	for (let turn = 1; turn <= last; turn++)
		if (step === 1 || turn === 1 || turn % step === 0)
			text({ x: x(turn), y: base + 16, 'text-anchor': 'middle' }, String(turn));
	text({ class: 'label', x: LEFT + PLOT_WIDTH / 2, y: HEIGHT - 6, 'text-anchor': 'middle' }, 'Turn');
	const cursor = svg('line', { class: 'cursor', y1: TOP, y2: base, visibility: 'hidden' });
	body.append(svg('line', { class: 'axis', x1: LEFT, x2: WIDTH - RIGHT, y1: base, y2: base }), cursor);
	return { body, cursor, x, y };
}

function bandOf(panel: Panel, t: Turn): { median: number; high: number } | null {
	const { median, high } = panel.of(t);
	return median !== null && high !== null ? { median, high } : null;
}

function drawBand({ body, x, y }: Frame, panel: Panel, turns: Turn[]): void {
	for (const run of runs(turns, (t) => bandOf(panel, t))) {
		const up = run.map((p): Point => [x(p.turn), y(p.value.high)]);
		const down = run.map((p): Point => [x(p.turn), y(p.value.median)]).reverse();
		body.append(run.length > 1 ? svg('path', { class: 'band', d: `${path([...up, ...down])}Z` })
			: svg('path', { class: 'whisker', d: path([...up, ...down]) }));
	}
}

function drawLine({ body, x, y }: Frame, kind: string, turns: Turn[], of: (t: Turn) => number | null): void {
	for (const run of runs(turns, of))
		body.append(svg('path', { class: kind, d: path(run.map((p) => [x(p.turn), y(p.value)])) }));
}

function draw(panel: Panel, turns: Turn[], sentence: string): Drawn {
	const most = Math.max(...turns.flatMap((t) => [panel.of(t).median, panel.of(t).high,
		panel.beside?.of(t) ?? null]).map((v) => v ?? 0));
	const last = turns[turns.length - 1].turn_index + 1;
	const plot = frame(`${panel.title} by turn. ${sentence}`, last, most);
	drawBand(plot, panel, turns);
	if (panel.beside)
		drawLine(plot, 'beside', turns, panel.beside.of);
	drawLine(plot, 'median', turns, (t) => panel.of(t).median);
	for (const t of turns) {
		const { median } = panel.of(t);
		if (median !== null && turns.length <= DOTS_MAX)
			plot.body.append(svg('circle', { class: 'dot', cx: plot.x(t.turn_index + 1),
				cy: plot.y(median), r: 3, 'data-value': median }));
	}
	const key = (kind: string, text: string): HTMLElement => h('span', {}, h('i', { class: kind }), text);
	const title = panel.title + (panel.unit && ` (${panel.unit})`);
	const hasBand = panel.high !== '' && turns.some((t) => bandOf(panel, t));
	return { cursor: plot.cursor, x: plot.x,
		figure: h('figure', { class: panel.key, 'data-panel': panel.key },
			h('figcaption', {}, h('b', {}, title), key('median', 'median'),
				hasBand && key('band', `to ${panel.high}`),
				panel.beside ? key('beside', panel.beside.name) : null), plot.body) };
}

const fixed = (v: number | null, digits: number): string => (v === null ? '–' : v.toFixed(digits));

/** [name for programs, head, text, exact value] */
type Fact = [string, string, string, number | null];

function factsOf(t: Turn, high: string): Fact[] {
	const ms = (key: string): number | null => (t.completed ? number(t[key]) : null);
	const tokens = (s: Stats | null | undefined): number | null => number(s?.p50);
	const share = number(t.cached_share), highKey = `${high}_ttft_ms`;
	const count = (v: number | null): string => (v === null ? '–' : whole(v));
	return [
		['turn', 'Turn', String(t.turn_index + 1), t.turn_index + 1],
		['completed', 'Requests', whole(t.completed), t.completed],
		['failed', 'Failed', whole(t.failed), t.failed],
		['ttft', 'Median TTFT (ms)', fixed(ms('median_ttft_ms'), 2), ms('median_ttft_ms')],
		['ttft_high', `${high.toUpperCase()} TTFT (ms)`, fixed(ms(highKey), 2), ms(highKey)],
		['tpot', 'Median TPOT (ms)', fixed(ms('median_tpot_ms'), 2), ms('median_tpot_ms')],
		['e2el', 'Median E2EL (ms)', fixed(ms('median_e2el_ms'), 1), ms('median_e2el_ms')],
		['context', 'Context (tokens)', count(tokens(t.context_tokens)), tokens(t.context_tokens)],
		['cached', 'Cached (tokens)', count(tokens(t.cached_tokens)), tokens(t.cached_tokens)],
		['cached_share', 'Cached (%)', fixed(share === null ? null : share * 100, 1), share],
	];
}

/** Columns that no turn has a value in are left out. */
function table(turns: Turn[], high: string): HTMLElement {
	const rows = turns.map((t) => factsOf(t, high));
	const kept = rows[0].map((_, k) => k).filter((k) => rows.some((r) => r[k][3] !== null)
		&& (rows[0][k][0] !== 'failed' || rows.some((r) => r[k][3] !== 0)));
	const head = h('tr', {}, ...kept.map((k) => h('th', { scope: 'col', class: 'num' }, rows[0][k][1])));
	const body = rows.slice(0, ROWS_SHOWN).map((row) => h('tr', {}, ...kept.map((k) => {
		const [field, , text, value] = row[k];
		return h(k ? 'td' : 'th', { class: 'num', 'data-field': field, ...(k ? {} : { scope: 'row' }),
			...(value === null ? {} : { 'data-value': String(value) }) }, text);
	})));
	const name = { tabindex: '0', role: 'region', 'aria-label': 'Table by turn' };
	return h('div', { class: 'turns-table', ...name },
		h('table', {}, h('thead', {}, head), h('tbody', {}, ...body)),
		turns.length > ROWS_SHOWN && h('p', { class: 'dim' },
			`The first ${ROWS_SHOWN} of ${whole(turns.length)} turns; the result file has all.`));
}

/** Charts with one cursor for all of them, by pointer or arrow keys; what is under it is read out. */
export function turnsView(turns: Turn[], sessions: Sessions | null): HTMLElement {
	const sentence = sessions?.turns_summary ?? '';
	if (!turns.length)
		return h('p', { class: 'dim' }, 'No turn was sent.');
	const high = highest(turns), drawn = panelsOf(turns).map((p) => draw(p, turns, sentence));
	const hint = 'Point at a turn for its values, or focus the charts and use ← and →.';
	const said = h('p', { class: 'turns-said dim num', role: 'status' }, hint);
	let at = -1;
	const show = (k: number): void => {
		at = k;
		for (const { cursor, x } of drawn) {
			cursor.setAttribute('visibility', k < 0 ? 'hidden' : 'visible');
			for (const end of ['x1', 'x2'])
				cursor.setAttribute(end, String(k < 0 ? 0 : x(turns[k].turn_index + 1)));
		}
		said.textContent = k < 0 ? hint : factsOf(turns[k], high)
			.filter(([field, , , v]) => v !== null && (field !== 'failed' || v > 0))
			.map(([, name, text]) => `${name} ${text}`).join(' · ');
	};
	const charts = h('div', { class: 'turns-charts', tabindex: '0', role: 'group',
		'aria-label': 'Charts by turn; the arrow keys move between turns' },
	...drawn.map((d) => d.figure));
	charts.addEventListener('pointermove', (e) => {
		const body = (e.target as Element).closest('svg');
		if (!body)
			return;
		const box = body.getBoundingClientRect();
		const x = ((e.clientX - box.left) / box.width) * WIDTH, n = turns.length;
		show(Math.max(0, Math.min(n - 1, Math.floor(((x - LEFT) / PLOT_WIDTH) * n))));
	});
	charts.addEventListener('pointerleave', () => show(-1));
	charts.addEventListener('keydown', (e) => {
		const to: Record<string, number> = { ArrowLeft: Math.max(0, at - 1), Home: 0,
			ArrowRight: Math.min(turns.length - 1, at + 1), End: turns.length - 1, Escape: -1 };
		if (to[e.key] === undefined || e.ctrlKey || e.metaKey || e.altKey)
			return;
		show(to[e.key]);
		e.preventDefault();
		e.stopPropagation();
	});
	return h('div', { class: 'turns' }, sentence !== '' && h('p', { class: 'turns-sentence' }, sentence),
		charts, said, table(turns, high));
}
