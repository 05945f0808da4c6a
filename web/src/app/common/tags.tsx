// SPDX-License-Identifier: Apache-2.0
// tags.tsx: words that users put on runs, to find them by: the list of tags, and setting and
// removing them on one run or many.
import { useId, useMemo, useState, type FormEvent, type ReactNode } from 'react';
import type { BulkRequest, Routes, Tag } from '../../lib/api';
import { post } from '../api';
import { Dialog } from '../parts/dialog';
import { Icon } from '../parts/icon';
import { Link } from '../parts/link';
import { toast, toastError } from '../parts/toast';
import { refresh, useCanChange } from '../query';
import { count } from '../show';
import { usePageTarget } from '../state';
import { useGet } from './routes';
import { lastWho } from './who';

const BYTES_MAX = 64; /* STORE_TAG_BYTES_MAX */

export interface RunTags { all: Tag[]; of: (ids: readonly number[]) => string[] }

/** All tags, and those of some runs. */
export function useTags(): RunTags {
	const { data } = useGet('GET /api/tags', '/api/tags');
	return useMemo(() => {
		const by = new Map<number, string[]>();
		for (const { tag, runs } of data?.items ?? [])
			for (const run of runs)
				by.set(run, [...by.get(run) ?? [], tag]);
		return { all: data?.items ?? [],
			of: (ids: readonly number[]) => [...new Set(ids.flatMap((id) => by.get(id) ?? []))] };
	}, [data]);
}

type Done = Routes['POST /api/data/bulk']['answer'];

export function changeTag(ids: number[], action: BulkRequest['action'] & ('tag' | 'untag'), text: string): void {
	const who = lastWho();
	post<Done>('/api/data/bulk', { ids, action, text, ...(who && { who }) }).then((done) => {
		toast([`${count(done.changed, 'run')} ${action === 'tag' ? 'tagged' : 'untagged'}: ${text}.`, ...done.notes]
			.join(' '));
		refresh();
	}, toastError);
}

function Field({ known, action, onTag }: { known: Tag[]; action: string; onTag: (tag: string) => void }): ReactNode {
	const [text, setText] = useState(''), id = useId(), tag = text.trim();
	const submit = (event: FormEvent): void => {
		event.preventDefault();
		if (tag)
			onTag(tag);
		setText('');
	};
	return (
		<form className="tag-form" onSubmit={submit}>
			<input type="text" aria-label="Tag" placeholder="tag" value={text} maxLength={BYTES_MAX} list={id} size={12}
				onChange={(event) => setText(event.target.value)} />
			<datalist id={id}>{known.map((t) => <option key={t.tag} value={t.tag} />)}</datalist>
			<button type="submit" className="small" disabled={!tag}>{action}</button>
		</form>
	);
}

/** The tags of one run: a click shows all runs that have one, the cross removes it. */
export function TagLine({ id, tags }: { id: number; tags: string[] }): ReactNode {
	const canChange = useCanChange(), target = usePageTarget(), { all } = useTags();
	if (!tags.length && !canChange)
		return null;
	return (
		<div className="tag-line" role="group" aria-label="Tags">
			{tags.map((tag) => (
				<span key={tag} className="tag run-tag">
					<Link to={target('/runs', { f: JSON.stringify({ and: [{ column: 'tag', in: [tag] }] }) })}>{tag}</Link>
					{canChange && <button type="button" className="quiet icon" aria-label={`Remove the tag ${tag}`}
						onClick={() => changeTag([id], 'untag', tag)}><Icon name="cross" /></button>}
				</span>
			))}
			{canChange && <Field known={all.filter((t) => !tags.includes(t.tag))} action="Add tag"
				onTag={(tag) => changeTag([id], 'tag', tag)} />}
		</div>
	);
}

/** Tags of many runs at once. */
export function TagDialog({ ids, onClose }: { ids: number[]; onClose: () => void }): ReactNode {
	const tags = useTags(), here = tags.of(ids);
	return (
		<Dialog title={`Tags of ${count(ids.length, 'run')}`} onClose={onClose}>
			<div className="bulk-form">
				<Field known={tags.all} action={`Add to ${count(ids.length, 'run')}`}
					onTag={(tag) => changeTag(ids, 'tag', tag)} />
				{here.length > 0 && <ul className="tag-list" aria-label="Tags of these runs">{here.map((tag) => {
					const n = tags.all.find((t) => t.tag === tag)?.runs.filter((run) => ids.includes(run)).length ?? 0;
					return (
						<li key={tag}><span className="tag run-tag">{tag}</span>
							<span className="dim num">{n} of {ids.length}</span>
							<button type="button" className="small" aria-label={`Remove ${tag} from these runs`}
								onClick={() => changeTag(ids, 'untag', tag)}>Remove</button></li>
					);
				})}</ul>}
				<p className="dim small-text">A tag is a word to find runs by, for everybody who uses this store.</p>
			</div>
		</Dialog>
	);
}
