// SPDX-License-Identifier: Apache-2.0
// config-schema.mjs: the JSON Schema of configurations, held by Ajv against what is right (every
// example, every YAML text of the guides, what `profllm init` writes) and against what is wrong
// (tests/cli/config-mistakes.txt): of that it must have the words that the program has.
import { createRequire } from 'node:module';
import { readFileSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { root } from './browser.mjs';
import { main, ok, program, run } from './tap.mjs';

const require = createRequire(join(root, 'web', 'package.json'));
const Ajv = require('ajv').default;
const { parse } = require('yaml');
const yaml = (text) => parse(text, { version: '1.1', merge: true });
const GOALS = ['run', 'curve', 'capacity', 'compare', 'nightly'];
let validate, schema;

function say() {
	return (validate.errors ?? []).slice(0, 8).map((e) =>
		`${e.instancePath} ${e.parentSchema.errorMessage ?? e.message}`);
}

const is_valid = (value, name) => ok(validate(value), `${name}: valid`, ...say());

/** [name, text] of each YAML text of a page: blocks, and files that its commands write. */
function texts_of(page) {
	const text = readFileSync(join(root, 'docs', 'guide', page), 'utf8');
	const blocks = [...text.matchAll(/^```yaml\n(.*?)^```/gms)].map((m) => m[1]);
	const files = [...text.matchAll(/^cat >\S+\.yaml <<'?END'?\n(.*?)^END$/gms)].map((m) => m[1]);

	return [...blocks, ...files].map((one, i) => [`${page}, text ${i + 1}`, one]);
}

// A file that a section includes has the section's own keys: `model` and the like.
const is_configuration = (value) => Object.keys(value).some((key) => key in schema.allOf[0].properties);

function guides() {
	const texts = readdirSync(join(root, 'docs', 'guide')).sort().flatMap(texts_of);
	let n = 0;

	for (const [name, text] of texts) {
		const value = yaml(text);

		if (!is_configuration(value))
			continue;
		is_valid(value, name);
		n++;
	}
	ok(n >= 12, `${n} texts of the guides are configurations`);
}

function examples() {
	const folders = ['examples', 'examples/ci'];

	for (const folder of folders)
		for (const file of readdirSync(join(root, folder)).filter((f) => f.endsWith('.yaml')).sort())
			is_valid(yaml(readFileSync(join(root, folder, file), 'utf8')), `${folder}/${file}`);
}

async function made() {
	for (const server of ['sim', 'vllm serve --seed 1', 'http://127.0.0.1:8000'])
		for (const goal of GOALS) {
			const r = await run(program, ['init', '-', '--server', server, '--model', 'a/b',
				'--goal', goal]);

			if (server.startsWith('http') && goal === 'compare')
				ok(r.status === 2, 'init: nothing to compare on a server that runs');
			else
				is_valid(yaml(r.out), `init --server '${server}' --goal ${goal}`);
		}
}

/** Whether a sentence of the program begins with the words of the schema. */
function is_same(words, sentence) {
	return sentence.startsWith(words) && /^(, got |; did you mean | \(experiment |$)/
		.test(sentence.slice(words.length));
}

function mistakes() {
	const text = readFileSync(join(root, 'tests', 'cli', 'config-mistakes.txt'), 'utf8');
	const rows = [...text.matchAll(/^# (.*)\n((?:(?!=> ).*\n)+)=> \d+:\d+: (.*)$/gm)];

	ok(rows.length >= 40, `${rows.length} files with a mistake`);
	for (const [, kind, file, sentence] of rows) {
		// "server.port: expected ..."; of matrix another path follows.
		const parts = sentence.split(': ');
		const tails = parts.map((_, i) => parts.slice(i).join(': ')).slice(1);
		const is_refused = !validate(yaml(file));
		const words = (validate.errors ?? []).map((e) => e.parentSchema.errorMessage ?? '-');

		ok(is_refused && words.some((w) => tails.some((t) => is_same(w, t))),
			`${kind}: ${sentence}`, ...say());
	}
}

// What the program reads in more than one way, and the schema has to as well.
const right = [
	'server: {model: m, tp: 2, max-num-seqs: 8}',
	'server: {command: sim, model: m, ready_timeout_s: 1h30m}\nresources: {wait_s: 10m}',
	'server: {model: m, kv_cache_memory_bytes: 4GiB, max_model_len: 8k}',
	'x-load: &l {num_prompts: 5}\nserver: {model: m}\nbenchmark: {<<: *l, seed: 1}',
	'server: {model: m, max_num_seqs: 8}\nbenchmark: {max_concurrency: "${server.max_num_seqs}"}',
	'server: {model: m, port: "${PORT:-8000}"}',
	'server: {model: m}\nmatrix: {server: {tp: [1, 2]}, benchmark.max_concurrency: [1, 2]}',
	'server: {include: vllm.yaml, command: vllm serve}',
	'server: {command: [python, serve.py], any-thing: 3}',
	'server: {url: "http://h:1"}\nbenchmark: {http_version: 1.1, request_rate: inf}',
	'server: {model: m, compilation-config.cudagraph-mode: FULL}',
	'server: {model: m}\nbenchmark: {mode: latency, output_len: 8}',
	'server: null\nbenchmark: null',
];

await main(async () => {
	const shipped = await run(program, ['run', '--print-config-schema']);

	ok(shipped.status === 0 && shipped.err === '', 'run --print-config-schema prints it', shipped.err);
	schema = JSON.parse(shipped.out);
	validate = new Ajv({ strict: false, allErrors: true, verbose: true }).compile(schema);
	ok(true, 'the schema is one');
	examples();
	guides();
	right.forEach((text) => is_valid(yaml(text), text.replaceAll('\n', '; ')));
	await made();
	mistakes();
});
