// SPDX-License-Identifier: Apache-2.0
//
// corpus.mjs - texts of the kinds that models are asked about, in documents of
// about 4,000 characters, each followed by a NUL:
//
//   english.txt  2.0 MB of manual pages
//   code.txt     1.2 MB of TypeScript, Python and C
//   cjk.txt      1.8 MB of Japanese and Chinese manual pages, lines of Latin script left out
//   mixed.txt    all of them, shuffled
//
//   node corpus.mjs RAW_DIRECTORY OUTPUT_DIRECTORY      (corpus.sh fills the former)
import { readFileSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { gunzipSync } from 'node:zlib';
import { generator } from './texts.mjs';

const [raw, out] = process.argv.slice(2);
const DOCUMENT_CHARS = 4000;

function filesUnder(directory, ending) {
	return readdirSync(directory, { recursive: true, withFileTypes: true })
		.filter(entry => entry.isFile() && ending.test(entry.name))
		.map(entry => join(entry.parentPath ?? entry.path, entry.name)).sort();
}

/* What a reader would see of a page, roughly; only pages that are valid UTF-8. */
function manual(path) {
	const bytes = gunzipSync(readFileSync(path));
	const text = bytes.toString('utf8');
	if (Buffer.compare(Buffer.from(text), bytes) !== 0)
		return '';
	return text.replace(/^[.'][ \t]*\\".*\n/gm, '')
		.replace(/^\.[ \t]*(?:SH|SS|TH)[ \t]*(.*)$/gm, '\n$1\n')
		.replace(/^\.[ \t]*(?:PP|P|LP|TP|sp|br|IP).*$/gm, '')
		.replace(/^\.[ \t]*[A-Za-z]+[ \t]*/gm, '')
		.replace(/\\f[A-Z]|\\f\(..|\\f\[[^\]]*\]|\\&|\\s[-+]?\d/g, '')
		.replace(/\\-/g, '-').replace(/\\\(aq/g, "'").replace(/\\e/g, '\\').replace(/\\[ ~]/g, ' ')
		.replace(/\n{3,}/g, '\n\n');
}

const source = path => readFileSync(path, 'utf8');
const onlyWide = text => text.split('\n').filter(line => /[\u3041-\u30ff\u4e00-\u9fff]/.test(line)).join('\n') + '\n';

function documents(paths, read, bytesMax) {
	const list = [];
	let document = '', bytes = 0;

	for (const path of paths)
		for (const line of read(path).split(/(?<=\n)/)) {
			if (line.includes('\0') || line.includes('\ufffd'))
				continue;
			document += line;
			if (document.length < DOCUMENT_CHARS)
				continue;
			list.push(document);
			bytes += Buffer.byteLength(document);
			document = '';
			if (bytes >= bytesMax)
				return list;
		}
	throw new Error(`${paths[0]} and the like are ${bytes} bytes, ${bytesMax} are needed`);
}

const man = name => filesUnder(join(raw, 'man/usr/share/man', name), /\.gz$/);
const code = (name, ending) => filesUnder(join(raw, 'code', name), ending);
const corpus = {
	english: documents(['man7', 'man5', 'man4', 'man2', 'man3'].flatMap(man), manual, 2_000_000),
	code: [
		...documents(code('rxjs', /(?<!\.d)\.ts$/), source, 400_000),
		...documents(code('node-gyp', /\.py$/), source, 400_000),
		...documents(code('usb', /\.[ch]$/), source, 400_000),
	],
	cjk: [
		...documents(man('ja'), path => onlyWide(manual(path)), 900_000),
		...documents(man('zh_CN'), path => onlyWide(manual(path)), 900_000),
	],
};
const random = generator(1);
corpus.mixed = Object.values(corpus).flat()
	.map(document => [random.below(1 << 30), document])
	.sort((a, b) => a[0] - b[0]).map(pair => pair[1]);
for (const [name, list] of Object.entries(corpus))
	writeFileSync(join(out, `${name}.txt`), list.map(document => document + '\0').join(''));
