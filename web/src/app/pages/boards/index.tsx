// SPDX-License-Identifier: Apache-2.0
// boards: charts, tables and text that users put together for others; /boards/ID is one of them.
import { useState, type FormEvent, type ReactNode } from 'react';
import {
	addBoard, dropBoard, homeBoard, setHomeBoard, useBoards, type Board,
} from '../../common/saved';
import type { PageProps } from '../../pages';
import { Icon } from '../../parts/icon';
import { Link } from '../../parts/link';
import { Empty, Failure, Loading } from '../../parts/states';
import { toast, toastError } from '../../parts/toast';
import { useCanChange } from '../../query';
import { count, when } from '../../show';
import { usePageTarget } from '../../state';
import { navigate } from '../../url';
import { BoardPage } from './board';
import '../../common/pages.css';
import './boards.css';

function NewBoard(): ReactNode {
	const [name, setName] = useState('');
	const submit = (event: FormEvent): void => {
		event.preventDefault();
		addBoard(name.trim(), { blocks: [] }).then((id) => navigate(`/boards/${id}`), toastError);
	};
	return (
		<form className="row" onSubmit={submit}>
			<input type="text" value={name} aria-label="Name of a new board" placeholder="Name of a new board"
				maxLength={200} onChange={(e) => setName(e.target.value)} />
			<button type="submit" className="primary" disabled={!name.trim()}>New board</button>
		</form>
	);
}

function Row({ board, canChange }: { board: Board; canChange: boolean }): ReactNode {
	const target = usePageTarget();
	const remove = (): void => {
		dropBoard(board.id).then(() => toast(`Deleted “${board.name}”`, 'good', { label: 'Undo', act: () => {
			addBoard(board.name, board.body).catch(toastError);
		} })).catch(toastError);
	};
	return (
		<tr>
			<th scope="row"><Link to={target(`/boards/${board.id}`)}>{board.name}</Link></th>
			<td className="num">{board.body.blocks.length}</td>
			<td>{when(board.at)}</td>
			<td className="num">{canChange && <button type="button" className="quiet small icon"
				aria-label={`Delete ${board.name}`} title="Delete" onClick={remove}><Icon name="trash" /></button>}</td>
		</tr>
	);
}

function List({ boards }: { boards: Board[] }): ReactNode {
	const canChange = useCanChange(), target = usePageTarget();
	return (
		<div className="page">
			<div className="page-head"><h1>Boards</h1>{canChange && <NewBoard />}</div>
			<section className="card" aria-label="Boards">
				{!boards.length ? (
					<Empty title="No boards yet" icon="columns">
						<p>A board shows charts, tables and notes on one page, for others to read. Every chart has
							“Add to board” in its menu.</p>
						<p><Link className="button primary" to={target('/charts')}>Open Charts</Link></p>
					</Empty>
				) : (
					<div className="scroll-x" tabIndex={0} role="region" aria-label="List of boards">
						<table className="plain-table">
							<thead><tr><th scope="col">Board</th><th scope="col" className="num">Blocks</th>
								<th scope="col">Changed</th><th scope="col"><span className="unseen">Delete</span></th></tr></thead>
							<tbody>{boards.map((b) => <Row key={b.id} board={b} canChange={canChange} />)}</tbody>
						</table>
					</div>
				)}
				{boards.length > 0 && <p className="dim small-text">{count(boards.length, 'board')}, visible to
					everyone who can read this dashboard.</p>}
			</section>
		</div>
	);
}

function Gone({ id }: { id: string }): ReactNode {
	const isHome = homeBoard() === Number(id);
	return (
		<Empty title="There is no such board">
			<p>It was deleted, or the link belongs to another dashboard.</p>
			<p className="row centre"><Link className="button" to="/boards">All boards</Link>
				{isHome && <button type="button" onClick={() => {
					setHomeBoard(null);
					navigate('/overview');
				}}>Show Overview as start page</button>}</p>
		</Empty>
	);
}

export default function Boards({ id }: PageProps): ReactNode {
	const boards = useBoards();
	if (boards.isError)
		return <Failure error={boards.error} onRetry={() => void boards.refetch()} />;
	if (!boards.data)
		return <Loading />;
	if (!id)
		return <List boards={boards.data} />;
	const board = boards.data.find((b) => String(b.id) === id);
	return board ? <BoardPage key={board.id} board={board} /> : <Gone id={id} />;
}
