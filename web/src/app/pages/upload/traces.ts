// SPDX-License-Identifier: Apache-2.0
// traces.ts: which uploaded files are profiler traces, and of which run: the documents uploaded
// with them name them.
import { isResult } from './files';

const DOCUMENT_BYTES_MAX = 64 * 2 ** 20;
const TRACE_BYTES_MAX = 2047 * 2 ** 20;

/** A trace that a document names. places: its possible paths in dropped folders. */
export interface NamedTrace {
	runId: string;
	base: string;
	bytes: number | null;
	places: string[];
}

export interface Sized { name: string; size: number }

export const ALONE = 'a profiler’s trace belongs to a run: drop it together with the document of its run, '
	+ 'or attach it on the run’s page';
export const TOO_LARGE = 'a trace of at most 2047 MiB is taken here; profllm ingest takes larger ones '
	+ 'into the store itself';

/** Recognized by the usual names of profilers' files. */
export const isTrace = (name: string): boolean =>
	/\.trace\.json(\.gz)?$|\.nsys-rep(\.stats\.txt)?$/i.test(name);
export const isTooLarge = (file: Sized): boolean => file.size > TRACE_BYTES_MAX;
/** Whether it may be a document. */
const isReadable = (file: Sized): boolean =>
	isResult(file.name) && !isTrace(file.name) && file.size <= DOCUMENT_BYTES_MAX;

const object = (v: unknown): Record<string, unknown> =>
	(typeof v === 'object' && v !== null && !Array.isArray(v) ? v as Record<string, unknown> : {});
const list = (v: unknown): unknown[] => (Array.isArray(v) ? v : []);
const baseOf = (path: string): string => path.slice(path.lastIndexOf('/') + 1);
const folderOf = (path: string): string => path.slice(0, path.lastIndexOf('/') + 1);

/** Traces named by a document, or by those of a suite, which are in its folder: s.d of s.json. */
export function namedTraces(value: unknown, name: string, folders = [folderOf(name)]): NamedTrace[] {
	const document = object(value);
	if (Array.isArray(value))
		return value.flatMap((v) => namedTraces(v, name, folders));
	if (Array.isArray(document.experiments))
		return namedTraces(document.experiments, name,
			[...folders, `${name.replace(/\.json(\.gz)?$/i, '')}.d/`]);
	const runId = document.run_id;
	return list(object(document.profiling).traces).flatMap((v) => {
		const { path, bytes } = object(v);
		if (typeof runId !== 'string' || typeof path !== 'string')
			return [];
		return [{ runId, base: baseOf(path), bytes: typeof bytes === 'number' ? bytes : null,
			places: folders.map((f) => f + path) }];
	});
}

/** The runs of each file, by its index in the list. If two files match, neither is used. */
export function runsOf(named: NamedTrace[], files: Sized[]): Map<number, string[]> {
	const out = new Map<number, string[]>();
	for (const t of named) {
		const same = files.map((_, i) => i).filter((i) => baseOf(files[i].name) === t.base
			&& (t.bytes === null || files[i].size === t.bytes));
		const exact = same.filter((i) => t.places.includes(files[i].name));
		const found = exact.length === 1 ? exact : same.length === 1 ? same : [];
		for (const i of found)
			out.set(i, [...new Set([...(out.get(i) ?? []), t.runId])]);
	}
	return out;
}

/** JSON, or a value a line; what is neither has no documents. */
export function valuesOf(text: string): unknown[] {
	const parse = (part: string): unknown[] => {
		try {
			return [JSON.parse(part)];
		} catch {
			return [];
		}
	};
	const whole = parse(text);
	return whole.length ? whole : text.split('\n').flatMap(parse);
}

/** gzip is what a browser can unpack. */
async function textOf(file: File): Promise<string> {
	if (!/\.gz$/i.test(file.name))
		return file.text();
	return new Response(file.stream().pipeThrough(new DecompressionStream('gzip'))).text();
}

/** All traces that the files among them name which are documents. */
export async function tracesNamedBy(files: { file: File; name: string }[]): Promise<NamedTrace[]> {
	const out: NamedTrace[] = [];
	if (files.length < 2)
		return out;
	for (const { file, name } of files) {
		if (!isReadable({ name, size: file.size }))
			continue;
		const text = await textOf(file).catch(() => '');
		if (text.includes('"profiling"'))
			out.push(...valuesOf(text).flatMap((v) => namedTraces(v, name)));
	}
	return out;
}
