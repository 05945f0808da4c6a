// SPDX-License-Identifier: Apache-2.0
// api.mjs: walks every route of the OpenAPI document against a dashboard that holds runs. Ajv
// checks requests and answers with the document's schemas.
import { spawn } from 'node:child_process';
import { createRequire } from 'node:module';
import { readFileSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { root } from './browser.mjs';
import { equal, main, ok, program, scratch } from './tap.mjs';

const Ajv = createRequire(join(root, 'web', 'package.json'))('ajv/dist/2020').default;
const ajv = new Ajv({ strict: true, allowUnionTypes: true, strictRequired: false });
const asked = new Map();
let url, api, child;

async function start() {
	const file = join(scratch, 'port');
	child = spawn(program, ['dashboard', '--no-auth', '--listen', '127.0.0.1:0', '--port-file', file,
		'--store', `sqlite:${join(scratch, 'runs.db')}`], { stdio: ['ignore', 'ignore', 'inherit'] });
	for (let k = 0; k < 3000; k++) {
		let port = '';
		try {
			port = readFileSync(file, 'utf8').trim();
		} catch {
			// not yet there
		}
		if (port) {
			url = `http://127.0.0.1:${port}`;
			return;
		}
		await new Promise((done) => setTimeout(done, 10));
	}
	throw new Error('the dashboard did not start');
}

// ---- schemas ----

const local = (schema) => JSON.parse(JSON.stringify(schema).replaceAll('#/components/schemas/', ''));

function judge(schema, value, what) {
	const validate = ajv.compile(local(schema));

	return ok(validate(value), what, ...(validate.errors ?? []).slice(0, 6)
		.map((e) => `${e.instancePath} ${e.message} ${JSON.stringify(e.params)}`),
	...(validate.errors ? [JSON.stringify(value).slice(0, 600)] : []));
}

/** The operation that a path means, and how the document writes the path. */
function operation_of(method, path) {
	for (const [form, operations] of Object.entries(api.paths)) {
		const pattern = form.replaceAll('.', '\\.').replace(/\{[^}]*\}/g, '[^/]+');
		if (new RegExp(`^${pattern}$`).test(path) && operations[method.toLowerCase()])
			return [form, operations[method.toLowerCase()]];
	}
	throw new Error(`the document has no ${method} ${path}`);
}

function judge_request(operation, form, params, body) {
	const declared = operation.parameters.filter((p) => p.in === 'query').map((p) => p.name);
	const content = operation.requestBody?.content ?? {};

	equal([...params.keys()].filter((key) => !declared.includes(key)), [],
		`${form}: parameters are declared`);
	if (body instanceof FormData)
		ok('multipart/form-data' in content, `${form}: takes a form`);
	else if (body !== undefined && content['application/json'])
		judge(content['application/json'].schema, body, `${form}: the request is one`);
	else
		ok(body === undefined && !operation.requestBody, `${form}: a request with or without a body`);
}

/** Asks, and holds both sides against the document; the answer's JSON, or its text. */
async function ask(method, target, body) {
	const at = new URL(target, url);
	const [form, operation] = operation_of(method, at.pathname);
	const name = `${method} ${form}`;

	judge_request(operation, name, at.searchParams, body);
	const answer = await fetch(at, { method, body: body === undefined || body instanceof FormData ? body
		: JSON.stringify(body),
	headers: body === undefined || body instanceof FormData ? {}
		: { 'Content-Type': 'application/json' } });
	const text = await answer.text();
	const declared = operation.responses[answer.status];
	if (!ok(declared, `${name}: ${answer.status} is declared`, text.slice(0, 500)))
		return {};
	asked.set(name, (asked.get(name) ?? 0) + 1);
	const type = (answer.headers.get('content-type') ?? '').split(';')[0];
	if (!ok(type in declared.content, `${name}: ${type} is declared`))
		return {};
	if (type !== 'application/json')
		return text;
	const value = JSON.parse(text);
	judge(declared.content[type].schema, value, `${name}: the answer is one`);
	return value;
}

/** A wrong request: answered with a problem. */
async function refused(method, target, status, body) {
	const answer = await fetch(new URL(target, url), { method, body: body && JSON.stringify(body) });
	const value = await answer.json();

	equal(answer.status, status, `${method} ${target}: ${status}`);
	judge({ $ref: 'Problem' }, value, `${method} ${target}: a problem`);
	equal(value.status, status, `${method} ${target}: with its status`);
	return value;
}

// ---- data ----

const documents = join(root, 'tests', 'unit', 'documents');

function file_form(...parts) {
	const form = new FormData();

	for (const [field, name, text] of parts)
		form.append(field, new Blob([text]), name);
	return form;
}

/** Documents of 24 commits, later ones slower. */
function commits() {
	const first = JSON.parse(readFileSync(join(documents, 'completed.json'), 'utf8'));

	return Array.from({ length: 24 }, (_, i) => ({ ...first,
		run_id: `${first.run_id.slice(0, -6)}${100000 + i}`,
		timestamp: `2026-02-01T00:00:${10 + i}.000Z`,
		provenance: { ...first.provenance, engine_commit: `abcdef${10 + i}` },
		results: { ...first.results, median_ttft_ms: (i < 14 ? 50 : 60) + i % 3 } }));
}

/** Results of eight days, three sizes and two rates; later days are slower. */
function results() {
	const lines = [];

	const one = (day, size, rate, repeat) => {
		const noise = 1 + ((day * 7 + size * 3 + repeat * 5) % 11) / 400, speed = size ** 0.9 * noise;
		return JSON.stringify({ model_id: 'm', date: `2026010${day + 1}-0${repeat}0000`,
			request_rate: rate, tensor_parallel_size: size, gpu_type: 'H100', num_prompts: 200,
			completed: 200, failed: 0, request_throughput: 10 * speed,
			output_throughput: 1000 * speed, median_ttft_ms: (day > 4 ? 60 : 50) * noise / size,
			p99_ttft_ms: 90 * noise, mean_ttft_ms: NaN });
	};

	for (let day = 0; day < 8; day++)
		for (const size of [1, 2, 4])
			for (const rate of [4, 'inf'])
				for (let repeat = 0; repeat < 3; repeat++)
					lines.push(one(day, size, rate, repeat));
	return lines.join('\n');
}

async function fill() {
	for (const file of readdirSync(documents).sort())
		await ask('POST', '/api/upload/raw?name=' + file,
			JSON.parse(readFileSync(join(documents, file), 'utf8')));
	for (const document of commits())
		await ask('POST', '/api/upload/raw', document);
	const uploaded = await ask('POST', '/api/upload/json', file_form(['file', 'r.jsonl', results()]));
	const detailed = await ask('POST', '/api/upload/json', file_form(['file', 'd.json', JSON.stringify({
		model_id: 'm', request_throughput: 3, completed: 2, failed: 0, median_ttft_ms: 7,
		ttfts: [0.5, 0.25], itls: [[0.1], []], max_concurrency: null, request_rate: 'inf' })],
	['trace', 'a.pt.trace.json.gz', 'traced']));
	const batch = await ask('POST', '/api/upload/batch', file_form(['file', 'x.json', '{"a": 1}'],
		['file', 'y.json', JSON.stringify({ model_id: 'n', request_throughput: 1 })]));

	for (let k = 0; k < 500; k++) {
		const answer = await fetch(`${url}/api/upload/status/${batch.job_id}`);
		if ((await answer.json()).state === 'done')
			break;
		await new Promise((done) => setTimeout(done, 20));
	}
	const job = await ask('GET', `/api/upload/status/${batch.job_id}`);
	equal(job.files.map((f) => f.outcome).sort(), ['invalid', 'new'], 'a batch is worked off');
	return { first: uploaded.results[0].id, detailed: detailed.results[0].id, job: batch.job_id };
}

// ---- the walk ----

async function server() {
	await ask('GET', '/api/health');
	await ask('GET', '/api/health/ready');
	await ask('GET', '/metrics');
	await ask('GET', '/api/openapi.json');
	await ask('POST', '/api/logout');
}

/** Two GPUs of one workload: g1 has three times the throughput of g2 and costs four times as much. */
const rented = () => ['g1', 'g2'].flatMap((gpu) => [1, 8].map((load) => JSON.stringify({
	model_id: 'rented', gpu_type: gpu, tensor_parallel_size: 1, max_concurrency: load, num_prompts: 50,
	completed: 50, failed: 0, request_throughput: load, median_ttft_ms: 20, p99_ttft_ms: 30,
	output_throughput: load * (gpu === 'g1' ? 300 : 100), median_tpot_ms: 10 }))).join('\n');

/** Prices that the server keeps decide what is cheapest; answers that it keeps follow them and the data. */
async function prices() {
	await ask('POST', '/api/upload/json', file_form(['file', 'rented.jsonl', rented()]));
	const workload = (await ask('POST', '/api/analysis/overview', {})).workloads
		.find((w) => w.key.startsWith('rented')).key;
	const cheapest = async (own) => {
		const answer = await ask('POST', '/api/analysis/overview', { workload, rank: 'usd', ...own });
		const best = answer.rows.filter((r) => r.cells.at(-1)?.is_best);
		return [best.map((r) => r.name).join(' '), answer.unpriced];
	};
	const kept = async () => (await ask('GET', '/api/settings/prices')).items;

	equal(await cheapest(), ['', ['g1', 'g2']],
		'without prices nothing is cheapest, and none is guessed');
	equal((await kept()).filter((p) => p.usd_per_hour !== null), [], 'no price is shipped');
	await ask('PUT', '/api/settings/prices/g1', { usd_per_hour: 8, who: 'me' });
	await ask('PUT', '/api/settings/prices/g2', { usd_per_hour: 2, power_w: 500 });
	equal(await cheapest(), ['g2', []], 'three times the throughput for four times the price costs more');
	equal((await cheapest({ prices: { g1: 1, g2: 2 } }))[0], 'g1', 'prices of a request come first');
	const curves = { workload, x: 'tokens_per_s_per_user', y: 'usd_per_m_output' };
	const costs = (await ask('POST', '/api/analysis/curves', curves)).lines.flatMap((l) => l.points)
		.map((p) => Number((p.y).toFixed(4))).sort((a, b) => a - b);
	equal(costs, [0.6944, 0.9259, 5.5556, 7.4074], '$/M is price x GPUs x 1e6 / (3600 x tokens/s)');
	await ask('PUT', '/api/settings/prices/g1', { usd_per_hour: 4, who: 'me' });
	equal((await cheapest())[0], 'g1', 'another price, another answer');
	equal((await kept()).filter((p) => ['g1', 'g2'].includes(p.gpu))
		.map((p) => [p.gpu, p.usd_per_hour, p.power_w, p.who, p.source, typeof p.at]),
	[['g1', 4, null, 'me', null, 'number'], ['g2', 2, 500, 'local', null, 'number']],
	'each with who and when');
	const faster = { ...JSON.parse(rented().split('\n')[3]), output_throughput: 5000,
		date: '20260301-000000' };
	await ask('POST', '/api/upload/json', file_form(['file', 'more.jsonl', JSON.stringify(faster)]));
	equal((await cheapest())[0], 'g2', 'an upload changes the answer');
	await ask('PUT', '/api/settings/prices/g1', { usd_per_hour: null });
	await ask('PUT', '/api/settings/prices/g2', { usd_per_hour: null, power_w: null });
	equal((await kept()).filter((p) => p.usd_per_hour !== null), [], 'prices can be removed');
	const h100 = (await kept()).find((p) => p.gpu.startsWith('h100'));
	equal([h100.power_w, h100.source], [700, 'NVIDIA H100 data sheet: H100 SXM, up to 700 W'],
		'power of a board is the vendor\'s, and says so');
	await refused('PUT', '/api/settings/prices/g1', 400, { usd_per_hour: -1 });
	await refused('PUT', '/api/settings/prices/g1', 400, { usd_per_hour: 1, color: 'red' });
}

async function filters(ids) {
	const filter = { and: [{ column: 'server.model', in: ['m', null] },
		{ or: [{ column: 'median_ttft_ms', range: { min: 1, max: 'inf' } },
			{ not: { column: '*', text: 'x' } },
			{ column: 'server.revision', missing: true }] }] };

	await ask('GET', '/api/filters/options?facet_values=3&bins=4&shown=all');
	await ask('GET', `/api/filters/options?filter=${encodeURIComponent(JSON.stringify(filter))}`);
	await ask('POST', '/api/filters/apply', {});
	await ask('POST', '/api/filters/apply', { group: 'configuration' });
	const page = await ask('POST', '/api/filters/apply', { filter, shown: 'all', limit: 3,
		sort: [{ column: 'median_ttft_ms', descending: true }], facets: 'auto', facet_values: 2,
		bins: 5, statistics: ['median_ttft_ms', 'benchmark.request_rate', 'server.revision'] });
	await ask('POST', '/api/filters/apply', { filter, shown: 'all', limit: 3, cursor: page.next,
		sort: [{ column: 'median_ttft_ms', descending: true }], columns: ['run_id'],
		facets: ['median_ttft_ms', 'server.revision'] });
	const made = await ask('POST', '/api/filters/presets', { name: 'a', body: { filter } });
	await ask('PUT', `/api/filters/presets/${made.id}`, { body: [1, null] });
	await ask('GET', '/api/filters/presets');
	await ask('DELETE', `/api/filters/presets/${made.id}`);
	const board = await ask('POST', '/api/boards', { name: 'a', body: { blocks: [] } });
	await ask('PUT', `/api/boards/${board.id}`, { name: 'b' });
	const frozen = 'x'.repeat(1_000_000), tooLong = frozen + 'x'.repeat(100_000);
	const { at } = await ask('PUT', `/api/boards/${board.id}`, { body: { blocks: [], frozen } });
	const again = await ask('PUT', `/api/boards/${board.id}`, { name: 'c', was: at });
	ok(again.at > at, 'a change of what was read last is saved');
	const old = await refused('PUT', `/api/boards/${board.id}`, 409, { body: {}, was: at });
	equal(old.pointer, '/was', 'and one of what was read before is refused');
	await refused('PUT', `/api/boards/${board.id}`, 400, { body: {}, was: 'now' });
	await refused('PUT', `/api/boards/${board.id}`, 413, { body: tooLong });
	await refused('POST', '/api/filters/presets', 413, { name: 'c', body: frozen });
	await ask('GET', '/api/boards');
	await ask('DELETE', `/api/boards/${board.id}`);
	await prices();
	await ask('GET', '/api/data/experiments?limit=2&sort=-timestamp,run_id&columns=run_id,status');
	await ask('GET', '/api/data/summary');
	await ask('POST', '/api/data/summary', { filter, statistics: ['p99_ttft_ms'] });
	await ask('GET', '/api/export/csv?limit=3');
	await ask('POST', '/api/export/csv', { filter, columns: ['run_id'], format: 'jsonl' });
	return ids;
}

async function runs(ids) {
	const remark = await ask('POST', `/api/data/experiments/${ids.detailed}/annotations`, { text: 'x' });

	await ask('PUT', `/api/data/experiments/${ids.detailed}/exclusion`, { reason: 'odd', who: 'me' });
	await ask('POST', `/api/data/experiments/${ids.detailed}/traces`,
		file_form(['trace', 'b.json', 'more']));
	const list = await ask('GET', '/api/data/experiments?limit=1000&shown=all');
	for (const item of list.items.slice(0, 20))
		await ask('GET', `/api/data/experiments/${item.id}`);
	await ask('GET', `/api/data/experiments/${ids.detailed}/document`);
	await ask('GET', `/api/data/experiments/${ids.detailed}/arrays`);
	await ask('GET', `/api/data/experiments/${ids.detailed}/series`);
	await ask('GET', `/api/data/experiments/${ids.detailed}/sketches`);
	await ask('GET', `/api/data/experiments/${ids.first}/series`);
	await ask('GET', `/api/data/experiments/${ids.first}/sketches`);
	await ask('DELETE', `/api/data/experiments/${ids.detailed}/exclusion`);
	await ask('DELETE', `/api/annotations/${remark.id}`);
	const traces = await ask('GET', '/api/traces?limit=1');
	equal([traces.total, traces.items.length], [2, 1], 'two traces, one on the page');
	const rest = await ask('GET', `/api/traces?limit=5&cursor=${traces.next}`);
	equal(rest.items.map((t) => t.name), ['a.pt.trace.json.gz'], 'the other one on the next');
	equal(await ask('GET', `/api/export/traces/${rest.items[0].id}`), 'traced', 'its bytes');
	await ask('DELETE', `/api/traces/${rest.items[0].id}`);
}

/** A detailed result as vLLM writes it: a request a second for 30 s, then two a second for 30 s. */
function detailed_load() {
	const starts = Array.from({ length: 90 }, (_, i) => 1000 + (i < 30 ? i : 30 + (i - 30) / 2));
	const each = (make) => starts.map((at, i) => make(i, at));

	return { model_id: 'm', request_throughput: 1.5, completed: 89, failed: 1, duration: 61,
		max_concurrency: null, request_rate: 'inf', start_times: starts,
		input_lens: each((i) => 100 + i), output_lens: each((i) => i === 50 ? 0 : 10),
		ttfts: each((i) => i === 50 ? 0 : 0.05 + i / 1000),
		itls: each((i) => i === 50 ? [] : Array(9).fill(0.02)),
		errors: each((i) => i === 50 ? 'Connection reset' : '') };
}

/** What the page of a run draws, made of a foreign result's arrays. */
async function drawn() {
	const mean = (track, from, to) => {
		const some = track.y.filter((_, i) => track.t_s[i] >= from && track.t_s[i] < to);
		return some.reduce((a, b) => a + b, 0) / some.length;
	};
	const near = (got, want, what) =>
		ok(Math.abs(got - want) < 0.01 * want, what, `${got}, not ${want}`);
	const sent = await ask('POST', '/api/upload/json',
		file_form(['file', 'load.json', JSON.stringify(detailed_load())]));
	const id = sent.results[0].id;
	const series = await ask('GET', `/api/data/experiments/${id}/series`);
	const [tokens, running] = series.tracks;
	equal(series.tracks.map((t) => t.key), ['output_tokens_per_s', 'requests_running'], 'load over time');
	equal([series.start_s, series.duration_s, tokens.y.length], [null, 61, 61], 'its grid');
	near(mean(tokens, 2, 29), 10, 'ten tokens a second');
	near(mean(tokens, 41, 59), 20, 'twice as many in the second half');
	near(mean(running, 2, 29), 0.05 + 0.18 + 0.015, 'requests in flight'); // the mean E2EL
	ok(running.max.every((v) => v >= 0) && Math.max(...running.max) >= 1, 'with the most in each bin');
	equal(series.failed_s, [40], 'when a request failed');
	equal(series.missing, ["The server's queue and KV cache were not read during this run.",
		'This run has no GPU telemetry.'], 'what is missing');
	const sketches = await ask('GET', `/api/data/experiments/${id}/sketches`);
	const at = (key, p) => {
		const m = sketches.metrics.find((one) => one.key === key);
		return m.value[m.p.indexOf(p)];
	};
	equal(sketches.metrics.map((m) => [m.key, m.n]),
		[['ttft_ms', 89], ['tpot_ms', 89], ['itl_ms', 801], ['e2el_ms', 89]], 'four distributions');
	ok(sketches.metrics.every((m) => !m.is_spoiled), 'which nothing spoils');
	near(at('ttft_ms', 0), 50, 'least TTFT');
	near(at('ttft_ms', 0.5), 94, 'median TTFT'); // 0 to 89 without 50: the 45th of 89 is 44
	near(at('ttft_ms', 1), 139, 'greatest TTFT');
	near(at('itl_ms', 0.5), 20, 'ITL');
	near(at('e2el_ms', 1), 319, 'E2EL');
	const by = sketches.by_prompt;
	equal([by.prompt_tokens.length, by.prompt_tokens[51], Math.round(by.ttft_ms[51])],
		[89, 152, 102], 'TTFT by prompt');
	equal([sketches.by_turn, sketches.missing], [null, []], 'no turns');

	const plain = await ask('POST', '/api/upload/json', file_form(['file', 'p.json', JSON.stringify({
		model_id: 'plain', request_throughput: 1, duration: 5, median_ttft_ms: 3 })]));
	const none = `/api/data/experiments/${plain.results[0].id}`;
	const [load, latencies] = [await ask('GET', `${none}/series`), await ask('GET', `${none}/sketches`)];
	equal([load.tracks, load.duration_s, load.missing.length], [[], 5, 1], 'summary figures only');
	ok(latencies.missing[0].startsWith('This result has summary figures only'), 'which is said');
}

async function analysis(ids) {
	const filter = { column: 'server.model', in: ['m'] };
	const size = (n) => ({ and: [filter, { column: 'server.tensor_parallel_size', in: [n] }] });
	const metric = 'median_ttft_ms';

	await ask('POST', '/api/data/compare', { groups: [{ name: 'one', filter: size(1) },
		{ name: 'two', filter: size(2) }] });
	await ask('POST', '/api/data/compare', {
		groups: [{ ids: [ids.first] }, { ids: [ids.first + 1, ids.first + 2] }],
		metrics: ['median_ttft_ms', 'request_throughput'], baseline: 0, level: 0.9,
		primary: 'median_ttft_ms', ignore: ['benchmark.request_rate'], comparable_only: true });
	const trends = await ask('POST', '/api/analysis/trends', { filter, metric, axis: 'time' });
	const by_commit = await ask('POST', '/api/analysis/trends', { metric, series: ['server.model'] });
	ok(trends.series.length > 0 && by_commit.series.some((s) => s.changes.length > 0),
		'there are series, and changes in them');
	const mark = await ask('POST', '/api/analysis/marks', { series: trends.series[0]?.id ?? 's', metric,
		at: 'c5', kind: 'seen', text: 'slower' });
	await ask('GET', '/api/analysis/marks');
	await ask('DELETE', `/api/analysis/marks/${mark.id}`);
	const judged = await ask('POST', '/api/analysis/regression', { metric, series: ['server.model'],
		baseline: { commit: 'abcdef12' } });
	ok(judged.items.length > 0, 'and verdicts');
	await ask('POST', '/api/analysis/impact', { filter, metric });
	await ask('POST', '/api/analysis/scaling', { filter, metric: 'output_throughput',
		by: 'server.tensor_parallel_size' });
	await ask('POST', '/api/analysis/capacity', { filter, rate: 100,
		slo: [{ column: 'p99_ttft_ms', max: 200 }] });
	await ask('POST', '/api/analysis/resources', { filter, x: 'output_throughput', y: metric,
		color: 'benchmark.request_rate' });
	await ask('POST', '/api/analysis/pareto', { filter, x: 'output_throughput', y: metric,
		group: ['server.tensor_parallel_size'] });
	await ask('POST', '/api/analysis/curves', { filter, x: metric, y: 'output_throughput',
		color: 'server.tensor_parallel_size', at: 10, prices: { h100: 2.5 } });
	await ask('POST', '/api/analysis/overview', { rank: 'gpu', need: { p99_ttft_ms: 200 },
		prices: { h100: 2.5 } });
	await ask('POST', '/api/analysis/distribution', { filter, metric,
		group: ['server.tensor_parallel_size'] });
	await ask('POST', '/api/analysis/parallel', { filter, limit: 10,
		columns: ['server.tensor_parallel_size', 'benchmark.request_rate', 'server.model', metric] });
}

async function jobs(ids) {
	const config = 'name: quick\nserver: { command: sim, model: sim, ttft_ms: 1, itl_ms: 1 }\n'
		+ 'benchmark: { dataset_name: random, tokenizer: sim, random_input_len: 8,'
		+ ' random_output_len: 4, num_prompts: 4 }\n';

	await ask('GET', '/api/launch/schema');
	await ask('GET', '/api/launch/examples');
	await ask('POST', '/api/launch/check', { config });
	await ask('POST', '/api/launch/check', { config: 'server: { modell: x }' });
	const { job_id } = await ask('POST', '/api/launch', { config });
	await ask('GET', `/api/jobs/${job_id}/events`);
	const job = await ask('GET', `/api/jobs/${job_id}`);
	equal([job.state, job.run_ids.length], ['done', 1], 'an experiment is run');
	await ask('GET', `/api/jobs/${job_id}/log?offset=0`);
	await ask('GET', '/api/jobs?limit=5');
	await ask('GET', `/api/jobs/${ids.job}`);
	await ask('GET', `/api/jobs/${ids.job}/events`);
	const slow = config.replace('ttft_ms: 1', 'ttft_ms: 5000');
	const next = await ask('POST', '/api/launch', { config: slow });
	await ask('POST', `/api/jobs/${next.job_id}/cancel`);
}

async function live() {
	const { id } = await ask('POST', '/api/live', { name: 'chat at 8', kind: 'bench serve', total: 60,
		run_id: 'a1' });
	await ask('POST', `/api/live/${id}/samples`, { samples: [
		{ t_s: 0.5, done: 3, failed: 0, running: 8, tokens_per_s: 210.5, ttft_ms: 41.5 },
		{ t_s: 1.5, done: 9, failed: 1, running: 8, tokens_per_s: null, kv_cache_percent: 12 }] });
	const run = await ask('GET', `/api/live/${id}`);
	equal([run.state, run.done, run.failed, run.total, run.series.tracks.map((t) => t.key)],
		['running', 9, 1, 60,
			['output_tokens_per_s', 'requests_running', 'kv_cache_percent', 'ttft_ms']],
		'a run that goes on has its curves');
	const end = await ask('POST', `/api/live/${id}/end`, { result: {
		model_id: 'm', request_throughput: 5, completed: 60, failed: 1, median_ttft_ms: 9 } });
	const list = await ask('GET', '/api/live');
	equal(list.items.map((item) => [item.id, item.state, item.run]), [[id, 'done', end.run]],
		'one that has ended names its run');
}

/** Many runs at once; the others stay as they are. */
async function bulk() {
	const page = await ask('POST', '/api/filters/apply', { limit: 4, columns: ['run_id'] });
	const [one, two] = page.items.map((r) => r.id), some = [one, two];
	// Other runs may come meanwhile: a job that was cancelled ends.
	const filter = { and: [{ column: 'run_id', in: page.items.map((r) => r.values.run_id) }] };
	const rows = (shown) => ask('POST', '/api/filters/apply', { shown, filter });
	const change = (body) => ask('POST', '/api/data/bulk', body);
	const total = page.items.length, all = (await rows('all')).total;
	const noisy = await change({ ids: some, action: 'exclude', text: 'noisy', who: 'anna' });
	equal(noisy.changed, 2, 'some runs are excluded');
	equal((await rows('usual')).total, total - 2, 'and not the others');
	const again = await change({ ids: [...some, 999999], action: 'exclude', text: 'x' });
	equal([again.changed, again.skipped, again.notes], [0, 3, ['2 were excluded already.',
		'1 does not exist any more.']], 'what is skipped is said');
	equal((await change({ filter, shown: 'excluded', action: 'include' })).changed, 2,
		'a filter chooses, too');
	equal((await rows('usual')).total, total, 'all runs are back');
	const version = (await rows('usual')).data_version;
	equal((await change({ ids: some, action: 'tag', text: 'a, b', who: 'anna' })).changed, 2, 'tags');
	equal((await change({ ids: [one], action: 'tag', text: 'best' })).changed, 1, 'of some');
	const tags = await ask('GET', '/api/tags'), sorted = (ids) => [...ids].sort((a, b) => a - b);
	equal(tags.items, [{ tag: 'a, b', runs: sorted(some) }, { tag: 'best', runs: [one] }],
		'are listed with their runs');
	equal((await ask('GET', `/api/data/experiments/${one}`)).tags.map(({ tag, who }) => [tag, who]),
		[['a, b', 'anna'], ['best', 'local']], 'a run has its own');
	const having = async (f) => (await ask('POST', '/api/filters/apply', { filter: f })).total;
	const isTagged = (...names) => ({ column: 'tag', in: names });
	equal([await having(isTagged('a, b')), await having(isTagged('best')), await having(isTagged('none')),
		await having({ and: [isTagged('a, b'), { not: isTagged('best') }] }),
		await having(isTagged('best', 'a, b'))], [2, 1, 0, 1, 2], 'a filter finds runs by them');
	equal((await ask('POST', '/api/data/summary', { filter: isTagged('a, b') })).total, 2,
		'of any question');
	ok((await rows('usual')).data_version > version, 'a tag is a change');
	equal((await change({ filter: isTagged('best'), action: 'untag', text: 'a, b' })).changed, 1,
		'they are removed by a filter, too');
	equal((await change({ ids: some, action: 'untag', text: 'a, b' })).notes, ['1 did not have the tag.'],
		'or by number');
	equal(await having(isTagged('a, b')), 0, 'and then find nothing');
	for (const formula of ['=a +', '=request_throughput / nothing_like_it', '=1'])
		await refused('POST', '/api/analysis/distribution', 400, { metric: formula });
	await refused('POST', '/api/filters/apply', 400, { sort: [{ column: '=duration / 2' }] });
	await refused('POST', '/api/data/bulk', 400, { action: 'tag', ids: some });
	await refused('POST', '/api/data/bulk', 400, { action: 'tag', ids: some, text: ' x' });
	await refused('POST', '/api/data/bulk', 400, { action: 'exclude', ids: some });
	await refused('POST', '/api/data/bulk', 400, { action: 'delete' });
	await refused('POST', '/api/data/bulk', 400, { action: 'delete', ids: some, filter });
	await refused('POST', '/api/data/bulk', 400, { action: 'delete', filter: { column: 'no', in: [1] } });
	await refused('POST', '/api/data/bulk', 422, { action: 'delete',
		ids: Array.from({ length: 10001 }, (_, i) => i + 1) });
	equal((await change({ ids: some.slice(0, 1), action: 'delete' })).changed, 1, 'one is deleted');
	equal((await rows('all')).total, all - 1, 'and only that one');
}

async function wrong() {
	await refused('GET', '/api/data/experiments/none', 404);
	await refused('GET', '/api/nothing', 404);
	await refused('POST', '/api/filters/apply', 400, { filter: 3 });
	await refused('POST', '/api/filters/apply', 400, { group: 'suite' });
	await refused('POST', '/api/analysis/trends', 400, { metric: 3 });
	await refused('POST', '/api/data/compare', 400, { groups: [] });
}

await main(async () => {
	try {
		await start();
		api = await (await fetch(`${url}/api/openapi.json`)).json();
		equal(api.openapi, '3.1.0', 'the document is of OpenAPI 3.1');
		for (const [name, schema] of Object.entries(api.components.schemas))
			ajv.addSchema({ ...local(schema), $id: name });
		const ids = await fill();
		await server();
		await filters(ids);
		await runs(ids);
		await drawn();
		await analysis(ids);
		await jobs(ids);
		await live();
		await wrong();
		await bulk();
		const all = Object.entries(api.paths).flatMap(([path, operations]) => Object.keys(operations)
			.map((method) => `${method.toUpperCase()} ${path}`));
		// There is nothing to log in to without a token.
		equal(all.filter((name) => !asked.has(name)), ['POST /api/login'], 'every route was asked');
	} finally {
		if (child && child.exitCode === null)
			await new Promise((then) => child.on('exit', then).kill('SIGTERM'));
	}
});
