// SPDX-License-Identifier: Apache-2.0
// board-menu.tsx: "Add to board" in the menu of everything that can be a block.
import { useContext, useState, type FormEvent, type ReactNode } from 'react';
import { Dialog } from '../parts/dialog';
import { Icon } from '../parts/icon';
import { Menu } from '../parts/menu';
import { Loading } from '../parts/states';
import { toast, toastError } from '../parts/toast';
import { useCanChange } from '../query';
import { AddressContext, navigate, queryText } from '../url';
import {
	addBlock, freeName, keptQuery, lastBoard, useBoards, type Block, type Target,
} from './saved';

/** Pages whose main chart or table can be drawn on a board: pages/boards/parts.tsx. */
const DRAWN = ['/overview', '/charts', '/trends', '/compare', '/plan', '/runs'];

/** here: the reader's address; block: a block that shows what is here, with these parameters. */
export function useBlockOf(block: Block, params: Record<string, string> = {}): {
	here: Target; block: Block; isPossible: boolean;
} {
	const at = useContext(AddressContext), search = at.search();
	const path = at.path() === '/' ? '/overview' : at.path();
	const full = new URLSearchParams(keptQuery(path, search));
	for (const [key, value] of Object.entries(params))
		full.set(key, value);
	return { here: { path, query: search.replace(/^\?/, '') }, isPossible: DRAWN.includes(path),
		block: { ...block, path, query: queryText(full).replace(/^\?/, '') } };
}

function add(to: number | string, block: Block): void {
	addBlock(to, block).then((board) => toast(`Added to “${board.name}”`, 'good',
		{ label: 'Open board', act: () => navigate(`/boards/${board.id}`) })).catch(toastError);
}

interface ItemsProps { block: Block; onClose: () => void; onAsk: () => void }

export function BoardItems({ block, onClose, onAsk }: ItemsProps): ReactNode {
	const boards = useBoards();
	if (!boards.data)
		return <Loading />;
	const last = lastBoard(boards.data);
	return (
		<>
			<button type="button" className="menu-item" onClick={() => {
				onClose();
				add(last?.id ?? freeName(boards.data), block);
			}}><Icon name="plus" /><span>Add to board <span className="dim">{last?.name ?? 'Board 1'}</span></span></button>
			{last && <button type="button" className="menu-item" onClick={() => {
				onClose();
				onAsk();
			}}>Add to another board…</button>}
		</>
	);
}

export function BoardDialog({ block, onClose }: { block: Block; onClose: () => void }): ReactNode {
	const boards = useBoards();
	const [name, setName] = useState('');
	const to = (board: number | string): void => {
		onClose();
		add(board, block);
	};
	const submit = (event: FormEvent): void => {
		event.preventDefault();
		to(name.trim());
	};
	return (
		<Dialog title="Add to board" onClose={onClose}>
			<form className="preset-save" onSubmit={submit}>
				<input type="text" value={name} aria-label="Name of a new board" placeholder="Name of a new board"
					maxLength={200} onChange={(e) => setName(e.target.value)} />
				<button type="submit" className="primary" disabled={!name.trim()}>Add to new board</button>
			</form>
			<ul className="preset-list">
				{(boards.data ?? []).map((b) => (
					<li key={b.id} className="preset">
						<button type="button" className="quiet preset-name" onClick={() => to(b.id)}>
							<Icon name="plus" /><span>{b.name}</span></button>
					</li>
				))}
			</ul>
		</Dialog>
	);
}

/** A menu of its own, for what has no chart: a table, a distribution. */
export function BoardMenu({ block, params }: { block: Block; params?: Record<string, string> }): ReactNode {
	const made = useBlockOf(block, params);
	const canChange = useCanChange();
	const [isAsking, setAsking] = useState(false);
	if (!canChange)
		return null;
	return (
		<div className="board-menu">
			<Menu label={`Share: ${block.caption ?? ''}`} icon="more" isBare look="small" align="end" title="Add to a board">
				{(close) => <BoardItems block={made.block} onClose={close} onAsk={() => setAsking(true)} />}
			</Menu>
			{isAsking && <BoardDialog block={made.block} onClose={() => setAsking(false)} />}
		</div>
	);
}
