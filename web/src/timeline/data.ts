// SPDX-License-Identifier: Apache-2.0
// data.ts: the run of this page, read from what src/out/page/timeline.c wrote into it.
import { check, column, columnOf, json } from '../lib/column';

export interface Block {
	name: string;
	mean: number;
	median: number;
	std: number;
	percentiles: [string, number][];
}

export interface Series {
	name: string;
	labels: string | null;
	/** Milliseconds from the first request's start, value. */
	points: [number, number | null][];
}

export interface Meta {
	format: number;
	n: number;
	n_sessions: number;
	n_gaps: number;
	run_gaps: number; // in one column of gaps, or the last request's more
	unit_ns: number;
	span_ns: number;
	labels: [string, string, string];
	limits_ms: [number, number];
	facts: Record<string, string | number | null>;
	summary: Record<string, number> & { blocks: Block[] };
	verdict: { name: string; reasons: { level: string; text: string }[] };
	rates: { bin_ns: number; tokens_per_s: number[]; concurrency: number[] };
	series: Series[];
	errors: string[];
}

export const DONE = 0, FAILED = 1, CANCELLED = 2, UNSENT = 3;
export const STATES = ['completed', 'failed', 'cancelled', 'never sent'];

/** One element per request in sample order; times in units of unit_ns, from sent unless said. */
export interface Requests {
	n: number;
	unitNs: number;
	start: Float64Array;   // from the first request's sent
	lead: Float64Array;    // due to sent
	ttft: Float64Array;
	whole: Float64Array;   // to the end of the attempt
	answer: Float64Array;  // first answer text after reasoning; -1: none
	prompt: Float64Array;  // tokens
	output: Float64Array;
	state: Uint8Array;
	error: Uint16Array;    // index in meta.errors, plus 1
	first: Float64Array;   // n + 1: the gaps of request i are first[i] to first[i + 1]
	end: Uint32Array | Float64Array; // of each gap, since the first token
	longest: Float64Array; // gap
	limit: [number, number]; // of the categories
	/** Set for a run with conversations; -1: none. Turns count from 0. */
	session: Float64Array | null;
	turn: Float64Array | null;
}

/** Since sent: first token plus every gap. Upstream's end of a request. */
export function latency(r: Requests, i: number): number {
	const last = r.first[i + 1];
	return r.ttft[i] + (last > r.first[i] ? r.end[last - 1] : 0);
}

async function gaps(r: Requests, meta: Meta, progress: (share: number) => void): Promise<void> {
	let i = 0;
	for (let run = 0; i < r.n; run++) {
		const from = await column(`gaps-${run}`);
		for (const stop = r.first[i] + meta.run_gaps; i < r.n && r.first[i] < stop; i++) {
			let at = 0, longest = 0;
			for (let k = r.first[i]; k < r.first[i + 1]; k++) {
				const gap = from.next();
				at += gap;
				r.end[k] = at;
				if (gap > longest)
					longest = gap;
			}
			r.longest[i] = longest;
		}
		check(from, `gaps-${run}`);
		progress(r.first[i] / (meta.n_gaps || 1));
	}
}

export async function load(progress: (share: number) => void): Promise<[Meta, Requests]> {
	const meta = json<Meta>('meta');
	const n = meta.n;
	if (meta.format !== 1)
		throw new Error(`data of format ${meta.format}; this page reads format 1`);
	const [start, state, counts] =
		await Promise.all([column('start'), columnOf('state', n), columnOf('gaps', n)]);
	const answer = await columnOf('answer', n);
	const isWide = meta.unit_ns === 1 || meta.span_ns / meta.unit_ns >= 2 ** 32;
	const r: Requests = {
		n, unitNs: meta.unit_ns,
		start: new Float64Array(n), lead: await columnOf('lead', n),
		ttft: await columnOf('ttft', n), whole: await columnOf('whole', n),
		answer: answer.map((v) => v - 1),
		prompt: await columnOf('prompt', n), output: await columnOf('output', n),
		state: Uint8Array.from(state, (v) => v % 4),
		error: Uint16Array.from(state, (v) => Math.floor(v / 4)),
		first: new Float64Array(n + 1),
		end: isWide ? new Float64Array(meta.n_gaps) : new Uint32Array(meta.n_gaps),
		longest: new Float64Array(n),
		limit: [meta.limits_ms[0] * 1e6 / meta.unit_ns, meta.limits_ms[1] * 1e6 / meta.unit_ns],
		session: meta.n_sessions ? (await columnOf('session', n)).map((v) => v - 1) : null,
		turn: meta.n_sessions ? await columnOf('turn', n) : null,
	};
	for (let i = 0, at = 0; i < n; i++) {
		r.start[i] = at += start.signed();
		r.first[i + 1] = r.first[i] + counts[i];
	}
	check(start, 'start');
	await gaps(r, meta, progress);
	return [meta, r];
}
