// SPDX-License-Identifier: Apache-2.0
// notes.tsx: users' notes on a run, its exclusion from analyses, other versions of it, its traces.
import { useState, type FormEvent, type ReactNode } from 'react';
import type { Run } from '../../../lib/api';
import { ApiError, change, send } from '../../api';
import { TraceTable } from '../../common/traces';
import { keepWho, lastWho } from '../../common/who';
import { Icon } from '../../parts/icon';
import { Link } from '../../parts/link';
import { toast, toastError } from '../../parts/toast';
import { refresh, useCanChange } from '../../query';
import { count, when } from '../../show';
import { usePageTarget } from '../../state';
import { namedTraces } from '../upload/traces';

/** Whether it was done. What is gone was removed by another user, so the page is read again. */
async function run(promise: Promise<unknown>, then: string, undo?: () => Promise<unknown>): Promise<boolean> {
	try {
		await promise;
	} catch (why) {
		toastError(why);
		if (why instanceof ApiError && why.status === 404)
			refresh();
		return false;
	}
	toast(then, 'good', undo && { label: 'Undo', act: () => void run(undo(), 'The note is back.') });
	refresh();
	return true;
}

interface SayProps {
	label: string;
	action: string;
	onSay: (text: string, who: string) => Promise<boolean>;
}

function Say({ label, action, onSay }: SayProps): ReactNode {
	const [text, setText] = useState('');
	const [who, setWho] = useState(lastWho);
	const submit = (event: FormEvent): void => {
		event.preventDefault();
		keepWho(who);
		/* A text that was refused, because the session has ended for example, stays. */
		void onSay(text.trim(), who.trim()).then((isDone) => isDone && setText((now) => (now === text ? '' : now)));
	};
	return (
		<form className="say" onSubmit={submit}>
			<label className="field grow"><span>{label}</span>
				<input value={text} onChange={(e) => setText(e.target.value)} required /></label>
			<label className="field"><span>Your name</span>
				<input value={who} onChange={(e) => setWho(e.target.value)} autoComplete="name" /></label>
			<button type="submit" disabled={!text.trim()}>{action}</button>
		</form>
	);
}

const signed = (who: string, at: number): string => `${who ? `${who}, ` : ''}${when(at)}`;
const words = (text: string, who: string, key: string): object =>
	(who ? { [key]: text, who } : { [key]: text });

function NoteList({ r, isReadOnly }: { r: Run; isReadOnly: boolean }): ReactNode {
	const add = (text: string, who: string): Promise<unknown> =>
		change('POST', `/api/data/experiments/${r.id}/annotations`, words(text, who, 'text'));
	return (
		<section className="card" aria-label="Notes">
			<h2>Notes</h2>
			{r.annotations.length === 0 && <p className="dim">None yet.</p>}
			<ul className="remarks">{r.annotations.map((a) => (
				<li key={a.id}>
					<p>{a.text}</p>
					<p className="dim small-text">{signed(a.who, a.at)}
						{!isReadOnly && (
							<button type="button" className="small icon quiet" aria-label="Remove this note"
								onClick={() => void run(change('DELETE', `/api/annotations/${a.id}`), 'Removed.',
									() => add(a.text, a.who))}>
								<Icon name="trash" /></button>
						)}</p>
				</li>
			))}</ul>
			{!isReadOnly && <Say label="Add a note" action="Add" onSay={(text, who) =>
				run(add(text, who), 'Note added.')} />}
		</section>
	);
}

function Exclusion({ r, isReadOnly }: { r: Run; isReadOnly: boolean }): ReactNode {
	const isOut = r.flags.includes('excluded');
	const path = `/api/data/experiments/${r.id}/exclusion`;
	return (
		<section className="card" aria-label="Exclusion">
			<h2>Include in analysis</h2>
			<p>{isOut ? 'Excluded from lists, charts and comparisons.'
				: 'Included. A run that went wrong can be excluded; it stays in the store.'}</p>
			<ul className="remarks">{r.exclusions.map((x, i) => (
				<li key={i}><p>{x.reason}{x.is_over && <span className="tag">reverted</span>}</p>
					<p className="dim small-text">{signed(x.who, x.at)}</p></li>
			))}</ul>
			{!isReadOnly && (isOut ? (
				<button type="button" onClick={() => void run(change('DELETE', path), 'Included again.')}>
					Include again</button>
			) : (
				<Say label="Reason" action="Exclude" onSay={(text, who) => run(
					change('PUT', path, words(text, who, 'reason')), 'Excluded.')} />
			))}
		</section>
	);
}

function Versions({ r }: { r: Run }): ReactNode {
	const target = usePageTarget();
	return (
		<section className="card" aria-label="Versions">
			<h2>Versions</h2>
			<ul className="remarks">{r.versions.map((v) => (
				<li key={v.id}>
					{v.id === r.id ? <strong>This version</strong>
						: <Link to={target(`/runs/${v.id}`)}>Version {v.id}</Link>}
					<span className="dim">, imported {when(v.received)}</span>
				</li>
			))}</ul>
			<p className="dim small-text break">Imported as <code>{r.kind}</code>
				{r.who && <> from {r.who}</>}, content hash <code>{r.hash}</code></p>
		</section>
	);
}

/** Traces that the document names, if none was uploaded. */
function NoTraces({ r }: { r: Run }): ReactNode {
	const named = namedTraces(r.document, '').map((t) => t.base);
	if (!named.length)
		return <p className="dim">This run has no profiler trace.</p>;
	return <p className="dim break">Its document names {count(named.length, 'trace')} that the store does not
		have: {named.join(', ')}. Attach them here, or run <code>profllm ingest</code> where they are.</p>;
}

function Traces({ r, isReadOnly }: { r: Run; isReadOnly: boolean }): ReactNode {
	const attach = (files: FileList | null): void => {
		const form = new FormData();
		for (const file of files ?? [])
			form.append('trace', file, file.name);
		if (files?.length)
			void run(send(`/api/data/experiments/${r.id}/traces`, { method: 'POST', body: form }), 'Attached.');
	};
	return (
		<section className="card" aria-label="Traces">
			<h2>Traces</h2>
			{r.traces.length ? <TraceTable traces={r.traces} hasRun={false} />
				: <NoTraces r={r} />}
			{!isReadOnly && (
				<label className="field"><span>Attach a trace</span>
					<input type="file" multiple onChange={(e) => {
						attach(e.target.files);
						e.target.value = '';
					}} /></label>
			)}
		</section>
	);
}

export function Notes({ r }: { r: Run }): ReactNode {
	const isReadOnly = !useCanChange();
	return (
		<div className="halves">
			<NoteList r={r} isReadOnly={isReadOnly} />
			<Exclusion r={r} isReadOnly={isReadOnly} />
			<Versions r={r} />
			<Traces r={r} isReadOnly={isReadOnly} />
		</div>
	);
}
