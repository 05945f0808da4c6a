// SPDX-License-Identifier: Apache-2.0
import { inlines, partsOf } from '../../../web/src/app/common/markdown';
import {
	addressOf, boardOf, freeName, keptQuery, lastBoard, moved, queryOn, targetOf, type Block,
} from '../../../web/src/app/common/saved';
import { chartOf, groupsOf } from '../../../web/src/app/pages/boards/chooser';
import { thinned } from '../../../web/src/app/pages/boards/thin';
import { heldAddress, setParams } from '../../../web/src/app/url';

it('keeps a page’s address without the selection, which only Compare is about', () => {
	expect(keptQuery('/runs', '?sel=1&f={}&cols=a,b&diff=1')).toBe('f={}&cols=a,b&diff=1');
	expect(keptQuery('/compare', '?sel=1,2&token=secret')).toBe('sel=1,2');
	expect(keptQuery('/charts', '')).toBe('');
});

it('opens saved views of all ages, and never another server', () => {
	const leads = (body: unknown): string => addressOf(targetOf(body));
	expect(leads({ path: '/charts', query: 'x=a&y=b' })).toBe('/charts?x=a&y=b');
	expect(leads({ query: '?cols=a' })).toBe('/runs?cols=a');
	expect(leads({ filter: { and: [] } })).toBe('/runs?f={%22and%22:[]}');
	expect([null, 1, [1], 'x', { path: '//elsewhere/x' }, { path: 'https://elsewhere/' },
		{ path: 'javascript:1' }].map(leads)).toEqual(Array(7).fill('/runs'));
});

it('draws a board whatever the store holds', () => {
	const board = (body: unknown) => boardOf({ id: 1, name: 'b', at: 2, body }).body;
	expect([null, 3, [], {}, { blocks: 4 }, { blocks: [null, 1, { kind: 'script' }] }].map(board))
		.toEqual(Array(6).fill({ blocks: [] }));
	expect(board({ blocks: [{ kind: 'chart', path: '//x', query: 4, caption: 'c', frozen: { at: '1' },
		is_own: 1 }],
		f: { nonsense: 1 }, w: 3 })).toEqual({ blocks: [{ kind: 'chart', caption: 'c' }] });
	const whole = { blocks: [{ kind: 'chart', path: '/charts', query: 'x=a', caption: 'c', is_own: true,
		is_wide: true,
		frozen: { at: 5, answer: { '/api/analysis/curves': {} } } }],
	f: { and: [{ column: 'a', in: [1] }] }, w: 'load' };
	expect(board(whole)).toEqual(whole);
});

it('sets the board’s filter and workload in every block but those that opt out', () => {
	const f = { and: [{ column: 'gpu', in: ['a'] }] };
	const block: Block = { kind: 'chart', path: '/charts', query: 'f={"and":[]}&x=a&w=old' };
	const on = (body: object, b = block) =>
		Object.fromEntries(new URLSearchParams(queryOn({ blocks: [], ...body }, b)));
	expect(on({})).toEqual({ f: '{"and":[]}', x: 'a', w: 'old' });
	expect(on({ f, w: 'new' })).toEqual({ f: JSON.stringify(f), x: 'a', w: 'new' });
	expect(on({ f, w: 'new' }, { ...block, is_own: true })).toEqual({ f: '{"and":[]}', x: 'a',
		w: 'old' });
});

it('moves blocks, finds a free name, and adds to the board that changed last', () => {
	expect(moved(['a', 'b', 'c'], 2, 0)).toEqual(['c', 'a', 'b']);
	const boards = [['Board 1', 5], ['Board 3', 9]].map(([name, at], i) =>
		({ id: i + 1, name: String(name), at: Number(at), body: { blocks: [] } }));
	expect(freeName(boards)).toBe('Board 2');
	expect(lastBoard(boards)?.name).toBe('Board 3');
	expect(lastBoard([])).toBeUndefined();
});

it('offers answers and charts of metrics by the words of their names', () => {
	const option = (column: string) => ({ column, role: 'metric', unit: 'ms' });
	const columns = { numbers: ['p99_ttft_ms', 'median_ttft_ms', 'scaling.x_ms'].map(option),
		measure: (column: string) => ({ column, unit: 'ms',
			label: column === 'p99_ttft_ms' ? 'P99 TTFT' : column }) };
	const found = (word: string) => groupsOf(columns as never, word, 'trend')
		.flatMap((g) => g.blocks.map((b) => `${b.path}?${b.query}`));
	expect(found('p99 ttft')).toEqual(['/charts?x=p99_ttft_ms&y=tokens_per_s_per_gpu',
		'/trends?m=p99_ttft_ms']);
	expect(found('scal')).toEqual(['/plan?tab=scaling', '/trends?m=scaling.x_ms']);
	expect(found('nothing of this name')).toEqual([]);
	expect(found('').length).toBeGreaterThan(8);
	expect(chartOf('output_throughput', 'Output throughput', 'rate')).toEqual({ kind: 'chart',
		path: '/charts',
		query: 'view=any&x=request_throughput&y=output_throughput',
		caption: 'Output throughput, against request throughput' });
	expect(chartOf('=a / b', 'a / b', 'distribution').query).toBe('view=distribution&m=%3Da+%2F+b');
});

it('keeps of a frozen comparison what its block draws', () => {
	const metric = (name: string) => ({ metric: name, loads: [1], configurations: [1, 2], effect: 0.5 });
	const answer = { parameters: [1], comparisons: [{ group: 1, metrics: [metric('median_ttft_ms'),
		metric('output_throughput')] }] };
	const kept = (primary?: string) => (thinned('/api/data/compare', answer, primary) as typeof answer)
		.comparisons[0].metrics.map((m) => [m.effect, m.configurations.length]);
	expect(kept()).toEqual([[0.5, 0], [0.5, 2]]);
	expect(kept('median_ttft_ms')).toEqual([[0.5, 2], [0.5, 0]]);
	expect(thinned('/api/analysis/curves', answer)).toBe(answer);
});

it('holds an address of its own, which changes without the browser’s', () => {
	const at = heldAddress('/charts', 'x=a&y=b');
	let told = 0;
	at.subscribe(() => told++);
	setParams({ x: null, hide: 'c' }, {}, at);
	expect([at.path(), at.search(), told]).toEqual(['/charts', '?y=b&hide=c', 1]);
});

it('reads Markdown and leaves HTML as text', () => {
	expect(partsOf('# Head\n\nOne **two *three*** `a*b*`\nmore\n- x\n- y\n\n1. z\n'
		+ '```\n<b>\n```')).toEqual([
		{ kind: 'heading', level: 1, text: ['Head'] },
		{ kind: 'paragraph', text: ['One ', { kind: 'strong', text: ['two ', { kind: 'em',
			text: ['three'] }] },
			' ', { kind: 'code', text: ['a*b*'] }, ' more'] },
		{ kind: 'list', isOrdered: false, items: [['x'], ['y']] },
		{ kind: 'list', isOrdered: true, items: [['z']] },
		{ kind: 'code', text: '<b>' },
	]);
	expect(inlines('<img src=x onerror=alert(1)> snake_case_name 2*3*4')[0]).toContain('<img');
	expect(inlines('[a](https://b/c) [d](/runs?x=1)')).toEqual([
		{ kind: 'link', text: ['a'], to: 'https://b/c' }, ' ', { kind: 'link', text: ['d'],
			to: '/runs?x=1' }]);
	const unsafe = '[a](javascript:alert) [b](//elsewhere)';
	expect(inlines(unsafe)).toEqual([unsafe]);
});
