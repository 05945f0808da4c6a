// SPDX-License-Identifier: Apache-2.0
// bench.mjs - compares our tokenizer's speed with the reference library's, in one run.
//
//   node bench.mjs DRIVER CORPUS_DIRECTORY REPEATS NAME=TOKENIZER_JSON...
//
// This process runs the reference, the driver runs ours; both on one core, in turns, over the same
// documents. Each measures its own processor time around the calls alone. The reference's figure is
// the better of one call per document and one batch of one thread. Medians over the repeats.
import { spawn, spawnSync } from 'node:child_process';
import { readFileSync, statSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { createInterface } from 'node:readline';

const require = createRequire(join(process.cwd(), 'bench.mjs'));
const { Tokenizer } = require('@anush008/tokenizers');
const [driver, corpusDirectory, repeats, ...models] = process.argv.slice(2);
const KINDS = ['english', 'code', 'cjk', 'mixed'];
const NS = 1e9;
/* Least ratio to the reference, by kind, for a known regular expression and for the rest. */
const TARGET = { scanned: { english: 40, code: 40, cjk: 12, mixed: 15 }, other: { english: 15, code: 15, cjk: 12, mixed: 15 } };
const SCANNED = ['gpt2', 'llama3', 'llama3_1', 'qwen3', 'gptoss', 'gpt4o', 'gpt35turbo', 'deepseek_v3',
	'tekken'];
const DECODE_TARGET = 50, WORD_TARGET = 2.6;
/* Milliseconds: up to 15 MB of file, above, and compiled. */
const LOAD_TARGET = { small: 250, large: 700, cached: 10 };

let missed = 0, measured = 0;
const median = list => [...list].sort((a, b) => a - b)[list.length >> 1];
const optional = { addSpecialTokens: false };

function judge(value, isMet) {
	measured++;
	missed += !isMet;
	return `${value}${isMet ? '' : ' (missed)'}`;
}

function row(...cells) {
	console.log(`| ${cells.join(' | ')} |`);
}

async function cpuNs(work) {
	const before = process.cpuUsage();
	const result = await work();
	const spent = process.cpuUsage(before);
	return [(spent.user + spent.system) * 1000, result];
}

class Ours {
	constructor(path) {
		this.child = spawn(driver, [path], { stdio: ['pipe', 'pipe', 'inherit'] });
		this.child.on('exit', code => code && process.exit(1));
		this.lines = createInterface({ input: this.child.stdout })[Symbol.asyncIterator]();
	}
	async ask(...words) {
		this.child.stdin.write(words.join(' ') + '\n');
		return (await this.lines.next()).value.split(' ').map(Number);
	}
	end() {
		this.child.stdin.end();
	}
}

function hashIds(encodings) {
	let hash = 0x811c9dc5, count = 0;
	for (const encoding of encodings)
		for (const id of encoding.getIds()) {
			hash = Math.imul(hash ^ id, 0x01000193);
			count++;
		}
	return `${count} ${hash >>> 0}`;
}

/* Words as the reference's pre-tokenizer cuts them; nothing when it does not cut. */
function countWords(encodings) {
	const words = encodings.reduce((sum, e) => sum + e.getWordIds().reduce((a, b) => Math.max(a, (b ?? -1) + 1), 0), 0);
	return words > 20 * encodings.length ? words : 0;
}

async function measureKind(reference, ours, name, kind) {
	const path = join(corpusDirectory, `${kind}.txt`);
	const texts = readFileSync(path, 'utf8').split('\0').slice(0, -1);
	const [, bytes] = await ours.ask('texts', path);
	const all = { theirs: [], cold: [], warm: [], coldRatio: [], warmRatio: [], theirDecode: [], decode: [], decodeRatio: [] };
	let words, ids, got;

	for (let i = 0; i < repeats; i++) {
		await ours.ask('fresh');
		got = await ours.ask('encode');
		const [batch, encodings] = await cpuNs(() => reference.encodeBatch(texts, optional));
		const [single] = await cpuNs(async () => {
			for (const text of texts)
				await reference.encode(text, null, optional);
		});
		ids ??= encodings.map(e => e.getIds());
		words ??= countWords(encodings);
		if (hashIds(encodings) !== got.slice(0, 2).join(' '))
			console.log(`${name}, ${kind}: IDS DIFFER (${got[0]} of ours), the figures below mean nothing`);
		const theirs = Math.min(batch, single), [cold, ...rest] = got.slice(2), warm = Math.min(...rest);
		all.theirs.push(theirs);
		all.cold.push(cold);
		all.warm.push(warm);
		all.coldRatio.push(theirs / cold);
		all.warmRatio.push(theirs / warm);

		const [theirDecode] = await cpuNs(async () => {
			for (const list of ids)
				await reference.decode(list, false);
		});
		const decode = Math.min(...(await ours.ask('decode')).slice(1));
		all.theirDecode.push(theirDecode);
		all.decode.push(decode);
		all.decodeRatio.push(theirDecode / decode);
	}
	const speed = list => (bytes / median(list) * NS / 1e6).toFixed(1);
	const target = TARGET[SCANNED.includes(name) ? 'scanned' : 'other'][kind];
	const ratio = median(all.warmRatio), decodeRatio = median(all.decodeRatio);
	row(name, kind, got[0], speed(all.theirs), speed(all.cold), speed(all.warm), `${median(all.coldRatio).toFixed(1)}x`,
		judge(`${ratio.toFixed(1)}x`, ratio >= target), `${target}x`, words ? (median(all.warm) / words).toFixed(0) : '-',
		(median(all.warm) / got[0]).toFixed(1), speed(all.theirDecode), speed(all.decode),
		judge(`${decodeRatio.toFixed(0)}x`, decodeRatio >= DECODE_TARGET));
}

async function measureSpeed() {
	console.log(`\nMB/s of UTF-8, one core. First: nothing warm; best: of the passes after it.\n`);
	row('vocabulary', 'corpus', 'ids', 'reference', 'ours, first', 'ours, best', 'first', 'best', 'target',
		'ns/word', 'ns/id', 'reference decode', 'ours', `ratio (target ${DECODE_TARGET}x)`);
	row(...Array(14).fill('---'));
	for (const [name, path] of models) {
		const reference = Tokenizer.fromFile(path);
		const ours = new Ours(path);
		for (const kind of KINDS)
			await measureKind(reference, ours, name, kind);
		ours.end();
	}
}

async function measureWords() {
	const kinds = ['a', 'random', 'spaces', 'cjk'];

	console.log(`\nOne word of 200 KB: MB/s, and its time as a multiple of that of 100 KB (target: at most ${WORD_TARGET}).\n`);
	row('vocabulary', ...kinds);
	row('---', ...kinds.map(() => '---'));
	for (const [name, path] of models) {
		const ours = new Ours(path), cells = [];
		for (const kind of kinds) {
			const ratios = [], speeds = [];
			for (let i = 0; i < repeats; i++) {
				const [, one] = await ours.ask('word', kind, 100_000), [, two] = await ours.ask('word', kind, 200_000);
				ratios.push(two / one);
				speeds.push(200_000 / two * NS / 1e6);
			}
			cells.push(judge(`${median(speeds).toFixed(0)}, ${median(ratios).toFixed(2)}`, median(ratios) <= WORD_TARGET));
		}
		row(name, ...cells);
		ours.end();
	}
}

async function measureLoads() {
	console.log('\nOne load in a new process, milliseconds of processor time.\n');
	row('vocabulary', 'file, MB', 'reference', 'ours from the file', 'target', 'compiled', `target`);
	row(...Array(7).fill('---'));
	for (const [name, path] of models) {
		const theirs = [], fresh = [], cached = [];
		const load = how => Number(spawnSync(driver, ['--load', path, how], { stdio: ['ignore', 'pipe', 'inherit'] }).stdout) / 1e6;
		load('cached'); // leaves the compiled form
		for (let i = 0; i < repeats; i++) {
			theirs.push((await cpuNs(() => Tokenizer.fromFile(path)))[0] / 1e6);
			fresh.push(load('uncached'));
			cached.push(load('cached'));
		}
		const megabytes = statSync(path).size / 1e6;
		const target = megabytes <= 15 ? LOAD_TARGET.small : LOAD_TARGET.large;
		row(name, megabytes.toFixed(1), median(theirs).toFixed(0), judge(median(fresh).toFixed(0), median(fresh) <= target), target,
			judge(median(cached).toFixed(1), median(cached) <= LOAD_TARGET.cached), LOAD_TARGET.cached);
	}
}

models.forEach((model, i) => { models[i] = model.split('='); });
await measureSpeed();
await measureWords();
await measureLoads();
console.log(`\n${measured - missed} of ${measured} targets met.`);
process.exit(0);
