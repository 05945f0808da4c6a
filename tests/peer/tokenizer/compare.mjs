// SPDX-License-Identifier: Apache-2.0
//
// compare.mjs - our ids and texts against the reference library's, one by one.
//
//   node compare.mjs DRIVER TOKENIZER_JSON [DOCUMENTS [SEED [FILE...]]]
//   node compare.mjs DRIVER TOKENIZER_JSON sweep
//
// The sweep puts every code point that may be a character between letters,
// digits, blanks and combining marks.
// Exit status 0 when all are equal. Differences are printed, ten at most.
import { spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { TRICKY, generator, randomDocument, sweepDocuments } from './texts.mjs';

const require = createRequire(join(process.cwd(), 'compare.mjs'));
const { Tokenizer } = require('@anush008/tokenizers');
const [driver, path, count = '2000', seed = '1', ...files] = process.argv.slice(2);
const reference = Tokenizer.fromFile(path);
const file = JSON.parse(readFileSync(path));
const specials = file.added_tokens.map(t => t.content);
const idLimit = [...Object.values(file.model.vocab), ...file.added_tokens.map(t => t.id)]
	.reduce((a, b) => Math.max(a, b)) + 1;

function requests() {
	if (count === 'sweep')
		return sweepDocuments();
	const r = generator(Number(seed));
	const list = Object.entries(TRICKY).map(([name, text]) => ({ name, text }));

	for (let i = 0; i < Number(count); i++)
		list.push({ name: `random ${i}`, text: randomDocument(r, specials) });
	for (const name of files) {
		const lines = readFileSync(name, 'utf8').split(/(?<=\n)/);
		for (let i = 0; i < lines.length; i += 60)
			list.push({ name: `${name}:${i + 1}`, text: lines.slice(i, i + 60).join('') });
	}
	for (let i = 0; i < Number(count) / 4; i++) {
		const ids = Array.from({ length: 1 + r.below(40) }, () => r.below(idLimit));
		list.push({ name: `ids ${i}`, ids });
	}
	return list;
}

function frame(request) {
	const body = request.ids ? Buffer.from(Uint32Array.from(request.ids).buffer)
		: Buffer.from(request.text, 'utf8');
	const head = Buffer.alloc(8);

	head.writeUInt32LE(request.ids ? 1 : 0, 0);
	head.writeUInt32LE(body.length, 4);
	return Buffer.concat([head, body]);
}

async function ask(list) {
	const child = spawn(driver, [path], { stdio: ['pipe', 'pipe', 'inherit'] });
	const chunks = [];

	child.stdout.on('data', chunk => chunks.push(chunk));
	child.stdin.end(Buffer.concat(list.map(frame)));
	await new Promise((resolve, reject) => child.on('close', code =>
		code ? reject(new Error(`driver ended with status ${code}`)) : resolve()));
	return Buffer.concat(chunks);
}

function* answers(bytes) {
	let at = 0;
	const block = unit => {
		const n = bytes.readUInt32LE(at) * unit;
		at += 4 + n;
		return bytes.subarray(at - n, at);
	};
	const ids = () => {
		const raw = block(4);
		return Array.from({ length: raw.length / 4 }, (_, i) => raw.readUInt32LE(i * 4));
	};
	const text = () => block(1).toString('utf8');

	for (let kind = yield; ; )
		kind = yield kind ? { kept: text(), skipped: text() }
			: { plain: ids(), full: ids(), kept: text(), skipped: text() };
}

async function expected(request) {
	const out = {};

	if (!request.ids) {
		out.plain = (await reference.encode(request.text, null, { addSpecialTokens: false })).getIds();
		out.full = (await reference.encode(request.text, null, { addSpecialTokens: true })).getIds();
	}
	const ids = request.ids ?? out.full;
	out.kept = ids.length ? await reference.decode(ids, false) : '';
	out.skipped = ids.length ? await reference.decode(ids, true) : '';
	return out;
}

const list = requests();
const ours = answers(await ask(list));
let differences = 0, ids = 0;
ours.next();
for (const request of list) {
	const got = ours.next(request.ids ? 1 : 0).value;
	const want = await expected(request);

	ids += want.full?.length ?? request.ids.length;
	for (const key of Object.keys(want)) {
		if (JSON.stringify(got[key]) === JSON.stringify(want[key]))
			continue;
		if (differences++ < 10)
			console.log(`${request.name}: ${key} differs`, JSON.stringify({
				text: request.text ?? request.ids, ours: got[key], reference: want[key] }).slice(0, 2000));
	}
}
console.log(`${path.split('/').slice(-3).join('/')}: ${list.length} texts, ${ids} ids, ${differences} differences`);
process.exit(differences ? 1 : 0);
