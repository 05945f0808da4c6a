// SPDX-License-Identifier: Apache-2.0
// changes.tsx: where a series has changed, in words; users mark whether they expected it.
import { useEffect, useRef, useState, type FormEvent, type ReactNode } from 'react';
import type { MarkKind, TrendSeries } from '../../../lib/api';
import { change as tell } from '../../api';
import { Explain } from '../../common/explain';
import { intervalText, percent } from '../../common/interval';
import { Num } from '../../common/twin';
import { keepWho, lastWho } from '../../common/who';
import { Dialog } from '../../parts/dialog';
import { Icon } from '../../parts/icon';
import { Link } from '../../parts/link';
import { toast, toastError } from '../../parts/toast';
import { refresh, useCanChange } from '../../query';
import { columnLabel, measured, showValue } from '../../show';
import { usePageTarget } from '../../state';
import { markPlace, placeOf, sidesOf, shortCommit, type Change, type Names } from './model';

type Kind = MarkKind;
const KINDS: Record<Kind, string> = { expected: 'expected', seen: 'known', not_real: 'not real' };
const NOTES: Record<Kind, string> = { expected: 'Reason', seen: 'Issue link or note', not_real: 'Why not' };
const WORDS: Record<string, string> = { better: 'better', worse: 'worse', changed: 'changed' };

function MarkDialog({ c, metric, kind, onClose }: {
	c: Change; metric: string; kind: Kind; onClose: () => void;
}): ReactNode {
	const [text, setText] = useState(''), [who, setWho] = useState(lastWho);
	const submit = (event: FormEvent): void => {
		event.preventDefault();
		keepWho(who);
		const body = { series: c.series.id, metric, at: markPlace(c.change), kind, text,
			...(who.trim() ? { who: who.trim() } : {}) };
		tell('POST', '/api/analysis/marks', body).then(() => {
			toast(`Marked as ${KINDS[kind]}.`);
			refresh();
			onClose();
		}).catch(toastError);
	};
	return (
		<Dialog title={`This change is ${KINDS[kind]}`}
			onClose={onClose}>
			<form className="stack" onSubmit={submit}>
				<p className="dim">{columnLabel(metric)} of {c.series.name || 'all runs'}, {placeOf(c.change)}:
					{' '}{percent(c.change.effect)}</p>
				<label className="field"><span>{NOTES[kind]}</span>
					<input value={text} onChange={(e) => setText(e.target.value)}
						required={kind === 'expected'} /></label>
				<label className="field"><span>Your name</span>
					<input value={who} onChange={(e) => setWho(e.target.value)} autoComplete="name" /></label>
				<div className="actions"><button type="submit" className="primary">Save</button></div>
			</form>
		</Dialog>
	);
}

type Mark = NonNullable<Change['change']['mark']>;

function Marked({ mark, isReadOnly }: { mark: Mark; isReadOnly: boolean }): ReactNode {
	const drop = (): void => {
		tell('DELETE', `/api/analysis/marks/${mark.id}`).then(() => {
			toast('Review removed.');
			refresh();
		}).catch(toastError);
	};
	return (
		<span className="row tight">
			<span className="tag">{KINDS[mark.kind]}</span>
			{/^https?:\/\//.test(mark.text) && <a href={mark.text} target="_blank" rel="noreferrer">issue</a>}
			<span className="dim">{[!/^https?:\/\//.test(mark.text) && mark.text, mark.who, mark.metric === null && 'an older review, of no one metric']
				.filter(Boolean).join(', ')}</span>
			{!isReadOnly && <button type="button" className="small icon quiet" onClick={drop}
				aria-label="Remove review"><Icon name="cross" /></button>}
		</span>
	);
}

/** A mark that does not judge the change is from before marks had a metric. */
function Review({ c, isReadOnly, onMark }: {
	c: Change; isReadOnly: boolean; onMark: (kind: Kind) => void;
}): ReactNode {
	const { mark, is_marked } = c.change;
	return (
		<>
			{mark && <Marked mark={mark} isReadOnly={isReadOnly} />}
			{!is_marked && !isReadOnly && <span className="row tight">
				<button type="button" className="small" onClick={() => onMark('expected')}>Expected</button>
				<button type="button" className="small" onClick={() => onMark('seen')}>Known</button>
				<button type="button" className="small" onClick={() => onMark('not_real')}>Not real</button>
			</span>}
		</>
	);
}

/** What else changed there besides the commit, and what would decide the cause. */
function There({ change }: { change: Change['change'] }): ReactNode {
	return (
		<>
			{change.also.map((a) => <span key={a.column} className="dim small-text"><br />
				{/^(server|benchmark)\./.test(a.column) ? a.column.slice(a.column.indexOf('.') + 1)
					: columnLabel(a.column)} {showValue(a.column, a.before)} → {showValue(a.column, a.after)}</span>)}
			{change.also_in > 1 && <span className="dim small-text"><br />
				In {change.also_in} of {change.also_of} series</span>}
			{change.command !== null && <details className="small-text"><summary>Command that confirms it</summary>
				<code>{change.command}</code></details>}
		</>
	);
}

interface ChangesProps {
	metric: string; series: TrendSeries[]; unit: string | null; reason: string | null; isJudged: boolean; names: Names;
	list: Change[];
	/** The index of the change that the reader is at; -1: none. */
	now: number;
}

export function Changes({ metric, series, unit, reason, isJudged, names, list, now }: ChangesProps): ReactNode {
	const [marking, setMarking] = useState<{ c: Change; kind: Kind } | null>(null);
	const isReadOnly = !useCanChange();
	const target = usePageTarget();
	const open = list.filter((c) => !c.change.is_marked).length;
	const reached = useRef<HTMLTableRowElement>(null);
	useEffect(() => reached.current?.focus(), [now]);
	return (
		<section className="card" aria-label="Changes">
			<div className="card-head">
				<p className="big-number" data-changes={open}>{open}
					<span className="unit">{open === 1 ? 'unreviewed change' : 'unreviewed changes'}</span></p>
				<Explain topic="change" />
			</div>
			{series.filter((s) => s.begins !== null).map((s) => (
				<p key={s.id} className="dim">{names.of.get(s.id) ?? s.name}: {s.begins?.text}, a step of
					{' '}{percent(s.begins?.effect ?? null)} that is not tested.</p>
			))}
			{!list.length ? <p className="dim">{isJudged ? 'No change was found' : 'Not judged'}: {reason}.</p> : (
				<div className="scroll-x" tabIndex={0} role="region" aria-label="List of changes">
					<table className="plain-table changes-table">
						<thead><tr><th scope="col">Series</th><th scope="col">{list[0].change.commit !== null ? 'Commit' : 'Date'}</th>
							<th scope="col" className="num aside">Before</th><th scope="col" className="num aside">After</th>
							<th scope="col" className="num">Change</th><th scope="col">Verdict</th>
							<th scope="col" className="num">p</th><th scope="col">Review</th></tr></thead>
						<tbody>{list.map((c, i) => {
							const { change } = c;
							const tone = change.verdict === 'better' ? 'good' : change.verdict === 'worse' ? 'bad' : '';
							return (
								<tr key={`${c.series.id} ${change.index}`} tabIndex={-1} ref={i === now ? reached : null}
									aria-current={i === now || undefined}>
									<th scope="row">{names.of.get(c.series.id) ?? c.series.name}</th>
									<td><code>{change.commit_before !== null && change.commit !== null
										? `${shortCommit(change.commit_before)}..${shortCommit(change.commit)}` : placeOf(change)}</code>
									<br /><Link to={target('/compare', { groups: sidesOf(change) })}
										title="Compares the runs before it with those after it">Before / after</Link>
									<There change={change} /></td>
									<td className="num aside"><Num v={change.before} unit={unit} /></td>
									<td className="num aside"><Num v={change.after} unit={unit} /></td>
									<td className={`num ${tone ? `${tone}-text` : ''}`} data-value={change.effect ?? ''}>
										<strong>{percent(change.effect)}</strong>
										{change.interval && <span className="dim small-text"><br />
											{intervalText(change.interval)}</span>}</td>
									<td><span className={`tag ${tone}`}>{WORDS[change.verdict]}</span>
										{change.guard && <span className="dim"> not better: {change.guard}</span>}</td>
									<td className="num" title={String(change.p)} data-value={change.p ?? ''}>
										{change.p !== null && change.p < 0.001 ? '< 0.001' : measured(change.p ?? NaN)}</td>
									<td><Review c={c} isReadOnly={isReadOnly}
										onMark={(kind) => setMarking({ c, kind })} /></td>
								</tr>
							);
						})}</tbody>
					</table>
				</div>
			)}
			{marking && <MarkDialog {...marking} metric={metric} onClose={() => setMarking(null)} />}
		</section>
	);
}
