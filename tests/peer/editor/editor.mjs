// SPDX-License-Identifier: Apache-2.0
// editor.mjs: every file of tests/cli/config-mistakes.txt as YAML in yaml-language-server (the one
// of VS Code's YAML extension and of Neovim's yamlls), by the hint that `profllm init` writes, and as
// JSON in VS Code's JSON language service. Each must show one mistake, on the line and in the words
// of `profllm run`; and none in any example and in what `profllm init` writes.
import { spawnSync } from 'node:child_process';
import { createRequire } from 'node:module';
import { readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { start } from './client.mjs';

const dir = process.argv[2];
const require = createRequire(join(dir, 'package.json'));
const { parse } = require('yaml');
const json = require('vscode-json-languageservice');
const root = resolve(import.meta.dirname ?? new URL('.', import.meta.url).pathname, '../../..');
const program = process.env.PROFLLM;
const schemaPath = join(dir, 'experiment-config.schema.json');
const GOALS = ['run', 'curve', 'capacity', 'compare', 'nightly'];
let failed = 0;

const profllm = (...words) => spawnSync(program, words, { cwd: dir, encoding: 'utf8' });

function ok(is, name, ...why) {
	if (is)
		return;
	failed++;
	console.log(`FAILED ${name}`, ...why);
}

/** The words of a schema are the program's, without what was found and what is near to it. */
function isSame(words, sentence) {
	return sentence.split(': ').some((_, i, parts) => {
		const tail = parts.slice(i + 1).join(': ');

		return tail.startsWith(words) &&
			/^(, got |; did you mean | \(experiment |$)/.test(tail.slice(words.length));
	});
}

/** What the program says of a file: [line, sentence]. */
function said(name, text) {
	writeFileSync(join(dir, name), text);
	const r = profllm('run', '--config', name, '--dry-run');
	const found = /^profllm run: [^:]*:(\d+):\d+: (.*)\n$/.exec(r.stderr);

	rmSync(join(dir, name));
	return found ? [Number(found[1]), found[2]] : [0, r.stderr];
}

function judge(where, kind, [line, sentence], diagnostics) {
	const shown = diagnostics.map((d) => `${d.range.start.line + 1}: ${d.message}`);

	ok(diagnostics.length === 1 && diagnostics[0].range.start.line + 1 === line &&
		isSame(diagnostics[0].message, sentence), `${where}, ${kind}`,
	`\n  program ${line}: ${sentence}\n  editor  ${shown.join('\n          ') || 'nothing'}`);
	return failed;
}

const shipped = profllm('run', '--print-config-schema').stdout;
writeFileSync(schemaPath, shipped);
const mistakes = readFileSync(join(root, 'tests/cli/config-mistakes.txt'), 'utf8');
const rows = [...mistakes.matchAll(/^# (.*)\n((?:(?!=> ).*\n)+)=> .*$/gm)].map((m) => [m[1], m[2]]);
const hint = `# yaml-language-server: $schema=${schemaPath}\n`;
const kinds = new Map();

const ls = start(['node', join(dir, 'node_modules/yaml-language-server/bin/yaml-language-server'),
	'--stdio'], { yaml: { validate: true, completion: true, hover: true, yamlVersion: '1.1', schemaStore: { enable: false } } });
await ls.open(dir);
const service = json.getLanguageService({ workspaceContext: { resolveRelativePath: (r, b) => new URL(r, b).href } });
service.configure({ validate: true, schemas: [{ uri: pathToFileURL(schemaPath).href, fileMatch: ['*.json'],
	schema: JSON.parse(shipped) }] });

for (const [i, [kind, text]] of rows.entries()) {
	const before = failed;
	const yaml = hint + text;

	judge('YAML', kind, said('row.yaml', yaml), await ls.diagnostics(join(dir, `${i}.yaml`), 'yaml', yaml));
	const as = `${JSON.stringify(parse(text, { version: '1.1', merge: true }), null, 2)}\n`;
	const document = json.TextDocument.create(pathToFileURL(join(dir, `${i}.json`)).href, 'json', 1, as);
	judge('JSON', kind, said('row.json', as),
		await service.doValidation(document, service.parseJSONDocument(document)));
	const [n, good] = kinds.get(kind) ?? [0, 0];
	kinds.set(kind, [n + 1, good + (failed === before)]);
}
const right = readdirSync(join(root, 'examples')).filter((f) => f.endsWith('.yaml'))
	.map((f) => [`examples/${f}`, hint + readFileSync(join(root, 'examples', f), 'utf8')]);
for (const goal of GOALS)
	right.push([`init --goal ${goal}`, profllm('init', '-', '--server', 'vllm serve', '--model', 'a/b',
		'--goal', goal).stdout]);
for (const [i, [name, text]] of right.entries()) {
	const found = await ls.diagnostics(join(dir, `right-${i}.yaml`), 'yaml', text);

	ok(found.length === 0, name, found.map((d) => `${d.range.start.line + 1}: ${d.message}`));
}
// What an editor offers while one types: keys of a section, values of a key, the help of a key.
const typed = `${hint}server:\n  model: m\n  dtype: \n  max_num_seqs: 8\n  \nbenchmark:\n  backend: \n`;
await ls.diagnostics(join(dir, 'typed.yaml'), 'yaml', typed);
for (const [what, line, character, want] of [
	['keys of a server', 5, 2, 'gpu_memory_utilization'], ['keys of a server, ours', 5, 2, 'ready_timeout_s'],
	['values of dtype', 3, 9, 'bfloat16'], ['values of backend', 7, 11, 'openai-chat'],
]) {
	const offered = await ls.completions(join(dir, 'typed.yaml'), line, character);

	ok(offered.includes(want), `completion, ${what}: ${want}`, offered.slice(0, 20));
}
ok(/one step processes/.test(await ls.hover(join(dir, 'typed.yaml'), 4, 5)), 'hover: the help of max_num_seqs');
ls.stop();
console.log('kind              files  both editors as the program');
for (const [kind, [n, good]] of kinds)
	console.log(`${kind.padEnd(18)}${String(n).padStart(5)}  ${String(good).padStart(5)}`);
console.log(`${rows.length} files with a mistake, ${right.length} without; ${failed} differences`);
process.exit(failed ? 1 : 0);
