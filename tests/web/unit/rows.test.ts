// SPDX-License-Identifier: Apache-2.0
import { find, lanesOf, rowsOf } from '../../../web/src/timeline/order';
import { latency } from '../../../web/src/timeline/data';
import type { Meta } from '../../../web/src/timeline/data';
import { segmentAt } from '../../../web/src/timeline/hover';
import type { Filter, Sort } from '../../../web/src/timeline/order';
import { View } from '../../../web/src/timeline/view';
import { tracksOf, valueAt } from '../../../web/src/timeline/tracks';
import { run } from './sample';

const sample = run([{ start: 0, ttft: 10, gaps: [20, 20] }, { start: 5, ttft: 40, gaps: [60] },
	{ start: 2, ttft: 0, gaps: [], state: 1 }, { start: 9, ttft: 10, gaps: [] }]);

it('sorts, keeping sample order among equals', () => {
	expect([...rowsOf(sample, 'sample', 'all')]).toEqual([0, 1, 2, 3]);
	expect([...rowsOf(sample, 'start', 'all')]).toEqual([0, 2, 1, 3]);
	expect([...rowsOf(sample, 'ttft', 'all')]).toEqual([1, 0, 3, 2]);
	expect([...rowsOf(sample, 'e2el', 'all')]).toEqual([1, 0, 3, 2]);
	expect([...rowsOf(sample, 'gap', 'all')]).toEqual([1, 0, 2, 3]);
});

// Session 4 has two turns after the first that overlap; the request at 3 has no session.
const talks = run([{ start: 0, ttft: 10, gaps: [], session: 4, turn: 0 },
	{ start: 5, ttft: 10, gaps: [], session: 7, turn: 0 },
	{ start: 30, ttft: 10, gaps: [], session: 4, turn: 1 }, { start: 3, ttft: 1, gaps: [] },
	{ start: 35, ttft: 90, gaps: [], session: 4, turn: 2, lead: 2 },
	{ start: 50, ttft: 10, gaps: [], session: 7, turn: 1, state: 1 }]);
const lanes = (sort: Sort, filter: Filter): number[][] => {
	const { member, first } = lanesOf(talks, sort, filter);
	return Array.from({ length: first.length - 1 },
		(_, k) => [...member.subarray(first[k], first[k + 1])]);
};

it('has one lane per session, and more where its turns overlap', () => {
	expect(lanes('sample', 'all')).toEqual([[0, 2], [4], [1, 5], [3]]);
	expect(lanes('ttft', 'all')).toEqual([[0, 2], [4], [1, 5], [3]]);
	expect(lanes('start', 'failed')).toEqual([[5]]);
});

it('finds the turn of a lane at a time, and the one after it', () => {
	const view = new View(talks, 125);
	expect([...view.rows]).toEqual([0, 4, 1, 3]);
	expect([-5, 0, 29, 30, 500].map((t) => view.requestAt(0, t))).toEqual([0, 0, 0, 2, 2]);
	expect([0, 1, 2, 3, 4, 5].map((i) => view.rowOf(i))).toEqual([0, 2, 0, 3, 1, 2]);
	expect([0, 1, 2, 3].map((i) => view.next(i))).toEqual([2, 5, -1, -1]);
	const meta = { labels: ['a', 'b', 'c'] } as unknown as Meta;
	expect(Object.values(segmentAt(talks, meta, 0, 20, 2)))
		.toEqual(['Pause before the next turn', 10, 30, 0]);
	vi.stubGlobal('requestAnimationFrame', () => 0);
	view.setRows('sample', 'all', 'request');
	expect([...view.rows]).toEqual([0, 1, 2, 3, 4, 5]);
	expect([view.rowOf(4), view.requestAt(4, 0), view.next(0)]).toEqual([4, 4, -1]);
});

it('filters', () => {
	expect([...rowsOf(sample, 'ttft', 'failed')]).toEqual([2]);
	expect([...rowsOf(sample, 'ttft', 'done')]).toEqual([1, 0, 3]);
});

it('finds requests by number and by id', () => {
	expect(['2', ' Req 3 ', '#1', 'request 0', 'bench-1-2', '4', 'x', '', '-1'].map((text) =>
		find(sample, text, 'bench-1-'))).toEqual([2, 3, 1, 0, 2, -1, -1, -1, -1]);
});

it('names the segment at a time', () => {
	const meta = { labels: ['a', 'b', 'c'] } as unknown as Meta;
	const at = (i: number, t: number): unknown[] => Object.values(segmentAt(sample, meta, i, t));
	expect(at(0, 3)).toEqual(['TTFT', 0, 10, 0]);
	expect(at(0, 10)).toEqual(['a', 10, 30, 1]);
	expect(at(0, 49)).toEqual(['a', 30, 50, 2]);
	expect(at(0, 5000)).toEqual(['a', 30, 50, 2]);
	expect(at(1, 70)).toEqual(['c', 45, 105, 1]);
	expect(at(2, 2)).toEqual(['Until it ended', 2, 2, 0]);
	expect(at(3, 5000)).toEqual(['TTFT', 9, 19, 0]);
	expect(latency(sample, 0)).toBe(50);
});

it('reads rates and series at a time', () => {
	const meta = { unit_ns: 1e6, rates: { bin_ns: 100e6, tokens_per_s: [10, 30], concurrency: [1, 2] },
		series: [{ name: 'running', labels: 'url="http://a:1"',
			points: [[-50, 3], [100, 4], [200, null]] },
			{ name: 'kv_usage', labels: null, points: [[0, 0.25], [200, 0.5]] }],
	} as unknown as Meta;
	const tracks = tracksOf(meta);
	expect(tracks.map((t) => [t.name, t.top, t.unit])).toEqual([['Output tok/s', 30, ' tok/s'],
		['Concurrency', 2, ''], ['Server', 4, ''], ['KV cache', 100, '%']]);
	expect([-1, 0, 99, 100, 199, 200].map((t) => valueAt(tracks[0], t)[0]))
		.toEqual([NaN, 10, 10, 30, 30, NaN]);
	expect([-60, -50, 150, 200].map((t) => valueAt(tracks[2], t)[0])).toEqual([NaN, 3, 4, NaN]);
	expect([0, 199, 200, 201].map((t) => valueAt(tracks[3], t)[0])).toEqual([25, 25, 50, NaN]);
});

it('reads series of GPUs, a line for each', () => {
	const gpu = (name: string, index: number, value: number) => ({ name,
		labels: `gpu="${index}",uuid="GPU-${index}",name="A"`, points: [[0, value], [100, value]] });
	const meta = { unit_ns: 1e6, rates: { bin_ns: 100e6, tokens_per_s: [1], concurrency: [1] },
		series: [gpu('gpu_utilization', 0, 80), gpu('gpu_utilization', 1, 60),
			gpu('gpu_memory_used', 0, 60e9), gpu('gpu_power', 0, 650)],
	} as unknown as Meta;
	const tracks = tracksOf(meta).slice(2);
	expect(tracks.map((t) => [t.name, t.unit, t.lines.map((l) => l.label)])).toEqual([
		['GPU use', '%', ['gpu_utilization 0', 'gpu_utilization 1']],
		['GPU memory', ' GB', ['gpu_memory_used']], ['GPU power', ' W', ['gpu_power']]]);
	expect(tracks.map((t) => valueAt(t, 50))).toEqual([[80, 60], [expect.closeTo(60)], [650]]);
	expect(tracks[0].top).toBe(100);
});
