// SPDX-License-Identifier: Apache-2.0
// dashboard-kit.mjs: a dashboard on a free port with known runs in it, and tabs that watch what
// leaves them.
import { spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { root } from './browser.mjs';
import { equal, program, scratch } from './tap.mjs';

const require = createRequire(join(root, 'web/package.json'));
const axeSource = readFileSync(require.resolve('axe-core/axe.min.js'), 'utf8');
let started = 0;

const ACCESS = ['--auth-token-file', '--open-read', '--no-auth'];

/**
 * { url, child, store, stop() }; log: what it wrote on stderr. It needs no token, unless args say who
 * may ask; 'made-token' among them: it makes one itself.
 */
export async function dashboard(...given) {
	const args = given.filter((word) => word !== 'made-token');
	if (!given.some((word) => word === 'made-token' || ACCESS.includes(word)))
		args.unshift('--no-auth');
	const name = `dashboard-${++started}`, file = join(scratch, `${name}.port`);
	const store = `sqlite:${join(scratch, `${name}.db`)}`;
	const child = spawn(program, ['dashboard', '--listen', '127.0.0.1:0', '--port-file', file,
		'--store', store, ...args],
	{ cwd: scratch, stdio: ['ignore', 'ignore', 'pipe'],
		env: { ...process.env, XDG_STATE_HOME: join(scratch, 'state') } });
	const it = { child, url: '', log: '', store };
	const end = () => child.kill('SIGKILL');
	process.on('exit', end);
	child.stderr.on('data', (d) => { it.log += d; });
	const over = new Promise((then) => child.on('close', then));
	it.stop = async () => {
		child.kill('SIGTERM');
		await over;
		process.removeListener('exit', end);
		return child.exitCode;
	};
	for (let k = 0; k < 30000 && child.exitCode === null; k++) {
		let port = '';
		try {
			port = readFileSync(file, 'utf8').trim();
		} catch {
			// not yet there
		}
		if (port) {
			it.url = `http://127.0.0.1:${port}`;
			return it;
		}
		await new Promise((done) => setTimeout(done, 10));
	}
	throw new Error(`the dashboard did not start: ${it.log}`);
}

/** Asks the API itself; an answer that is no success is an error. */
export async function ask(url, path, body, method = body === undefined ? 'GET' : 'POST') {
	const answer = await fetch(url + path, { method, headers: { 'Content-Type': 'application/json' },
		body: body === undefined ? null : JSON.stringify(body) });
	if (!answer.ok)
		throw new Error(`${method} ${path}: ${answer.status} ${await answer.text()}`);
	return answer.json();
}

/** A generator of numbers that gives the same ones each time. */
export function numbers(seed) {
	let state = seed;
	return () => {
		state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
		return state / 2 ** 32;
	};
}

/** Results as vllm bench serve writes them, n of them, with parameters that differ and some that do not. */
export function results(n, seed = 1) {
	const two = (v) => String(v).padStart(2, '0');
	const random = numbers(seed), pick = (list) => list[Math.floor(random() * list.length)];
	return Array.from({ length: n }, (_, i) => {
		const tp = pick([1, 2, 4, 8]), rate = pick([1, 2, 4, 8, 16]), prompts = 200;
		const throughput = 900 * tp ** 0.85 * (0.9 + random() * 0.2), ttft = 30 + random() * 150;
		const result = {
			date: `202603${two(1 + (i % 28))}-${two(Math.floor(i / 28) % 24)}${two(i % 60)}00`,
			backend: 'vllm',
			model_id: pick(['org/small-8b', 'org/large-70b', 'other/mixture-8x7b']),
			tokenizer_id: 'org/tokenizer', num_prompts: prompts, request_rate: rate,
			burstiness: 1,
			max_concurrency: pick([16, 64, null]), tensor_parallel_size: tp, dtype: 'bfloat16',
			enable_prefix_caching: random() < 0.5, note: `run ${i}`,
			duration: 20 + random() * 40, completed: prompts - (i % 9 === 0 ? 7 : 0),
			failed: i % 9 === 0 ? 7 : 0, total_input_tokens: 51200, total_output_tokens: 25600,
			request_throughput: throughput / 128, output_throughput: throughput,
			total_token_throughput: throughput * 3, mean_ttft_ms: ttft * 1.1,
			median_ttft_ms: ttft,
			p99_ttft_ms: ttft * 4, mean_tpot_ms: 9.5, median_tpot_ms: 8 + random() * 6,
			p99_tpot_ms: 20 + random() * 9, mean_itl_ms: 9, median_itl_ms: 8.5, p99_itl_ms: 30,
		};
		if (i % 11 === 0)
			delete result.tensor_parallel_size;
		return result;
	});
}

export async function upload(url, list) {
	const answer = await fetch(`${url}/api/upload/raw?name=runs.jsonl`, { method: 'POST',
		headers: { 'Content-Type': 'application/json' },
		body: list.map((r) => JSON.stringify(r)).join('\n') });
	if (!answer.ok)
		throw new Error(`upload: ${answer.status} ${await answer.text()}`);
	return answer.json();
}

/** What Chromium reports about a tab's page: { session, asked, open }. */
const requestsOf = new WeakMap();

async function watchRequests(page) {
	const session = await page.context().newCDPSession(page);
	const seen = { session, asked: 0, open: new Map() };
	let n = 0;

	requestsOf.set(page, seen);
	session.on('Network.requestWillBeSent', ({ requestId, loaderId, type }) => {
		seen.asked++;
		if (type !== 'EventSource') // an answer without end
			seen.open.set(requestId, loaderId);
	});
	for (const end of ['Network.loadingFinished', 'Network.loadingFailed'])
		session.on(end, ({ requestId }) => seen.open.delete(requestId));
	await session.send('Network.enable');
	if (process.env.SLOWER)
		await session.send('Emulation.setCPUThrottlingRate', { rate: Number(process.env.SLOWER) });
	if (process.env.DELAY_MS)
		await page.context().route('**/api/**', (r) => {
			const wait_ms = process.env.DELAY_MS * (1 + n++ % 3);

			setTimeout(() => r.fallback().catch(() => undefined), wait_ms);
		});
}

/** Whether a tab's page has the answers to all that it asked for, and has drawn them. */
export async function isStill(page) {
	const seen = requestsOf.get(page), { frameTree } = await seen.session.send('Page.getFrameTree');
	// Requests of the document before this one may remain open: Chromium need not report their end.
	const { asked } = seen, isOpen = [...seen.open.values()].includes(frameTree.frame.loaderId);
	// Its own timers come as late as everything else that it does.
	await page.evaluate(async () => {
		for (let k = 0; k < 3; k++)
			await new Promise((then) => setTimeout(then, 20));
	});
	return !isOpen && seen.asked === asked;
}

/** A tab of its own context; wrong: requests to elsewhere, errors, words on the console. */
export async function tab(browser, target, options = {}) {
	const context = await browser.newContext({ viewport: { width: 1440, height: 900 },
		acceptDownloads: true, ...options });
	const page = await context.newPage(), wrong = [];
	const { origin } = new URL(target);
	await watchRequests(page);
	page.on('console', (m) => wrong.push(`console: ${m.text()}`));
	page.on('pageerror', (e) => wrong.push(`error: ${e.message}`));
	context.on('request', (r) => {
		const url = new URL(r.url());
		if (url.origin !== origin && url.protocol !== 'blob:')
			wrong.push(`request: ${r.url().slice(0, 100)}`);
	});
	await page.goto(target);
	return { page, wrong, context };
}

/** What axe finds on the page as it is now, by all of its rules or by those that are named. */
export async function accessible(page, name, runOnly) {
	await page.evaluate(axeSource);
	const found = await page.evaluate((rules) => window.axe.run(document,
		{ resultTypes: ['violations'], ...(rules && { runOnly: rules }) }), runOnly);
	equal(found.violations.map((v) => `${v.id}: ${v.nodes.slice(0, 3)
		.map((n) => `${n.target.join(' ')} ${n.any[0]?.message ?? ''}`).join('; ')}`), [],
	`axe finds nothing: ${name}`);
}

/** Opens the list of columns in scope and chooses one, found by its name. */
export async function pick(page, scope, column) {
	await page.click(`${scope} .pick-button`);
	await page.fill(`${scope} .choices input`, column);
	await page.click(`${scope} .choice[data-column="${column}"]`);
}

const read = (text) => Number(text.replace(/,/g, '').replace('−', '-'));

/** Whether a number on the page is the one of the API, rounded to no less than four digits. */
export function isShown(text, value) {
	if (value === null || value === undefined)
		return text === '' || text === '–' || text === 'null';
	if (typeof value !== 'number')
		return text === String(value);
	return Math.abs(read(text) - value) <= Math.abs(value) * 5e-4 + 1e-12;
}
