// SPDX-License-Identifier: Apache-2.0
//
// generate.mjs - writes src/input/encode/unicode16.c from the npm packages named in
// package.json beside it:
//
//   cd tools/unicode && npm install && node generate.mjs ../../src/input/encode/unicode16.c
//
// Four tables come out, all sorted. (1) Stand-ins: every code point
// whose general category or script changed between Unicode 14 and 16, with one
// code point that had the new category in both, encodes to as many UTF-8 bytes
// and has the same script if any such exists. (2) Word characters as the `regex`
// crate's \w has them: Alphabetic, M, Nd, Pc, Join_Control. (3) The class of
// every code point (token/classes.h): first << 5 | class wherever the class changes.
// (4) What the reference's Punctuation stages cut at: that of Unicode 8, and all that
// ASCII has.
import { readdirSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';

const LIMIT = 0x110000;
// Groups of several categories; the others partition all code points.
const GROUPS = new Set(['Cased_Letter', 'Letter', 'Mark', 'Number', 'Other', 'Punctuation',
	'Separator', 'Symbol']);
// Scripts that regular expressions of tokenizers name; a stand-in never moves into one.
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

function cells(values, perLine) {
	const out = [];
	for (let i = 0; i < values.length; i += perLine)
		out.push('\t' + values.slice(i, i + perLine).map(v => `0x${v.toString(16)},`).join(' '));
	return out.join('\n');
}

function rows(ranges, perLine) {
	const out = [];
	for (let i = 0; i < ranges.length; i += perLine)
		out.push('\t' + ranges.slice(i, i + perLine)
			.map(r => `{ ${r.map(v => '0x' + v.toString(16)).join(', ')} },`).join(' '));
	return out.join('\n');
}

const changedRanges = await standIns();
const words = await wordRanges();
const starts = await classStarts();
const punctuation = await punctuationRanges();
writeFileSync(process.argv[2], `/* SPDX-License-Identifier: Apache-2.0 */
/* Generated by tools/unicode/generate.mjs from data of Unicode 8 to 16; do not edit. */
#include "token/unicode16.h"

const struct unicode_stand_in unicode_stand_in[] = {
${rows(changedRanges, 3)}
};
const size_t unicode_stand_in_count = ${changedRanges.length};

const struct unicode_range unicode_word[] = {
${rows(words, 4)}
};
const size_t unicode_word_count = ${words.length};

const uint32_t unicode_class_start[] = {
${cells(starts, 9)}
};
const size_t unicode_class_start_count = ${starts.length};

const struct unicode_range unicode_punctuation[] = {
${rows(punctuation, 4)}
};
const size_t unicode_punctuation_count = ${punctuation.length};
`);
