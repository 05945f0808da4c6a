// SPDX-License-Identifier: Apache-2.0
// repeat.ts: the experiment that repeats a run, as text for the editor, and the line that a user
// most likely changes. Pure.
//
// The document of an experiment has the configuration as it was given. A result of `bench serve`
// has its options: those that differ from their defaults, which the schema of a configuration names.
import type { Run } from '../../../lib/api';
import type { Values } from '../../api';
import type { Help, Schema } from './types';

type Tree = Record<string, unknown>;
const isTree = (v: unknown): v is Tree => typeof v === 'object' && v !== null && !Array.isArray(v);

/* ---- YAML ---- */

const PLAIN = /^[A-Za-z_/](?:[\w ./+@%=-]|:(?=\S))*$/;
const WORDS = /^(?:true|false|yes|no|on|off|null|inf|nan)$/i;

const isPlain = (text: string): boolean => PLAIN.test(text) && !WORDS.test(text)
	&& !text.endsWith(' ');

function scalar(v: unknown): string {
	if (typeof v === 'string')
		return isPlain(v) || v === 'inf' ? v : JSON.stringify(v);
	return JSON.stringify(v ?? null);
}

const isScalar = (v: unknown): boolean => typeof v !== 'object' || v === null;

/** Lines of a mapping; a list of mappings has "- " before the first line of each. */
function linesOf(tree: Tree): string[] {
	return Object.entries(tree).flatMap(([name, v]) => {
		const key = isPlain(name) ? name : JSON.stringify(name);
		const indented = (lines: string[]): string[] => lines.map((l) => `  ${l}`);
		if (isTree(v) && Object.keys(v).length)
			return [`${key}:`, ...indented(linesOf(v))];
		if (Array.isArray(v) && v.length && v.every((e) => isTree(e) && Object.keys(e).length))
			return [`${key}:`, ...indented((v as Tree[]).flatMap((e) =>
				linesOf(e).map((l, i) => `${i ? '  ' : '- '}${l}`)))];
		if (Array.isArray(v) && v.every(isScalar))
			return [`${key}: [${v.map((e) =>
				(typeof e === 'string' ? JSON.stringify(e) : scalar(e))).join(', ')}]`];
		return [`${key}: ${isScalar(v) ? scalar(v) : JSON.stringify(v)}`];
	});
}

export const yamlOf = (tree: Tree): string => `${linesOf(tree).join('\n')}\n`;

/* ---- the configuration ---- */

/** Where a run's own results went and what numbered its requests: another run has others. */
const OWN = new Set(['save_detailed', 'request_id_prefix', 'result_dir', 'metadata', 'output_json',
	'base_url', 'plot_timeline', 'plot_dataset_stats', 'record', 'dump_workload', 'junit', 'summary']);

const isDefault = (v: unknown, key: Help): boolean => v === null || v === undefined
	|| (v === false && key.default === null)
	|| String(isScalar(v) ? v : JSON.stringify(v)).replace(/\s/g, '')
		=== (key.default ?? '').replace(/\s/g, '')
	|| (typeof v === 'number' && key.default !== null && Number(key.default) === v);

/** The values with this prefix. */
function cellsOf(values: Values, prefix: string): Tree {
	return Object.fromEntries(Object.entries(values).filter(([c]) => c.startsWith(prefix))
		.map(([c, v]) => [c.slice(prefix.length), v]));
}

function worthSaying(all: Tree, keys: Help[]): Tree {
	const known = new Map(keys.map((k) => [k.key, k]));
	return Object.fromEntries(Object.entries(all).filter(([name, v]) => known.has(name)
		&& !OWN.has(name) && !isDefault(v, known.get(name)!)));
}

const LOCAL = 'http://127.0.0.1:8000';

/** The address of a result's server; the default if the result does not have it. */
function addressOf(options: Tree): string {
	const { base_url: url, host, port } = options;
	if (typeof url === 'string' && url)
		return url;
	return typeof host === 'string' && host && typeof port === 'number'
		? `http://${host.includes(':') ? `[${host}]` : host}:${port}` : LOCAL;
}

export interface Repeat {
	config: Tree;
	/** What to check before it is run. */
	notes: string[];
}

const ELSEWHERE = 'The server of this run was started elsewhere: it must be running at this address.';
const HIDDEN = 'A secret was hidden as "***" when this run was recorded: write it again.';

const secretsOf = (v: unknown): string[] => (JSON.stringify(v).includes('***') ? [HIDDEN] : []);

/** A suite member's name contains values that may now be changed: "gpu=h100,max_concurrency=8". */
function withoutChanged(config: Tree): Tree {
	const { name, ...rest } = config;
	if (typeof name !== 'string')
		return config;
	const left = name.split(/[,;\s]+|-(?=[a-z]\w*=)/).filter((part) =>
		!CHANGED.some((key) => part.startsWith(`${key}=`))).join(' ');
	return left ? { name: left, ...rest } : rest;
}

/** Where the document and the logs of the run went: another run has its own. */
function withoutPlaces(config: Tree): Tree {
	const { output, ...rest } = config;
	if (!isTree(output))
		return config;
	const kept = Object.fromEntries(Object.entries(output).filter(([key]) =>
		!['path', 'folder', 'upload'].includes(key)));
	return Object.keys(kept).length ? { ...rest, output: kept } : rest;
}

export function repeatOf(run: Pick<Run, 'document' | 'values'>, schema: Schema): Repeat {
	const document = isTree(run.document) ? run.document : {};
	const given = isTree(document['config']) ? document['config']['given'] : null;
	if (isTree(given) && Object.keys(given).length)
		return { config: withoutPlaces(withoutChanged(given)), notes: secretsOf(given) };
	const mode = typeof run.values['mode'] === 'string' ? run.values['mode'] : 'serve';
	const ours = isTree(document['profllm']) ? document['profllm']['options'] : null;
	const options = isTree(ours) ? ours : cellsOf(run.values, 'benchmark.');
	const keys = schema.sections.find((s) => s.name === `benchmark, mode ${mode}`)?.keys ?? [];
	const { model: _, ...args } = cellsOf(run.values, 'server.');
	const engine = worthSaying(args, schema.arguments);
	const model = run.values['server.model'] ?? run.values['benchmark.model'];
	const named = typeof model === 'string' ? { model } : {};
	const load = { ...(mode === 'serve' ? {} : { mode }), ...worthSaying(options, keys) };
	// Engines of the other modes are started by the benchmark; a server with arguments can be started.
	const isKnown = mode !== 'serve' || Object.keys(engine).length > 0;
	const server = isKnown ? { ...named, ...engine } : { url: addressOf(options) };
	return {
		config: { server, benchmark: isKnown ? load : { ...named, ...load } },
		notes: [...(isKnown ? [] : [ELSEWHERE]), ...secretsOf(options)],
	};
}

export const textOf = (r: Repeat): string => r.notes.map((n) => `# ${n}\n`).join('') + yamlOf(r.config);

/* ---- the line to change ---- */

/** The parameters varied most often, in this order. */
const CHANGED = ['batch_size', 'max_concurrency', 'request_rate', 'max_num_seqs', 'num_prompts'];

/** Begin and end of the value that a user most likely changes; null: there is none. */
export function valueToChange(text: string): [number, number] | null {
	for (const key of CHANGED) {
		const found = new RegExp(`^(\\s*(?:- )?${key}: )(.+)$`, 'm').exec(text);
		if (found && found[2] !== 'inf')
			return [found.index + found[1].length, found.index + found[0].length];
	}
	return null;
}
