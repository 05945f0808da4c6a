// SPDX-License-Identifier: Apache-2.0
//
// models.mjs - Unigram, WordPiece and WordLevel models: our ids against the
// reference library's on made-up vocabularies full of ties, gaps and doubles.
//
//   node models.mjs DRIVER DIRECTORY [DOCUMENTS [SEED]]
//   node models.mjs DRIVER DIRECTORY [DOCUMENTS [SEED]] TOKENIZER_JSON...
//
// Vocabularies are written into DIRECTORY. Half of the documents are made of the
// vocabulary's own characters and tokens. With files, those are compared instead.
// Exit status 0 when all are equal.
import { spawnSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { TRICKY, generator, randomDocument } from './texts.mjs';

const require = createRequire(join(process.cwd(), 'models.mjs'));
const { Tokenizer } = require('@anush008/tokenizers');
const [driver, directory, count = '2000', seed = '1', ...files] = process.argv.slice(2);
const r = generator(Number(seed));
const LETTERS = ['a', 'b', 'c', 'd', 'e', 't', 'h', 'i', 'n', 'g', ' ', 'é', '的', '한', '1', '2',
	'\n', '.', "'", '👍', 's', 'o', 'f'];

function words(count, letters) {
	const set = new Set();

	while (set.size < count)
		set.add(Array.from({ length: 1 + r.below(letters) }, () => r.pick(LETTERS)).join(''));
	return [...set];
}

const byteTokens = leftOut => Array.from({ length: 256 }, (_, i) => i).filter(i => i !== leftOut)
	.map(i => [`<0x${i.toString(16).toUpperCase().padStart(2, '0')}>`, -3]);
/* Equal ones are frequent; some have more digits than a double holds. */
const score = () => [-r.below(8), -Math.fround(r.below(1e6) / 7e4), -r.below(1e9) / 7e7][r.below(3)];

function unigram(change, bytes, unk = 0) {
	const vocab = [['<unk>', 0], ...words(400, 5).map(w => [w, score()]),
		...LETTERS.slice(0, 15).map(c => [c + 'Q', score()]), ...bytes,
		/* The last of doubles counts; unknown characters may be a token together. */
		['the', -1], ['the', -2.5], ['a', -0.5], ['xy', -9.5], ['zz', -9], ['ßß', -9.75], ['', -1]];

	return { type: 'Unigram', unk_id: unk, byte_fallback: bytes.length > 0,
		vocab: vocab.map(([token, s]) => [token, change(s)]) };
}

function wordPiece(count, prefix, limit) {
	const tokens = new Set(['[UNK]', '[CLS]', '[SEP]', '##', ...words(count, 4),
		...words(count, 3).map(w => '##' + w)]);

	for (const c of LETTERS.filter(() => r.below(3)))
		tokens.add(c).add('##' + c);
	return { type: 'WordPiece', unk_token: '[UNK]', continuing_subword_prefix: prefix,
		max_input_chars_per_word: limit, vocab: Object.fromEntries([...tokens].map((w, i) => [w, i])) };
}

const bert = (cls, sep) => ({ type: 'BertProcessing', sep: ['[SEP]', sep], cls: ['[CLS]', cls] });
const same = s => s;
const MADE_UP = {
	unigram: { model: unigram(same, []) },
	'unigram bytes': { model: unigram(same, byteTokens()) },
	'unigram one byte short': { model: unigram(same, byteTokens(0x84)) },
	'unigram gains': { model: unigram(s => s + 20, [], 3) },
	'unigram gains bytes': { model: unigram(s => s + 20, byteTokens(), 3) },
	'unigram ties': { model: unigram(() => -1, [], 2) },
	wordpiece: { model: wordPiece(300, '##', 100), post_processor: bert(1, 2) },
	'wordpiece short': { model: wordPiece(900, '##', 12), post_processor: { ...bert(1, 2),
		type: 'RobertaProcessing', trim_offsets: true, add_prefix_space: true } },
	'wordpiece no prefix': { model: wordPiece(300, '', 20) },
	'wordpiece split': { model: wordPiece(1500, '##', 30), pre_tokenizer: { type: 'Split',
		pattern: { Regex: '\\s+' }, behavior: 'Removed', invert: false } },
	wordlevel: { model: { ...wordPiece(300, '##', 1), type: 'WordLevel' },
		pre_tokenizer: { type: 'Split', pattern: { String: ' ' }, behavior: 'Isolated', invert: false },
		post_processor: { type: 'Sequence', processors: [{ type: 'ByteLevel', add_prefix_space: true,
			trim_offsets: false, use_regex: true }, bert(1, 2), bert(5, 6)] } },
};

function write(name, parts) {
	const path = join(directory, `${name.replaceAll(' ', '-')}.json`);

	writeFileSync(path, JSON.stringify({ version: '1.0', truncation: null, padding: null,
		added_tokens: [], normalizer: null, pre_tokenizer: null, post_processor: null, decoder: null,
		...parts }));
	return path;
}

function documents(file) {
	const vocab = file.model.vocab;
	const tokens = Array.isArray(vocab) ? vocab.map(v => v[0]) : Object.keys(vocab);
	const list = Object.values(TRICKY);

	for (let i = 0; i < Number(count); i++) {
		const parts = Array.from({ length: 1 + r.below(i % 9 ? 20 : 300) }, () =>
			r.below(4) ? r.pick(LETTERS) : r.below(3) ? r.pick(tokens).replaceAll('▁', ' ') : r.pick(['x', 'y', 'z', 'ß', 'x'])
				.repeat(1 + r.below(4)));
		list.push(i % 2 ? parts.join('') : randomDocument(r, tokens));
	}
	return list;
}

/* For each text the ids without and with special tokens. */
function ask(path, list) {
	const frames = list.flatMap(text => {
		const body = Buffer.from(text), head = Buffer.alloc(8);
		head.writeUInt32LE(body.length, 4);
		return [head, body];
	});
	const out = spawnSync(driver, [path], { input: Buffer.concat(frames), maxBuffer: 1 << 30,
		stdio: ['pipe', 'pipe', 'inherit'] }).stdout;
	let at = 0;
	const block = unit => {
		const n = out.readUInt32LE(at);
		at += 4 + n * unit;
		return n;
	};
	const ids = () => {
		const n = block(4);
		return Array.from({ length: n }, (_, i) => out.readUInt32LE(at - 4 * (n - i)));
	};

	return list.map(() => {
		const answer = [ids(), ids()];
		block(1), block(1);
		return answer;
	});
}

async function compare(path) {
	const reference = Tokenizer.fromFile(path);
	const list = documents(JSON.parse(readFileSync(path)));
	const ours = ask(path, list);
	let ids = 0, differences = 0;

	for (let i = 0; i < list.length; i++)
		for (const special of [0, 1]) {
			const want = (await reference.encode(list[i], null, { addSpecialTokens: !!special })).getIds();
			ids += want.length;
			if (JSON.stringify(want) !== JSON.stringify(ours[i][special]) && differences++ < 5)
				console.log(JSON.stringify({ text: list[i], ours: ours[i][special], want }).slice(0, 1500));
		}
	console.log(`${path}: ${list.length} texts, ${ids} ids, ${differences} differences`);
	return differences;
}

let differences = 0;
for (const path of files.length ? files : Object.entries(MADE_UP).map(([name, parts]) => write(name, parts)))
	differences += await compare(path);
process.exit(differences ? 1 : 0);
