// SPDX-License-Identifier: Apache-2.0
// bench_writers.mjs [RUNS [SECONDS [COPIES]]]: one PostgreSQL database with four `profllm ingest`
// at once, while one dashboard answers filters, or two, in turns. Writes RUNS generated runs
// (1,000,000), or as many as fit into SECONDS (no limit, or 0); every tenth file is handed to two
// writers at the same time. One of the dashboards is killed with SIGKILL meanwhile and started
// again. COPIES: the number of runs that exist before, of which 10,000 were ingested and the rest
// are copies made by SQL (0).
//
//   make && PROFLLM=$PWD/build/profllm tests/with_postgres.sh node web/bench_writers.mjs 100000
//
// Prints how fast runs came in, how long filters took with one dashboard and with two, whether both
// dashboards, the writers and the database count the same, and how soon a change made through one
// dashboard is in the other. Exit status 1: a count differs, or a target is missed. That server
// does not wait for the disk, so the rate is what the programs cost.
import { execFileSync, spawn } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { availableParallelism, tmpdir } from 'node:os';
import { join } from 'node:path';

const runs = Number(process.argv[2] ?? 1e6), seconds = Number(process.argv[3] ?? 0) || Infinity;
const copies = Number(process.argv[4] ?? 0), BASE = 10000, PARTITION = 1 << 20;
const WRITERS = 4, PART = 500, TWICE = 10, ASK_EVERY_MS = 200, IDLE_ASKS = 60;
// As src/experiment/suite/upload.c has them.
const UPLOADS = 1000, TRIES = 4, PAUSE_MS = 500;
const { PROFLLM: program, PROFLLM_TEST_POSTGRES: server, PROFLLM_TEST_CREATEDB: createdb } = process.env;
if (!(runs >= WRITERS * PART) || !(seconds > 0) || !(copies >= 0 && copies < PARTITION) || !program
	|| !server || !createdb) {
	console.error('usage: PROFLLM=/path/to/profllm tests/with_postgres.sh node web/bench_writers.mjs '
		+ `[RUNS [SECONDS [COPIES]]], with RUNS at least ${WRITERS * PART} and COPIES below `
		+ `${PARTITION}`);
	process.exit(2);
}
const dir = mkdtempSync(join(tmpdir(), 'profllm-bench-'));
// The snapshot that dashboards of one machine share is kept there.
process.env.XDG_DATA_HOME = join(dir, 'data');
const { ask, dashboard, numbers, results } = await import('../tests/web/dashboard-kit.mjs');

const rank = (v, p) => [...v].sort((a, b) => a - b)[Math.max(0, Math.ceil(v.length * p) - 1)];
const sleep = (ms) => new Promise((then) => setTimeout(then, ms));
let isMet = true;
function show(name, value, unit, limit) {
	const is = limit === undefined || value <= limit;
	isMet &&= is;
	console.log(`${name.padEnd(58)} ${value.toFixed(1).padStart(9)} ${unit}${
		limit === undefined ? '' : `  target <= ${limit.toFixed(1)}: ${is ? 'met' : 'missed'}`}`);
}

/** The number K part as a file: PART runs that no other part has. */
function part(k) {
	const file = join(dir, `part${k}.jsonl`);
	writeFileSync(file, results(PART, k + 1).map((r, i) => JSON.stringify({ ...r,
		note: `run ${k * PART + i}`, batch: `batch ${k % 50}` })).join('\n'));
	return file;
}

/** Runs that one call of `profllm ingest` took in, by outcome. */
function ingest(store, files) {
	return new Promise((then, failed) => {
		const child = spawn(program, ['ingest', '--store', store, '--json', ...files],
			{ stdio: ['ignore', 'pipe', 'inherit'] });
		let out = '';
		child.stdout.on('data', (d) => { out += d; });
		child.on('close', (status) => {
			if (status)
				return failed(new Error(`profllm ingest ended with ${status}`));
			const n = { new: 0, duplicate: 0 };
			for (const line of out.trim().split('\n'))
				for (const run of JSON.parse(line).runs ?? [])
					n[run.outcome] = (n[run.outcome] ?? 0) + 1;
			return then(n);
		});
	});
}

const random = numbers(7);

/** A filter that was never asked before, in the form of the Runs page: milliseconds. */
async function filter(url) {
	const from = performance.now();
	await ask(url, '/api/filters/apply', { facets: 'auto', limit: 25, statistics: ['output_throughput'],
		filter: { and: [
			{ column: 'server.tensor_parallel_size', in: [2 ** Math.floor(random() * 4)] },
			{ column: 'output_throughput', range: { min: random() * 3000 } }] } });
	return performance.now() - from;
}

/** Asks each of them in turn until is() holds; one after the other at one, at the same time at several. */
async function answered(dashboards, is) {
	const took = dashboards.map(() => []);
	while (!is()) {
		await Promise.all(dashboards.map(async (d, i) => took[i].push(await filter(d.url))));
		await sleep(ASK_EVERY_MS);
	}
	return took.flat();
}

const total = async (d) => (await ask(d.url, '/api/filters/apply', { limit: 1 })).total;

async function until(what, is) {
	const from = performance.now();
	while (!await is()) {
		if (performance.now() - from > 300000)
			throw new Error(`${what} did not happen within 300 s`);
		await sleep(20);
	}
	return (performance.now() - from) / 1000;
}

/**
 * UPLOADS runs at once, one in a request, as `profllm run --upload` sends them: what is refused for now is
 * sent again after a random pause that grows, and kept for later after TRIES of them.
 */
async function uploads(url) {
	const bodies = results(UPLOADS, 5e6).map((r, i) => JSON.stringify({ ...r, note: `upload ${i}` }));
	const from = performance.now(), got = { last: 0, refused: 0, taken: 0 };
	const send = async (body) => {
		for (let k = 0, pause = PAUSE_MS; k < TRIES; k++, pause *= 2) {
			const { ok, status } = await fetch(`${url}/api/upload/raw?name=run.json`, { body,
				method: 'POST', headers: { 'Content-Type': 'application/json' } });
			if (ok) {
				got.taken++;
				got.last = Math.max(got.last, (performance.now() - from) / 1000);
				return;
			}
			if (status !== 429 && status < 500)
				throw new Error(`an upload was answered with ${status}`);
			got.refused++;
			if (k + 1 < TRIES)
				await sleep(pause * (1 + Math.random()));
		}
	};
	await Promise.all(bodies.map(send));
	return got;
}

const sql = (store, text) => execFileSync('psql', ['-XqAtc', text, store]).toString().trim();

/** Runs that exist before the writers start: some ingested, and copies of them with other names. */
async function prepare(store) {
	const from = performance.now(), count = () => Number(sql(store, 'SELECT count(*) FROM documents'));
	for (let k = 0; count() < BASE; k++) {
		const file = part(1e6 + k);
		await ingest(store, [file]);
		rmSync(file);
	}
	const columns = sql(store, `SELECT string_agg(format('%I', column_name), ', ')
		FROM information_schema.columns WHERE table_name = 'benchmark_runs' AND column_name <> 'id'`);
	for (let first = count(); first + BASE <= copies; first += BASE)
		sql(store, `BEGIN;
			INSERT INTO documents (id, run_id, hash, kind, who, received, ran, flags, changed,
				checksum, left_out, cells)
				SELECT id + ${first}, run_id || '-${first}',
				md5(hash || '${first}') || md5('${first}' || hash), kind, who, received,
				ran + ${first}, flags, changed + ${first}, checksum, left_out, cells
				FROM documents WHERE id <= ${BASE};
			INSERT INTO originals SELECT id + ${first}, document FROM originals
				WHERE id <= ${BASE};
			INSERT INTO benchmark_runs (id, ${columns}) SELECT id + ${first}, ${columns}
				FROM benchmark_runs WHERE id <= ${BASE};
			UPDATE numbers SET last = last + ${BASE} WHERE name IN ('run', 'change'); COMMIT`);
	sql(store, 'VACUUM ANALYZE');
	console.log(`${count()} runs are there before, ${BASE} of them taken in, the rest copies `
		+ `made by SQL: ${((performance.now() - from) / 1000).toFixed(0)} s`);
	return count();
}

/** What four writers do until everything is in: counts, and how many parts were begun. */
function writers(store) {
	const state = { next: 0, parts: 0, new: 0, duplicate: 0, asked: 0, isOver: false,
		from: performance.now() };
	const isEnd = () => state.next * PART >= runs || (performance.now() - state.from) / 1000 > seconds;
	const take = (got, files) => {
		state.new += got.new;
		state.duplicate += got.duplicate;
		state.asked += files * PART;
	};
	const write = async () => {
		while (!isEnd()) {
			const files = [];
			while (files.length < 4 && !isEnd())
				files.push(part(state.next++));
			// Two writers at once try to be the first to store it.
			const both = state.next % TWICE < 4 ? files.slice(0, 1) : [];
			const got = await Promise.all([ingest(store, files),
				...both.map((f) => ingest(store, [f]))]);
			got.forEach((g, i) => take(g, i ? 1 : files.length));
			files.forEach((f) => rmSync(f));
		}
	};
	state.done = Promise.all(Array.from({ length: WRITERS }, write)).then(() => {
		state.parts = state.next;
		state.seconds = (performance.now() - state.from) / 1000;
		state.isOver = true;
	});
	state.share = () => state.isOver ? 1 : Math.max(state.next * PART / runs,
		(performance.now() - state.from) / 1000 / seconds);
	return state;
}

try {
	const store = server.replace('@', 'bench_writers'), args = ['--no-launch', '--store', store];
	if (!sql(server.replace('@', 'postgres'),
		"SELECT 1 FROM pg_database WHERE datname = 'bench_writers'")) {
		execFileSync(createdb.split(' ')[0], [...createdb.split(' ').slice(1), 'bench_writers']);
		execFileSync(program, ['store', 'check', '--repair', '--store', store], { stdio: 'ignore' });
	}
	const before = copies ? await prepare(store) : 0;
	const first = await dashboard(...args);
	const w = writers(store);
	const one = [], two = [];
	// The store grows meanwhile: each is asked as often about a small one as about a large one.
	for (const [dashboards, share] of [[1, 0.1], [2, 0.3], [1, 0.5], [2, 0.7], [1, 0.8]]) {
		const other = dashboards > 1 ? await dashboard(...args) : undefined;
		const took = await answered(other ? [first, other] : [first], () => w.share() > share);
		(other ? two : one).push(...took);
		await other?.stop();
	}
	let second = await dashboard(...args);
	await answered([first, second], () => w.share() > 0.85);
	second.child.kill('SIGKILL');
	await sleep(500);
	const from = performance.now();
	second = await dashboard(...args);
	const back = (performance.now() - from) / 1000;
	await answered([first, second], () => w.isOver);
	await w.done;
	const caught = await until('the dashboards have all runs', async () =>
		await total(first) === before + w.new && await total(second) === before + w.new);
	const there = Number(sql(store, 'SELECT count(*) FROM documents'));
	console.log(`${availableParallelism()} processors; ${w.asked} runs handed in by ${WRITERS} writers, `
		+ `${w.new} new, ${w.duplicate} duplicates; ${there} in the database, `
		+ `${await total(first)} and `
		+ `${await total(second)} in the dashboards`);
	isMet &&= w.new === w.parts * PART && there === before + w.new && w.new + w.duplicate === w.asked;
	show('runs taken in', w.new / w.seconds, 'runs/s');
	show('a run in the database', Number(sql(store, 'SELECT pg_database_size(current_database())'))
		/ there, 'bytes');
	show('filters while four write, one dashboard, p50', rank(one, 0.5), `ms (${one.length})`);
	show('filters while four write, one dashboard, p95', rank(one, 0.95), 'ms');
	show('filters while four write, two dashboards, p50', rank(two, 0.5), `ms (${two.length})`);
	show('filters while four write, two dashboards, p95', rank(two, 0.95), 'ms', 2 * rank(one, 0.95));
	show('the killed dashboard answers again after', back, 's');
	show('both have all runs after the last writer', caught, 's', 5);

	const { items } = await ask(first.url, '/api/filters/apply', { limit: 3 });
	const ids = items.map((r) => r.id);
	await ask(first.url, '/api/data/bulk', { action: 'delete', ids: [ids[0]] });
	show('a run deleted through one is gone from the other after', await until('a delete is followed',
		async () => await total(second) === there - 1), 's', 3);
	await ask(second.url, '/api/data/bulk', { action: 'exclude', ids: [ids[1]], text: 'bench' });
	show('a run excluded through one is gone from the other after',
		await until('an exclusion is followed', async () => await total(first) === there - 2),
		's', 3);
	let k = 0;
	const alone = await answered([first], () => k++ >= IDLE_ASKS);
	k = 0;
	const both = await answered([first, second], () => k++ >= IDLE_ASKS);
	show('filters while nobody writes, one dashboard, p95', rank(alone, 0.95), 'ms');
	show('filters while nobody writes, two dashboards, p95', rank(both, 0.95), 'ms',
		2 * rank(alone, 0.95));
	const sent = await uploads(first.url);
	show(`of ${UPLOADS} uploads at once, taken in`, sent.taken, 'uploads');
	show('the last of them answered after', sent.last, 's');
	show('requests refused for now, and sent again', sent.refused, 'requests');
	const stored = Number(sql(store, 'SELECT count(*) FROM documents'));
	isMet &&= stored === there - 1 + sent.taken; // one was deleted
	await first.stop();
	await second.stop();
	if (!copies) { // their documents say another name
		const check = execFileSync(program, ['store', 'check', '--store', store]).toString().trim();
		console.log(`store check: ${check.split('\n').at(-1)}`);
	}
} finally {
	rmSync(dir, { recursive: true, force: true });
}
process.exitCode = isMet ? 0 : 1;
