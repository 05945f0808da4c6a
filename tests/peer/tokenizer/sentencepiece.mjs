// SPDX-License-Identifier: Apache-2.0
//
// sentencepiece.mjs - our reading of .model files against the sentencepiece library.
//
//   node sentencepiece.mjs DRIVER DIRECTORY TEXT [DOCUMENTS [SEED]]
//   node sentencepiece.mjs json MODEL TOKENIZER_JSON
//
// Models of all kinds are trained on the file TEXT by spm_train (Debian package
// "sentencepiece") unless DIRECTORY holds them; ids are compared with spm_encode's and
// decoded texts with spm_decode's, on random documents and the lines of TEXT.
// "json" writes a Unigram model as a tokenizer.json, for models.mjs.
// Exit status 0 when all are equal.
import { spawnSync } from 'node:child_process';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { TRICKY, generator, randomDocument } from './texts.mjs';

const MODELS = {
	unigram: '--model_type=unigram --vocab_size=32000 --input_sentence_size=200000',
	'unigram-small': '--model_type=unigram --vocab_size=1000',
	'unigram-bytes': '--model_type=unigram --vocab_size=1300 --byte_fallback=true ' +
		'--character_coverage=0.99 --user_defined_symbols=<sep>,foo,fo,xx,##,▁the',
	'unigram-folded': '--model_type=unigram --vocab_size=8000 ' +
		'--normalization_rule_name=nfkc_cf --add_dummy_prefix=false --control_symbols=<ctl>,[X] --pad_id=3',
	bpe: '--model_type=bpe --vocab_size=1200',
	'bpe-bytes': '--model_type=bpe --vocab_size=8000 --byte_fallback=true ' +
		'--character_coverage=0.995 --normalization_rule_name=identity --split_digits=true ' +
		'--remove_extra_whitespaces=false --allow_whitespace_only_pieces=true',
	'bpe-symbols': '--model_type=bpe --vocab_size=2500 --byte_fallback=true ' +
		'--normalization_rule_name=identity --add_dummy_prefix=false ' +
		'--remove_extra_whitespaces=false --user_defined_symbols=<sep>,foo,fo,xx,##,▁▁,▁▁▁,\u0301',
	'bpe-symbols-mapped': '--model_type=bpe --vocab_size=1200 --bos_id=-1 ' +
		'--user_defined_symbols=ab,bc,<a>,ﬁ,\u0301',
};
const SYMBOLS = ['<sep>', 'foo', 'fo', 'xx', '##', '▁', '▁the', 'ab', 'bc', '<a>', 'ﬁ', '▁▁▁▁',
	'x##', 'abc'];

function run(command, args, input) {
	const done = spawnSync(command, args, { input, maxBuffer: 1 << 30 });

	if (done.status !== 0)
		throw new Error(`${command} ${args.join(' ')}: ${done.stderr}`);
	return done.stdout;
}

/* ---- tokenizer.json ---- */

/* The fields of a message: [number, value]. */
function fields(bytes) {
	const list = [];
	let at = 0;
	const int = () => {
		let v = 0, scale = 1;
		for (;; scale *= 128) {
			const byte = bytes[at++];
			v += (byte & 127) * scale;
			if (byte < 128)
				return v;
		}
	};

	while (at < bytes.length) {
		const tag = int(), kind = tag % 8;
		let value = kind === 5 ? bytes.readFloatLE(at) : int();
		if (kind === 5)
			at += 4;
		if (kind === 2) {
			at += value;
			value = bytes.subarray(at - value, at);
		}
		list.push([Math.floor(tag / 8), value]);
	}
	return list;
}

function writeJson(from, to) {
	const model = fields(readFileSync(from));
	const pieces = model.filter(f => f[0] === 1).map(f => new Map(fields(f[1])));
	const trainer = new Map(fields(model.find(f => f[0] === 2)[1]));
	const normalizer = new Map(fields(model.find(f => f[0] === 3)[1]));
	const special = (content, id) => ({ id, content, single_word: false, lstrip: false,
		rstrip: false, normalized: false, special: true });
	const text = p => p.get(1).toString();

	writeFileSync(to, JSON.stringify({
		version: '1.0', truncation: null, padding: null,
		added_tokens: pieces.map((p, id) => [p, id]).filter(([p]) => p.get(3) === 2 || p.get(3) === 3)
			.map(([p, id]) => special(text(p), id)),
		normalizer: normalizer.get(2)?.length ? { type: 'Precompiled',
			precompiled_charsmap: normalizer.get(2).toString('base64') } : null,
		pre_tokenizer: { type: 'Metaspace', replacement: '▁', prepend_scheme: 'always', split: true },
		post_processor: null,
		decoder: { type: 'Metaspace', replacement: '▁', prepend_scheme: 'always', split: true },
		model: { type: 'Unigram', unk_id: pieces.findIndex(p => p.get(3) === 2),
			vocab: pieces.map(p => [text(p), p.get(2) ?? 0]), byte_fallback: !!trainer.get(35) },
	}));
}

/* ---- comparison ---- */

function documents(r, count, lines) {
	const list = Object.values(TRICKY);

	for (let i = 0; i < count; i++) {
		const mixed = () => r.below(4) ? r.pick(lines).slice(r.below(80), 80 + r.below(400))
			: r.pick([...SYMBOLS, ' ', '  ', '\u3000', '\t']).repeat(1 + r.below(3));
		list.push(i % 2 ? Array.from({ length: 1 + r.below(6) }, mixed).join('')
			: randomDocument(r, SYMBOLS));
	}
	/* The library's tools read lines; what cutting breaks is made whole again. Control pieces
	 * in text are something else here than in the library. */
	return list.map(text => Buffer.from(text.replace(/[\n\r]/g, ' ')).toString())
		.filter(text => !/<s>|<\/s>|<unk>|<pad>|<ctl>|\[X\]/.test(text));
}

function ask(driver, path, list) {
	const frames = list.flatMap(text => {
		const body = Buffer.from(text), head = Buffer.alloc(8);
		head.writeUInt32LE(body.length, 4);
		return [head, body];
	});
	const out = run(driver, [path], Buffer.concat(frames));
	let at = 0;
	const block = unit => {
		const n = out.readUInt32LE(at) * unit;
		at += 4 + n;
		return out.subarray(at - n, at);
	};

	return list.map(() => {
		const raw = block(4);
		const ids = Array.from({ length: raw.length / 4 }, (_, i) => raw.readUInt32LE(4 * i)).join(' ');
		const full = block(4).length / 4, kept = block(1);
		return { ids, extra: full - raw.length / 4, text: (kept, block(1)).toString() };
	});
}

function compare(driver, path, list) {
	const lines = args => Buffer.from(args).toString().split('\n').slice(0, -1);
	const ours = ask(driver, path, list);
	const want = lines(run('spm_encode', [`--model=${path}`, '--output_format=id'],
		list.map(text => text + '\n').join('')));
	const texts = lines(run('spm_decode', [`--model=${path}`, '--input_format=id'],
		want.map(ids => ids + '\n').join('')));
	const unk = fields(readFileSync(path)).filter(f => f[0] === 1)
		.findIndex(f => new Map(fields(f[1])).get(3) === 2);
	let differences = 0, ids = 0;

	if (want.length !== list.length || texts.length !== list.length)
		throw new Error(`${path}: ${list.length} texts, ${want.length} and ${texts.length} answers`);
	for (let i = 0; i < list.length; i++) {
		ids += want[i] ? want[i].split(' ').length : 0;
		/* What is unknown is shown in another way. */
		const isSame = ours[i].ids === want[i] &&
			(ours[i].text === texts[i] || ` ${want[i]} `.includes(` ${unk} `));
		if (!isSame && differences++ < 5)
			console.log(JSON.stringify({ text: list[i], ours: ours[i], want: want[i],
				wantText: texts[i] }).slice(0, 2000));
	}
	console.log(`${path}: ${list.length} texts, ${ids} ids, ${differences} differences`);
	return differences;
}

function main([driver, directory, corpus, count = '2000', seed = '1']) {
	const lines = readFileSync(corpus, 'utf8').split('\n').filter(line => line.length > 20);
	const r = generator(Number(seed));
	const list = documents(r, Number(count), lines);
	let differences = 0;

	for (const [name, options] of Object.entries(MODELS)) {
		const prefix = join(directory, name);

		if (!existsSync(`${prefix}.model`))
			run('spm_train', [`--input=${corpus}`, `--model_prefix=${prefix}`, '--num_threads=2',
				'--input_sentence_size=40000', ...options.split(' ')]);
		differences += compare(driver, `${prefix}.model`, list);
	}
	return differences ? 1 : 0;
}

if (process.argv[2] === 'json')
	writeJson(process.argv[3], process.argv[4]);
else
	process.exit(main(process.argv.slice(2)));
