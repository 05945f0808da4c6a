// SPDX-License-Identifier: Apache-2.0
//
// golden.mjs - writes the data of tests/unit/test_token_golden.c:
//
//   node golden.mjs TEXT_FILE... OUTPUT_DIRECTORY
//
// small.json is a tokenizer.json with a vocabulary of our own: the 256 bytes and
// 400 merges trained here on the given files and on texts.mjs. golden.jsonl
// holds variants of its other members, each with texts and what the reference
// library makes of them: [text, ids], and for some also [ids with special tokens,
// their text, their text without special tokens].
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { TRICKY, generator, randomDocument } from './texts.mjs';

const require = createRequire(join(process.cwd(), 'golden.mjs'));
const { Tokenizer, byteLevelAlphabet } = require('@anush008/tokenizers');
const MERGES = 400;
const out = process.argv[process.argv.length - 1];
const LLAMA3 = "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}{1,3}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+";
const O200 = "[^\\r\\n\\p{L}\\p{N}]?[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}]*[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|[^\\r\\n\\p{L}\\p{N}]?[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}]+[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|\\p{N}{1,3}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n/]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+";
const DEEPSEEK = ['\\p{N}{1,3}', '[一-龥぀-ゟ゠-ヿ]+', "[!\"#$%&'()*+,\\-./:;<=>?@\\[\\\\\\]^_`{|}~][A-Za-z]+|[^\\r\\n\\p{L}\\p{P}\\p{S}]?[\\p{L}\\p{M}]+| ?[\\p{P}\\p{S}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"];

function spelling() {
	const of = [];
	let extra = 256;
	for (let b = 0; b < 256; b++) {
		const own = (b >= 33 && b <= 126) || (b >= 161 && b <= 172) || b >= 174;
		of.push(String.fromCodePoint(own ? b : extra++));
	}
	return of;
}

function train(texts) {
	const bytes = spelling();
	const words = new Map();
	for (const text of texts)
		for (const word of text.match(/ ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+/gu) ?? []) {
			const spelled = [...Buffer.from(word)].map(b => bytes[b]).join('');
			words.set(spelled, (words.get(spelled) ?? 0) + 1);
		}
	const list = [...words].map(([word, count]) => ({ parts: [...word], count }));
	const vocab = Object.fromEntries([...bytes].sort().map((c, i) => [c, i]));
	const merges = [];
	while (merges.length < MERGES) {
		const seen = new Map();
		for (const { parts, count } of list)
			for (let i = 0; i + 1 < parts.length; i++) {
				const key = parts[i] + ' ' + parts[i + 1];
				seen.set(key, (seen.get(key) ?? 0) + count);
			}
		const [best] = [...seen].sort((a, b) => b[1] - a[1] || (a[0] < b[0] ? -1 : 1))[0];
		const [left, right] = best.split(' ');
		if (!(left + right in vocab))
			vocab[left + right] = Object.keys(vocab).length;
		merges.push([left, right]);
		for (const word of list)
			for (let i = 0; i + 1 < word.parts.length; i++)
				if (word.parts[i] === left && word.parts[i + 1] === right)
					word.parts.splice(i, 2, left + right);
	}
	return { vocab, merges };
}

const flags = { single_word: false, lstrip: false, rstrip: false, normalized: false, special: true };
const base = { add_prefix_space: false, trim_offsets: true, use_regex: false };
const split = (regex, behavior = 'Isolated', invert = false) =>
	({ type: 'Split', pattern: { Regex: regex }, behavior, invert });
const chain = (...pretokenizers) =>
	({ type: 'Sequence', pretokenizers: [...pretokenizers, { type: 'ByteLevel', ...base }] });
const template = (before, after, ids) => ({ type: 'TemplateProcessing',
	single: [...before.map(id => ({ SpecialToken: { id, type_id: 0 } })), { Sequence: { id: 'A', type_id: 0 } },
		...after.map(id => ({ SpecialToken: { id, type_id: 0 } }))],
	pair: [{ Sequence: { id: 'A', type_id: 0 } }, { Sequence: { id: 'B', type_id: 1 } }],
	special_tokens: Object.fromEntries([...before, ...after].map(id => [id, { id, ids: [ids[id]], tokens: [id] }])) });

function variants(ids) {
	const bos = template(['<|bos|>'], [], ids), both = template(['<|bos|>', '<sep>'], ['<|eos|>'], ids);
	const level = { type: 'ByteLevel', ...base };
	const list = [
		{ name: 'llama 3', pre_tokenizer: chain(split(LLAMA3)), ignore_merges: true,
			post_processor: { type: 'Sequence', processors: [level, bos] } },
		{ name: 'qwen', normalizer: { type: 'NFC' }, pre_tokenizer: chain(split(LLAMA3.replace('{1,3}', ''))),
			post_processor: level },
		{ name: 'gpt-oss', pre_tokenizer: chain(split(O200)), ignore_merges: true },
		{ name: 'gpt-4o', pre_tokenizer: chain(split(O200, 'Removed', true)), post_processor: both },
		{ name: 'deepseek', normalizer: { type: 'Sequence', normalizers: [] },
			pre_tokenizer: chain(...DEEPSEEK.map(r => split(r))) },
		{ name: 'gpt-2', pre_tokenizer: { ...level, use_regex: true } },
		{ name: 'prefix space', pre_tokenizer: { ...level, use_regex: true, add_prefix_space: true } },
		{ name: 'possessive count', pre_tokenizer: chain(split('\\p{N}{1,3}+|\\p{L}{2}?|[^\\s\\w]|\\b[a-c]')) },
		{ name: 'literal', pre_tokenizer: chain({ type: 'Split', pattern: { String: 'e' },
			behavior: 'MergedWithPrevious', invert: false }) },
		{ name: 'empty matches', pre_tokenizer: chain(split('a*|(?=\\s)')) },
	];
	for (const behavior of ['Removed', 'Isolated', 'MergedWithPrevious', 'MergedWithNext', 'Contiguous'])
		for (const invert of [false, true])
			list.push({ name: `${behavior} ${invert}`, pre_tokenizer: chain(split('[a-m]|\\d', behavior, invert)) });
	return list;
}

const texts = process.argv.slice(2, -1).map(name => readFileSync(name, 'utf8'));
const { vocab, merges } = train([...texts, ...Object.values(TRICKY)]);
const contents = ['<|bos|>', '<|eos|>', '<sep>', '<sep>x', '<l>', '<r>', '<both>', 'word', '<n>', '\u00c5b', ' '.repeat(4)];
const added = contents.map((content, i) => ({ id: Object.keys(vocab).length + i, content, ...flags,
	special: i < 4, lstrip: ['<l>', '<both>'].includes(content), rstrip: ['<r>', '<both>'].includes(content),
	single_word: content === 'word', normalized: ['<n>', '\u00c5b'].includes(content) }));
const small = { version: '1.0', truncation: null, padding: null, added_tokens: added, normalizer: null,
	pre_tokenizer: chain(split(LLAMA3)), post_processor: null,
	decoder: { type: 'ByteLevel', ...base },
	model: { type: 'BPE', dropout: null, unk_token: null, continuing_subword_prefix: null,
		end_of_word_suffix: null, fuse_unk: false, byte_fallback: false, ignore_merges: false, vocab, merges } };
const cases = [...Object.values(TRICKY), 'x <l> y <r> z <both> w', 'word swords word. éword wordé word',
	'A\u030ab \u00c5b \u212bb', '<sep><sep>x <sep> x', '     word     <r>     <l>', '<r>  <l>', 'aaa bab  caab', '<n', 'a<n>b<n>'];
const r = generator(7);
for (let i = 0; i < 6; i++)
	cases.push(randomDocument(r, contents));

mkdirSync(out, { recursive: true });
const lines = [];
for (const { name, ignore_merges = false, ...members } of variants(Object.fromEntries(added.map(t => [t.content, t.id])))) {
	const file = { ...small, ...members, model: { ...small.model, ignore_merges } };
	const reference = Tokenizer.fromString(JSON.stringify(file));
	const rows = [];
	for (const text of cases) {
		if (text.length > 600 && lines.length > 2)
			continue;
		const plain = (await reference.encode(text, null, { addSpecialTokens: false })).getIds();
		if (rows.length % 4) {
			rows.push([text, plain]);
			continue;
		}
		const full = (await reference.encode(text, null, { addSpecialTokens: true })).getIds();
		const decode = skip => full.length ? reference.decode(full, skip) : '';
		rows.push([text, plain, full, await decode(false), await decode(true)]);
	}
	lines.push(JSON.stringify({ name, ignore_merges, ...members, cases: rows }));
}
writeFileSync(join(out, 'small.json'), JSON.stringify(small) + '\n');
writeFileSync(join(out, 'golden.jsonl'), lines.join('\n') + '\n');
