// SPDX-License-Identifier: Apache-2.0
// dashboard-sample.mjs: documents as `profllm run` writes them, of a small study: two models, two
// GPUs, three sizes, three loads; and a series of commits with a step in it.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { root } from './browser.mjs';
import { numbers } from './dashboard-kit.mjs';

const example = JSON.parse(readFileSync(join(root, 'examples/results/vllm-cpu.json'), 'utf8'));
const two = (n) => String(n).padStart(2, '0');

/** 16 hex digits, as a document has them for its configuration. */
function hashOf(parts) {
	let hash = 14695981039346656037n;
	for (const c of Buffer.from(JSON.stringify(parts)))
		hash = BigInt.asUintN(64, (hash ^ BigInt(c)) * 1099511628211n);
	return hash.toString(16).padStart(16, '0');
}

/** i: an hour of the study. */
function document(i, { model, gpu, tp, rate, commit, throughput, ttft }) {
	const d = structuredClone(example);
	d.run_id = `exp_20260401_120000_${(i + (commit ? 4096 : 0)).toString(16).padStart(6, '0')}`;
	d.timestamp = `2026-04-${two(1 + Math.floor(i / 24))}T${two(i % 24)}:00:00.000Z`;
	d.config.name = `${model.split('/')[1]} tp${tp}`;
	Object.assign(d.config.server, { model, tensor_parallel_size: tp });
	Object.assign(d.config.benchmark, { model, request_rate: rate, num_prompts: 500 });
	d.provenance.engine_commit = commit;
	d.config.hash = hashOf([model, gpu, tp, rate]);
	d.system.hardware_info.gpus = Array.from({ length: tp }, (_, k) => ({
		index: k,
		name: gpu,
		uuid: `GPU-${k}`,
		vendor: 'nvidia',
		memory_bytes: 8e10,
		links: [],
	}));
	for (const server of d.config.servers)
		server.gpus = d.system.hardware_info.gpus.map(({ index, uuid, name }) => ({
			index,
			uuid,
			name,
		}));
	d.system.avg_gpu_utilization = Math.min(99, throughput / 40);
	d.system.j_per_token = (400 * tp) / throughput;
	Object.assign(d.results, {
		num_prompts: 500,
		completed_requests: 500,
		request_rate: rate,
		request_throughput: throughput / 128,
		output_throughput: throughput,
		total_token_throughput: throughput * 4,
		median_ttft_ms: ttft,
		mean_ttft_ms: ttft * 1.1,
		p95_ttft_ms: ttft * 2,
		p99_ttft_ms: ttft * 3,
	});
	return d;
}

/** 72 runs: each of 36 settings twice. */
export function study() {
	const random = numbers(5),
		out = [];
	for (const model of ['org/small-8b', 'org/large-70b'])
		for (const gpu of ['Alpha 80GB', 'Beta 40GB'])
			for (const tp of [1, 2, 4])
				for (const rate of [2, 8, 32])
					for (let k = 0; k < 2; k++) {
						const speed =
							(model.includes('8b') ? 4 : 1) *
							(gpu.startsWith('A') ? 1 : 0.5) *
							tp ** 0.8;
						const most = 5 * speed,
							got =
								Math.min(rate, most) *
								(0.97 + random() * 0.06);
						out.push(
							document(out.length, {
								model,
								gpu,
								tp,
								rate,
								commit: null,
								throughput: got * 128,
								ttft:
									(60 / speed) *
									(1 + (rate / most) ** 2) *
									(0.95 + random() * 0.1),
							}),
						);
					}
	return out;
}

/** 24 commits, one run each; from the 13th on it is 12 % slower. */
export function series() {
	const random = numbers(9);
	return Array.from({ length: 24 }, (_, i) =>
		document(i * 24, {
			model: 'org/trend-1b',
			gpu: 'Alpha 80GB',
			tp: 1,
			rate: 4,
			commit: `${two(i)}c0ffee`.repeat(5),
			throughput: 1000 * (i < 12 ? 1 : 0.88) * (0.995 + random() * 0.01),
			ttft: 20 + random(),
		}),
	);
}

/** A result of vLLM's with times of every request. */
export function detailed(n) {
	const random = numbers(3),
		list = (make) => Array.from({ length: n }, (_, i) => make(i));
	const itls = list(() => Array.from({ length: 20 }, () => 0.01 + random() * 0.05));
	return {
		date: '20260501-120000',
		backend: 'vllm',
		model_id: 'org/detail-1b',
		num_prompts: n,
		request_rate: 5,
		burstiness: 1,
		max_concurrency: null,
		duration: 10,
		completed: n,
		failed: 0,
		total_input_tokens: n * 30,
		total_output_tokens: n * 21,
		request_throughput: n / 10,
		output_throughput: n * 2.1,
		total_token_throughput: n * 5.1,
		mean_ttft_ms: 70,
		median_ttft_ms: 70,
		p99_ttft_ms: 99,
		input_lens: list(() => 30),
		output_lens: list(() => 21),
		ttfts: list(() => 0.05 + random() * 0.05),
		itls,
		start_times: list((i) => 100 + i * 0.2),
		generated_texts: list(() => 'x'),
		errors: list(() => ''),
	};
}
