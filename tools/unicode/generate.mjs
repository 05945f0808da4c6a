// SPDX-License-Identifier: Apache-2.0
//
// generate.mjs - writes schema/unicode.json from the npm packages named in the package.json here,
// and from the normal forms of the engine it runs in:
//
//   cd tools/unicode && npm install && node generate.mjs ../../schema/unicode.json
//
// Tables for matching, all sorted. (1) Stand-ins: every code point
// whose general category or script changed between Unicode 14 and 16, with one
// code point that had the new category in both, encodes to as many UTF-8 bytes
// and has the same script if any such exists. (2) Word characters as the `regex`
// crate's \w has them: Alphabetic, M, Nd, Pc, Join_Control. (3) The class of
// every code point (encode/chars.h): first << 5 | class wherever the class changes.
// (4) What the reference's Punctuation stages cut at: that of Unicode 8, and all that
// ASCII has.
//
// Tables for normalizers: the reference's stages have data of four ages. Normal forms and the
// marks of StripAccents are Unicode 9's, where normal forms of assigned characters never
// change, so any newer engine knows them. The nonspacing marks and the hidden
// characters of BertNormalizer are Unicode 8's, grapheme clusters Unicode 16's,
// lower case Unicode 17's.
import { readdirSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';

const LIMIT = 0x110000;
// Groups of several categories; the others partition all code points.
const GROUPS = new Set(['Cased_Letter', 'Letter', 'Mark', 'Number', 'Other', 'Punctuation',
	'Separator', 'Symbol']);
// Scripts that regular expressions of tokenizers name; a substitute never moves into one.
const NAMED_SCRIPTS = new Set(['Han', 'Hiragana', 'Katakana', 'Hangul', 'Thai', 'Lao', 'Arabic']);

function root(version) {
	const require = createRequire(join(process.cwd(), 'generate.mjs'));
	return dirname(require.resolve(`@unicode/unicode-${version}/package.json`));
}

async function points(version, property, value) {
	const at = join(root(version), property, value, 'code-points.mjs');
	return [...(await import(at)).default];
}

async function partition(version, property, skip) {
	const of = new Array(LIMIT).fill('');
	for (const entry of readdirSync(join(root(version), property), { withFileTypes: true })) {
		if (!entry.isDirectory() || skip.has(entry.name))
			continue;
		for (const cp of await points(version, property, entry.name))
			of[cp] = entry.name;
	}
	return of;
}

function utf8Length(cp) {
	return cp < 0x80 ? 1 : cp < 0x800 ? 2 : cp < 0x10000 ? 3 : 4;
}

async function standIns() {
	const category14 = await partition('14.0.0', 'General_Category', GROUPS);
	const category16 = await partition('16.0.0', 'General_Category', GROUPS);
	const script14 = await partition('14.0.0', 'Script', new Set());
	const script16 = await partition('16.0.0', 'Script', new Set());
	const changed = cp => category14[cp] !== category16[cp] || script14[cp] !== script16[cp];
	const bySame = new Map(), byCategory = new Map();

	for (let cp = LIMIT - 1; cp >= 0x80; cp--) {
		if (changed(cp))
			continue;
		const plain = `${category16[cp]} ${utf8Length(cp)}`;
		bySame.set(`${plain} ${script16[cp]}`, cp);
		if (!NAMED_SCRIPTS.has(script16[cp]))
			byCategory.set(plain, cp);
	}
	const ranges = [];
	for (let cp = 0x80; cp < LIMIT; cp++) {
		if (!changed(cp))
			continue;
		const plain = `${category16[cp]} ${utf8Length(cp)}`;
		const to = bySame.get(`${plain} ${script16[cp]}`) ?? byCategory.get(plain);
		if (to === undefined)
			throw new Error(`no stand-in for U+${cp.toString(16)} (${plain})`);
		const last = ranges[ranges.length - 1];
		if (last && last[1] === cp - 1 && last[2] === to)
			last[1] = cp;
		else
			ranges.push([cp, cp, to]);
	}
	return ranges;
}

function rangesOf(is) {
	const ranges = [];
	for (let cp = 0; cp < LIMIT; cp++) {
		const last = ranges[ranges.length - 1];
		if (is[cp] && last && last[1] === cp - 1)
			last[1] = cp;
		else if (is[cp])
			ranges.push([cp, cp]);
	}
	return ranges;
}

async function wordRanges() {
	const is = new Uint8Array(LIMIT);
	for (const [property, value] of [['Binary_Property', 'Alphabetic'],
		['Binary_Property', 'Join_Control'], ['General_Category', 'Mark'],
		['General_Category', 'Decimal_Number'], ['General_Category', 'Connector_Punctuation']])
		for (const cp of await points('16.0.0', property, value))
			is[cp] = 1;
	return rangesOf(is);
}

async function punctuationRanges() {
	const is = new Uint8Array(LIMIT);
	for (const cp of await points('8.0.0', 'General_Category', 'Punctuation'))
		is[cp] = 1;
	for (const symbol of '$+<=>^`|~')
		is[symbol.charCodeAt(0)] = 1;
	return rangesOf(is);
}

// In the order of enum char_class; what follows the newline there is no data.
const CLASSES = [null, 'Uppercase_Letter', 'Titlecase_Letter', 'Lowercase_Letter', 'Modifier_Letter',
	'Other_Letter', 'Mark', 'Number', 'Punctuation', 'Symbol'];
const SPACE = CLASSES.length, NEWLINE = SPACE + 1, HAN = 16;

async function classStarts() {
	const of = new Uint8Array(LIMIT);
	for (let value = 1; value < CLASSES.length; value++)
		for (const cp of await points('16.0.0', 'General_Category', CLASSES[value]))
			of[cp] = value;
	for (const cp of await points('16.0.0', 'Script', 'Han'))
		of[cp] += HAN;
	for (const cp of await points('16.0.0', 'Binary_Property', 'White_Space'))
		of[cp] = cp === 10 || cp === 13 ? NEWLINE : SPACE;
	const starts = [];
	for (let cp = 0; cp < LIMIT; cp++)
		if (cp === 0 || of[cp] !== of[cp - 1])
			starts.push(cp * 32 + of[cp]);
	return starts;
}

const PLAIN_LIMIT = 0x30000; // from here on there is a rule instead of a table
const FORMS = ['NFC', 'NFD', 'NFKC', 'NFKD'];
const ALIEN = 1 << 4, MARK = 1 << 5, NONSPACING = 1 << 6;
const isSurrogate = cp => cp >= 0xd800 && cp < 0xe000;
const text = cp => String.fromCodePoint(cp);

/* Canonical classes as ranks that sort like them: 0 for a starter. */
function canonicalRanks(assigned) {
	const swaps = (a, b) => (text(a) + text(b)).normalize('NFD') === text(b) + text(a);
	const high = 0x345, low = 0x334; // classes 240 and 1, the highest and the lowest
	const marks = assigned.filter(cp => text(cp).normalize('NFD') === text(cp) &&
		(swaps(high, cp) || swaps(cp, low) || cp === high || cp === low));
	const rank = new Map();

	marks.sort((a, b) => swaps(a, b) ? 1 : swaps(b, a) ? -1 : 0);
	let last = 0;
	marks.forEach((cp, i) => {
		if (i === 0 || swaps(cp, marks[i - 1]) || swaps(marks[i - 1], cp))
			last++;
		rank.set(cp, last);
	});
	return rank;
}

/* Characters that may become one with a character before them. */
function combining(assigned) {
	const set = new Set();

	for (const cp of assigned) {
		const parts = [...text(cp).normalize('NFD')];
		if (parts.length > 1 && text(cp).normalize('NFC') === text(cp))
			set.add(parts[parts.length - 1].codePointAt(0));
	}
	return set;
}

async function properties() {
	const known = await points('9.0.0', 'Binary_Property', 'Assigned');
	const mark = await points('9.0.0', 'General_Category', 'Mark');
	const nonspacing = await points('8.0.0', 'General_Category', 'Nonspacing_Mark');
	const assigned = [...known].filter(cp => !isSurrogate(cp));
	const rank = canonicalRanks(assigned), joins = combining(assigned);
	const info = new Uint16Array(LIMIT).fill(ALIEN);

	for (const cp of assigned) {
		info[cp] = (rank.get(cp) ?? 0) << 8;
		FORMS.forEach((form, i) => {
			if (text(cp).normalize(form) !== text(cp) || (form.endsWith('C') && joins.has(cp)))
				info[cp] |= 1 << i;
		});
	}
	for (const cp of mark)
		info[cp] |= MARK;
	for (const cp of nonspacing)
		info[cp] |= NONSPACING;
	for (let cp = PLAIN_LIMIT; cp < LIMIT; cp++) {
		const isSelector = cp >= 0xe0100 && cp <= 0xe01ef;
		if ((info[cp] & ~ALIEN) !== (isSelector ? MARK | NONSPACING : 0))
			throw new Error(`the rule does not hold for U+${cp.toString(16)}`);
	}
	return info;
}

async function hiddenRanges() {
	const is = new Uint8Array(LIMIT);

	for (const category of ['Control', 'Format', 'Private_Use'])
		for (const cp of await points('8.0.0', 'General_Category', category))
			is[cp] = 1;
	is[0xfffd] = 1;
	for (const cp of [9, 10, 13])
		is[cp] = 0;
	return rangesOf(is);
}

/* Runs of every first or every second code point with one distance to lower case. */
async function lowerRuns() {
	const map = (await import(join(root('17.0.0'), 'Simple_Case_Mapping', 'Lowercase',
		'code-points.mjs'))).default;
	const runs = [];

	for (const [cp, to] of [...map].sort((a, b) => a[0] - b[0])) {
		const last = runs[runs.length - 1];
		if (cp === 0x130)
			continue; // becomes two characters
		if (last && to - cp === last[3] && cp - last[1] <= 2 &&
			(last[0] === last[1] || cp - last[1] === last[2])) {
			last[2] = cp - last[1];
			last[1] = cp;
		} else {
			runs.push([cp, cp, 1, to - cp]);
		}
	}
	return runs;
}

// In the order of enum unicode_break.
const BREAKS = ['OTHER', 'Control', 'CR', 'LF', 'Extend', 'SpacingMark', 'ZWJ', 'NON_JOINER',
	'LINKER', 'CONSONANT', 'Prepend', 'PICTOGRAPH', 'Regional_Indicator', 'L', 'V', 'T', 'LV', 'LVT'];

/* Where the grapheme cluster class changes: code point * 32 + the class from there on. */
async function breakChanges() {
	const kind = new Uint8Array(LIMIT), indic = new Set(), changes = [];
	const mark = (set, name) => set.forEach(cp => { kind[cp] = BREAKS.indexOf(name); });

	for (const script of ['Bengali', 'Devanagari', 'Gujarati', 'Malayalam', 'Oriya', 'Telugu'])
		(await points('16.0.0', 'Script', script)).forEach(cp => indic.add(cp));
	const syllabic = async value => [...await points('16.0.0', 'Indic_Syllabic_Category', value)]
		.filter(cp => indic.has(cp));
	mark(await points('16.0.0', 'Binary_Property', 'Extended_Pictographic'), 'PICTOGRAPH');
	mark(await syllabic('Consonant'), 'CONSONANT');
	for (const name of ['Control', 'CR', 'LF', 'Extend', 'SpacingMark', 'ZWJ', 'Prepend', 'L', 'V',
		'T', 'Regional_Indicator'])
		mark(await points('16.0.0', 'Grapheme_Cluster_Break', name), name);
	mark(await syllabic('Virama'), 'LINKER');
	mark([0x200c], 'NON_JOINER');
	for (let cp = 0; cp < LIMIT; cp++)
		if (cp === 0 || kind[cp] !== kind[cp - 1])
			changes.push(cp * 32 + kind[cp]);
	return changes;
}

// Rows of numbers as texts of at most 98 columns.
function table(rows) {
	const hex = v => (v < 0 ? '-' : '') + Math.abs(v).toString(16);
	const lines = [''];

	for (const row of rows) {
		const item = [row].flat().map(hex).join();
		if (lines.at(-1).length + 1 + item.length > 98)
			lines.push('');
		lines.push(`${lines.pop()} ${item}`.trim());
	}
	return lines;
}

/* What properties() says of the code points below PLAIN_LIMIT, run by run. */
function runsOf(info) {
	const runs = [];

	for (let cp = 0; cp < PLAIN_LIMIT; cp++) {
		if (cp && info[cp] === info[cp - 1])
			runs.at(-1)[1]++;
		else
			runs.push([info[cp], 1]);
	}
	return runs;
}

const tables = {
	stand_in: await standIns(), word: await wordRanges(), class_start: await classStarts(),
	punctuation: await punctuationRanges(), hidden: await hiddenRanges(), lower: await lowerRuns(),
	break: await breakChanges(), norm: runsOf(await properties()),
};
for (const name in tables)
	tables[name] = table(tables[name]);
writeFileSync(process.argv[2], `${JSON.stringify(tables, null, '\t')}\n`);
