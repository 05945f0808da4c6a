// SPDX-License-Identifier: Apache-2.0
// bulk.tsx: actions for the selected runs: compare, export, save as a view, exclude with a reason,
// include again, delete.
import { useState, type FormEvent, type ReactNode } from 'react';
import type { BulkRequest, Routes } from '../../../lib/api';
import { get, post, type Cell } from '../../api';
import { TagDialog } from '../../common/tags';
import { keepWho, lastWho } from '../../common/who';
import type { InCondition } from '../../filter';
import { Dialog } from '../../parts/dialog';
import { Icon } from '../../parts/icon';
import { Link } from '../../parts/link';
import { Menu } from '../../parts/menu';
import { toast, toastError } from '../../parts/toast';
import { refresh } from '../../query';
import { usePageTarget, type Selection } from '../../state';
import { ExportRuns } from './export';
import { runsText } from './view';

type Done = Routes['POST /api/data/bulk']['answer'];
type Action = BulkRequest['action'];
type Asking = 'exclude' | 'delete' | 'tag' | 'view' | null;

const DONE: Record<Action, string> = { exclude: 'excluded', include: 'included', delete: 'deleted',
	tag: 'tagged', untag: 'untagged' };

const AT_ONCE = 8; /* of the 64 questions that the server keeps waiting for one user */

/** Runs by number, as a filter: their run_id is the column that names them. */
async function filterOf(ids: number[]): Promise<InCondition> {
	const names: Cell[] = [];
	for (let i = 0; i < ids.length; i += AT_ONCE) {
		const runs = await Promise.all(ids.slice(i, i + AT_ONCE).map((id) =>
			get<{ run_id: string }>(`/api/data/experiments/${id}`)));
		names.push(...runs.map((r) => r.run_id));
	}
	return { column: 'run_id', in: names };
}

function Reason({ n, onDone, onClose }: {
	n: number; onDone: (text: string) => void; onClose: () => void;
}): ReactNode {
	const [text, setText] = useState('');
	const [who, setWho] = useState(lastWho());
	const sent = (event: FormEvent): void => {
		event.preventDefault();
		keepWho(who.trim());
		onDone(text.trim());
	};
	return (
		<Dialog title={`Exclude ${runsText(n)}`} onClose={onClose}>
			<form className="bulk-form" onSubmit={sent}>
				<p className="dim">Excluded runs take no part in any page. They can be included again.</p>
				<label><span>Reason</span><input type="text" value={text} required maxLength={1000} autoFocus
					onChange={(event) => setText(event.target.value)} /></label>
				<label><span>Your name</span><input type="text" value={who} maxLength={200}
					onChange={(event) => setWho(event.target.value)} /></label>
				<p className="bulk-buttons">
					<button type="button" className="quiet" onClick={onClose}>Cancel</button>
					<button type="submit" className="primary" disabled={!text.trim()}>
						Exclude {runsText(n)}</button>
				</p>
			</form>
		</Dialog>
	);
}

function Confirm({ n, onDone, onClose }: {
	n: number; onDone: () => void; onClose: () => void;
}): ReactNode {
	return (
		<Dialog title={`Delete ${runsText(n)}?`} onClose={onClose} foot={<>
			<button type="button" className="quiet" onClick={onClose} autoFocus>Cancel</button>
			<button type="button" className="danger" onClick={onDone}>Delete {runsText(n)}</button>
		</>}>
			<p>This removes {n === 1 ? 'the run' : `all ${runsText(n)}`} from the store for everybody,
				with {n === 1 ? 'its' : 'their'} documents, notes and traces. It cannot be undone.</p>
			<p className="dim">To keep {n === 1 ? 'it' : 'them'} out of the pages only, exclude
				{n === 1 ? ' it' : ' them'} instead.</p>
		</Dialog>
	);
}

function SaveView({ ids, onClose }: { ids: number[]; onClose: () => void }): ReactNode {
	const [name, setName] = useState('');
	const save = (event: FormEvent): void => {
		event.preventDefault();
		filterOf(ids).then((runs) => post('/api/filters/presets', { name: name.trim(), body: {
			path: '/runs', query: `f=${encodeURIComponent(JSON.stringify({ and: [runs] }))}` } }))
			.then(() => {
				toast(`Saved as “${name.trim()}”, under Views`);
				refresh();
				onClose();
			}, toastError);
	};
	return (
		<Dialog title={`Name for ${runsText(ids.length)}`} onClose={onClose}>
			<form className="bulk-form" onSubmit={save}>
				<p className="dim">Views lists it. It shows exactly these runs, on every page.</p>
				<label><span>Name</span><input type="text" value={name} required maxLength={200} autoFocus
					onChange={(event) => setName(event.target.value)} /></label>
				<p className="bulk-buttons">
					<button type="button" className="quiet" onClick={onClose}>Cancel</button>
					<button type="submit" className="primary" disabled={!name.trim()}>Save</button>
				</p>
			</form>
		</Dialog>
	);
}

interface Props {
	selection: Selection;
	canChange: boolean;
	canDelete: boolean;
	/** Excluded runs are shown, so that they can be included again. */
	hasExcluded: boolean;
	columns: string[];
}

export function Bulk({ selection, canChange, canDelete, hasExcluded, columns }: Props): ReactNode {
	const target = usePageTarget();
	const [asking, setAsking] = useState<Asking>(null);
	const { ids } = selection, n = ids.length;
	const close = (): void => setAsking(null);
	const act = (action: Action, text?: string): void => {
		close();
		post<Done>('/api/data/bulk', { ids, action, ...(text && { text, who: lastWho() }) })
			.then((done) => {
				toast([`${runsText(done.changed)} ${DONE[action]}.`, ...done.notes].join(' '));
				selection.clear();
				refresh();
			}, toastError);
	};
	return (
		<>
			<div className="chosen" role="group" aria-label="Selected runs">
				<span role="status"><strong className="num">{n}</strong> selected</span>
				<Link className="button primary small" to={target('/compare')}>
					<Icon name="compare" />Compare<kbd>c</kbd></Link>
				<Menu label="More" align="end" look="quiet small">
					{(done) => <>
						<p className="menu-label">Export</p>
						<ExportRuns filter={() => filterOf(ids)} columns={columns} onDone={done} />
						{canChange && <>
							<hr className="menu-line" />
							<button type="button" className="menu-item" onClick={() => {
								done();
								setAsking('view');
							}}><Icon name="star" /><span>Save as a view…</span></button>
							<button type="button" className="menu-item" onClick={() => {
								done();
								setAsking('tag');
							}}><Icon name="pencil" /><span>Tags…</span></button>
							<button type="button" className="menu-item" onClick={() => {
								done();
								setAsking('exclude');
							}}><Icon name="cross" /><span>Exclude…</span></button>
							{hasExcluded && <button type="button" className="menu-item" onClick={() => {
								done();
								act('include');
							}}><Icon name="check" /><span>Include again</span></button>}
							{canDelete && <button type="button" className="menu-item danger" onClick={() => {
								done();
								setAsking('delete');
							}}><Icon name="trash" /><span>Delete…</span></button>}
						</>}
					</>}
				</Menu>
				<button type="button" className="quiet small" onClick={selection.clear}>Clear</button>
			</div>
			{asking === 'exclude' && <Reason n={n} onClose={close} onDone={(text) => act('exclude', text)} />}
			{asking === 'tag' && <TagDialog ids={ids} onClose={close} />}
			{asking === 'delete' && <Confirm n={n} onClose={close} onDone={() => act('delete')} />}
			{asking === 'view' && <SaveView ids={ids} onClose={close} />}
		</>
	);
}
