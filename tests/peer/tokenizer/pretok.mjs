// SPDX-License-Identifier: Apache-2.0
//
// pretok.mjs - our pre-tokenizers against the reference library's, word by word.
//
//   node pretok.mjs DRIVER [DOCUMENTS [SEED [NAME]]]
//
// First the class of every code point. Then each stage, and the sequences of stages
// that models have, sees the fixed texts, every code point among others, then random
// documents.
// Exit status 0 when all are equal. Differences are printed, ten a stage at most.
import { execFileSync, spawn } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { TRICKY, generator, randomDocument, sweepDocuments } from './texts.mjs';

const require = createRequire(join(process.cwd(), 'pretok.mjs'));
const { Tokenizer } = require('@anush008/tokenizers');
const [driver, count = '2000', seed = '1', only] = process.argv.slice(2);
const scratch = mkdtempSync(join(tmpdir(), 'pretok-'));

const BEHAVIORS = ['Removed', 'Isolated', 'MergedWithPrevious', 'MergedWithNext', 'Contiguous'];
const SHORT_FORMS = "(?i:'s|'t|'re|'ve|'m|'ll|'d)";
const SPACES = '\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+';
const llama3 = digits => `${SHORT_FORMS}|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|${digits}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|${SPACES}`;
const UPPER = '\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}', LOWER = '\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}';
const o200k = (but, forms, digits, tail) => `[^\\r\\n\\p{L}\\p{N}]?[${UPPER}${but}]*[${LOWER}${but}]+${forms}` +
	`|[^\\r\\n\\p{L}\\p{N}]?[${UPPER}${but}]+[${LOWER}${but}]*${forms}` +
	`|${digits}| ?[^\\s\\p{L}\\p{N}]+${tail}|${SPACES}`;
const split = (Regex, behavior = 'Isolated', invert = false) =>
	({ type: 'Split', pattern: { Regex }, behavior, invert });
const literal = (String, behavior, invert = false) =>
	({ type: 'Split', pattern: { String }, behavior, invert });
const byteLevel = (add_prefix_space, use_regex) =>
	({ type: 'ByteLevel', add_prefix_space, trim_offsets: true, use_regex });
const metaspace = (prepend_scheme, cut = true, replacement = '▁') =>
	({ type: 'Metaspace', replacement, prepend_scheme, split: cut });
const digits = individual_digits => ({ type: 'Digits', individual_digits });
const punctuation = behavior => ({ type: 'Punctuation', behavior });
const sequence = (...pretokenizers) => ({ type: 'Sequence', pretokenizers });
const [bert, whitespace, whitespaceSplit] = ['BertPreTokenizer', 'Whitespace', 'WhitespaceSplit']
	.map(type => ({ type }));
const gpt2 = "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+";

const STAGES = {
	bert, whitespace, whitespaceSplit,
	punctuation: { type: 'Punctuation' },
	'digits': digits(false),
	'digits each': digits(true),
	'delimiter -': { type: 'CharDelimiterSplit', delimiter: '-' },
	'delimiter 的': { type: 'CharDelimiterSplit', delimiter: '的' },
	'length 1': { type: 'FixedLength', length: 1 },
	'length 5': { type: 'FixedLength' },
	'metaspace _': metaspace('always', true, '_'),
	'metaspace old': { type: 'Metaspace', replacement: '▁', add_prefix_space: true },
	'metaspace old never': { type: 'Metaspace', replacement: '▁', add_prefix_space: false,
		prepend_scheme: 'never' },
	...Object.fromEntries(['always', 'first', 'never'].flatMap(scheme => [true, false].map(cut =>
		[`metaspace ${scheme} ${cut}`, metaspace(scheme, cut)]))),
	...Object.fromEntries(BEHAVIORS.flatMap(behavior => [
		[`punctuation ${behavior}`, punctuation(behavior)],
		...[false, true].flatMap(invert => [
			[`literal ${behavior} ${invert}`, literal('a', behavior, invert)],
			[`split ${behavior} ${invert}`, split('\\s|\\d+', behavior, invert)],
			[`scanner ${behavior} ${invert}`, split(llama3('\\p{N}'), behavior, invert)],
		]),
	])),
	'byte-level': byteLevel(false, true),
	'byte-level, prefix': byteLevel(true, true),
	'byte-level, prefix only': byteLevel(true, false),
	gpt2: split(gpt2),
	'llama 3': sequence(split(llama3('\\p{N}{1,3}')), byteLevel(false, false)),
	qwen: split(llama3('\\p{N}')),
	ling: split("'(?i:[sdmt]|ll|ve|re)|[^\\r\\n\\p{L}\\p{N}]?+\\p{L}+|\\p{N}|" +
		' ?[^\\s\\p{L}\\p{N}]++[\\r\\n]*|\\s*[\\r\\n]|\\s+(?!\\S)|\\s+'),
	'qwen 3.5': split(`${SHORT_FORMS}|[^\\r\\n\\p{L}\\p{N}]?[\\p{L}\\p{M}]+|\\p{N}|` +
		` ?[^\\s\\p{L}\\p{M}\\p{N}]+[\\r\\n]*|${SPACES}`),
	o200k: split(o200k('', `${SHORT_FORMS}?`, '\\p{N}{1,3}', '[\\r\\n/]*')),
	'o200k, inverted': split(o200k('', `${SHORT_FORMS}?`, '\\p{N}{1,3}', '[\\r\\n/]*'), 'Removed', true),
	tekken: split(o200k('', '', '\\p{N}', '[\\r\\n/]*')),
	kimi: split('[\\p{Han}]+|' + o200k('&&[^\\p{Han}]', `${SHORT_FORMS}?`, '\\p{N}{1,3}', '[\\r\\n]*')),
	'deepseek v3': sequence(split('\\p{N}{1,3}'), split('[一-龥぀-ゟ゠-ヿ]+'),
		split('[!"#$%&\'()*+,\\-./:;<=>?@\\[\\\\\\]^_`{|}~][A-Za-z]+|[^\r\n\\p{L}\\p{P}\\p{S}]?[\\p{L}\\p{M}]+|' +
			' ?[\\p{P}\\p{S}]+[\r\n]*|\\s*[\r\n]+|\\s+(?!\\S)|\\s+'), byteLevel(false, false)),
	falcon: sequence(punctuation('Contiguous'), byteLevel(false, true), digits(false),
		split('[0-9][0-9][0-9]')),
	starcoder: sequence(digits(true), byteLevel(false, true)),
	'behind byte-level': sequence(byteLevel(true, false), whitespaceSplit, punctuation('Isolated'),
		digits(true)),
	'words behind byte-level': sequence(byteLevel(true, true), whitespace),
	'scanner behind byte-level': sequence(byteLevel(false, false), split(gpt2)),
	'whitespace, metaspace': sequence(whitespaceSplit, metaspace('always')),
	'whitespace, metaspace first': sequence(whitespaceSplit, metaspace('first')),
	'metaspace first, digits': sequence(metaspace('first'), digits(true), punctuation('Isolated')),
	'digits, metaspace first': sequence(digits(false), metaspace('first')),
	'metaspace, byte-level': sequence(metaspace('always'), byteLevel(true, true)),
	'bert, length': sequence(bert, { type: 'FixedLength', length: 3 }),
	nested: sequence(sequence(split(llama3('\\p{N}')), digits(false)), sequence(), punctuation('Contiguous')),
};

const alphabet = new Array(256);
for (let byte = 0, next = 256; byte < 256; byte++)
	alphabet[byte] = String.fromCharCode((byte > 32 && byte < 127) || (byte > 160 && byte !== 173)
		? byte : next++);
const spell = bytes => Array.from(bytes, byte => alphabet[byte]).join('');

function reference(stage) {
	return Tokenizer.fromString(JSON.stringify({ version: '1.0', truncation: null, padding: null,
		added_tokens: [], normalizer: null, pre_tokenizer: stage, post_processor: null,
		decoder: null, model: { type: 'BPE', vocab: {}, merges: [] } })).getPreTokenizer();
}

/* How many code points the reference's regex engine and our table put into different classes. */
function differentClasses() {
	const LIMIT = 0x110000, classes = new Uint8Array(LIMIT);
	const mark = (regex, value) => {
		const stage = reference(split(regex, 'Removed', true));
		for (let first = 0; first < LIMIT; first += 4096) {
			if (first >= 0xd000 && first < 0xe000)
				continue;
			const text = Array.from({ length: 4096 }, (_, i) => String.fromCodePoint(first + i)).join('');
			for (const [c] of stage.preTokenizeString(text))
				classes[c.codePointAt(0)] += value;
		}
	};
	['Lu', 'Lt', 'Ll', 'Lm', 'Lo', 'M', 'N', 'P', 'S'].forEach((name, i) => mark(`\\p{${name}}`, i + 1));
	mark('[^\\S\r\n]', 10);
	mark('[\r\n]', 11);
	mark('\\p{Han}', 16);
	/* The block with the surrogates was left out; the rest of it is Hangul. */
	classes.fill(5, 0xd000, 0xd7a4).fill(5, 0xd7b0, 0xd7c7).fill(5, 0xd7cb, 0xd7fc);
	return execFileSync(driver, ['--classes'], { maxBuffer: 2 * LIMIT })
		.reduce((sum, value, cp) => sum + (value !== classes[cp]), 0);
}

async function ask(stage, texts) {
	const file = join(scratch, 'stage.json');
	writeFileSync(file, JSON.stringify(stage));
	const child = spawn(driver, [file], { stdio: ['pipe', 'pipe', 'inherit'] });
	const chunks = [];
	child.stdout.on('data', chunk => chunks.push(chunk));
	child.stdin.on('error', () => {});
	child.stdin.end(Buffer.concat(texts.flatMap(text => {
		const body = Buffer.from(text), head = Buffer.alloc(4);
		head.writeUInt32LE(body.length);
		return [head, body];
	})));
	await new Promise((resolve, reject) => child.on('close', code =>
		code ? reject(new Error(`driver ended with status ${code}`)) : resolve()));
	return Buffer.concat(chunks);
}

function* wordLists(bytes, isSpelled) {
	for (let at = 0; at < bytes.length; ) {
		const words = [];
		let left = bytes.readUInt32LE(at);
		for (at += 4; left > 0; left--) {
			const n = bytes.readUInt32LE(at);
			const word = bytes.subarray(at + 4, at + 4 + n);
			words.push(isSpelled ? spell(word) : word.toString());
			at += 4 + n;
		}
		yield words;
	}
}

const r = generator(Number(seed));
const texts = [...Object.values(TRICKY), ...sweepDocuments().map(d => d.text)];
for (let i = 0; i < Number(count); i++)
	texts.push(randomDocument(r, []));
let failures = 0;
if (!only || only === 'classes') {
	const differences = differentClasses();
	failures += differences > 0;
	console.log(`classes: ${differences} differences`);
}
for (const [name, stage] of Object.entries(STAGES)) {
	if (only && name !== only)
		continue;
	const json = JSON.stringify(stage), isSpelled = json.includes('"ByteLevel"');
	const theirs = reference(stage);
	const ours = wordLists(await ask(stage, texts), isSpelled);
	let differences = 0, words = 0;
	for (const text of texts) {
		const want = text ? theirs.preTokenizeString(text).map(w => w[0]) : [];
		const got = ours.next().value;
		words += want.length;
		if (JSON.stringify(got) !== JSON.stringify(want) && differences++ < 10) {
			const at = want.findIndex((w, i) => w !== got[i]);
			console.log(`${name}: word ${at} of ${JSON.stringify(text).slice(0, 200)}: ` +
				`${JSON.stringify(got.slice(at, at + 4))}, reference ${JSON.stringify(want.slice(at, at + 4))}`);
		}
	}
	failures += differences > 0;
	console.log(`${name}: ${texts.length} texts, ${words} words, ${differences} differences`);
}
rmSync(scratch, { recursive: true });
process.exit(failures ? 1 : 0);
