// SPDX-License-Identifier: Apache-2.0
// arrays.ts: per-request arrays of a result file as the rows that timeline/ draws.
import type { Requests } from '../../../timeline/data';
import { DONE, FAILED } from '../../../timeline/data';

/** Times are in seconds. Members that a file lacks are absent. */
export interface Arrays {
	start_times?: (number | null)[];
	ttfts?: (number | null)[];
	itls?: (number[] | null)[];
	latencies?: (number | null)[];
	input_lens?: (number | null)[];
	output_lens?: (number | null)[];
	errors?: (string | null)[];
	requests?: { due_ns?: (number | null)[]; sent_ns?: (number | null)[]; session?: number[];
		turn?: number[] };
}

const UNIT_NS = 1000;
const NO_SESSION = 2 ** 32 - 1;
const PER_SECOND = 1e9 / UNIT_NS;
/** Between a smooth and a slow token; the same as in the timeline of `bench serve --plot-timeline`. */
export const LIMITS_MS: [number, number] = [25, 50];

/** null: these arrays do not say when requests began. */
export function requestsOf(a: Arrays): Requests | null {
	const starts = a.start_times;
	if (!starts?.length)
		return null;
	const n = starts.length, itls = a.itls ?? [], { session, turn } = a.requests ?? {};
	const zero = starts.reduce<number>((least, s) => Math.min(least, s ?? Infinity), Infinity);
	const r: Requests = {
		n, unitNs: UNIT_NS,
		start: new Float64Array(n), lead: new Float64Array(n), ttft: new Float64Array(n),
		whole: new Float64Array(n), answer: new Float64Array(n).fill(-1),
		prompt: new Float64Array(n), output: new Float64Array(n), state: new Uint8Array(n),
		error: new Uint16Array(n), first: new Float64Array(n + 1),
		end: new Float64Array(itls.reduce((sum, list) => sum + (list?.length ?? 0), 0)),
		longest: new Float64Array(n),
		limit: [LIMITS_MS[0] * 1e6 / UNIT_NS, LIMITS_MS[1] * 1e6 / UNIT_NS],
		// The record's number for a request without a conversation is its largest one.
		session: session?.length === n
			? Float64Array.from(session, (s) => (s < NO_SESSION ? s : -1)) : null,
		turn: turn?.length === n ? Float64Array.from(turn) : null,
	};
	for (let i = 0, at = 0; i < n; i++) {
		let sum = 0;
		for (const gap of itls[i] ?? []) {
			sum += gap * PER_SECOND;
			r.end[at++] = sum;
			r.longest[i] = Math.max(r.longest[i], gap * PER_SECOND);
		}
		r.first[i + 1] = at;
		r.start[i] = ((starts[i] ?? zero) - zero) * PER_SECOND;
		r.ttft[i] = (a.ttfts?.[i] ?? 0) * PER_SECOND;
		r.whole[i] = Math.max(r.ttft[i] + sum, (a.latencies?.[i] ?? 0) * PER_SECOND);
		r.prompt[i] = a.input_lens?.[i] ?? 0;
		r.output[i] = a.output_lens?.[i] ?? 0;
		r.state[i] = a.errors?.[i] ? FAILED : DONE;
		const due = a.requests?.due_ns?.[i], sent = a.requests?.sent_ns?.[i];
		if (typeof due === 'number' && typeof sent === 'number' && due > 0 && sent > due)
			r.lead[i] = (sent - due) / UNIT_NS;
	}
	return r;
}

/** The latest end of all requests, in the unit of r. */
export function spanOf(r: Requests): number {
	let last = 1;
	for (let i = 0; i < r.n; i++)
		last = Math.max(last, r.start[i] + r.whole[i]);
	return last;
}
