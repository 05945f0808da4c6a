// SPDX-License-Identifier: Apache-2.0
// files.ts: files being uploaded: which belong together, and the outcome of each.
import type { JobFile } from '../../../lib/api';

export type State = 'waiting' | 'sending' | 'sent' | 'new' | 'duplicate' | 'conflict' | 'attached'
	| 'invalid' | 'failed';

export interface Entry {
	key: number;
	name: string;
	bytes: number;
	state: State;
	/** Of its first run; for a trace, its run's run_id. */
	id: number | string | null;
	runs: number;
	reason: string | null;
}

export const BATCH_FILES = 100;
const BATCH_BYTES = 64e6;

/** In order: batches of at most this many files and bytes, unless a single file is larger. */
export function batches<T>(list: T[], size: (item: T) => number): T[][] {
	const out: T[][] = [];
	let bytes = Infinity;
	for (const item of list) {
		const last = out[out.length - 1];
		if (!last || last.length >= BATCH_FILES || bytes + size(item) > BATCH_BYTES) {
			out.push([item]);
			bytes = size(item);
		} else {
			last.push(item);
			bytes += size(item);
		}
	}
	return out;
}

/**
 * Assigns outcomes by name: for a name that occurs twice in order, the first undecided one first.
 */
export function withOutcomes(entries: Entry[], keys: Set<number>, files: JobFile[]): Entry[] {
	const out = [...entries];
	for (const file of files) {
		if (file.outcome === null)
			continue;
		const at = out.findIndex((e) => keys.has(e.key) && e.name === file.name
			&& (e.state === 'sent' || e.state === 'sending'));
		if (at >= 0)
			out[at] = { ...out[at], state: file.outcome, id: file.id, runs: file.runs,
				reason: file.reason };
	}
	return out;
}

export const OUTCOMES = ['new', 'duplicate', 'conflict', 'attached', 'invalid', 'failed'] as const;
export type Outcome = (typeof OUTCOMES)[number];

export function isSettled(e: Entry): boolean {
	return (OUTCOMES as readonly string[]).includes(e.state);
}

export function counts(entries: Entry[]): Record<Outcome, number> {
	const out: Record<Outcome, number> = { new: 0, duplicate: 0, conflict: 0, attached: 0,
		invalid: 0, failed: 0 };
	for (const e of entries)
		if (isSettled(e))
			out[e.state as Outcome]++;
	return out;
}

/**
 * The result, among these names, whose metrics this file only repeats: a.json of a.pytorch.json or
 * a.avg_x.pytorch.json, as `profllm ingest` has it; else null.
 */
export function resultOf(name: string, names: Set<string>): string | null {
	const [, folder = '', base = ''] = /^(.*\/)?([^/]+)\.pytorch\.json$/i.exec(name) ?? [];
	for (let stem = base; stem !== ''; stem = stem.slice(0, Math.max(0, stem.lastIndexOf('.'))))
		if (names.has(`${folder}${stem}.json`))
			return `${folder}${stem}.json`;
	return null;
}

/** Accepted files: JSON and JSON lines, compressed or not. */
export const isResult = (name: string): boolean => /\.(json|jsonl|ndjson)(\.gz)?$/i.test(name);

/** JSON that sweeps and searches keep next to their results; `profllm ingest` skips it as well. */
export const isAuxiliary = (name: string): boolean =>
	/(^|\/)((servers|warmup|capacity)|[^/]*(failure|_sla_summary))\.json$/.test(name);
