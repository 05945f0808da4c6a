// SPDX-License-Identifier: Apache-2.0
import { ENDED, gapAt, HIGH, LOW, MID, NONE, Painter, TTFT, WAITED } from '../../../web/src/timeline/lod';
import type { Requests } from '../../../web/src/timeline/data';
import { category, CATEGORIES } from '../../../web/src/timeline/lod';
import { run } from './sample';

function paint(r: Requests, i: number, from: number, perPixel: number, width: number): number[] | null {
	const out = new Uint8Array(width);
	return new Painter(r).paint(i, { from, perPixel, width }, out) ? [...out] : null;
}

/** The slow truth: every segment against every column. */
function expected(r: Requests, i: number, from: number, per: number, width: number): number[] {
	const parts: [number, number, number][] = [[r.start[i] - r.lead[i], r.start[i], WAITED],
		[r.start[i], r.start[i] + r.ttft[i], TTFT]];
	let at = r.start[i] + r.ttft[i];
	for (let k = r.first[i]; k < r.first[i + 1]; k++) {
		const end = r.start[i] + r.ttft[i] + r.end[k];
		parts.push([at, end, category(r, end - at)]);
		at = end;
	}
	return Array.from({ length: width }, (_, x) => {
		const time = new Float64Array(CATEGORIES), a = from + x * per, b = a + per;
		for (const [f, t, kind] of parts)
			time[kind] += Math.max(0, Math.min(t, b) - Math.max(f, a));
		let best = NONE;
		for (let kind = 1; kind < CATEGORIES; kind++)
			if (time[kind] > time[best])
				best = kind;
		return best;
	});
}

/** Reproducible whole numbers from 0 to below. */
function dice(seed: number): (below: number) => number {
	let state = seed;
	return (below) => {
		state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
		return Math.floor((state / 2 ** 32) * below);
	};
}

it('finds the gap at a time', () => {
	const r = run([{ start: 0, ttft: 5, gaps: [] }, { start: 10, ttft: 100, gaps: [10, 20, 30] }]);
	expect([-1, 0, 9, 10, 29, 30, 59, 60, 99].map((t) => gapAt(r, 1, t)))
		.toEqual([0, 0, 0, 1, 1, 2, 2, 3, 3]);
});

it('draws each part of a request in its place', () => {
	const r = run([{ start: 20, lead: 10, ttft: 30, gaps: [20, 40, 60] }]);
	expect(paint(r, 0, 0, 10, 20)).toEqual([NONE, WAITED, TTFT, TTFT, TTFT, LOW, LOW, MID, MID, MID,
		MID, HIGH, HIGH, HIGH, HIGH, HIGH, HIGH, NONE, NONE, NONE]);
	expect(paint(r, 0, 110, 10, 3)).toEqual([HIGH, HIGH, HIGH]);
	expect(paint(r, 0, 180, 10, 3)).toBe(null);
	expect(paint(r, 0, -100, 10, 11)).toBe(null);
});

it('shows the category that takes most of a column', () => {
	const r = run([{ start: 0, ttft: 1, gaps: [9, 10, 10, 70, 24, 24, 24, 28] }]);
	expect(paint(r, 0, 0, 100, 2)).toEqual([HIGH, LOW]);
});

it('shows what is shorter than a dot, and failures that left nothing', () => {
	const r = run([{ start: 500, ttft: 2, gaps: [1] }, { start: 500, ttft: 0, gaps: [], state: 1 },
		{ start: 500, ttft: 0, gaps: [], state: 1, whole: 300 },
		{ start: 0, ttft: 0, gaps: [], state: 3 }]);
	expect(paint(r, 0, 0, 100, 8)).toEqual([0, 0, 0, 0, 0, TTFT, 0, 0]);
	expect(paint(r, 1, 0, 100, 8)).toEqual([0, 0, 0, 0, 0, ENDED, 0, 0]);
	expect(paint(r, 2, 0, 100, 9)).toEqual([0, 0, 0, 0, 0, ENDED, ENDED, ENDED, 0]);
	expect(paint(r, 3, 0, 100, 8)).toBe(null);
});

it.each([Uint32Array, Float64Array])('equals the slow truth at every zoom (%o)', (Ends) => {
	const roll = dice(7);
	const made = Array.from({ length: 12 }, (_, i) => ({ start: roll(3000), lead: roll(200),
		ttft: 1 + roll(400),
		gaps: Array.from({ length: i < 10 ? roll(300) : 4000 + roll(3000) },
			() => 1 + roll(roll(10) ? 30 : 90)) }));
	const r = run(made, Ends);
	for (let i = 0; i < r.n; i++)
		for (const per of [1, 7, 64, 900, 5000]) {
			const from = r.start[i] - 300 + roll(200), width = 60;
			const got = paint(r, i, from, per, width) ?? Array(width).fill(NONE);
			const want = expected(r, i, from, per, width);
			// Equal shares may be decided by rounding; nothing else may differ.
			expect(got.filter((kind, x) => kind !== want[x]).length, `${i} ${per}`)
				.toBeLessThanOrEqual(per === 1 || per === 7 ? 2 : 0);
		}
});

it('draws a long request from its sums in a time that does not grow with it', () => {
	const gaps = Array.from({ length: 1000000 }, (_, k) => (k % 100 ? 20 : 60));
	const r = run([{ start: 0, ttft: 100, gaps }]), painter = new Painter(r);
	const out = new Uint8Array(1000), span = { from: 0, perPixel: 20500, width: 1000 };
	painter.paint(0, span, out);
	const before = process.cpuUsage();
	for (let k = 0; k < 100; k++)
		painter.paint(0, { ...span, from: k * 1000 }, out);
	const used = process.cpuUsage(before), ms = (used.user + used.system) / 1000;
	expect(ms / 100).toBeLessThan(20);
	expect(out[500]).toBe(LOW);
});
