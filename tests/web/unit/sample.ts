// SPDX-License-Identifier: Apache-2.0
// sample.ts: example runs for the tests of the timeline.
import type { Requests } from '../../../web/src/timeline/data';

export interface Made {
	start: number;
	ttft: number;
	gaps: number[];
	lead?: number;
	state?: number;
	whole?: number;
	session?: number;
	turn?: number;
}

/** Times in milliseconds, a unit being one; limits 25 and 50. */
export function run(made: Made[], Ends: typeof Uint32Array | typeof Float64Array = Uint32Array): Requests {
	const n = made.length, all = made.reduce((sum, m) => sum + m.gaps.length, 0);
	const column = (of: (m: Made) => number): Float64Array => Float64Array.from(made, of);
	const r: Requests = {
		n, unitNs: 1e6,
		start: column((m) => m.start), lead: column((m) => m.lead ?? 0), ttft: column((m) => m.ttft),
		whole: column((m) => m.whole ?? m.ttft + m.gaps.reduce((a, b) => a + b, 0)),
		answer: column(() => -1), prompt: column(() => 7), output: column((m) => m.gaps.length + 1),
		state: Uint8Array.from(made, (m) => m.state ?? 0), error: new Uint16Array(n),
		first: new Float64Array(n + 1), end: new Ends(all),
		longest: column((m) => m.gaps.reduce((a, b) => Math.max(a, b), 0)), limit: [25, 50],
		session: made.some((m) => m.session !== undefined) ? column((m) => m.session ?? -1) : null,
		turn: column((m) => m.turn ?? 0),
	};
	let k = 0;
	made.forEach((m, i) => {
		let at = 0;
		for (const gap of m.gaps)
			r.end[k++] = at += gap;
		r.first[i + 1] = k;
	});
	return r;
}
