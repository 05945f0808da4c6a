// SPDX-License-Identifier: Apache-2.0
// board.tsx: one board: its blocks in order, and its actions.
import { useEffect, useState, type FormEvent, type ReactNode } from 'react';
import { useColumns } from '../../common/columns';
import { PickMany } from '../../common/pick';
import {
	boardNow, homeBoard, isStale, moved, saveBoard, setHomeBoard, type Block, type Board, type BoardBody,
} from '../../common/saved';
import { partText } from '../../common/scope';
import { isEverything } from '../../filter';
import { Dialog } from '../../parts/dialog';
import { Icon } from '../../parts/icon';
import { Link } from '../../parts/link';
import { Menu } from '../../parts/menu';
import { toast, toastError } from '../../parts/toast';
import { useCanChange } from '../../query';
import { when } from '../../show';
import { useFilter, usePageTarget } from '../../state';
import { textCodec, useUrlState } from '../../url';
import { BlockCard, type Edit } from './block';
import { ChartChooser } from './chooser';
import { exported, fitDrawings } from './export';

const text = textCodec('');

interface NameProps { board: Board; canChange: boolean }

function Name({ board, canChange }: NameProps): ReactNode {
	const [typed, setTyped] = useState<string | null>(null);
	const submit = (event: FormEvent): void => {
		event.preventDefault();
		const name = typed?.trim();
		setTyped(null);
		if (name && name !== board.name)
			saveBoard(board.id, { name }, board.at).catch((why: unknown) => {
				if (!isStale(why))
					throw why;
				return saveBoard(board.id, { name }, board.at, true);
			}).catch(toastError);
	};
	if (typed !== null) {
		return (
			<form className="row" onSubmit={submit}>
				<input type="text" aria-label="Name of the board" value={typed} autoFocus maxLength={200}
					onChange={(e) => setTyped(e.target.value)} onBlur={submit} />
			</form>
		);
	}
	return (
		<div className="row tight">
			<h1>{board.name}</h1>
			{canChange && <button type="button" className="quiet small icon" aria-label="Rename the board" title="Rename"
				onClick={() => setTyped(board.name)}><Icon name="pencil" /></button>}
		</div>
	);
}

/** The filter and the workload of all blocks, taken from the address when they are set. */
function Common({ body, onBody }: { body: BoardBody; onBody: ((next: BoardBody) => void) | null }): ReactNode {
	const [filter] = useFilter(), [w] = useUrlState('w', text);
	const columns = useColumns(), { f, w: workload, ...rest } = body;
	const now = JSON.stringify(filter);
	const label = (key: string): string => key.split('\u001f').join(' · ');
	return (
		<div className="scope" role="group" aria-label="Filter of all blocks">
			{f && <span className="tag">{f.and.map((part) => partText(part, columns)).join('; ')}</span>}
			{workload && <span className="tag" title={workload}>Workload: {label(workload)}</span>}
			{(f || workload) && onBody && <button type="button" className="small"
				onClick={() => onBody(rest)}>Remove the filter of the board</button>}
			{onBody && !isEverything(filter) && now !== JSON.stringify(f) && <button type="button" className="small"
				title="Every block shows only these runs" onClick={() => onBody({ ...body, f: filter })}>
				Filter all blocks by {filter.and.map((part) => partText(part, columns)).join('; ')}</button>}
			{onBody && w && w !== workload && <button type="button" className="small" title={w}
				onClick={() => onBody({ ...body, w })}>Use the current workload for all blocks</button>}
		</div>
	);
}

/** A usual set of blocks to begin with: each can be changed or removed. */
const USUAL: Block[] = [
	{ kind: 'chart', path: '/overview', query: '', caption: 'Best configurations', is_wide: true },
	{ kind: 'chart', path: '/charts', query: '', caption: 'Performance' },
	{ kind: 'chart', path: '/charts', query: 'view=any&x=output_throughput&y=p99_ttft_ms',
		caption: 'P99 TTFT and output throughput' },
	{ kind: 'chart', path: '/trends', query: 'm=output_throughput', caption: 'Output throughput, trend' },
	{ kind: 'chart', path: '/trends', query: 'm=p99_ttft_ms', caption: 'P99 TTFT, trend' },
];
const USUAL_LABEL = 'Five usual charts';

function AddMenu({ onAdd }: { onAdd: (...blocks: Block[]) => void }): ReactNode {
	const columns = useColumns();
	const [isNumber, setNumber] = useState(false), [isCharts, setCharts] = useState(false);
	if (isNumber) {
		return (
			<div className="row tight">
				<PickMany label="Median of" values={[]} add="Choose a metric" columns={columns} options={columns.numbers}
					onPick={([m]) => {
						setNumber(false);
						if (m)
							onAdd({ kind: 'number', path: '/runs', query: `m=${encodeURIComponent(m)}`,
								caption: columns.measure(m).label });
					}} />
				<button type="button" className="quiet small" onClick={() => setNumber(false)}>Cancel</button>
			</div>
		);
	}
	const items: [string, () => void][] = [
		['Charts…', () => setCharts(true)],
		['Heading', () => onAdd({ kind: 'heading', caption: 'Heading' })],
		['Text', () => onAdd({ kind: 'text', text: 'Click *Edit text* in the menu of this block.' })],
		['Number', () => setNumber(true)],
		[USUAL_LABEL, () => onAdd(...USUAL)],
		['Newest runs', () => onAdd({ kind: 'table', path: '/runs', query: 'group=none', caption: 'Newest runs' })],
	];
	return (
		<>
			<Menu label="Add" icon="plus">
				{(close) => items.map(([label, act]) => (
					<button key={label} type="button" className="menu-item" onClick={() => {
						close();
						act();
					}}>{label}</button>
				))}
			</Menu>
			{isCharts && <Dialog title="Add charts" look="wide" onClose={() => setCharts(false)}>
				<ChartChooser columns={columns} onAdd={(blocks) => {
					setCharts(false);
					onAdd(...blocks);
				}} />
			</Dialog>}
		</>
	);
}

function ShareMenu({ board }: { board: Board }): ReactNode {
	const [home, setHome] = useState(homeBoard);
	const isHome = home === board.id;
	const items: [string, () => Promise<void> | void][] = [
		['Copy link', async () => {
			await navigator.clipboard.writeText(`${location.origin}/boards/${board.id}`);
			toast('Link copied');
		}],
		['Print', () => print()],
		['Export as HTML file', () => exported(board.name)],
		[isHome ? 'Show Overview as start page' : 'Use as start page', () => {
			setHomeBoard(isHome ? null : board.id);
			setHome(isHome ? null : board.id);
			toast(isHome ? 'Overview is the start page of this browser' : 'This board is the start page of this browser');
		}],
	];
	return (
		<Menu label="Share" icon="external" align="end">
			{(close) => items.map(([label, act]) => (
				<button key={label} type="button" className="menu-item" onClick={() => {
					close();
					Promise.resolve(act()).catch(toastError);
				}}>{label}</button>
			))}
		</Menu>
	);
}

export function BoardPage({ board }: { board: Board }): ReactNode {
	const canChange = useCanChange(), target = usePageTarget(), columns = useColumns();
	const { body } = board, { blocks } = body;
	useEffect(() => {
		const fit = (): void => fitDrawings(document.body);
		addEventListener('beforeprint', fit);
		return () => removeEventListener('beforeprint', fit);
	}, []);
	/** back: what Undo makes of the board as it is then. */
	const set = (
		next: BoardBody, said?: string, back?: (now: BoardBody) => BoardBody, at = board.at,
	): void => {
		saveBoard(board.id, { body: next }, at).then(() => {
			if (said && back)
				toast(said, 'good', { label: 'Undo', act: () => {
					const now = boardNow(board.id) ?? board;
					set(back(now.body), undefined, undefined, now.at);
				} });
		}).catch((why: unknown) => {
			if (isStale(why))
				toast((why as Error).message, 'bad', { label: 'Save mine instead',
					act: () => void saveBoard(board.id, { body: next }, at, true).catch(toastError) });
			else
				toastError(why);
		});
	};
	const add = (...more: Block[]): void => set({ ...body, blocks: [...blocks, ...more] });
	const replaced = (list: Block[], at: number, by: Block): Block[] => {
		const isIt = (b?: Block): boolean => b?.kind === by.kind && b.path === by.path && b.query === by.query
			&& b.caption === by.caption;
		const place = isIt(list[at]) ? at : list.findIndex(isIt);
		return list.map((b, i) => (i === place ? by : b));
	};
	const edit = (at: number, block: Block): Edit => ({
		change: (next, said) => set({ ...body, blocks: blocks.map((b, i) => (i === at ? next : b)) }, said,
			(now) => ({ ...now, blocks: replaced(now.blocks, at, block) })),
		move: (by) => {
			if (at + by >= 0 && at + by < blocks.length)
				set({ ...body, blocks: moved(blocks, at, at + by) });
		},
		remove: () => set({ ...body, blocks: blocks.filter((_, i) => i !== at) }, 'Block removed',
			(now) => ({ ...now, blocks: [...now.blocks.slice(0, at), block, ...now.blocks.slice(at)] })),
	});
	return (
		<div className="page board-page">
			<div className="page-head">
				<Name board={board} canChange={canChange} />
				<Common body={body} onBody={canChange ? (next) =>
					set(next, 'Filter changed', (was) => ({ ...body, blocks: was.blocks })) : null} />
				<div className="row board-tools">
					{canChange && <AddMenu onAdd={add} />}
					<ShareMenu board={board} />
					<Link className="button" to={target('/boards')}>All boards</Link>
				</div>
			</div>
			{!blocks.length && (
				<section className="card" aria-label="First charts">
					<h2>This board has no blocks</h2>
					<p className="row">{canChange && <button type="button" className="primary" onClick={() => add(...USUAL)}>
						Add {USUAL_LABEL.toLowerCase()}</button>}
					<span className="dim">{canChange ? 'Or choose charts here. ' : ''}Every chart of the other pages has “Add to
						board” in its menu. <Link to={target('/charts')}>Open Charts</Link></span></p>
					{canChange && columns.isReady && <ChartChooser columns={columns} onAdd={(more) => add(...more)} />}
				</section>
			)}
			<div className="board">
				{blocks.map((block, i) => (
					<BlockCard key={`${i} ${block.kind} ${block.path ?? ''} ${block.query ?? ''}`} body={body}
						block={block} at={i} edit={canChange ? edit(i, block) : null} />
				))}
			</div>
			<footer className="board-foot dim small-text">
				{`${location.origin}/boards/${board.id}`} · {when(Date.now() / 1000)}
			</footer>
		</div>
	);
}
