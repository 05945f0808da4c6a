// SPDX-License-Identifier: Apache-2.0
// bench_dashboard.mjs [RUNS [FILE]]: how long a user waits at a dashboard of RUNS generated runs
// (1,000,000), in headless Chromium over HTTP: from a click on a value of a facet to the painted
// table, from a click to a drawn chart of 5,000 points, from an address to the first page with
// data, and how much memory the tab and the dashboard hold. A million runs take about five minutes
// to be made on a machine without other work, and 4 GB of disk.
//
//   make && PROFLLM=$PWD/build/profllm node web/bench_dashboard.mjs 1000000
//
// FILE, an SQLite file, keeps the runs for the next time: it is made when it does not exist, used
// as it is when it has RUNS runs, and never deleted. Without it they are in a temporary folder.
import { execFileSync } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { launch } from '../tests/web/browser.mjs';

const runs = Number(process.argv[2] ?? 1e6), PART = 20000, CLICKS = 60, POINTS = 5000;
const BUDGET = { 'filter to painted table, p95': 100, 'a chart of 5,000 points, p95': 150,
	'first page with data, p95': 1000, 'memory of the tab': 250 };
if (!(runs >= POINTS) || !process.env.PROFLLM) {
	console.error('usage: PROFLLM=/path/to/profllm node web/bench_dashboard.mjs [RUNS [FILE]], '
		+ 'with RUNS at least 5000');
	process.exit(2);
}
const dir = mkdtempSync(join(tmpdir(), 'profllm-bench-'));
const { ask, dashboard, results } = await import('../tests/web/dashboard-kit.mjs');

const rank = (v, p) => [...v].sort((a, b) => a - b)[Math.max(0, Math.ceil(v.length * p) - 1)];
let isMet = true;
function show(name, value, unit) {
	const most = BUDGET[name], is = most === undefined || value <= most;
	isMet &&= is;
	console.log(`${name.padEnd(40)} ${value.toFixed(1).padStart(9)} ${unit}${
		most === undefined ? '' : `  target <= ${most}: ${is ? 'met' : 'missed'}`}`);
}

/** The runs, in parts; the first POINTS have a note of their own. A store that ends early is no store. */
function fill(store) {
	const file = join(dir, 'part.jsonl'), made = `${store}.made`;
	if (existsSync(store))
		return;
	rmSync(made, { force: true });
	for (let from = 0; from < runs; from += PART) {
		const list = results(Math.min(PART, runs - from), from + 1);
		list.forEach((r, i) => {
			r.note = `run ${from + i}`;
			r.part = from + i < POINTS ? 'first' : 'rest';
		});
		writeFileSync(file, list.map((r) => JSON.stringify(r)).join('\n'));
		execFileSync(process.env.PROFLLM, ['ingest', '--store', `sqlite:${made}`, file],
			{ stdio: 'ignore' });
	}
	rmSync(file);
	renameSync(made, store);
}

/** Milliseconds from a click on an element to the frame after the one in which is() first holds. */
const untilPainted = (page, selector, was) => page.evaluate(async ([what, text]) => {
	const frame = () => new Promise((then) => requestAnimationFrame(then));
	const now = () => `${document.querySelector('[data-total]')?.dataset.total} ${
		document.querySelector('.grid-body [role=row]')?.dataset.id}`;
	const from = performance.now();
	document.querySelector(what).click();
	while (now() === text) {
		await frame();
		if (performance.now() - from > 20000)
			throw new Error(`nothing changed after a click on ${what}`);
	}
	await frame();
	return performance.now() - from;
}, [selector, was]);

const state = (page) => page.evaluate(() => `${document.querySelector('[data-total]')?.dataset.total} ${
	document.querySelector('.grid-body [role=row]')?.dataset.id}`);

async function filters(page, url) {
	const took = [];
	await page.goto(`${url}/runs`);
	await page.waitForSelector('.grid-body [role=row]');
	await page.waitForSelector('.side .facet .values li input');
	for (let k = 0; k < CLICKS; k++) {
		const n = await page.$$eval('.side .facet .values li input', (all) => all.map((e, i) => {
			e.dataset.bench = String(i);
			return i;
		}).length);
		took.push(await untilPainted(page, `[data-bench="${(k * 7) % n}"]`, await state(page)));
		await page.waitForTimeout(300);
		if (k % 4 === 3) {
			await page.goto(`${url}/runs`);
			await page.waitForSelector('.grid-body [role=row]');
			await page.waitForSelector('.side .facet .values li input');
		}
	}
	show('filter to painted table, p50', rank(took, 0.5), 'ms');
	show('filter to painted table, p95', rank(took, 0.95), 'ms');
}

/** From a click to the last stroke on a canvas, once three frames have drawn nothing. */
const untilDrawn = (page, selector) => page.evaluate(async (what) => {
	const context = CanvasRenderingContext2D.prototype;
	const frame = () => new Promise((then) => requestAnimationFrame(then));
	let last = 0;
	const kept = ['fill', 'stroke', 'drawImage', 'fillText'].map((name) => [name, context[name]]);
	for (const [name, call] of kept)
		context[name] = function (...args) {
			last = performance.now();
			return call.apply(this, args);
		};
	const from = performance.now();
	document.querySelector(what).click();
	for (let still = 0, seen = 0; still < 3 || last === 0;) {
		await frame();
		still = last === seen ? still + 1 : 0;
		seen = last;
		if (performance.now() - from > 20000)
			throw new Error(`nothing was drawn after a click on ${what}`);
	}
	for (const [name, call] of kept)
		context[name] = call;
	return last - from;
}, selector);

async function charts(page, url) {
	const f = encodeURIComponent(JSON.stringify({ and: [{ column: 'tags.part', in: ['first'] }] }));
	const took = [];
	await page.goto(`${url}/charts?view=any&x=output_throughput&y=median_ttft_ms&g=&join=none&f=${f}`);
	await page.waitForSelector('.chart-box[data-drawn=true]');
	const drawn = await ask(url, '/api/analysis/pareto', { x: 'output_throughput', y: 'median_ttft_ms',
		filter: { and: [{ column: 'tags.part', in: ['first'] }] } });
	await page.waitForTimeout(2000);
	await page.$$eval('button:text("Log X"), button', (all) => all.forEach((e) => {
		if (e.textContent === 'Log X')
			e.dataset.bench = 'log';
	}));
	for (let k = 0; k < 20; k++) {
		took.push(await untilDrawn(page, '[data-bench=log]'));
		await page.waitForTimeout(300);
	}
	show('points drawn', drawn.shown, '');
	show('a chart of 5,000 points, p50', rank(took, 0.5), 'ms');
	show('a chart of 5,000 points, p95', rank(took, 0.95), 'ms');
}

async function firstPage(browser, url) {
	const took = [];
	for (let k = 0; k < 7; k++) {
		const context = await browser.newContext(), page = await context.newPage();
		const from = performance.now();
		await page.goto(`${url}/`);
		await page.waitForSelector('.best-table td a');
		took.push(performance.now() - from);
		await context.close();
	}
	show('first page with data, p50', rank(took, 0.5), 'ms');
	show('first page with data, p95', rank(took, 0.95), 'ms');
}

/** A process's proportional share of memory, in MB; 0: it has ended meanwhile. */
function held(pid) {
	try {
		const text = readFileSync(`/proc/${pid}/smaps_rollup`, 'utf8');
		return Number(/^Pss: *(\d+)/m.exec(text)?.[1] ?? 0) / 1000;
	} catch {
		return 0;
	}
}

/** The renderer's largest memory after garbage collection, and the dashboard's. */
async function memory(browser, page, child) {
	const cdp = await browser.newBrowserCDPSession();
	await (await page.context().newCDPSession(page)).send('HeapProfiler.collectGarbage');
	const { processInfo } = await cdp.send('SystemInfo.getProcessInfo');
	show('memory of the tab', Math.max(...processInfo.filter((p) => p.type === 'renderer')
		.map((p) => held(p.id))), 'MB');
	show('memory of the dashboard', held(child.pid), 'MB');
}

try {
	const store = process.argv[3] ? resolve(process.argv[3]) : join(dir, 'runs.db');
	let from = performance.now();
	fill(store);
	console.log(`${runs} runs taken in: ${((performance.now() - from) / 1000).toFixed(0)} s`);
	from = performance.now();
	const it = await dashboard('--store', `sqlite:${store}`);
	const { total } = await ask(it.url, '/api/filters/apply', { limit: 1 });
	if (total !== runs)
		throw new Error(`${store} has ${total} runs instead of ${runs}: delete it, or name another`);
	console.log(`the dashboard answers after ${((performance.now() - from) / 1000).toFixed(1)} s`);
	const browser = await launch();
	const context = await browser.newContext({ viewport: { width: 1440, height: 900 } });
	const page = await context.newPage();
	await filters(page, it.url);
	await charts(page, it.url);
	await memory(browser, page, it.child);
	await firstPage(browser, it.url);
	await browser.close();
	await it.stop();
} finally {
	rmSync(dir, { recursive: true, force: true });
}
process.exitCode = isMet ? 0 : 1;
