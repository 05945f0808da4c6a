// SPDX-License-Identifier: Apache-2.0
//
// generate.mjs - writes schema/chat_templates.json from real chat templates:
//
//   cd tools/chat && npm install
//   node generate.mjs FOLDER ../../schema/chat_templates.json > rendered.json
//   python3 check.py FOLDER rendered.json
//
// FOLDER holds one file a template, named ORG--MODEL.jinja, or ORG--MODEL.json for a
// tokenizer_config.json; templates themselves are not committed. Of equal ones the
// first by name gives the family.
//
// A template enters the table when, for one user message with the generation prompt,
// it is prefix + content + suffix whatever the content: plain and awkward texts are
// tried, and every text constant of the template itself, alone and around other text,
// because a template that looks for something in the content looks for one of those.
// Where a system message in front of it is prefix + system + middle + content + suffix in
// the same way, that is kept too. Left out are templates that read the clock, refuse the message, or depend on special
// tokens in another way than writing them. check.py renders the same with Python's
// Jinja, as model servers do.
import { createHash } from 'node:crypto';
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Template } from '@huggingface/jinja';

const TOKENS = ['bos_token', 'eos_token', 'unk_token', 'sep_token', 'pad_token', 'cls_token',
	'mask_token'];
const MARK = 'Zq7userXv9';
const SPELLINGS = [(i) => String.fromCharCode(1 + i), (i) => `<<${i}>>`];
const TEXT_MAX = 1500; // longer ones are whole manuals

// The clock that templates see in one rendering, many days on.
const Now = globalThis.Date;
class Later extends Now {
	constructor(...given) {
		super(...(given.length ? given : [Now.now() + 400.5 * 86400e3]));
	}
}

function templateOf(path) {
	const text = readFileSync(path, 'utf8');
	if (path.endsWith('.jinja'))
		return text;
	const template = JSON.parse(text).chat_template;
	if (!Array.isArray(template))
		return template;
	return template.find((t) => t.name === 'default')?.template;
}

function render(template, content, spell, missing, system) {
	const messages = [{ role: 'user', content }];
	if (system !== undefined)
		messages.unshift({ role: 'system', content: system });
	const context = {
		messages, tools: null, documents: null,
		add_generation_prompt: true,
	};
	TOKENS.forEach((name, i) => {
		if (i !== missing)
			context[name] = spell(i);
	});
	return template.render(context);
}

// Contents that a template may treat in a way of their own.
function contents(text) {
	const strings = [...text.matchAll(/'((?:[^'\\]|\\.)*)'|"((?:[^"\\]|\\.)*)"/g)]
		.map((m) => (m[1] ?? m[2]).replace(/\\n/g, '\n').replace(/\\(.)/g, '$1'))
		.filter((s) => s.length > 0 && s.length < 200);
	const tested = [...text.matchAll(
		/(?:(?:starts|ends)with|split|find|replace)\(\s*(?:'([^']*)'|"([^"]*)")|(?:'([^']*)'|"([^"]*)")\s+(?:not\s+)?in\s/g)]
		.map((m) => (m[1] ?? m[2] ?? m[3] ?? m[4]).replace(/\\n/g, '\n')).filter(Boolean);
	const all = ['', 'x', '{{ x }}', '{% if %}', "it's \"so\"", 'é 中文 🙂', '<|im_end|>', '[INST]', '0',
		'true', 'none', '{"a": [1]}', '/no_think', '/think', '<think>x</think>', 'a\n\nb', 'a  b'];
	for (const s of new Set(strings))
		all.push(s, `${s}y`, `y${s}`, `y${s}z`, `y ${s} z`, `y${s}z${s}w`, s.toUpperCase());
	for (const a of new Set(tested))
		for (const b of new Set(tested))
			all.push(`${a}y${b}`, `${a}\n${b}`);
	return [...new Set(all)];
}

function wrapOf(text) {
	const template = new Template(text);
	const one = (content, how = {}) => render(template, content, how.spell ?? SPELLINGS[0],
		how.missing);
	const plain = one(MARK), at = plain.indexOf(MARK);
	if (at < 0 || plain.indexOf(MARK, at + 1) >= 0)
		throw new Error('the content does not stand there once');
	const wrap = { prefix: plain.slice(0, at), suffix: plain.slice(at + MARK.length) };
	globalThis.Date = Later;
	const later = one(MARK);
	globalThis.Date = Now;
	if (later !== plain)
		throw new Error('reads the clock');
	TOKENS.forEach((name, i) => {
		const is_used = plain.includes(SPELLINGS[0](i));
		if (!is_used && one(MARK, { missing: i }) !== plain)
			throw new Error(`depends on ${name}`);
	});
	const other = TOKENS.reduce((s, _, i) => s.replaceAll(SPELLINGS[0](i), SPELLINGS[1](i)), plain);
	if (one(MARK, { spell: SPELLINGS[1] }) !== other)
		throw new Error('depends on the spelling of a special token');
	wrap.is_stripping = one(` \n\t${MARK} \n\t`) === plain;
	const blanks = [` ${MARK}`, `${MARK}\n`, `\n\n${MARK}\t`, ` \n`, ` `];
	wrap.contents = [...blanks, ...contents(text)];
	for (const content of wrap.contents) {
		const kept = wrap.is_stripping ? content.trim() : content;
		if (one(content) !== wrap.prefix + kept + wrap.suffix)
			throw new Error(`treats ${JSON.stringify(content)} in a way of its own`);
	}
	if (wrap.prefix.length + wrap.suffix.length > TEXT_MAX)
		throw new Error('very long');
	return wrap;
}

// What a system message in front makes of it: prefix + system + middle + content + suffix;
// null when the template refuses one, or treats either text in a way of its own.
function systemOf(text, wrap) {
	const template = new Template(text), SYSTEM = 'Sy7sysWv3';
	const one = (system, content, spell = SPELLINGS[0]) =>
		render(template, content, spell, undefined, system);
	try {
		const plain = one(SYSTEM, MARK), at = plain.indexOf(SYSTEM), user = plain.indexOf(MARK);
		if (at < 0 || user < at || plain.indexOf(SYSTEM, at + 1) >= 0 ||
			plain.indexOf(MARK, user + 1) >= 0)
			return null;
		const found = { prefix: plain.slice(0, at), middle: plain.slice(at + SYSTEM.length, user),
			is_stripping: one(` \n\t${SYSTEM} \n\t`, MARK) === plain };
		if (plain.slice(user + MARK.length) !== wrap.suffix ||
			found.prefix.length + found.middle.length > TEXT_MAX)
			return null;
		const other = TOKENS.reduce((s, _, i) => s.replaceAll(SPELLINGS[0](i), SPELLINGS[1](i)),
			plain);
		if (one(SYSTEM, MARK, SPELLINGS[1]) !== other)
			return null;
		const strip = (s, is) => (is ? s.trim() : s);
		for (const content of wrap.contents)
			for (const [system, said] of [[content, MARK], [SYSTEM, content], [content, content]])
				if (system !== '' && one(system, said) !== found.prefix +
					strip(system, found.is_stripping) + found.middle +
					strip(said, wrap.is_stripping) + wrap.suffix)
					return null;
		return found;
	} catch {
		return null;
	}
}

const [folder, out] = process.argv.slice(2);
const rows = new Map();
for (const name of readdirSync(folder).sort()) {
	const text = templateOf(join(folder, name))?.replace(/\n$/, '');
	if (!text)
		continue;
	const sha256 = createHash('sha256').update(text).digest('hex');
	if (rows.has(sha256))
		continue;
	try {
		const wrap = wrapOf(text);
		rows.set(sha256, { sha256, file: name, ...wrap, system: systemOf(text, wrap),
			family: name.replace(/\.[a-z]+$/, '').replace('--', '/') });
	} catch (e) {
		console.error(`${name}: ${e.message.slice(0, 150)}`);
	}
}
const sorted = [...rows.values()].sort((a, b) => (a.sha256 < b.sha256 ? -1 : 1));

const rowOf = (r) => `\t{ "sha256": ${JSON.stringify(r.sha256)}, "family": ${JSON.stringify(r.family)},
\t\t"prefix": ${JSON.stringify(r.prefix)},
\t\t"suffix": ${JSON.stringify(r.suffix)}, "is_stripping": ${r.is_stripping},
\t\t"system": ${!r.system ? null : `{ "prefix": ${JSON.stringify(r.system.prefix)}, "middle": ${
	JSON.stringify(r.system.middle)}, "is_stripping": ${r.system.is_stripping} }`} }`;
writeFileSync(out, `{ "templates": [\n${sorted.map(rowOf).join(',\n')}\n] }\n`);
console.log(JSON.stringify(sorted));
console.error(`${sorted.length} templates, ${sorted.filter((r) => r.system).length} with a system text`);
