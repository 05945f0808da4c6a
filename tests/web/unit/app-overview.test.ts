// SPDX-License-Identifier: Apache-2.0
import type { Overview, OverviewChange, OverviewLoad } from '../../../web/src/lib/api';
import {
	invalidFilter, needCodec, questionOf, rankText, sidesOf,
} from '../../../web/src/app/pages/overview/model';
import { movedTo, placeOf } from '../../../web/src/app/pages';

const NO_NEED = { user: null, ttft: null };

it('asks only for what was chosen', () => {
	expect(questionOf('', 'auto', NO_NEED)).toEqual({});
	expect(questionOf('w', 'ttft', { user: 50, ttft: null })).toEqual({
		workload: 'w', rank: 'ttft', need: { tokens_per_s_per_user: 50 },
	});
	expect(questionOf('', 'auto', { user: null, ttft: 200 })).toEqual({ need: { p99_ttft_ms: 200 } });
});

it('keeps needs in the address', () => {
	expect(needCodec.write(NO_NEED)).toBeNull();
	expect(needCodec.write({ user: 50, ttft: 200 })).toBe('user:50,ttft:200');
	expect(needCodec.read('user:50,ttft:200')).toEqual({ user: 50, ttft: 200 });
	for (const wrong of [null, '', 'user:', 'user:-1', 'user:x,ttft:inf', ',,:'])
		expect(needCodec.read(wrong)).toEqual(NO_NEED);
});

it('says what decides each column', () => {
	const load = (name: OverviewLoad['name']): OverviewLoad =>
		({ name, value: 1, label: 'concurrency 1' });
	expect(rankText('auto', load('low'), false)).toBe('fastest per user');
	expect(rankText('auto', load('low'), true)).toBe('most per GPU');
	expect(rankText('auto', load('high'), false)).toBe('most per GPU');
	expect(rankText('ttft', load('low'), false)).toBe('shortest P99 TTFT');
});

it('leads to the INVALID runs of a cell, whatever type its row has', () => {
	const answer = { workload: 'w', rows_by: 'server.tensor_parallel_size' } as Overview;
	const load: OverviewLoad = { name: 'low', value: 8, label: 'concurrency 8' };
	expect(invalidFilter(answer, '2', load)).toEqual({ and: [
		{ column: 'verdict', in: ['INVALID'] }, { column: 'workload', in: ['w'] },
		{ column: 'server.tensor_parallel_size', in: ['2', 2] }, { column: 'load', in: [8] }] });
	expect(invalidFilter({ ...answer, workload: '', rows_by: null }, 'TP2', { ...load, value: null }))
		.toEqual({ and: [{ column: 'verdict', in: ['INVALID'] }] });
	expect(invalidFilter({ ...answer, rows_by: 'x' }, 'true', load).and[2])
		.toEqual({ column: 'x', in: ['true', true] });
});

it('compares the runs on both sides of a change', () => {
	const c = { commit: '0123456789abcdef', previous: null, before_ids: [1], after_ids: [2, 3] };
	expect(JSON.parse(sidesOf(c as OverviewChange))).toEqual([
		{ name: 'before', ids: [1] }, { name: 'from 01234567', ids: [2, 3] }]);
});

it('opens the overview at /, but Runs for an old link with a part of its view', () => {
	expect(placeOf('/').page?.name).toBe('overview');
	expect(movedTo('/', '')).toBeNull();
	expect(movedTo('/', '?w=a&rank=gpu')).toBeNull();
	expect(movedTo('/traces', '')).toBe('/runs?has=trace');
	expect(movedTo('/resources', '')).toBe('/charts?view=any');
	expect(movedTo('/resources', '?y=power_w&c=suite')).toBe('/charts?y=power_w&view=any&g=suite');
	expect(movedTo('/resources', '?c=-')).toBe('/charts?view=any&g=');
	expect(movedTo('/', '?f=%7B%7D&sort=a')).toBe('/runs?f=%7B%7D&sort=a');
	expect(movedTo('/charts', '?f=%7B%7D')).toBeNull();
});
