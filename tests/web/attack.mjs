// SPDX-License-Identifier: Apache-2.0
// attack.mjs: a dashboard under requests that are made from its own OpenAPI document, many at once, valid
// and mutated (attack-make.mjs). Every answer is judged, not only that there is one: its status is one
// that the document or HTTP has for such a request, its JSON holds to the schema, an error is
// problem+json with one sentence and without anything of the machine, and all come in time. Meanwhile
// /api/health is asked four times a second, and memory, threads and descriptors are counted. At the end
// TERM ends it with 0, a sanitizer has said nothing, and the store is whole.
//
// SECONDS (20), SEED (the time), CONNECTIONS (12), TOKEN: one that the dashboard wants,
// ANSWER_SECONDS (60) and HEALTH_MS (4000): the longest that an answer, and one of /api/health, may
// take. A violation is printed with the bytes that
// led to it, and kept below $O/attack. The same SEED gives each connection the same requests, but
// what they name depends on earlier answers; with CONNECTIONS=1 all is as it was.
import { createRequire } from 'node:module';
import { execFile } from 'node:child_process';
import { createReadStream, mkdirSync, readFileSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { promisify } from 'node:util';
import { Maker, json, new_world, operations_of, quick_config, source } from './attack-make.mjs';
import { Connection } from './attack-http.mjs';
import { root } from './browser.mjs';
import { dashboard, results } from './dashboard-kit.mjs';
import { main, ok, output, program, scratch } from './tap.mjs';

const Ajv = createRequire(join(root, 'web', 'package.json'))('ajv/dist/2020').default;
const number_of = (name, usual) => Number(process.env[name] || usual);
const seconds = number_of('SECONDS', 20), seed = number_of('SEED', Date.now() % 1e9);
const lanes = number_of('CONNECTIONS', 12), answer_ms = 1000 * number_of('ANSWER_SECONDS', 60);
const head_bytes_max = 12000;  // longer ones may be refused before they are read
const runs_max = 1500;         // new ones, before all runs are removed again
const launches_max = 20;
const cut_share_max = 0.001;   // of all answers, those that the client's own pipelining may lose
const growth_mb_max = 192;     // from the second quarter of the time to its last one
const health_ms_max = number_of('HEALTH_MS', 4000), health_median_ms_max = 300;
const problems = new Set([400, 401, 403, 404, 405, 409, 413, 415, 416, 421, 422, 429, 503]);
// What is not HTTP, or too long for it, is answered by the HTTP library itself, in words of its own.
const not_http = new Set([...problems, 408, 414, 417, 431, 501, 505]);

const ajv = new Ajv({ strict: true, allowUnionTypes: true, strictRequired: false });
const world = new_world(), violations = [], tally = new Map(), slowest = [];
const count = { requests: 0, valid: 0, good: 0, mutated: 0, refused: 0, unanswered: 0,
	cut: 0, removals: 0 };
let api, operations, d, port, end_at, is_removing = false;

// ---- judging ----

const local = (schema) => JSON.parse(JSON.stringify(schema).replaceAll('#/components/schemas/', ''));
const compiled = new Map();

function fits(schema, value) {
	const key = JSON.stringify(schema);
	if (!compiled.has(key))
		compiled.set(key, ajv.compile(local(schema)));
	const validate = compiled.get(key);
	return validate(value) ? ''
		: (validate.errors ?? []).slice(0, 3).map((e) => `${e.instancePath} ${e.message}`).join('; ');
}

function text_of(body) {
	try {
		return new TextDecoder('utf-8', { fatal: true }).decode(body);
	} catch {
		return null;
	}
}

/** What an error gives away: a place on this machine, an address in memory, a database's own words. */
function leaks_of(text, sent) {
	const found = [scratch, root, '/proc/'].filter((s) => text.includes(s) && !sent.includes(s));
	if (/\b0x[0-9a-f]{7,16}\b/.test(text) && !/0x[0-9a-f]{7}/i.test(sent))
		found.push('an address');
	return [...found,
		...(/SQLSTATE|near ".*": syntax error|no such (table|column)|at or near/.exec(text) ?? [])];
}

/** Of an error that our own code wrote; '' or what is wrong with it. */
function judge_problem(answer, sent) {
	const type = (answer.headers['content-type'] ?? '').split(';')[0], text = text_of(answer.body);
	let value;
	if ([429, 503].includes(answer.status) && !answer.headers['retry-after'])
		return `${answer.status} without Retry-After`;
	if (type !== 'application/problem+json')
		return `${answer.status} is ${type || 'of no type'}, not application/problem+json`;
	try {
		value = JSON.parse(text);
	} catch {
		return 'the problem is not JSON in UTF-8';
	}
	const why = fits({ $ref: '#/components/schemas/Problem' }, value);
	if (why)
		return `the problem is none: ${why}`;
	if (value.status !== answer.status)
		return `the problem says ${value.status}`;
	if (!value.detail.trim() || /[\r\n]/.test(value.detail))
		return 'its detail is not one sentence';
	const leaks = leaks_of(value.detail, sent);
	return leaks.length ? `it gives away ${leaks.join(', ')}` : '';
}

function judge_success(answer, r) {
	const { status, headers } = answer;
	const type = (headers['content-type'] ?? '').split(';')[0];
	if (!r.op) {
		if (type !== 'application/json' || headers['content-encoding'] || /document$/.test(r.path))
			return '';
		try {
			JSON.parse(text_of(answer.body));
			return '';
		} catch {
			return 'it is not JSON in UTF-8';
		}
	}
	const has = (name) => r.headers.some(([k]) => k === name);
	if ((status === 304 && has('If-None-Match')) || (status === 206 && has('Range')))
		return '';
	const declared = r.op.operation.responses[status];
	if (!declared)
		return `${status} is not declared`;
	if (!(type in declared.content))
		return `${type} is not declared for ${status}`;
	// A document is given back as it came, and others than ours may write NaN.
	if (type !== 'application/json' || headers['content-encoding'] || r.op.form.endsWith('/document'))
		return '';
	const text = text_of(answer.body);
	if (text === null)
		return 'it is not UTF-8';
	let value;
	try {
		value = JSON.parse(text);
	} catch (e) {
		return `it is not JSON: ${e.message}`;
	}
	answer.value = value;
	return fits(declared.content[type].schema, value);
}

/** '' or what is wrong with an answer. */
export function judge(answer, r, sent) {
	if (answer.why === 'late')
		return r.is_raw ? '' : `no answer in ${answer_ms / 1000} s`;
	if (answer.why)
		return r.is_raw || answer.why === 'closed' || (answer.why === 'cut' && r.may_be_cut) ? ''
			: `no whole answer: ${answer.why}`;
	const { status } = answer;
	if (r.is_raw)
		return status < 400 || not_http.has(status) ? '' : `status ${status}`;
	if (status >= 400) {
		if (!problems.has(status))
			return `status ${status}: ${text_of(answer.body)?.slice(0, 300)}`;
		return r.method === 'HEAD' ? '' : judge_problem(answer, sent);
	}
	return r.method === 'HEAD' || r.is_stream ? '' : judge_success(answer, r);
}

function violation(r, sent, answer, what) {
	const n = violations.length;
	violations.push(`${r.op?.name ?? `${r.method} ${r.path}`}: ${what}`);
	if (n >= 20)
		return;
	const folder = join(output, 'attack');
	mkdirSync(folder, { recursive: true });
	writeFileSync(join(folder, `${seed}-${n}.request`), sent);
	writeFileSync(join(folder, `${seed}-${n}.answer`), answer.body ?? answer.why ?? '');
	console.log(`# violation ${n}: ${violations[n]}\n#   sent  ${JSON.stringify(sent.toString('latin1')
		.slice(0, 1500))}\n#   got   ${answer.status ?? answer.why} `
		+ JSON.stringify((answer.body ?? '').toString('latin1').slice(0, 800)));
}

// ---- what answers give to later requests ----

function keep(pool, values) {
	for (const v of values)
		if (v !== null && v !== undefined && !world[pool].includes(v))
			world[pool].push(v);
	if (world[pool].length > 400)
		world[pool].splice(0, world[pool].length - 400);
}

function learn(name, value) {
	if (!value || typeof value !== 'object')
		return;
	switch (name) {
	case 'GET /api/filters/options':
		if (value.items.length)
			world.columns = value.items.filter((c) => c.column.length < 200).slice(0, 500);
		return;
	case 'POST /api/filters/apply': case 'GET /api/data/experiments':
		keep('runs', value.items.slice(0, 20).map((r) => r.id));
		keep('cursors', [value.next].filter((c) => c));
		return;
	case 'POST /api/upload/raw': case 'POST /api/upload/json':
		world.created += value.results.filter((r) => r.outcome !== 'duplicate').length;
		keep('runs', value.results.slice(0, 5).flatMap((r) => [r.id, r.run_id]));
		return;
	case 'GET /api/data/experiments/{id}': keep('annotations',
		value.annotations.map((a) => a.id)); return;
	case 'POST /api/filters/presets': keep('presets', [value.id]); return;
	case 'POST /api/analysis/marks': keep('marks', [value.id]); return;
	case 'POST /api/data/experiments/{id}/annotations': keep('annotations', [value.id]); return;
	case 'GET /api/traces': keep('traces', value.items.map((t) => t.id)); return;
	case 'GET /api/jobs': keep('jobs', value.items.map((j) => j.job_id)); return;
	case 'POST /api/upload/batch': keep('jobs', [value.job_id]); world.created += value.total; return;
	case 'POST /api/launch': keep('jobs', [value.job_id]); return;
	case 'POST /api/analysis/trends':
		keep('series', value.series.map((s) => s.id));
		keep('commits', value.series.flatMap((s) => s.points.slice(0, 3).map((p) => p.commit)));
		break;
	default:
	}
}

// ---- requests ----

/** How often a route is asked, against 1 of others. */
const weights = new Map([['POST /api/launch/check', 0.06], ['POST /api/launch', 0.01],
	['GET /api/launch/schema', 0.05], ['POST /api/login', 0.2], ['GET /api/jobs/{id}/events', 0.2],
	['GET /api/openapi.json', 0.2], ['POST /api/filters/apply', 4], ['GET /api/filters/options', 0.5],
	['POST /api/upload/raw', 2], ['POST /api/upload/batch', 0.1], ['GET /api/data/experiments', 2]]);
const removes = { 'POST /api/filters/presets': ['presets', 'DELETE /api/filters/presets/{id}'],
	'POST /api/analysis/marks': ['marks', 'DELETE /api/analysis/marks/{id}'],
	'POST /api/data/experiments/{id}/annotations': ['annotations', 'DELETE /api/annotations/{id}'],
	'POST /api/data/experiments/{id}/traces': ['traces', 'DELETE /api/traces/{id}'] };
let total_weight;

function choose(make) {
	let at = make.random() * total_weight,
		op = operations.find((o) => (at -= o.weight) < 0) ?? operations[0];
	if (make.is(0.2)) { // a slow machine asks every route, too
		const asked = (o) => tally.get(o.name)?.asked ?? 0;
		op = operations.filter((o) => o.weight >= 0.5).reduce((a, b) => asked(b) < asked(a) ? b : a);
	}
	const [pool, instead] = removes[op.name] ?? [];
	// What is made is taken away again, so that the store does not grow with time.
	if (pool && world[pool].length > 60)
		op = operations.find((o) => o.name === instead);
	return op;
}

function request(make) {
	const op = choose(make);
	let r = make.sensible(make.valid(op));
	if (op.name === 'POST /api/launch') {
		r.value = { config: quick_config };
		if (++world.launched > launches_max || make.is(0.8))
			r.value = make.change_value({ config: 5 });
	}
	if (make.is(op.name === 'POST /api/launch' ? 0 : 0.55))
		r = make.mutate(r);
	r.is_stream = op.name === 'GET /api/jobs/{id}/events' && r.method === 'GET';
	r.is_raw ||= !r.path.startsWith('/') || r.path.includes(' ') || r.path.length > 4000;
	return r;
}

function book(r, answer, took_ms) {
	const name = r.op?.name ?? 'other addresses and methods';
	const row = tally.get(name) ?? { asked: 0, good: 0, refused: 0, slowest_ms: 0 };
	tally.set(name, row);
	row.asked++;
	row.good += answer.status < 400 ? 1 : 0;
	row.refused += answer.status >= 400 ? 1 : 0;
	row.slowest_ms = Math.max(row.slowest_ms, took_ms);
	count.requests++;
	count.unanswered += answer.why ? 1 : 0;
	if (r.is_mutated || r.is_raw)
		count.mutated++;
	else
		count.valid++;
	if (!r.is_mutated && !r.is_raw && answer.status < 400)
		count.good++;
	if (answer.status >= 400)
		count.refused++;
}

async function receive(c, r, sent, began) {
	const until = began + (r.is_raw ? 400 : answer_ms);
	const answer = await c.answer({ isHead: r.method === 'HEAD', isStream: r.is_stream, until });
	const took = Date.now() - began, text = sent.toString('latin1');
	const what = judge(answer, r, text);
	book(r, answer, took);
	if (!r.is_raw && !answer.why)
		slowest.push([took, r.op?.name ?? r.path]);
	if (slowest.length > 2000)
		slowest.sort((a, b) => b[0] - a[0]).length = 10;
	count.cut += answer.why === 'cut' && r.may_be_cut && !r.is_raw ? 1 : 0;
	if (what)
		violation(r, sent, answer, what);
	if (!what && r.op && answer.status < 300 && !r.is_stream)
		learn(r.op.name, answer.value);
	if (answer.why || r.is_raw || r.is_stream || c.isLast)
		c.close();
	return !what;
}

/** In pieces, with pauses. */
async function send_slowly(c, bytes, make) {
	for (let at = 0, k = 0; at < bytes.length && k < 6; k++) {
		const n = k === 5 ? bytes.length - at : 1 + make.below(bytes.length - at);
		c.send(bytes.subarray(at, at + n));
		at += n;
		await new Promise((then) => setTimeout(then, make.below(40)));
	}
}

/** One connection after the other, as hostile as it comes. */
async function lane(n) {
	const make = new Maker(api, world, source(seed * 7919 + n));
	let c = new Connection(port);
	while (Date.now() < end_at) {
		if (c.isOver || c.isLast || make.is(0.05)) {
			c.close();
			c = new Connection(port);
		}
		const style = make.random(), began = Date.now();
		const list = Array.from({ length: style < 0.08 ? 2 + make.below(5) : 1 },
			() => request(make));
		const sent = list.map((r) => make.bytes(r));
		for (let k = 0; k < list.length; k++)
			list[k].is_raw ||= sent[k].indexOf('\r\n\r\n') > head_bytes_max;
		// When one of them makes the server end the connection, later ones are unread, the
		// connection is reset, and what is still on its way of the earlier answers is lost.
		for (let k = 0; k < list.length - 1; k++)
			list[k].may_be_cut = true;
		if (style < 0.08) { // pipelined
			c.send(Buffer.concat(sent));
		} else if (style < 0.11) {
			await send_slowly(c, sent[0], make);
		} else if (style < 0.17) { // cut, and gone before or after an answer
			c.send(sent[0].subarray(0, make.below(sent[0].length + 1)));
			await c.more(Date.now() + make.below(30));
			c.close();
			continue;
		} else if (style < 0.25) {
			sent[0] = make.change_bytes(sent[0]);
			list[0].is_raw = true;
			c.send(sent[0]);
		} else {
			c.send(sent[0]);
		}
		for (let k = 0; k < list.length && !c.isLast && !c.isOver; k++)
			await receive(c, list[k], sent[k], began);
	}
	c.close();
}

// ---- what is watched ----

const health = [], samples = [];

async function watch_health() {
	while (Date.now() < end_at) {
		const began = Date.now(), c = new Connection(port);
		c.send(`GET /api/health HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n`);
		const answer = await c.answer({ until: began + answer_ms });
		c.close();
		health.push(answer.status === 200 ? Date.now() - began : Infinity);
		await new Promise((then) => setTimeout(then, 250));
	}
}

const is_alive = () => d.child.exitCode === null && d.child.signalCode === null;

/** null: it has ended. */
function sample() {
	try {
		const status = readFileSync(`/proc/${d.child.pid}/status`, 'utf8');
		return { at: Date.now(), rss_mb: Number(/VmRSS:\s+(\d+)/.exec(status)[1]) / 1024,
			threads: Number(/Threads:\s+(\d+)/.exec(status)[1]),
			files: readdirSync(`/proc/${d.child.pid}/fd`).length };
	} catch {
		return null;
	}
}

/** Runs that were made are removed by another process, as an operator would. */
async function remove_runs() {
	is_removing = true;
	try {
		await promisify(execFile)(program, ['store', 'remove', '--store', d.store, '--filter',
			'{"and": []}',
			'--yes'], { cwd: scratch });
	} catch (e) {
		violations.push(`store remove: ${e.stderr ?? e}`);
	}
	world.created = 0;
	count.removals++;
	await fill();
	is_removing = false;
}

async function watch_memory() {
	while (Date.now() < end_at) {
		const now = sample();
		if (!now) { // there is nothing left to attack
			end_at = 0;
			return;
		}
		samples.push(now);
		if (world.created > runs_max && !is_removing)
			remove_runs();
		await new Promise((then) => setTimeout(then, 500));
	}
}

// ---- the whole ----

async function plain(method, path, body) {
	const headers = { 'Content-Type': 'application/json' };
	if (world.token)
		headers.Authorization = `Bearer ${world.token}`;
	return fetch(`${d.url}${path}`, { method, body, headers });
}

async function fill() {
	for (const document of world.documents)
		await plain('POST', '/api/upload/raw', document);
	world.columns = (await (await plain('GET', '/api/filters/options?shown=all')).json()).items;
}

function seeds() {
	const folders = ['tests/unit/documents', 'tests/fuzz/corpus/ingest'].map((f) => join(root, f));
	const detailed = { ...results(1, 7)[0], ttfts: [0.5, 0.25], itls: [[0.1], []], errors: ['', 'x'] };
	world.documents = [...folders.flatMap((f) => readdirSync(f).sort().map((n) => readFileSync(join(f,
		n)))),
		Buffer.from(json(detailed)), Buffer.from(results(150, 3).map(json).join('\n'))];
}

function judge_memory() {
	const took = samples.at(-1).at - samples[0].at;
	const part = (from, to) => samples.filter((s) => s.at - samples[0].at >= from * took
		&& s.at - samples[0].at <= to * took).map((s) => s.rss_mb);
	const early = Math.max(...part(0.25, 0.5)), late = Math.max(...part(0.75, 1));
	console.log(`# memory: ${Math.round(samples[0].rss_mb)} MB at first, ${Math.round(early)} MB in the `
		+ `second quarter, ${Math.round(late)} MB in the last; `
		+ `${Math.max(...samples.map((s) => s.threads))} threads, `
		+ `${Math.max(...samples.map((s) => s.files))} descriptors`);
	ok(late - early < growth_mb_max, 'memory is flat', `it grew by ${Math.round(late - early)} MB`);
}

function judge_health() {
	health.sort((a, b) => a - b);
	const median = health[health.length >> 1], most = health.at(-1);
	console.log(`# /api/health: ${health.length} times, median ${median} ms, at most ${most} ms`);
	ok(median < health_median_ms_max && most < health_ms_max, '/api/health is prompt',
		`median ${median} ms, at most ${most} ms`);
}

function tell() {
	for (const [name, row] of [...tally].sort())
		console.log(`# ${String(row.asked).padStart(7)} ${String(row.good).padStart(7)} good `
			+ `${String(row.refused).padStart(7)} refused `
			+ `${String(row.slowest_ms).padStart(6)} ms  ${name}`);
	slowest.sort((a, b) => b[0] - a[0]);
	console.log(`# slowest: ${slowest.slice(0, 3).map(([ms, name]) => `${ms} ms ${name}`).join(', ')}`);
	console.log(`# ${count.requests} requests in ${seconds} s: ${count.valid} valid (${count.good} with `
		+ `success), ${count.mutated} mutated, ${count.refused} refused, `
		+ `${count.unanswered} without an answer; all runs removed ${count.removals} times`);
}

/** A judge that finds nothing wrong would be no test: these must be found. */
function judge_the_judge() {
	const health_op = operations.find((o) => o.name === 'GET /api/health');
	const r = { op: health_op, method: 'GET', path: '/api/health', headers: [] };
	const problem = (status, detail, more) => ({ status,
		headers: { 'content-type': 'application/problem+json' },
		body: Buffer.from(JSON.stringify({ type: 'about:blank', title: 'x', status: 404, detail,
			...more })) });
	const plain_json = (status, value) => ({ status, headers: { 'content-type': 'application/json' },
		body: Buffer.from(value) });
	const bad = [problem(500, 'x', { status: 500 }), problem(400, 'x'), problem(404, ''), problem(404,
		'two\nlines'),
		problem(404, `${scratch}/runs.db is gone`), problem(404, 'at 0x7f00deadbeef'), problem(404,
			'x', { more: 1 }),
		{ status: 404, headers: { 'content-type': 'text/html' }, body: Buffer.from('<html>') },
		plain_json(200, '{}'), plain_json(200, '{'), plain_json(201, '{}'), plain_json(200, '"\xff"'),
			{ why: 'late' },
		{ why: 'cut' }, problem(429, 'x', { status: 429 })];
	const missed = bad.filter((a) => !judge(a, r, ''));
	ok(!missed.length, 'what is wrong is found', ...missed.map((a) => JSON.stringify(a)));
	ok(!judge(problem(404, 'there is nothing at this address'), r, ''), 'and what is right is not');
}

await main(async () => {
	const log = join(scratch, 'access.jsonl');
	const more = [];
	if (process.env.TOKEN) {
		writeFileSync(join(scratch, 'tokens'), `attacker ${process.env.TOKEN}\n`, { mode: 0o600 });
		more.push('--auth-token-file', join(scratch, 'tokens'));
		world.token = process.env.TOKEN;
	}
	console.log(`# SECONDS=${seconds} SEED=${seed} CONNECTIONS=${lanes}`);
	d = await dashboard('--log', log, '--jobs-dir', join(scratch, 'jobs'), '--launch', '1', ...more);
	d.store = `sqlite:${join(scratch, 'dashboard-1.db')}`;
	port = Number(new URL(d.url).port);
	api = await (await plain('GET', '/api/openapi.json')).json();
	for (const [name, schema] of Object.entries(api.components.schemas))
		ajv.addSchema({ ...local(schema), $id: name });
	operations = operations_of(api).map((op) => ({ ...op, weight: weights.get(op.name) ?? 1 }));
	total_weight = operations.reduce((sum, op) => sum + op.weight, 0);
	judge_the_judge();
	seeds();
	await fill();
	end_at = Date.now() + seconds * 1000;
	await Promise.all([watch_health(), watch_memory(), ...Array.from({ length: lanes }, (_,
		n) => lane(n))]);
	while (is_removing)
		await new Promise((then) => setTimeout(then, 50));
	tell();
	const never = operations.filter((op) => !tally.get(op.name)).map((op) => op.name);
	ok(seconds < 10 || !never.filter((n) => (weights.get(n) ?? 1) >= 0.5).length, 'every route was asked',
		...never);
	ok(count.good > count.valid / 3, 'valid requests are answered', `${count.good} of ${count.valid}`);
	ok(!violations.length, `${count.requests} answers are as they should be`, ...violations.slice(0, 20));
	console.log(`# ${count.cut} answers were lost before a request that ended the connection`);
	ok(count.cut <= cut_share_max * count.requests, 'and that is rare', `${count.cut}`);
	judge_health();
	judge_memory();
	ok(is_alive(), 'it is alive', `${d.child.exitCode ?? d.child.signalCode}`);
	const status = await d.stop();
	ok(status === 0, 'TERM ends it with 0', status, d.log.slice(-4000));
	ok(!/Sanitizer|runtime error:|[Aa]ssertion/.test(d.log), 'no sanitizer has said anything',
		d.log.slice(0, 8000));
	const errors = [];
	for await (const line of createInterface({ input: createReadStream(log) })) // of an hour: large
		if (line.includes('"level": "error"'))
			errors.push(line);
	ok(!errors.length, 'nothing was its own fault', ...errors.slice(0, 10));
	const check = await promisify(execFile)(program, ['store', 'check', '--store', d.store],
		{ cwd: scratch })
		.catch((e) => e);
	ok(!check.code, 'the store is whole', check.stdout, check.stderr);
});
