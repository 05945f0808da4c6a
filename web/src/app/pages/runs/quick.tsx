// SPDX-License-Identifier: Apache-2.0
// quick.tsx: the most used filters, one click each.
import { useEffect, useState, type ReactNode } from 'react';
import { useGet } from '../../common/routes';
import { useTags } from '../../common/tags';
import { TraceTable } from '../../common/traces';
import { conditionOn, withCondition, type And, type Condition } from '../../filter';
import { count } from '../../show';
import { choiceCodec, useUrlState, type Go } from '../../url';

const HOUR_S = 3600, DAY_S = 24 * HOUR_S;
const TAGS_SHOWN = 8; /* those on most runs */
const TRACES_MAX = 500; /* of GET /api/traces, the newest */

/**
 * Begins this many seconds ago, rounded down to the hour so that the address stays the same for a
 * while.
 */
export function since(now_s: number, seconds: number): Condition {
	return { column: 'timestamp', range: { min: Math.floor((now_s - seconds) / HOUR_S) * HOUR_S } };
}

const isSame = (a: Condition | undefined, b: Condition): boolean =>
	JSON.stringify(a) === JSON.stringify(b);

/** Adds the condition on its column, or removes it if it is there already. */
export function toggled(filter: And, next: Condition): And {
	return withCondition(filter, next.column,
		isSame(conditionOn(filter, next.column), next) ? null : next);
}

/** "trace": an address that asks for the runs with a trace, whichever they are now. */
const hasCodec = choiceCodec<'' | 'trace'>(['trace'], '');

export function Quick({ filter, hasVerdicts, onFilter }: {
	filter: And; hasVerdicts: boolean; onFilter: (next: And, how?: Go) => void;
}): ReactNode {
	const [now] = useState(() => Date.now() / 1000);
	const [has, setHas] = useUrlState('has', hasCodec);
	const { data: traces } = useGet('GET /api/traces', `/api/traces?limit=${TRACES_MAX}`);
	const traced = [...new Set((traces?.items ?? []).map((t) => t.run_id)
		.filter((id) => id !== null))];
	const withTrace: Condition = { column: 'run_id', in: traced };
	const isTraced = traced.length > 0 && isSame(conditionOn(filter, 'run_id'), withTrace);
	useEffect(() => {
		if (has !== 'trace' || !traces)
			return;
		if (traced.length && !isTraced)
			onFilter(withCondition(filter, 'run_id', withTrace), { replace: true });
		else if (isTraced)
			setHas('', { replace: true });
	});
	const { all } = useTags(), tagged = conditionOn(filter, 'tag');
	const chosen = tagged && 'in' in tagged ? tagged.in : [];
	const tags = [...all].sort((a, b) => b.runs.length - a.runs.length).map((t) => t.tag);
	const chips: [string, Condition][] = [
		['Last 24 hours', since(now, DAY_S)], ['Last 7 days', since(now, 7 * DAY_S)],
		['Failed', { column: 'status', in: ['failed'] }],
		...(hasVerdicts ? [['INVALID', { column: 'verdict', in: ['INVALID'] }] as [string, Condition]]
			: []),
		...(traced.length ? [['Has trace', withTrace] as [string, Condition]] : []),
		...tags.filter((tag, i) => i < TAGS_SHOWN || chosen.includes(tag))
			.map((tag): [string, Condition] => [`# ${tag}`, { column: 'tag', in: [tag] }]),
	];
	return (
		<>
			<div className="quick" role="group" aria-label="Quick filters">
				{chips.map(([label, condition]) => (
					<button key={label} type="button" className="small"
						aria-pressed={isSame(conditionOn(filter, condition.column), condition)}
						onClick={() => onFilter(toggled(filter, condition))}>{label}</button>
				))}
			</div>
			{has === 'trace' && traces && !traced.length && <p className="dim" role="status">No run has a trace.
				A trace comes with the upload of its run, with <code>profllm ingest</code>, or is attached on
				the page of the run.</p>}
			{isTraced && <details className="run-traces">
				<summary>{count(traces?.total ?? 0, 'trace')} in the store: download or open in Perfetto</summary>
				<div className="run-traces-list"><TraceTable traces={traces?.items ?? []} /></div>
			</details>}
		</>
	);
}
