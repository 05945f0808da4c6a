// SPDX-License-Identifier: Apache-2.0
// upload: results by drag and drop or from a list, with the traces of their runs; shows each file's
// outcome.
import { useRef, useState, type DragEvent, type ReactNode } from 'react';
import type { JobStarted, UploadJob } from '../../../lib/api';
import { ApiError, get, send } from '../../api';
import { follow } from '../../common/job';
import { bytesText } from '../../common/traces';
import { Icon } from '../../parts/icon';
import { Link } from '../../parts/link';
import { Empty } from '../../parts/states';
import { toastError } from '../../parts/toast';
import { refresh, useHealth } from '../../query';
import { count } from '../../show';
import { usePageTarget } from '../../state';
import { droppedFiles, pickedFiles, type Named } from './dropped';
import {
	batches, counts, isAuxiliary, isResult, isSettled, OUTCOMES, resultOf, withOutcomes, type Entry,
	type Outcome, type State,
} from './files';
import { ALONE, isTooLarge, isTrace, runsOf, TOO_LARGE, tracesNamedBy } from './traces';
import '../../common/pages.css';
import './upload.css';

const SHOWN = 500;
const WORDS: Record<State, string> = { waiting: 'waiting', sending: 'sending', sent: 'being read',
	new: 'new', duplicate: 'duplicate', conflict: 'conflict', attached: 'attached', invalid: 'invalid',
	failed: 'not sent' };
const TONES: Partial<Record<State, string>> = { new: 'good', conflict: 'warn', attached: 'good',
	invalid: 'bad', failed: 'bad' };
const EXPLAINED: Record<Outcome, string> = {
	new: 'taken in', duplicate: 'were there already', conflict: 'same run, other content: both are kept',
	attached: 'traces of their runs', invalid: 'could not be read', failed: 'did not arrive',
};

interface Item extends Named { key: number }
/** A trace, and the runs whose documents name it. */
interface TraceItem extends Item { runs: string[] }
type Update = (change: (now: Entry[]) => Entry[]) => void;

const mark = (update: Update, keys: Set<number>, part: Partial<Entry>): void =>
	update((now) => now.map((e) => (keys.has(e.key) && !isSettled(e) ? { ...e, ...part } : e)));

/** Follows the job until it ends; outcomes missing from the stream are then requested. */
function outcomes(job: string, keys: Set<number>, update: Update): Promise<void> {
	return new Promise((then) => {
		const progress = (data: unknown): void => update((now) =>
			withOutcomes(now, keys, (data as Pick<UploadJob, 'files'>).files ?? []));
		follow(job, { progress }, () => {
			get<UploadJob>(`/api/upload/status/${job}`)
				.then((status) => {
					mark(update, keys, { state: 'sent' });
					update((now) => finish(now, keys, status));
				})
				.catch(toastError).finally(then);
		});
	});
}

/** Assigns the whole list in the order of sending, for names that occur more than once. */
function finish(now: Entry[], keys: Set<number>, status: UploadJob): Entry[] {
	let at = 0;
	return now.map((e) => {
		if (!keys.has(e.key))
			return e;
		const file = status.files[at++];
		return file?.outcome && file.name === e.name ? { ...e, state: file.outcome, id: file.id,
			runs: file.runs, reason: file.reason } : e;
	});
}

const reasonOf = (why: unknown): string =>
	(why instanceof ApiError || why instanceof Error ? why.message : String(why));

async function sendBatch(items: Item[], update: Update): Promise<void> {
	const keys = new Set(items.map((i) => i.key)), form = new FormData();
	for (const { file, name } of items)
		form.append('file', file, name);
	mark(update, keys, { state: 'sending' });
	try {
		const answer = await send('/api/upload/batch', { method: 'POST', body: form });
		const { job_id: job } = await answer.json() as JobStarted;
		mark(update, keys, { state: 'sent' });
		await outcomes(job, keys, update);
	} catch (why) {
		mark(update, keys, { state: 'failed', reason: reasonOf(why) });
	}
}

/** Called once its document is stored. */
async function sendTrace({ key, file, name, runs }: TraceItem, update: Update): Promise<void> {
	const keys = new Set([key]);
	mark(update, keys, { state: 'sending' });
	try {
		for (const run of runs) {
			const form = new FormData();
			form.append('trace', file, name);
			await send(`/api/data/experiments/${encodeURIComponent(run)}/traces`,
				{ method: 'POST', body: form });
		}
		mark(update, keys, { state: 'attached', id: runs[0], runs: runs.length });
	} catch (why) {
		mark(update, keys, { state: 'failed', reason: reasonOf(why) });
	}
}

/** Splits items into results and traces; traces without a run here are reported at once. */
async function sorted(items: Item[], update: Update): Promise<[Item[], TraceItem[]]> {
	const runs = runsOf(await tracesNamedBy(items),
		items.map(({ file, name }) => ({ name, size: file.size })));
	const results: Item[] = [], traces: TraceItem[] = [], names = new Set(items.map((i) => i.name));
	items.forEach((item, i) => {
		const of = runs.get(i), sized = { name: item.name, size: item.file.size };
		const same = resultOf(item.name, names);
		if (same)
			mark(update, new Set([item.key]), { state: 'duplicate', reason: `repeats the metrics of ${same}` });
		else if (!of && !isTrace(item.name))
			results.push(item);
		else if (!of || isTooLarge(sized))
			mark(update, new Set([item.key]), { state: 'invalid', reason: of ? TOO_LARGE : ALONE });
		else
			traces.push({ ...item, runs: of });
	});
	return [results, traces];
}

function useUploads() {
	const [entries, setEntries] = useState<Entry[]>([]);
	const [isBusy, setBusy] = useState(false);
	const next = useRef(1), queue = useRef<Item[]>([]), isWorking = useRef(false);
	const held = useRef<TraceItem[]>([]);
	const work = async (): Promise<void> => {
		if (isWorking.current)
			return;
		isWorking.current = true;
		setBusy(true);
		while (queue.current.length || held.current.length) {
			const [batch] = batches(queue.current, (i) => i.file.size);
			const [trace] = held.current;
			if (batch) {
				queue.current = queue.current.slice(batch.length);
				await sendBatch(batch, setEntries);
			} else {
				held.current = held.current.slice(1);
				await sendTrace(trace, setEntries);
			}
			refresh();
		}
		isWorking.current = false;
		setBusy(false);
	};
	const add = (files: Named[]): void => {
		const items = files.map((f) => ({ ...f, key: next.current++ }));
		setEntries((now) => [...now, ...items.map((i): Entry => ({ key: i.key, name: i.name,
			bytes: i.file.size, state: 'waiting', id: null, runs: 0, reason: null }))]);
		sorted(items, setEntries).then(([results, traces]) => {
			queue.current = [...queue.current, ...results];
			held.current = [...held.current, ...traces];
			return work();
		}).catch(toastError);
	};
	return { entries, isBusy, add, clear: () => setEntries((now) => now.filter((e) => !isSettled(e))) };
}

/** A file that was named itself, or one of a folder that may be a result or a trace. */
const isMeant = (name: string): boolean => !name.includes('/') || isTrace(name)
	|| (isResult(name) && !isAuxiliary(name));

interface DropProps { onFiles: (files: Named[]) => void }

function Drop({ onFiles }: DropProps): ReactNode {
	const [isOver, setOver] = useState(false);
	const picker = useRef<HTMLInputElement>(null), folder = useRef<HTMLInputElement>(null);
	const over = (event: DragEvent, is: boolean): void => {
		event.preventDefault();
		setOver(is);
	};
	const dropped = (event: DragEvent): void => {
		over(event, false);
		droppedFiles(event.dataTransfer).then((files) => onFiles(files.filter((f) => isMeant(f.name))))
			.catch(toastError);
	};
	const picked = (input: HTMLInputElement): void => {
		onFiles(pickedFiles(input.files).filter((f) => isMeant(f.name)));
		input.value = '';
	};
	return (
		<div className={`drop ${isOver ? 'over' : ''}`} data-drop onDragEnter={(e) => over(e, true)}
			onDragOver={(e) => over(e, true)} onDragLeave={(e) => over(e, false)} onDrop={dropped}>
			<span className="state-mark"><Icon name="upload" /></span>
			<p className="state-title">Drop results here</p>
			<p className="dim">JSON or JSON Lines of <code>profllm run</code>, <code>profllm bench</code> and <code>vllm
				bench</code>, or whole folders. Profiler traces belong to the document uploaded with them.</p>
			<div className="row centre">
				<button type="button" className="primary" onClick={() => picker.current?.click()}>
					Choose files</button>
				<button type="button" onClick={() => folder.current?.click()}>Choose a folder</button>
			</div>
			<input ref={picker} type="file" multiple hidden aria-label="Files"
				onChange={(e) => picked(e.currentTarget)} />
			<input ref={folder} type="file" multiple hidden aria-label="Folder"
				{...{ webkitdirectory: '' }} onChange={(e) => picked(e.currentTarget)} />
		</div>
	);
}

function Row({ e }: { e: Entry }): ReactNode {
	const target = usePageTarget();
	return (
		<tr data-state={e.state}>
			<th scope="row" className="break">{e.name}</th>
			<td className="num dim">{bytesText(e.bytes)}</td>
			<td><span className={`tag ${TONES[e.state] ?? ''}`}>{WORDS[e.state]}</span></td>
			<td>{e.id !== null && <Link to={target(`/runs/${encodeURIComponent(e.id)}`)}>
				{e.runs > 1 ? `${count(e.runs, 'run')}, first ${e.id}` : `run ${e.id}`}</Link>}
			{e.reason && <span className={e.state === 'invalid' || e.state === 'failed' ? 'bad-text'
				: 'dim'}> {e.reason}</span>}</td>
		</tr>
	);
}

function Outcomes({ entries, isBusy, onClear }: {
	entries: Entry[]; isBusy: boolean; onClear: () => void;
}): ReactNode {
	const sums = counts(entries), done = entries.filter(isSettled).length;
	const order = (e: Entry): number => (e.state === 'invalid' || e.state === 'failed' ? 0
		: e.state === 'conflict' ? 1 : 2);
	const shown = isBusy ? entries : [...entries].sort((a, b) => order(a) - order(b));
	return (
		<section className="card" aria-label="Outcomes">
			<div className="card-head">
				<p className="big-number" data-done={done}>{done}<span className="unit">of {entries.length}</span></p>
				<ul className="row" aria-live="polite">{OUTCOMES.filter((o) => sums[o] > 0).map((o) => (
					<li key={o} className="row tight" data-outcome={o}>
						<span className={`tag ${TONES[o] ?? ''}`}>{sums[o]} {WORDS[o]}</span>
						<span className="dim">{EXPLAINED[o]}</span>
					</li>
				))}</ul>
				{!isBusy && <button type="button" className="small push" onClick={onClear}>Clear the list</button>}
			</div>
			<progress value={done} max={entries.length || 1} aria-label="Files that are done" />
			<div className="scroll-x outcome-list" tabIndex={0} role="region" aria-label="Files">
				<table className="plain-table">
					<thead><tr><th scope="col">File</th><th scope="col" className="num">Size</th>
						<th scope="col">Outcome</th><th scope="col">Runs</th></tr></thead>
					<tbody>{shown.slice(0, SHOWN).map((e) => <Row key={e.key} e={e} />)}</tbody>
				</table>
			</div>
			{shown.length > SHOWN && <p className="dim">{count(shown.length - SHOWN, 'more file')}.</p>}
		</section>
	);
}

export default function Upload(): ReactNode {
	const { entries, isBusy, add, clear } = useUploads();
	const health = useHealth();
	const target = usePageTarget();
	return (
		<div className="page upload-page">
			<div className="page-head"><h1>Upload</h1>
				{!isBusy && entries.some((e) => e.state === 'new')
					&& <div className="row"><Link className="button primary" to={target('/runs')}>
						See the runs</Link></div>}
			</div>
			{health.data?.is_read_only ? (
				<section className="card"><Empty title="This dashboard is read-only" icon="warning">
					<p>Nothing can be uploaded to it.</p></Empty></section>
			) : health.data && !health.data.can_change ? (
				<section className="card"><Empty title="Your token may not upload" icon="warning">
					<p>Uploading needs a token of role upload or launch.</p></Empty></section>
			) : <Drop onFiles={add} />}
			{entries.length > 0 && <Outcomes entries={entries} isBusy={isBusy} onClear={clear} />}
		</div>
	);
}
