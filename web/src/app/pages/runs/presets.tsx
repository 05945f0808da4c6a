// SPDX-License-Identifier: Apache-2.0
// presets.tsx: views with a name, kept on the server for everybody. A preset is the query string.
import { useState, type FormEvent, type ReactNode } from 'react';
import { useQuery } from '@tanstack/react-query';
import { change, get, post } from '../../api';
import { Dialog } from '../../parts/dialog';
import { Icon } from '../../parts/icon';
import { Empty, Failure, Loading } from '../../parts/states';
import { toast, toastError } from '../../parts/toast';
import { client } from '../../query';
import { navigate } from '../../url';
import { keptQuery } from './view';

interface Preset { id: number; name: string; body: { query?: unknown } | null; at: number }
function Row({ preset, isReadOnly, onLoad, onChanged }: {
	preset: Preset; isReadOnly: boolean; onLoad: () => void; onChanged: () => void;
}): ReactNode {
	const [name, setName] = useState<string | null>(null);
	const path = `/api/filters/presets/${preset.id}`;
	const rename = (event: FormEvent): void => {
		event.preventDefault();
		change('PUT', path, { name: name?.trim() }).then(() => {
			setName(null);
			onChanged();
		}, toastError);
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
			<button type="button" className="quiet preset-name" onClick={onLoad}>
				<Icon name="star" /><span>{preset.name}</span>
			</button>
			{!isReadOnly && <>
				<button type="button" className="quiet small icon" aria-label={`Rename ${preset.name}`}
					onClick={() => setName(preset.name)}><Icon name="pencil" /></button>
				<button type="button" className="quiet small icon" aria-label={`Delete ${preset.name}`}
					onClick={() => change('DELETE', path).then(onChanged, toastError)}>
					<Icon name="trash" /></button>
			</>}
		</li>
	);
}

export function Presets({ isReadOnly, onClose }: {
	isReadOnly: boolean; onClose: () => void;
}): ReactNode {
	const [name, setName] = useState('');
	const presets = useQuery({ queryKey: ['presets'], queryFn: ({ signal }) =>
		get<{ items: Preset[] }>('/api/filters/presets', signal) });
	const again = (): void => void client.invalidateQueries({ queryKey: ['presets'] });
	const save = (event: FormEvent): void => {
		event.preventDefault();
		post('/api/filters/presets', { name: name.trim(), body: { query: keptQuery(location.search) } })
			.then(() => {
				toast(`Saved as “${name.trim()}”`);
				setName('');
				again();
			}, toastError);
	};
	const load = (preset: Preset): void => {
		const query = preset.body?.query;
		navigate(`/runs${keptQuery(typeof query === 'string' ? query : '')}`);
		onClose();
	};
	return (
		<Dialog title="Views" onClose={onClose}>
			{!isReadOnly && <form className="preset-save" onSubmit={save}>
				<input type="text" value={name} aria-label="Name of a new view" maxLength={200}
					placeholder="Name of this view"
					onChange={(event) => setName(event.target.value)} />
				<button type="submit" className="primary" disabled={!name.trim()}>Save</button>
			</form>}
			{presets.isError && <Failure error={presets.error} />}
			{presets.isPending && <Loading what="Views" />}
			{presets.data && presets.data.items.length === 0 && (
				<Empty title="No saved views" icon="star">
					<p>A view keeps filters, sort order and columns under a name.</p>
				</Empty>
			)}
			<ul className="presets">
				{(presets.data?.items ?? []).map((p) => (
					<Row key={`${p.id}/${p.name}`} preset={p} isReadOnly={isReadOnly}
						onLoad={() => load(p)} onChanged={again} />
				))}
			</ul>
		</Dialog>
	);
}
