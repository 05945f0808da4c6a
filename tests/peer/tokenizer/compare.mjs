// SPDX-License-Identifier: Apache-2.0
//
// compare.mjs - our ids and texts against the reference library's, one by one.
//
//   node compare.mjs DRIVER TOKENIZER_JSON full|quick [SEED]
//
// Texts: the list of texts.mjs, random documents of its traps, bytes that are no
// UTF-8, a corpus, and every code point among neighbours of all kinds. All of
// them are encoded; the list, the documents and a part of the corpus also with
// special tokens, and decoded with and without these; so are random ids. A text
// that differs is made as small as it can be. Prints one line; exit status 0
// when all are equal.
import { readFileSync, rmSync } from 'node:fs';
import { createRequire } from 'node:module';
import { basename, dirname, join } from 'node:path';
import { ask } from './ask.mjs';
import { TRICKY, brokenDocument, generator, randomDocument, sweepDocuments } from './texts.mjs';

const require = createRequire(join(process.cwd(), 'compare.mjs'));
const { Tokenizer } = require('@anush008/tokenizers');
const [driver, path, mode = 'quick', seed = '1'] = process.argv.slice(2);
const SIZE = {
	full: { documents: 20000, broken: 1000, lists: 2000, every: 1 },
	quick: { documents: 500, broken: 50, lists: 100, every: 50 },
}[mode];
const AT_ONCE = 3000, BATCH = 100, SHOWN = 3;
const name = basename(dirname(path));

function* requests(file) {
	const specials = file.added_tokens.map(t => t.content);
	const { vocab } = file.model;
	const ids = Array.isArray(vocab) ? [vocab.length - 1] : Object.values(vocab);
	const idLimit = [...ids, ...file.added_tokens.map(t => t.id)].reduce((a, b) => Math.max(a, b)) + 1;
	const r = generator(Number(seed));
	let i = 0;

	for (const text of Object.values(TRICKY))
		yield { text, isDecoded: true };
	for (i = 0; i < SIZE.documents; i++)
		yield { text: randomDocument(r, specials), isDecoded: true };
	for (i = 0; i < SIZE.broken; i++) {
		const bytes = brokenDocument(r);
		/* The stated policy: U+FFFD for each maximal ill-formed part. */
		yield { bytes, text: new TextDecoder('utf-8', { ignoreBOM: true }).decode(bytes) };
	}
	for (i = 0; i < SIZE.lists; i++)
		yield { ids: Array.from({ length: 1 + r.below(60) }, () => r.below(idLimit + 3)), isDecoded: true };
	for (const text of readFileSync('corpus/mixed.txt', 'utf8').split('\0').slice(0, -1))
		if (i++ % SIZE.every === 0)
			yield { text, isDecoded: i % 4 === 1 };
	for (const { text } of sweepDocuments())
		if (i++ % SIZE.every === 0)
			yield { text };
}

const encode = async (reference, texts, addSpecialTokens) =>
	(await reference.encodeBatch(texts, { addSpecialTokens })).map(encoding => encoding.getIds());
const decode = async (reference, lists, skip) => lists.length ? reference.decodeBatch(lists, skip) : [];

/* What the reference makes of a few requests, in the form of ask(). */
async function expected(reference, list) {
	const want = list.map(() => ({}));
	const isText = list.map((request, i) => i).filter(i => !list[i].ids);
	const isDecoded = list.map((request, i) => i).filter(i => list[i].isDecoded);
	const isBoth = isText.filter(i => list[i].isDecoded);

	(await encode(reference, isText.map(i => list[i].text), false)).forEach((ids, n) => { want[isText[n]].plain = ids; });
	(await encode(reference, isBoth.map(i => list[i].text), true)).forEach((ids, n) => { want[isBoth[n]].full = ids; });
	const lists = isDecoded.map(i => list[i].ids ?? want[i].full);
	const some = isDecoded.filter((_, n) => lists[n].length > 0), ids = lists.filter(l => l.length > 0);
	for (const i of isDecoded)
		want[i].kept = want[i].skipped = '';
	(await decode(reference, ids, false)).forEach((text, n) => { want[some[n]].kept = text; });
	(await decode(reference, ids, true)).forEach((text, n) => { want[some[n]].skipped = text; });
	return want;
}

const isEqual = (a, b) => typeof a === 'string' ? a === b : a.length === b.length && a.every((id, i) => id === b[i]);
const sent = list => list.map(({ text, bytes, ids }) => ids ? { ids } : { text: bytes ?? text });

/* The smallest part of a text whose ids still differ. */
async function reduce(reference, text) {
	let rest = [...text];

	for (let size = rest.length; size >= 1;) {
		const shorter = [];
		for (let at = 0; at < rest.length; at += size)
			shorter.push([...rest.slice(0, at), ...rest.slice(at + size)]);
		const list = shorter.map(chars => ({ text: chars.join('') }));
		const ours = await ask(driver, path, list), want = await expected(reference, list);
		const found = list.findIndex((_, i) => !isEqual(ours[i].plain, want[i].plain));
		if (found < 0)
			size = size === 1 ? 0 : Math.ceil(size / 2);
		else
			rest = shorter[found];
	}
	return rest.join('');
}

async function show(reference, request, key, ours, want) {
	if (key === 'plain' && !request.bytes) {
		const text = await reduce(reference, request.text);
		const [{ plain }] = await ask(driver, path, [{ text }]);
		const theirs = await expected(reference, [{ text }]);
		console.log(`${name}: ids differ`, JSON.stringify({ text, ours: plain, reference: theirs[0].plain }).slice(0, 1000));
		return;
	}
	const at = [...want].findIndex((x, i) => x !== ours[i]);
	console.log(`${name}: ${key} differs`, JSON.stringify({ of: request.bytes?.toString('latin1') ?? request.text ?? request.ids,
		at, ours: ours.slice(Math.max(0, at - 5), at + 20), reference: want.slice(Math.max(0, at - 5), at + 20) }).slice(0, 1500));
}

async function compare(reference, all) {
	const count = { requests: 0, ids: 0, differences: 0 };

	for (let from = 0; from < all.length; from += AT_ONCE) {
		const part = all.slice(from, from + AT_ONCE);
		const ours = await ask(driver, path, sent(part));
		for (let at = 0; at < part.length; at += BATCH) {
			const list = part.slice(at, at + BATCH);
			const want = await expected(reference, list);
			for (let i = 0; i < list.length; i++) {
				count.requests++;
				count.ids += (want[i].plain ?? list[i].ids).length;
				for (const key of Object.keys(want[i]))
					if (!isEqual(want[i][key], ours[at + i][key]) && count.differences++ < SHOWN)
						await show(reference, list[i], key, ours[at + i][key], want[i][key]);
			}
		}
	}
	return count;
}

const start = Date.now();
/* The first load below is from the file, later ones from the compiled form. */
rmSync(process.env.PROFLLM_CACHE_DIR, { recursive: true, force: true });
try {
	const all = [...requests(JSON.parse(readFileSync(path)))];
	const { requests: n, ids, differences } = await compare(Tokenizer.fromFile(path), all);
	console.log(`${name}: ${n} texts, ${ids} ids, ${differences} differences, ${((Date.now() - start) / 1000).toFixed(0)} s`);
	process.exit(differences ? 1 : 0);
} catch (e) {
	console.log(`${name}: no comparison: ${e.message}`);
	process.exit(1);
}
