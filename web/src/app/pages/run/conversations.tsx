// SPDX-License-Identifier: Apache-2.0
// conversations.tsx: the run by turn, how many answers satisfied their constraint, and each
// priority's latencies; each part only if the run has it.
import { useEffect, useMemo, useRef, type ReactNode } from 'react';
import type { Run } from '../../../lib/api';
import { turnsView } from '../../../lib/turns';
import { Num } from '../../common/twin';
import { count, NOTHING } from '../../show';
import { answersOf, classSentence, classTimes, correctnessSentence, spreadOf, WRONG, type Answers,
	type Correctness, type PriorityClass } from './answers';

function Turns({ turns, sessions }: Pick<Answers, 'turns' | 'sessions'>): ReactNode {
	const box = useRef<HTMLDivElement>(null);
	useEffect(() => box.current?.replaceChildren(turnsView(turns, sessions)), [turns, sessions]);
	return (
		<section className="card" aria-label="Conversations by turn">
			<h2>Conversations by turn</h2>
			{sessions && <p className="dim">{sessions.completed} of {count(sessions.n, 'conversation')} completed
				{sessions.failed > 0 && `, ${sessions.failed} with a failed turn`}
				{sessions.unfinished > 0 && `, ${sessions.unfinished} unfinished`}</p>}
			<div ref={box} />
		</section>
	);
}

function Correct({ c }: { c: Correctness }): ReactNode {
	return (
		<section className="card" aria-label="Correct answers">
			<h2>Correct answers</h2>
			<p>{correctnessSentence(c)}</p>
			{c.wrong.length > 0 && (
				<table className="plain-table narrow">
					<thead><tr><th scope="col">Why an answer is wrong</th>
						<th scope="col" className="num">Answers</th></tr></thead>
					<tbody>{c.wrong.map(([why, n]) => (
						<tr key={why}><th scope="row">{WRONG[why] ?? why}</th><td className="num"><Num v={n} /></td></tr>
					))}</tbody>
				</table>
			)}
		</section>
	);
}

function Classes({ classes }: { classes: PriorityClass[] }): ReactNode {
	const times = classTimes(classes), sentence = classSentence(classes);
	return (
		<section className="card" aria-label="Latency by priority">
			<h2>Latency by priority (ms)</h2>
			{sentence && <p>{sentence}</p>}
			<div className="scroll-x" tabIndex={0} role="region" aria-label="Table of priorities">
				<table className="plain-table">
					<thead><tr>{['Priority', 'Requests', 'Failed', ...times.flatMap(([, name]) =>
						[`${name} median`, `${name} P99`])].map((head) =>
						<th key={head} scope="col" className="num">{head}</th>)}</tr></thead>
					<tbody>{classes.map((c) => (
						<tr key={c.priority}>
							<th scope="row" className="num">{c.priority}</th>
							<td className="num"><Num v={c.requests} /></td><td className="num"><Num v={c.failed} /></td>
							{times.flatMap(([key]) => (['p50', 'p99'] as const).map((p) => (
								<td key={key + p} className="num">{spreadOf(c, key)
									? <Num v={spreadOf(c, key)![p]} /> : NOTHING}</td>
							)))}
						</tr>
					))}</tbody>
				</table>
			</div>
		</section>
	);
}

export function Conversations({ run }: { run: Run }): ReactNode {
	const { turns, sessions, correctness, classes } = useMemo(() => answersOf(run.document), [run.document]);
	return (
		<>
			{turns.length > 0 && <Turns turns={turns} sessions={sessions} />}
			{correctness && <Correct c={correctness} />}
			{classes.length > 1 && <Classes classes={classes} />}
		</>
	);
}
