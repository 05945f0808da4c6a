// SPDX-License-Identifier: Apache-2.0
import { repeatOf, textOf, valueToChange, yamlOf } from '../../../web/src/app/pages/launch/repeat';
import type { Schema } from '../../../web/src/app/pages/launch/types';

const key = (name: string, otherwise: string | null = null) =>
	({ key: name, value: null, default: otherwise, help: null });
const schema: Schema = {
	sections: [{ name: 'benchmark, mode serve', keys: [key('num_prompts', '1000'), key('max_concurrency'),
		key('request_rate', 'inf'), key('tokenizer'), key('ignore_eos', 'false'), key('extra_body'),
		key('random_mm_limit', '{"image": 255, "video": 1}'), key('request_id_prefix'),
		key('save_detailed', 'false'), key('goodput')] },
	{ name: 'benchmark, mode throughput', keys: [key('input_len'), key('n', '1')] }],
	arguments: [{ ...key('tensor_parallel_size', '1'), group: 'Parallel' },
		{ ...key('dtype', 'auto'), group: 'Model' }],
};

it('writes a configuration as YAML that people can edit', () => {
	expect(yamlOf({ name: 'a gpu=h100', server: { model: 'org/m', command: ['a', 'b c'], n: 2,
		on: true, text: '12', yes: 'yes', colon: 'a: b', none: null, rate: 'inf',
		url: 'http://127.0.0.1:8000' },
	servers: [{ name: 'x', env: { A: '1' } }], empty: {}, list: [] }))
		.toBe(`name: a gpu=h100
server:
  model: org/m
  command: ["a", "b c"]
  n: 2
  "on": true
  text: "12"
  "yes": "yes"
  colon: "a: b"
  none: null
  rate: inf
  url: http://127.0.0.1:8000
servers:
  - name: x
    env:
      A: "1"
empty: {}
list: []
`);
});

it('repeats an experiment as it was given', () => {
	const given = { name: 'grid-max_concurrency=8,gpu=h100', server: { command: 'sim', model: 'm' },
		benchmark: { max_concurrency: 8, num_prompts: 4 } };
	const output = { folder: '/x/y', upload: null };
	const r = repeatOf({ document: { config: { given: { ...given, output } } },
		values: { mode: 'serve' } }, schema);
	expect(r.config).toEqual({ ...given, name: 'grid gpu=h100' });
	expect(r.notes).toEqual([]);
	const hidden = { server: { url: 'http://h:1' }, benchmark: { header: ['a=***'] } };
	expect(textOf(repeatOf({ document: { config: { given: hidden } }, values: {} }, schema)))
		.toMatch(/^# A secret was hidden .*\nserver:/);
});

it('repeats a result of bench serve with the options that were given', () => {
	const options = { model: 'demo', host: '127.0.0.1', port: 8123, num_prompts: 120, max_concurrency: 8,
		request_rate: 'inf', tokenizer: 'sim', ignore_eos: true, extra_body: { user: 'a' },
		random_mm_limit: { image: 255, video: 1 }, request_id_prefix: 'bench-1', save_detailed: true,
		unknown: 1, goodput: ['ttft:500'] };
	const r = repeatOf({ document: { profllm: { options } },
		values: { mode: 'serve', 'server.model': 'demo' } }, schema);
	expect(r.config).toEqual({ server: { url: 'http://127.0.0.1:8123' },
		benchmark: { model: 'demo', num_prompts: 120, max_concurrency: 8, tokenizer: 'sim',
			ignore_eos: true, extra_body: { user: 'a' }, goodput: ['ttft:500'] } });
	expect(r.notes).toHaveLength(1);
	const foreign = repeatOf({ document: {}, values: { 'server.model': 'org/m',
		'server.tensor_parallel_size': 4, 'server.dtype': 'auto',
		'benchmark.num_prompts': 50 } }, schema);
	expect(foreign.config).toEqual({ server: { model: 'org/m', tensor_parallel_size: 4 },
		benchmark: { num_prompts: 50 } });
	const offline = repeatOf({ document: {}, values: { mode: 'throughput', 'server.model': 'org/m',
		'benchmark.input_len': 32, 'benchmark.n': 1 } }, schema);
	expect(offline.config).toEqual({ server: { model: 'org/m' },
		benchmark: { mode: 'throughput', input_len: 32 } });
});

it('selects the value that is changed most', () => {
	const at = (text: string): string | null => {
		const range = valueToChange(text);
		return range && text.slice(...range);
	};
	expect(at('benchmark:\n  num_prompts: 60\n  max_concurrency: 16\n')).toBe('16');
	expect(at('benchmark:\n  num_prompts: 60\n  request_rate: inf\n')).toBe('60');
	expect(at('server:\n  max_num_seqs: 64\nbenchmark:\n  request_rate: 10\n')).toBe('10');
	expect(at('mode: latency\nbatch_size: 8\n')).toBe('8');
	expect(at('name: x\n')).toBeNull();
});
