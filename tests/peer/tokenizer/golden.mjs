// SPDX-License-Identifier: Apache-2.0
// golden.mjs - writes the data of tests/unit/test_token_golden.c:
//
//   node golden.mjs DIRECTORY      (in the directory with node_modules and corpus)
//
// Small vocabularies of our own, each a tokenizer.json: small.json (byte-level BPE, used
// unchanged), chars.json (BPE of characters), unigram.json and wordpiece.json, made here from a few
// pages of the corpus. golden.jsonl holds first the texts, then variants of those files' members,
// each with the reference library's results for some texts: [number, ids], or [number, ids, ids
// with special tokens, their text, their text without special tokens].
import { readFileSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { PATTERN, addedToken, bpe, byteLevel, decoders, digits, empty, llamaDecoder, metaspace, normalizers,
	regexReplace, replace, sequence, split, splits, template } from './pipelines.mjs';
import { TRICKY, generator, randomDocument } from './texts.mjs';

const require = createRequire(join(process.cwd(), 'golden.mjs'));
const { Tokenizer } = require('@anush008/tokenizers');
const directory = process.argv[2];
const small = JSON.parse(readFileSync(join(directory, 'small.json')));
const contents = small.added_tokens.map(t => t.content);
/* What the added tokens of small.json are tried with. */
const TEXTS = [...Object.values(TRICKY), 'x <l> y <r> z <both> w', 'word swords word. éword wordé word',
	'A\u030ab \u00c5b \u212bb', '<sep><sep>x <sep> x', '     word     <r>     <l>', '<r>  <l>', 'aaa bab  caab', '<n', 'a<n>b<n>',
	' The shell reads a  command\tand (then) waits. ', '<|bos|>the end<|eos|> of it', '▁a ▁▁b', "don 't stop . now , he 's"];

/* ---- vocabularies ---- */

function train(texts, count) {
	const words = new Map();
	for (const text of texts)
		for (const word of text.replaceAll(' ', '▁').match(/▁?\p{L}+|▁?\p{N}+|▁?[^▁\p{L}\p{N}]+|▁+/gu) ?? [])
			words.set(word, (words.get(word) ?? 0) + 1);
	const list = [...words].map(([word, count]) => ({ parts: [...word], count }));
	const merges = [];
	while (merges.length < count) {
		const seen = new Map();
		for (const { parts, count } of list)
			for (let i = 0; i + 1 < parts.length; i++)
				seen.set(`${parts[i]} ${parts[i + 1]}`, (seen.get(`${parts[i]} ${parts[i + 1]}`) ?? 0) + count);
		const [best] = [...seen].sort((a, b) => b[1] - a[1] || (a[0] < b[0] ? -1 : 1))[0];
		const [left, right] = best.split(' ');
		merges.push([left, right]);
		for (const { parts } of list)
			for (let i = 0; i + 1 < parts.length; i++)
				if (parts[i] === left && parts[i + 1] === right)
					parts.splice(i, 2, left + right);
	}
	return merges;
}

const pages = kind => readFileSync(join('corpus', `${kind}.txt`), 'utf8').split('\0');
const merges = [...train([...pages('english').slice(0, 30), ...pages('code').slice(0, 10)], 220),
	...train(pages('cjk').slice(0, 20).map(t => t.replace(/[\x00-\x7f]+/g, '')), 40), ['的', '▁'], ['。', '\n']];
const single = [...new Set([...Array.from({ length: 95 }, (_, i) => String.fromCodePoint(32 + i)).filter(c => !' QXqxZ~'.includes(c)),
	'\n', '▁', ...merges.flatMap(([a, b]) => [...a, ...b]), ...'éßа한'])];
const pieces = [...new Set([...single, ...merges.map(([a, b]) => a + b)])];
const byteTokens = Array.from({ length: 256 }, (_, b) => `<0x${b.toString(16).toUpperCase().padStart(2, '0')}>`);
const numbered = list => Object.fromEntries(list.map((token, id) => [token, id]));
/* The added tokens of small.json, with these ids. */
const addedFrom = first => small.added_tokens.map((token, i) => ({ ...token, id: first + i }));

const charVocab = ['<unk>', ...byteTokens, ...pieces];
const chars = { ...empty, added_tokens: addedFrom(charVocab.length), decoder: llamaDecoder,
	model: bpe(numbered(charVocab), merges, { unk_token: '<unk>', fuse_unk: true, byte_fallback: true }) };
const unigram = { ...empty, added_tokens: addedFrom(charVocab.length), pre_tokenizer: metaspace('always'),
	decoder: { type: 'Metaspace', replacement: '▁', prepend_scheme: 'always', split: true },
	model: { type: 'Unigram', unk_id: 0, byte_fallback: false,
		vocab: charVocab.map((token, i) => [token, i === 0 ? 0 : -2 - (i % 97) / 16 - 2 / [...token].length]) } };
const ends = ['[PAD]', '[UNK]', '[CLS]', '[SEP]'];
const wordVocab = [...new Set([...ends, ...pieces.flatMap(p => p.startsWith('▁') ? p.slice(1) || [] : [p, `##${p}`])])];
const wordpiece = { ...empty, added_tokens: [...ends.map((content, id) => addedToken(id, content)), ...addedFrom(wordVocab.length)],
	normalizer: { type: 'BertNormalizer', clean_text: true, handle_chinese_chars: true, strip_accents: null, lowercase: true },
	pre_tokenizer: { type: 'BertPreTokenizer' }, post_processor: template(['[CLS]'], ['[SEP]'], numbered(ends)),
	decoder: { type: 'WordPiece', prefix: '##', cleanup: true },
	model: { type: 'WordPiece', unk_token: '[UNK]', continuing_subword_prefix: '##', max_input_chars_per_word: 100,
		vocab: numbered(wordVocab) } };
const BASES = { small, chars, unigram, wordpiece };

/* ---- variants ---- */

const idsOf = file => Object.fromEntries(file.added_tokens.map(t => [t.content, t.id]));
const whole = { isWhole: true }; // all texts
const kind = type => ({ type });
const llama = normalizers({ type: 'Prepend', prepend: '▁' }, replace(' ', '▁'));
const behaviors = ['Removed', 'Isolated', 'MergedWithPrevious', 'MergedWithNext', 'Contiguous'];
const bertNormalizer = options => ({ type: 'BertNormalizer', clean_text: true, handle_chinese_chars: true,
	strip_accents: null, lowercase: true, ...options });

function smallVariants(ids) {
	const bos = template(['<|bos|>'], [], ids), both = template(['<|bos|>', '<sep>'], ['<|eos|>'], ids);
	const level = byteLevel(false);
	const behind = (...list) => sequence(...list, level);
	return {
		'llama 3': { pre_tokenizer: splits(PATTERN.llama3), model: { ignore_merges: true },
			post_processor: { type: 'Sequence', processors: [level, bos] }, ...whole },
		qwen: { normalizer: kind('NFC'), pre_tokenizer: splits(PATTERN.qwen), post_processor: level },
		'qwen 3.5': { normalizer: kind('NFC'), pre_tokenizer: splits(PATTERN.qwen35) },
		'gpt-oss': { pre_tokenizer: splits(PATTERN.o200), model: { ignore_merges: true } },
		'gpt-4o': { pre_tokenizer: behind(split(PATTERN.o200, 'Removed', true)), post_processor: both },
		tekken: { pre_tokenizer: splits(PATTERN.tekken) },
		kimi: { pre_tokenizer: splits(PATTERN.kimi) },
		deepseek: { normalizer: normalizers(), pre_tokenizer: splits(...PATTERN.deepseek) },
		'gpt-2': { pre_tokenizer: byteLevel(true) },
		'prefix space': { pre_tokenizer: byteLevel(true, true) },
		ling: { pre_tokenizer: splits(PATTERN.ling) },
		'possessive count': { pre_tokenizer: splits('\\p{N}{1,3}+|\\p{L}{2}?|[^\\s\\w]|\\b[a-c]') },
		literal: { pre_tokenizer: behind({ type: 'Split', pattern: { String: 'e' }, behavior: 'MergedWithPrevious', invert: false }) },
		'empty matches': { pre_tokenizer: splits('a*|(?=\\s)') },
		falcon: { pre_tokenizer: sequence({ type: 'Punctuation', behavior: 'Contiguous' }, byteLevel(true), digits(false), split('[0-9][0-9][0-9]')) },
		granite: { pre_tokenizer: sequence(digits(true), byteLevel(true)) },
		whitespace: { pre_tokenizer: behind(kind('Whitespace')) },
		'whitespace split': { pre_tokenizer: behind(kind('WhitespaceSplit')) },
		'bert words': { pre_tokenizer: behind(kind('BertPreTokenizer')) },
		delimiter: { pre_tokenizer: behind({ type: 'CharDelimiterSplit', delimiter: 'e' }) },
		roberta: { pre_tokenizer: byteLevel(true), post_processor: { type: 'RobertaProcessing', sep: ['<|eos|>', ids['<|eos|>']],
			cls: ['<|bos|>', ids['<|bos|>']], trim_offsets: true, add_prefix_space: false } },
		...Object.fromEntries(['NFD', 'NFKC', 'NFKD', 'Lowercase'].map(type => [type, { normalizer: kind(type) }])),
		'strip accents': { normalizer: normalizers(kind('NFD'), kind('StripAccents')) },
		strip: { normalizer: { type: 'Strip', strip_left: true, strip_right: true } },
		'strip left': { normalizer: { type: 'Strip', strip_left: true, strip_right: false } },
		'replace by expression': { normalizer: normalizers(normalizers(regexReplace('\\s+|[aeiou](?=n)', '_'), replace('_', ' _'))) },
		'replace by nothing': { normalizer: replace('e', '') },
		'bert cleaning': { normalizer: bertNormalizer({ lowercase: false, strip_accents: true }) },
		'bert lowercase': { normalizer: bertNormalizer({ clean_text: false, strip_accents: false, handle_chinese_chars: false }) },
		...Object.fromEntries(behaviors.flatMap(behavior => [false, true].map(invert =>
			[`${behavior} ${invert}`, { pre_tokenizer: behind(split('[a-m]|\\d', behavior, invert)) }]))),
		...Object.fromEntries(behaviors.map(behavior => [`punctuation ${behavior}`,
			{ pre_tokenizer: behind({ type: 'Punctuation', behavior }) }])),
	};
}

const charVariants = ids => ({
	'llama 2': { normalizer: llama, post_processor: template(['<|bos|>'], [], ids) },
	gemma: { normalizer: replace(' ', '▁'), decoder: decoders(replace('▁', ' '), kind('ByteFallback'), kind('Fuse')),
		post_processor: template(['<|bos|>'], ['<|eos|>'], ids) },
	'gemma 3': { normalizer: replace(' ', '▁'), pre_tokenizer: { type: 'Split', pattern: { String: ' ' }, behavior: 'MergedWithPrevious', invert: false } },
	'no bytes': { normalizer: llama, model: { byte_fallback: false } },
	'no bytes, no fusing': { normalizer: llama, model: { byte_fallback: false, fuse_unk: false } },
	'no unknown': { normalizer: llama, model: { byte_fallback: false, unk_token: null } },
	'ignore merges': { pre_tokenizer: metaspace('always', true), model: { ignore_merges: true } },
	...Object.fromEntries(['always', 'first', 'never'].flatMap(scheme => [true, false].map(isSplit =>
		[`metaspace ${scheme} ${isSplit}`, { pre_tokenizer: metaspace(scheme, isSplit),
			decoder: { type: 'Metaspace', replacement: '▁', prepend_scheme: scheme, split: isSplit } }]))),
	'no decoder': { normalizer: llama, decoder: null },
	'other decoders': { normalizer: llama, decoder: decoders(kind('Fuse'), regexReplace('▁+', ' '), { type: 'Strip', content: ' ', start: 2, stop: 1 }) },
	suffix: { normalizer: llama, decoder: { type: 'BPEDecoder', suffix: 'e' } },
	'digits alone': { normalizer: llama, pre_tokenizer: sequence(digits(true), split('\\n+')) },
});

const unigramVariants = ids => ({
	unigram: { post_processor: template(['<|bos|>'], ['<|eos|>'], ids), ...whole },
	'xlm-r': { pre_tokenizer: sequence(kind('WhitespaceSplit'), metaspace('always')) },
	'unigram bytes': { model: { byte_fallback: true }, decoder: llamaDecoder },
	'unigram without words': { pre_tokenizer: null, normalizer: replace(' ', '▁') },
	albert: { normalizer: normalizers(replace('``', '"'), kind('NFKD'), kind('StripAccents'), kind('Lowercase')) },
});

const wordpieceVariants = ids => ({
	bert: { ...whole },
	'bert cased': { normalizer: bertNormalizer({ lowercase: false }), decoder: { type: 'WordPiece', prefix: '##', cleanup: false } },
	'bert processing': { post_processor: { type: 'BertProcessing', sep: ['[SEP]', 3], cls: ['[CLS]', 2] }, normalizer: null },
	'short words': { model: { max_input_chars_per_word: 4 }, pre_tokenizer: kind('WhitespaceSplit') },
	wordlevel: { pre_tokenizer: kind('Whitespace'), model: { type: 'WordLevel' }, decoder: null },
});

/* ---- what the reference makes of them ---- */

const r = generator(7);
for (let i = 0; i < 6; i++)
	TEXTS.push(randomDocument(r, contents));
const lines = [JSON.stringify({ texts: TEXTS })];
let turn = 0;

async function rows(reference, isWhole) {
	const list = [];
	for (const [i, text] of TEXTS.entries()) {
		if (!isWhole && (text.length > 150 || (i + turn) % 4))
			continue;
		const plain = (await reference.encode(text, null, { addSpecialTokens: false })).getIds();
		if (list.length % 3) {
			list.push([i, plain]);
			continue;
		}
		const full = (await reference.encode(text, null, { addSpecialTokens: true })).getIds();
		const decode = skip => full.length ? reference.decode(full, skip) : '';
		list.push([i, plain, full, await decode(false), await decode(true)]);
	}
	turn++;
	return list;
}

const variants = { small: smallVariants, chars: charVariants, unigram: unigramVariants, wordpiece: wordpieceVariants };
for (const [base, make] of Object.entries(variants)) {
	const file = BASES[base];
	for (const [name, { isWhole = false, model = {}, ...members }] of Object.entries(make(idsOf(file)))) {
		const whole = { ...file, ...members, model: { ...file.model, ...model } };
		const reference = Tokenizer.fromString(JSON.stringify(whole));
		lines.push(JSON.stringify({ name, base, ...members, model, cases: await rows(reference, isWhole) }));
	}
	if (base !== 'small')
		writeFileSync(join(directory, `${base}.json`), JSON.stringify(file) + '\n');
}
writeFileSync(join(directory, 'golden.jsonl'), lines.join('\n') + '\n');
