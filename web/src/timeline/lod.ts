// SPDX-License-Identifier: Apache-2.0
// lod.ts: one request as the categories of a line of pixels.
//
// A pixel column shows the category that takes most of its time, so that the picture is right at
// every zoom and costs no more than its pixels. Where a column holds many gaps, time by category
// comes from sums kept every BLOCK gaps, made when a long request is first drawn that way.
import { DONE, UNSENT, type Requests } from './data';

export const NONE = 0, WAITED = 1, TTFT = 2, LOW = 3, MID = 4, HIGH = 5, ENDED = 6;
export const CATEGORIES = 7;

const BLOCK = 16;
/** Below this many visible gaps, looking at each is cheap enough. */
const WALK_MAX = 2048;

/** The part of the time axis that is drawn, in units. */
export interface Span {
	from: number;
	perPixel: number;
	width: number; // pixels
}

/** The first gap of request i that ends after t (units since the first token). */
export function gapAt(r: Requests, i: number, t: number): number {
	let low = r.first[i], high = r.first[i + 1];
	while (low < high) {
		const middle = Math.floor((low + high) / 2);
		if (r.end[middle] > t)
			high = middle;
		else
			low = middle + 1;
	}
	return low;
}

export function gapStart(r: Requests, i: number, k: number): number {
	return k > r.first[i] ? r.end[k - 1] : 0;
}

export function category(r: Requests, gap: number): number {
	return gap < r.limit[0] ? LOW : gap < r.limit[1] ? MID : HIGH;
}

/** Time in the two upper categories up to every BLOCK-th gap of a request. */
class Sums {
	private readonly mid: Float64Array;
	private readonly high: Float64Array;

	constructor(private readonly r: Requests, private readonly i: number) {
		const first = r.first[i], n = r.first[i + 1] - first;
		this.mid = new Float64Array(Math.floor(n / BLOCK) + 1);
		this.high = new Float64Array(this.mid.length);
		for (let k = 0, mid = 0, high = 0, last = 0; k < n; k++) {
			if (k % BLOCK === 0) {
				this.mid[k / BLOCK] = mid;
				this.high[k / BLOCK] = high;
			}
			const gap = r.end[first + k] - last;
			const kind = category(r, gap);
			last = r.end[first + k];
			mid += kind === MID ? gap : 0;
			high += kind === HIGH ? gap : 0;
			if (k === n - 1 && n % BLOCK === 0) {
				this.mid[n / BLOCK] = mid;
				this.high[n / BLOCK] = high;
			}
		}
	}

	/** [MID, HIGH] time from the first token to t. */
	until(t: number): [number, number] {
		const { r, i } = this, first = r.first[i], stop = gapAt(r, i, t);
		const block = Math.floor((stop - first) / BLOCK);
		let mid = this.mid[block], high = this.high[block];
		for (let k = first + block * BLOCK; k <= stop && k < r.first[i + 1]; k++) {
			const from = gapStart(r, i, k), kind = category(r, r.end[k] - from);
			const time = Math.max(0, Math.min(r.end[k], t) - from);
			mid += kind === MID ? time : 0;
			high += kind === HIGH ? time : 0;
		}
		return [mid, high];
	}
}

export class Painter {
	private readonly weight = new Float64Array(CATEGORIES);
	private readonly sums = new Map<number, Sums>();
	private x = -1;        // the column being weighed
	private out: Uint8Array = new Uint8Array(0);
	private span: Span = { from: 0, perPixel: 1, width: 0 };

	constructor(private readonly r: Requests) {}

	/** Fills out[0..width) with the categories of request i; false: none of it is visible. */
	paint(i: number, span: Span, out: Uint8Array): boolean {
		const { r } = this, start = r.start[i] - span.from, stop = span.width * span.perPixel;
		if (r.state[i] === UNSENT || start - r.lead[i] >= stop || start + r.whole[i] < 0)
			return false;
		out.fill(NONE);
		this.out = out;
		this.span = span;
		this.x = -1;
		this.add(start - r.lead[i], start, WAITED);
		this.add(start, start + r.ttft[i], TTFT);
		const token = start + r.ttft[i], last = r.first[i + 1];
		if (last > r.first[i])
			this.gaps(i, token, stop);
		const end = token + (last > r.first[i] ? r.end[last - 1] : 0);
		if (r.state[i] !== DONE) // at least a dot, however soon it failed
			this.add(end, Math.max(start + r.whole[i], end + span.perPixel / 2), ENDED);
		this.settle();
		return true;
	}

	private gaps(i: number, token: number, stop: number): void {
		const { r, span } = this;
		const from = gapAt(r, i, -token), to = gapAt(r, i, stop - token);
		const pixels = Math.min(span.width, (r.end[r.first[i + 1] - 1]) / span.perPixel + 1);
		if (to - from > WALK_MAX && to - from > BLOCK * pixels) {
			this.summed(i, token, stop);
			return;
		}
		for (let k = from, at = gapStart(r, i, k); k <= to && k < r.first[i + 1]; k++) {
			const end = r.end[k];
			this.add(token + at, token + end, category(r, end - at));
			at = end;
		}
	}

	/**
	 * Column by column from the sums; the first and last column are shared with the neighbors.
	 */
	private summed(i: number, token: number, stop: number): void {
		const { r, span } = this, per = span.perPixel;
		let sums = this.sums.get(i);
		if (!sums)
			this.sums.set(i, sums = new Sums(r, i));
		const last = Math.min(stop, token + r.end[r.first[i + 1] - 1]);
		let at = Math.max(0, token), [mid, high] = sums.until(at - token);
		while (at < last) {
			const next = Math.min(last, (Math.floor(at / per) + 1) * per);
			const [toMid, toHigh] = sums.until(next - token), x = Math.floor(at / per);
			this.move(x);
			this.weight[MID] += toMid - mid;
			this.weight[HIGH] += toHigh - high;
			this.weight[LOW] += Math.max(0, next - at - (toMid - mid) - (toHigh - high));
			[at, mid, high] = [next > at ? next : at + per, toMid, toHigh];
		}
	}

	private add(from: number, to: number, kind: number): void {
		const per = this.span.perPixel;
		const a = from > 0 ? from : 0, b = Math.min(to, this.span.width * per);
		if (!(b > a))
			return;
		const x0 = Math.floor(a / per), x1 = Math.min(Math.floor(b / per), this.span.width - 1);
		this.move(x0);
		if (x0 === x1) {
			this.weight[kind] += b - a;
			return;
		}
		this.weight[kind] += (x0 + 1) * per - a;
		this.settle();
		this.out.fill(kind, x0 + 1, x1);
		this.x = x1;
		this.weight[kind] += b - x1 * per;
	}

	private move(x: number): void {
		if (x === this.x)
			return;
		this.settle();
		this.x = x;
	}

	private settle(): void {
		let best = NONE, most = 0;
		for (let kind = 1; kind < CATEGORIES; kind++) {
			if (this.weight[kind] > most) {
				most = this.weight[kind];
				best = kind;
			}
			this.weight[kind] = 0;
		}
		if (best && this.x >= 0 && this.x < this.out.length)
			this.out[this.x] = best;
		this.x = -1;
	}
}
