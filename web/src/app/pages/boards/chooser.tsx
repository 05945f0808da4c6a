// SPDX-License-Identifier: Apache-2.0
// chooser.tsx: several charts for a board at once: answers of the other pages and charts of metrics are
// ticked, by a click or by typing a part of the name and Enter, and added together.
import { useMemo, useState, type FormEvent, type ReactNode } from 'react';
import type { Columns } from '../../common/columns';
import { choicesOf } from '../../common/metrics';
import type { Block } from '../../common/saved';
import { Icon } from '../../parts/icon';
import { count } from '../../show';
import { PRESETS } from '../charts/presets';

/** How the charts of metrics are drawn. */
export const DRAWN = [['trend', 'Trend'], ['rate', 'Against output throughput'],
	['distribution', 'Distribution']] as const;
type Drawn = (typeof DRAWN)[number][0];
const WORDS: Record<Drawn, string> = { trend: 'trend', rate: 'against output throughput',
	distribution: 'distribution' };
const RATE = 'output_throughput', OTHER_RATE = 'request_throughput';
const LISTED_MAX = 200; /* beyond, a word narrows the list */

/** Answers of other pages, by name. */
const ANSWERS: Block[] = [
	{ kind: 'chart', path: '/overview', query: '', caption: 'Best configurations', is_wide: true },
	...PRESETS.map(([caption, x, y], i): Block => ({ kind: 'chart', path: '/charts', caption,
		query: i ? new URLSearchParams({ x, y }).toString() : '' })),
	{ kind: 'chart', path: '/plan', query: 'tab=capacity', caption: 'Capacity' },
	{ kind: 'chart', path: '/plan', query: 'tab=scaling', caption: 'Scaling' },
	{ kind: 'chart', path: '/plan', query: 'tab=impact', caption: 'Impact' },
];

/** The chart of a metric as a block. */
export function chartOf(column: string, label: string, drawn: Drawn): Block {
	const other = column === RATE ? OTHER_RATE : RATE;
	const params: Record<Drawn, [string, Record<string, string>]> = {
		trend: ['/trends', { m: column }],
		rate: ['/charts', { view: 'any', x: other, y: column }],
		distribution: ['/charts', { view: 'distribution', m: column }],
	};
	const [path, query] = params[drawn];
	return { kind: 'chart', path, query: new URLSearchParams(query).toString(),
		caption: `${label}, ${column === RATE && drawn === 'rate' ? 'against request throughput' : WORDS[drawn]}` };
}

interface Group { label: string; blocks: Block[] }

/** The groups of entries with all words in their name. */
export function groupsOf(columns: Pick<Columns, 'numbers' | 'measure'>, word: string, drawn: Drawn): Group[] {
	const words = word.toLowerCase().split(/\s+/).filter((w) => w !== '');
	const answers = ANSWERS.filter((b) => words.every((w) => b.caption?.toLowerCase().includes(w)));
	const { groups } = choicesOf(columns.numbers, (c) => columns.measure(c).label, word, null, '');
	let left = LISTED_MAX;
	const metrics = groups.map(({ label, items }): Group => {
		const shown = items.slice(0, left);
		left -= shown.length;
		return { label, blocks: shown.map((c) => chartOf(c.column, c.label, drawn)) };
	});
	return [...(answers.length ? [{ label: 'Answers of other pages', blocks: answers }] : []),
		...metrics.filter((g) => g.blocks.length > 0)];
}

const same = (a: Block, b: Block): boolean => a.path === b.path && a.query === b.query;

/** Without its way of drawing, which the list has once for all. */
const nameOf = (b: Block, drawn: Drawn): string =>
	(b.caption ?? '').replace(new RegExp(`, (${WORDS[drawn]}|against request throughput)$`), '');

interface Props { columns: Columns; onAdd: (blocks: Block[]) => void }

export function ChartChooser({ columns, onAdd }: Props): ReactNode {
	const [word, setWord] = useState(''), [drawn, setDrawn] = useState<Drawn>('trend');
	const [ticked, setTicked] = useState<Block[]>([]);
	const groups = useMemo(() => groupsOf(columns, word, drawn), [columns, word, drawn]);
	const is = (b: Block): boolean => ticked.some((t) => same(t, b));
	const flip = (b: Block): void => setTicked(is(b) ? ticked.filter((t) => !same(t, b)) : [...ticked, b]);
	const first = word.trim() ? groups.flatMap((g) => g.blocks).find((b) => !is(b)) : undefined;
	const submit = (event: FormEvent): void => {
		event.preventDefault();
		if (first)
			setTicked([...ticked, first]);
		else if (!word.trim() && ticked.length)
			onAdd(ticked);
		setWord('');
	};
	return (
		<form className="chooser" onSubmit={submit} aria-label="Charts for this board">
			<div className="tools">
				<label className="pick"><span>Search</span>
					<input type="text" value={word} autoFocus spellCheck={false} autoComplete="off"
						placeholder="p99 ttft" aria-describedby="chooser-hint"
						onChange={(e) => setWord(e.target.value)} /></label>
				<div className="segments" role="group" aria-label="How metrics are drawn">
					{DRAWN.map(([name, label]) => (
						<button key={name} type="button" aria-pressed={drawn === name}
							onClick={() => setDrawn(name)}>{label}</button>
					))}
				</div>
			</div>
			<p className="dim small-text" id="chooser-hint">Tick charts, or type a part of a name and press Enter. Enter in
				the empty field adds them.</p>
			<div className="chooser-list scroll-x" tabIndex={0} role="region" aria-label="Charts to choose from">
				{groups.map((g) => (
					<fieldset key={g.label}>
						<legend>{g.label}</legend>
						{g.blocks.map((b) => (
							<label key={`${b.path} ${b.query}`} className={b === first ? 'tick first' : 'tick'}>
								<input type="checkbox" checked={is(b)} onChange={() => flip(b)} />
								<span>{nameOf(b, drawn)}</span></label>
						))}
					</fieldset>
				))}
				{!groups.length && <p role="status">No chart has “{word}” in its name.</p>}
			</div>
			<div className="row" aria-live="polite">
				{ticked.map((b) => (
					<button key={`${b.path} ${b.query}`} type="button" className="small chosen" onClick={() => flip(b)}
						aria-label={`Remove ${b.caption}`}><span>{b.caption}</span><Icon name="cross" /></button>
				))}
				<button type="button" className="primary" disabled={!ticked.length} onClick={() => onAdd(ticked)}>
					{ticked.length ? `Add ${count(ticked.length, 'chart')}` : 'Add charts'}</button>
			</div>
		</form>
	);
}
