// SPDX-License-Identifier: Apache-2.0
// views.tsx: named addresses of pages, stored on the server for all users.
import { useState, type FormEvent, type ReactNode } from 'react';
import { useQuery } from '@tanstack/react-query';
import { change, get, post } from '../api';
import { placeOf } from '../pages';
import { Dialog } from '../parts/dialog';
import { Icon } from '../parts/icon';
import { Empty, Failure, Loading } from '../parts/states';
import { toast, toastError } from '../parts/toast';
import { client, useCanChange } from '../query';
import { navigate } from '../url';
import { addressOf, homeBoard, keptQuery, targetOf, type Saved } from './saved';

interface RowProps { view: Saved; canChange: boolean; onOpen: () => void; onChanged: () => void }

function Row({ view, canChange, onOpen, onChanged }: RowProps): ReactNode {
	const [name, setName] = useState<string | null>(null);
	const path = `/api/filters/presets/${view.id}`, target = targetOf(view.body);
	const rename = (event: FormEvent): void => {
		event.preventDefault();
		change('PUT', path, { name: name?.trim(), was: view.at }).then(() => setName(null), toastError)
			.finally(onChanged);
	};
	if (name !== null) {
		return (
			<li>
				<form className="preset" onSubmit={rename}>
					<input type="text" aria-label="New name" value={name} autoFocus maxLength={200}
						onChange={(event) => setName(event.target.value)} />
					<button type="submit" className="small" disabled={!name.trim()}>Rename</button>
					<button type="button" className="quiet small" onClick={() => setName(null)}>
						Cancel</button>
				</form>
			</li>
		);
	}
	return (
		<li className="preset">
			<button type="button" className="quiet preset-name" onClick={onOpen}>
				<Icon name="star" /><span>{view.name}</span>
				<span className="dim">{placeOf(target.path).page?.label ?? target.path}</span>
			</button>
			<button type="button" className="quiet small icon" aria-label={`Copy the link of ${view.name}`}
				title="Copy link" onClick={() => {
					navigator.clipboard.writeText(location.origin + addressOf(target))
						.then(() => toast('Link copied')).catch(toastError);
				}}><Icon name="link" /></button>
			{canChange && <>
				<button type="button" className="quiet small icon" aria-label={`Rename ${view.name}`}
					title="Rename" onClick={() => setName(view.name)}><Icon name="pencil" /></button>
				<button type="button" className="quiet small icon" aria-label={`Delete ${view.name}`}
					title="Delete" onClick={() => change('DELETE', path).then(() => {
						onChanged();
						toast(`Deleted “${view.name}”`, 'good', { label: 'Undo', act: () => {
							post('/api/filters/presets', { name: view.name, body: view.body })
								.then(onChanged, toastError);
						} });
					}, toastError)}><Icon name="trash" /></button>
			</>}
		</li>
	);
}

export function Views({ onClose }: { onClose: () => void }): ReactNode {
	const [name, setName] = useState('');
	const canChange = useCanChange();
	const views = useQuery({ queryKey: ['presets'], queryFn: ({ signal }) =>
		get<{ items: Saved[] }>('/api/filters/presets', signal) });
	const again = (): void => void client.invalidateQueries({ queryKey: ['presets'] });
	const save = (event: FormEvent): void => {
		event.preventDefault();
		const home = homeBoard(), path = location.pathname !== '/' ? location.pathname
			: home ? `/boards/${home}` : '/overview';
		const body = { path, query: keptQuery(path, location.search) };
		post('/api/filters/presets', { name: name.trim(), body }).then(() => {
			toast(`Saved as “${name.trim()}”`);
			setName('');
			again();
		}, toastError);
	};
	return (
		<Dialog title="Views" onClose={onClose}>
			{canChange && <form className="preset-save" onSubmit={save}>
				<input type="text" value={name} aria-label="Name of a new view" maxLength={200}
					placeholder="Name of this view"
					onChange={(event) => setName(event.target.value)} />
				<button type="submit" className="primary" disabled={!name.trim()}>Save</button>
			</form>}
			{views.isError && <Failure error={views.error} />}
			{views.isPending && <Loading what="Views" />}
			{views.data && views.data.items.length === 0 && (
				<Empty title="No saved views" icon="star">
					<p>A view keeps the page with its filters and settings under a name, for all users.</p>
				</Empty>
			)}
			<ul className="preset-list">
				{(views.data?.items ?? []).map((view) => (
					<Row key={`${view.id}/${view.name}`} view={view} canChange={canChange} onChanged={again}
						onOpen={() => {
							navigate(addressOf(targetOf(view.body)));
							onClose();
						}} />
				))}
			</ul>
		</Dialog>
	);
}
