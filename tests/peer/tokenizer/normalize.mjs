// SPDX-License-Identifier: Apache-2.0
//
// normalize.mjs - our normalizers against the reference library's.
//
//   node normalize.mjs DRIVER [DOCUMENTS [SEED [NAME]]]
//
// Stages that look at characters see every code point alone, between letters and
// between combining marks; all stages see random documents. Character maps come
// from spm_train, and one is made up here whose keys make clusters visible. The
// rows of tests/unit/token/normalize.jsonl are checked first.
// Exit status 0 when all are equal. Differences are printed, ten a stage at most.
import { execFileSync, spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { TRICKY, generator, randomDocument } from './texts.mjs';

const require = createRequire(join(process.cwd(), 'normalize.mjs'));
const { Tokenizer } = require('@anush008/tokenizers');
const [driver, count = '2000', seed = '1', only] = process.argv.slice(2);
const scratch = mkdtempSync(join(tmpdir(), 'normalize-'));

/* A double array with a block of 256 units for each node. */
function charsmap(entries) {
	const blocks = [new Uint32Array(256)], pool = [];
	const node = () => ({ next: new Map(), value: -1 });
	const root = node();

	for (const [key, to] of entries) {
		let at = root;
		for (const byte of Buffer.from(key)) {
			if (!at.next.has(byte))
				at.next.set(byte, node());
			at = at.next.get(byte);
		}
		at.value = pool.length;
		pool.push(...Buffer.from(to), 0);
	}
	const place = (from, unit, label) => {
		const base = blocks.length * 256, ends = from.value >= 0;
		const block = new Uint32Array(256).map((_, i) => (i ^ 0xff) || 1); // labels of others
		blocks.push(block);
		block[0] = 0x80000000 + Math.max(from.value, 0);
		blocks[unit >> 8][unit & 255] = (unit ^ base) * 1024 + (ends ? 256 : 0) + label;
		for (const [byte, next] of from.next)
			place(next, base + byte, byte);
	};
	place(root, 0, 0);
	const bytes = Buffer.alloc(4 + blocks.length * 1024);
	bytes.writeUInt32LE(blocks.length * 1024, 0);
	blocks.forEach((block, i) => block.forEach((unit, j) =>
		bytes.writeUInt32LE(unit, 4 + i * 1024 + j * 4)));
	return Buffer.concat([bytes, Buffer.from(pool)]).toString('base64');
}

/* The map in a model of sentencepiece: field 2 of its field 3. */
function trainedCharsmap(rule) {
	const text = join(scratch, 'text'), model = join(scratch, rule);

	writeFileSync(text, Array.from({ length: 300 }, (_, i) => `the word number ${i * 7919}\n`).join(''));
	execFileSync('spm_train', [`--input=${text}`, `--model_prefix=${model}`, '--vocab_size=40',
		'--hard_vocab_limit=false', `--normalization_rule_name=${rule}`], { stdio: 'ignore' });
	const find = (bytes, wanted) => {
		for (let at = 0; at < bytes.length; ) {
			const varint = () => {
				let value = 0, shift = 1, byte;
				do {
					byte = bytes[at++];
					value += (byte & 127) * shift;
					shift *= 128;
				} while (byte & 128);
				return value;
			};
			const tag = varint(), kind = tag & 7;
			if (kind === 0) {
				varint();
				continue;
			}
			const n = kind === 5 ? 4 : kind === 1 ? 8 : varint();
			if (tag >> 3 === wanted)
				return bytes.subarray(at, at + n);
			at += n;
		}
		throw new Error(`no field ${wanted}`);
	};
	return find(find(readFileSync(model + '.model'), 3), 2).toString('base64');
}

const plain = type => ({ type });
const bert = (clean_text, handle_chinese_chars, strip_accents, lowercase) =>
	({ type: 'BertNormalizer', clean_text, handle_chinese_chars, strip_accents, lowercase });
const replace = (kind, pattern, content) => ({ type: 'Replace', pattern: { [kind]: pattern }, content });
const sequence = (...normalizers) => ({ type: 'Sequence', normalizers });
const map = precompiled_charsmap => ({ type: 'Precompiled', precompiled_charsmap });
const CLUSTERS = [['a', 'x'], ['e', 'yy'], ['é', ''], ['\r', 'R'], ['\n', 'N'], ['©', '(c)'], ['ß', 'ss'],
	['\u0600', 'P'], ['\u0915', 'K'], ['\u0301', '!'], ['\u200d', 'J'], ['\uac00', 'G'], ['\u11a8', 't'],
	['\u2122', 'TM'], ['a\u0301', 'never'], ['\u{1f600}', ':)'], ['\u{1f1e6}', 'F'], ['\u093c', 'n']];

const STAGES = {
	NFC: plain('NFC'), NFD: plain('NFD'), NFKC: plain('NFKC'), NFKD: plain('NFKD'),
	Lowercase: plain('Lowercase'), StripAccents: plain('StripAccents'), Nmt: plain('Nmt'),
	ByteLevel: plain('ByteLevel'),
	NFDStripAccents: sequence(plain('NFD'), plain('StripAccents')),
	BertClean: bert(true, false, false, false), BertHan: bert(false, true, false, false),
	BertAccents: bert(false, false, true, false), BertLower: bert(false, false, false, true),
	BertUncased: bert(true, true, null, true), BertCased: bert(true, true, null, false),
	Strip: { type: 'Strip', strip_left: true, strip_right: true },
	StripLeft: { type: 'Strip', strip_left: true, strip_right: false },
	StripRight: { type: 'Strip', strip_left: false, strip_right: true },
	Llama: sequence({ type: 'Prepend', prepend: '▁' }, replace('String', ' ', '▁')),
	ReplaceString: replace('String', 'a', 'bcdef'), ReplaceGone: replace('String', '\u0301', ''),
	ReplaceEmpty: replace('String', '', '·'), ReplaceLong: replace('String', "'s ", '#'),
	ReplaceRegex: replace('Regex', ' {2,}', '▁'), ReplaceSpaces: replace('Regex', '\\s*', '_'),
	ReplaceLetters: replace('Regex', '\\p{L}+', 'L'), ReplaceEnds: replace('Regex', '$|^', '|'),
	ReplaceQuotes: sequence(replace('String', '``', '"'), replace('String', "''", '"')),
	Albert: sequence(replace('String', '``', '"'), plain('NFKD'), plain('StripAccents'),
		plain('Lowercase'), map(trainedCharsmap('nmt_nfkc')), replace('Regex', ' {2,}', ' ')),
	Nested: sequence(sequence(), sequence(plain('NFKC'), sequence(plain('Lowercase'),
		{ type: 'Strip', strip_left: false, strip_right: true }))),
	MapNmtNfkc: map(trainedCharsmap('nmt_nfkc')), MapNmtNfkcCf: map(trainedCharsmap('nmt_nfkc_cf')),
	MapNfkc: map(trainedCharsmap('nfkc')), MapClusters: map(charsmap(CLUSTERS)),
};

const SWEPT = new Set(['NFC', 'NFD', 'NFKC', 'NFKD', 'Lowercase', 'StripAccents', 'Nmt', 'BertClean',
	'BertHan', 'BertAccents', 'BertUncased', 'Strip', 'MapNmtNfkc', 'MapNmtNfkcCf', 'MapClusters']);

function* sweep() {
	const marks = ['', '\u0301', '\u0323', '\u0345', '\u0334', '\u3099', '\u1161', '\u11a8', '\u200d', '\u094d'];

	for (let cp = 0; cp < 0x110000; cp++) {
		if (cp >= 0xd800 && cp <= 0xdfff)
			continue;
		const c = String.fromCodePoint(cp);
		yield c;
		let text = `a${c}b ${c} e${c}\u0301\u0323 ${c}${c} \u0915\u094d${c}\u0301 ©\u200d${c}\u0301`;
		for (const mark of marks)
			text += `${c}${mark}a${mark}${c}\u0301${mark}`;
		yield text;
	}
}

function* documents() {
	const r = generator(Number(seed));
	const specials = CLUSTERS.map(([key]) => key);

	yield* Object.values(TRICKY);
	for (let i = 0; i < Number(count); i++)
		yield randomDocument(r, specials);
}

async function results(file, texts) {
	const child = spawn(driver, [file], { stdio: ['pipe', 'pipe', 'inherit'] });
	const chunks = [];

	child.stdout.on('data', chunk => chunks.push(chunk));
	const done = new Promise(resolve => child.on('close', resolve));
	const frames = texts.flatMap(text => {
		const body = Buffer.from(text), head = Buffer.alloc(4);
		head.writeUInt32LE(body.length);
		return [head, body];
	});
	child.stdin.end(Buffer.concat(frames));
	if (await done)
		throw new Error(`driver refuses ${readFileSync(file, 'utf8').slice(0, 200)}`);
	const bytes = Buffer.concat(chunks), out = [];
	for (let at = 0; at < bytes.length; ) {
		const n = bytes.readUInt32LE(at);
		if (n === 0xffffffff) {
			out.push(null);
			at += 4;
		} else {
			out.push(bytes.toString('utf8', at + 4, at + 4 + n));
			at += 4 + n;
		}
	}
	return out;
}

const normalizerOf = stage => Tokenizer.fromString(JSON.stringify({ version: '1.0', truncation: null,
	padding: null, added_tokens: [], normalizer: stage, pre_tokenizer: null, post_processor: null,
	decoder: null, model: { type: 'WordLevel', vocab: { a: 0 }, unk_token: 'a' } })).getNormalizer();

let failed = 0;
for (const line of readFileSync(new URL('../../unit/token/normalize.jsonl', import.meta.url), 'utf8')
	.trimEnd().split('\n')) {
	const { stage, text, want } = JSON.parse(line);
	if (normalizerOf(stage).normalizeString(text) !== want) {
		console.log(`normalize.jsonl differs: ${line.slice(0, 200)}`);
		failed++;
	}
}
for (const [name, stage] of Object.entries(STAGES)) {
	if (only && only !== name)
		continue;
	const file = join(scratch, 'stage.json');
	writeFileSync(file, JSON.stringify(stage));
	const reference = normalizerOf(stage);
	let all = 0, differences = 0, changed = 0, batch = [];
	const compare = async () => {
		const ours = await results(file, batch);
		batch.forEach((text, i) => {
			const want = reference.normalizeString(text);
			all++;
			changed += want !== text;
			if (ours[i] !== want && differences++ < 10)
				console.log(`${name}: differs`, JSON.stringify({ text, ours: ours[i], want }).slice(0, 600));
		});
		batch = [];
	};
	for (const list of SWEPT.has(name) ? [sweep(), documents()] : [documents()])
		for (const text of list)
			if (batch.push(text) === 100000)
				await compare();
	await compare();
	console.log(`${name}: ${all} texts, ${changed} change, ${differences} differences`);
	failed += differences > 0;
}
rmSync(scratch, { recursive: true });
process.exit(failed ? 1 : 0);
