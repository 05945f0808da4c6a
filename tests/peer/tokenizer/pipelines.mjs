// SPDX-License-Identifier: Apache-2.0
//
// pipelines.mjs - parts of tokenizer.json files, as the files of model families have them.

const CONTRACTIONS = "(?i:'s|'t|'re|'ve|'m|'ll|'d)";
const UPPER = '[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}]', LOWER = '[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}]';
const TAIL = '\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+';
const cased = (upper, lower, after, digits, slash, first = '') =>
	`${first}[^\\r\\n\\p{L}\\p{N}]?${upper}*${lower}+${after}|[^\\r\\n\\p{L}\\p{N}]?${upper}+${lower}*${after}|\\p{N}${digits}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n${slash}]*|${TAIL}`;
const llama = digits => `${CONTRACTIONS}|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}${digits}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|${TAIL}`;
const noHan = set => `[${set.slice(1, -1)}&&[^\\p{Han}]]`;

export const PATTERN = {
	gpt2: "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+",
	llama3: llama('{1,3}'),
	qwen: llama(''),
	qwen35: `${CONTRACTIONS}|[^\\r\\n\\p{L}\\p{N}]?[\\p{L}\\p{M}]+|\\p{N}| ?[^\\s\\p{L}\\p{M}\\p{N}]+[\\r\\n]*|${TAIL}`,
	o200: cased(UPPER, LOWER, CONTRACTIONS + '?', '{1,3}', '/'),
	tekken: cased(UPPER, LOWER, '', '', '/'),
	kimi: cased(noHan(UPPER), noHan(LOWER), CONTRACTIONS + '?', '{1,3}', '', '[\\p{Han}]+|'),
	/* Marks of possession as tiktoken has them; the reference reads {n,m}+ its own way. */
	ling: "'(?i:[sdmt]|ll|ve|re)|[^\\r\\n\\p{L}\\p{N}]?+\\p{L}+|\\p{N}| ?[^\\s\\p{L}\\p{N}]++[\\r\\n]*|\\s*[\\r\\n]|\\s+(?!\\S)|\\s+",
	cl100k: "'(?i:[sdmt]|ll|ve|re)|[^\\r\\n\\p{L}\\p{N}]?+\\p{L}++|\\p{N}{1,3}+| ?[^\\s\\p{L}\\p{N}]++[\\r\\n]*+|\\s++$|\\s*[\\r\\n]|\\s+(?!\\S)|\\s",
	bloom: ' ?[^(\\s|[.,!?…。，、।۔،])]+',
	exaone: "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?(?:\\p{L}\\p{M}*(?: \\p{L}\\p{M}*)*)+|\\p{N}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n/]?|\\s*[\\r\\n]|\\s+(?!\\S)|\\s+",
	deepseek: ['\\p{N}{1,3}', '[一-龥぀-ゟ゠-ヿ]+', "[!\"#$%&'()*+,\\-./:;<=>?@\\[\\\\\\]^_`{|}~][A-Za-z]+|[^\\r\\n\\p{L}\\p{P}\\p{S}]?[\\p{L}\\p{M}]+| ?[\\p{P}\\p{S}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"],
};

/* How byte-level vocabularies spell the 256 bytes. */
export function byteLetters() {
	let extra = 256;
	return Array.from({ length: 256 }, (_, b) => String.fromCodePoint(
		(b >= 33 && b <= 126) || (b >= 161 && b <= 172) || b >= 174 ? b : extra++));
}

export const byteLevel = (use_regex, add_prefix_space = false) =>
	({ type: 'ByteLevel', add_prefix_space, trim_offsets: true, use_regex });
export const split = (regex, behavior = 'Isolated', invert = false) =>
	({ type: 'Split', pattern: { Regex: regex }, behavior, invert });
export const sequence = (...pretokenizers) => ({ type: 'Sequence', pretokenizers });
export const splits = (...patterns) => sequence(...patterns.map(p => split(p)), byteLevel(false));
export const digits = individual_digits => ({ type: 'Digits', individual_digits });
export const metaspace = (prepend_scheme, split = true) =>
	({ type: 'Metaspace', replacement: '▁', prepend_scheme, split });
export const normalizers = (...list) => ({ type: 'Sequence', normalizers: list });
export const replace = (text, content) => ({ type: 'Replace', pattern: { String: text }, content });
export const regexReplace = (regex, content) => ({ type: 'Replace', pattern: { Regex: regex }, content });
export const decoders = (...list) => ({ type: 'Sequence', decoders: list });
/* What turns ▁ and byte tokens back, less the blank that was put in front. */
export const llamaDecoder = decoders(replace('▁', ' '), { type: 'ByteFallback' }, { type: 'Fuse' },
	{ type: 'Strip', content: ' ', start: 1, stop: 0 });

export const addedToken = (id, content, flags = {}) => ({ id, content, single_word: false, lstrip: false,
	rstrip: false, normalized: false, special: true, ...flags });

/* ids: of the contents in before and after. */
export const template = (before, after, ids) => ({ type: 'TemplateProcessing',
	single: [...before.map(id => ({ SpecialToken: { id, type_id: 0 } })), { Sequence: { id: 'A', type_id: 0 } },
		...after.map(id => ({ SpecialToken: { id, type_id: 0 } }))],
	pair: [{ Sequence: { id: 'A', type_id: 0 } }, { Sequence: { id: 'B', type_id: 1 } }],
	special_tokens: Object.fromEntries([...before, ...after].map(id => [id, { id, ids: [ids[id]], tokens: [id] }])) });

export const empty = { version: '1.0', truncation: null, padding: null, added_tokens: [], normalizer: null,
	pre_tokenizer: null, post_processor: null, decoder: null };
export const bpe = (vocab, merges, more = {}) => ({ type: 'BPE', dropout: null, unk_token: null,
	continuing_subword_prefix: null, end_of_word_suffix: null, fuse_unk: false, byte_fallback: false,
	ignore_merges: false, ...more, vocab, merges });
