// SPDX-License-Identifier: Apache-2.0
// schema.mjs: checks with Ajv that the shipped JSON Schema accepts example documents
// (tests/unit/documents) and real runs, and refuses changed ones.
import { createRequire } from 'node:module';
import { existsSync, readFileSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { root } from './browser.mjs';
import { equal, main, ok, output as build, program, run, scratch } from './tap.mjs';

const Ajv = createRequire(join(root, 'web', 'package.json'))('ajv/dist/2020').default;
const folder = join(root, 'tests', 'unit', 'documents');
const read = (name) => JSON.parse(readFileSync(join(folder, `${name}.json`), 'utf8'));
const load = (name) => name !== 'suite' ? read(name) : { schema_version: 1, suite: 'nightly',
	plan: { jobs: 1 }, experiments: [read('completed'), read('failed-ready')], lacking: [] };
let validate;

function say() {
	return (validate.errors ?? []).slice(0, 5)
		.map((e) => `${e.instancePath} ${e.message} ${JSON.stringify(e.params)}`);
}

function is_valid(document, name) {
	return ok(validate(document), `${name}: valid`, ...say());
}

/** Sets the value at a path; undefined removes it. */
function put(document, path, value) {
	const keys = path.split('.');
	const last = keys.pop();
	const at = keys.reduce((v, key) => v[key], document);

	if (value === undefined)
		delete at[last];
	else
		at[last] = value;
}

// [document, path, value]: what no valid document holds.
const wrong = [
	['completed', 'schema_version', 2], ['completed', 'schema_version', '1'],
	['completed', 'schema_version', undefined], ['completed', 'run_id', 'exp_1'],
	['completed', 'run_id', null], ['completed', 'suite', undefined],
	['completed', 'timestamp', '2026-11-22 06:41:32'], ['completed', 'duration', -1],
	['completed', 'duration', '12 s'], ['completed', 'config', null],
	['completed', 'config.name', undefined], ['completed', 'config.mode', 'fast'],
	['completed', 'config.repeat', 0], ['completed', 'config.hash', 'xyz'],
	['completed', 'config.server', []],
	['completed', 'config.server.tensor_parallel_size', '1'],
	['completed', 'config.server.tensor_parallel_size', 1.5],
	['completed', 'config.server.gpu_memory_utilization', '0.9'],
	['completed', 'config.server.enable_prefix_caching', 'yes'],
	['completed', 'config.servers', undefined], ['completed', 'config.servers', {}],
	['completed', 'config.servers.0.role', 'boss'],
	['completed', 'config.servers.0.port', 'auto'],
	['completed', 'config.servers.0.command', 'vllm serve'],
	['completed', 'config.servers.0.env.A', 2],
	['completed', 'config.servers.0.gpus.0', 3],
	['completed', 'config.servers.0.surprise', 1],
	['completed', 'config.benchmark', 'random'],
	['completed', 'config.benchmark.num_prompts', '20'],
	['completed', 'config.benchmark.max_concurrency', 'inf'],
	['completed', 'config.resources.ports', ['a', 'b']],
	['completed', 'config.telemetry.enabled', 1],
	['completed', 'results', null], ['completed', 'results', []],
	['completed', 'results.request_throughput', undefined],
	['completed', 'results.request_throughput', '7.6'],
	['completed', 'results.completed_requests', 1.5],
	['completed', 'results.completed_requests', -1],
	['completed', 'results.median_ttft_ms', 'fast'],
	['completed', 'results.p99_ttft_ms', 'slow'],
	['completed', 'results.a_number_of_nobodys', 1],
	['completed', 'results.profllm.threads', '1'],
	['completed', 'results.profllm.a_number_of_nobodys', 1],
	['completed', 'trust', null], ['completed', 'trust.verdict', 'FINE'],
	['completed', 'trust.reasons', {}], ['completed', 'trust.reasons.0.code', undefined],
	['completed', 'trust.error_budget.shared_read_share', 'none'],
	['completed', 'trust.error_budget.client_lag_ms.p99', 'none'],
	['completed', 'system', null], ['completed', 'system.peak_gpu_memory_gb', '70'],
	['completed', 'system.peak_gpu_memory_gb', undefined],
	['completed', 'system.hardware_info.cpu.cores', 'two'],
	['completed', 'system.hardware_info.gpus', null],
	['completed', 'system.hardware_info.memory', undefined],
	['completed', 'profiling.enabled', 'no'], ['completed', 'profiling.traces', undefined],
	['completed', 'environment', null], ['completed', 'environment.profllm', 1],
	['completed', 'environment.variables.HF_TOKEN', 5],
	['completed', 'provenance', null], ['completed', 'provenance.engine_commit', 5],
	['completed', 'status', 'done'], ['completed', 'status', undefined],
	['completed', 'error', undefined], ['completed', 'warnings', 'none'],
	['completed', 'warnings', [1]], ['completed', 'files', null],
	['completed', 'files.logs', undefined], ['completed', 'surprise', 1],
	['completed', 'error', { stage: 'start', category: null, reason: 'x', log_tail: null }],
	['failed-ready', 'error', null], ['failed-ready', 'error.stage', 'middle'],
	['failed-ready', 'error.reason', undefined], ['failed-ready', 'error.reason', null],
	['failed-ready', 'error.log_tail', ['a']], ['partial', 'status', 'failed '],
	['throughput', 'results.throughput', undefined],
	['throughput', 'results.throughput.requests_per_second', '201'],
	['latency', 'results.latency', undefined], ['startup', 'results.startup', []],
	['roles', 'profiling.traces.0.bytes', '1000'], ['roles', 'profiling.traces.0', 'a.gz'],
	['roles', 'config.servers.2.after', 'decode'],
	['suite', 'experiments', undefined], ['suite', 'experiments', {}],
	['suite', 'experiments.1.status', 'done'], ['suite', 'experiments.0.surprise', 1],
	['suite', 'surprise', 1], ['suite', 'schema_version', 7], ['suite', 'suite', 3],
	['suite', 'lacking', [1]],
];

function refuses() {
	for (const [name, path, value] of wrong) {
		const document = load(name);
		const before = JSON.stringify(document);

		put(document, path, value);
		const what = value === undefined ? 'missing' : JSON.stringify(value);
		ok(JSON.stringify(document) !== before && !validate(document),
			`${name}: ${path} ${what}: refused`);
	}
}

const server = ['server:', '  command: sim', '  model: sim', '  ttft_ms: 2', '  itl_ms: 1'];
const serving = ['benchmark:', '  mode: serve', '  dataset_name: random', '  tokenizer: sim',
	'  random_input_len: 20', '  random_output_len: 5', '  num_prompts: 10'];
const offline = (mode, ...more) => ['server: { command: sim, model: sim }', 'benchmark:',
	`  mode: ${mode}`, ...more.map((line) => `  ${line}`)];

// [name, lines of the configuration, exit status, statuses of the documents, stage of the failure]
const real = [
	['served', [...server, ...serving, 'output: { record: true, detailed: true }'], 0,
		['completed']],
	['on-gpus', [...server, ...serving, 'resources: { gpus: 2 }'], 0, ['completed']],
	['partly', [...server, '  fault: "status=503:0.5"', ...serving], 0, ['partial']],
	['worked-off', offline('throughput', 'dataset_name: random', 'random_input_len: 8',
		'random_output_len: 4', 'num_prompts: 4'), 0, ['completed']],
	['timed', offline('latency', 'num_iters: 2', 'num_iters_warmup: 1', 'output_len: 2'), 0,
		['completed']],
	['started', offline('startup', 'num_iters_cold: 1', 'num_iters_warm: 1',
		'num_iters_warmup: 1'), 0, ['completed']],
	['twice', [...server, ...serving, 'repeat: 2', 'suite: twins'], 0,
		['completed', 'completed']],
	['no-command', ['server: { command: /nowhere/vllm, model: m }', ...serving], 2, ['failed'],
		'config'],
	['no-server', ['server: { command: "false", model: m }', ...serving], 1, ['failed'],
		'start'],
	['never-ready', ['server: { command: [sh, -c, exec sleep 60], model: m, ready_timeout_s: 1 }',
		...serving], 1, ['failed'], 'ready'],
	['no-sense', ['server: { command: sim, modell: m }', ...serving], 2, ['failed'], 'config'],
	['none-served', [...server, '  fault: "status=503"', ...serving, '  ready_check_timeout_sec: 1'],
		1, ['failed'], 'ready'],
];

/** GPUs that are not there (tests/README.md), and locks of our own on them. */
const gpus = { ...process.env, PROFLLM_NVML: join(build, 'tests', 'libfake-nvml.so'),
	PROFLLM_LOCKS: join(scratch, 'locks') };

async function start([name, lines]) {
	const output = join(scratch, `${name}.json`);
	const config = join(scratch, `${name}.yaml`);

	writeFileSync(config, ['name: one', ...lines, ''].join('\n'));
	return { output, ...await run(program, ['run', '--config', config, '--output', output],
		name === 'on-gpus' ? { env: gpus } : {}) };
}

// All at once: most of their time is waiting.
async function runs() {
	const ran = await Promise.all(real.map(start));

	real.forEach(([name, , status, statuses, stage], i) => {
		if (!equal(ran[i].status, status, `${name}: exit status`))
			console.log(ran[i].err.replace(/^/gm, '# '));
		if (!ok(existsSync(ran[i].output), `${name}: there is a document`, ran[i].err))
			return;
		const document = JSON.parse(readFileSync(ran[i].output, 'utf8'));
		const members = document.experiments ?? [document];
		is_valid(document, name);
		equal(members.map((m) => m.status), statuses, `${name}: status`);
		if (name === 'on-gpus')
			equal([document.config.servers[0].gpus.length,
				document.system.hardware_info.gpus.length], [2, 8],
			'on-gpus: those it had, and all');
		if (stage)
			equal(members[0].error.stage, stage, `${name}: stage`);
	});
}

await main(async () => {
	const shipped = await run(program, ['run', '--print-schema']);

	ok(shipped.status === 0 && shipped.err === '', 'run --print-schema prints it', shipped.err);
	// In strict mode Ajv refuses a schema with keywords that it does not know or that do nothing.
	const ajv = new Ajv({ strict: true, allowUnionTypes: true, strictRequired: false,
		allowMatchingProperties: true });
	validate = ajv.compile(JSON.parse(shipped.out));
	ok(true, 'the schema is one');
	for (const file of readdirSync(folder).sort())
		is_valid(load(file.replace('.json', '')), file);
	is_valid(load('suite'), 'suite');
	refuses();
	await runs();
});
