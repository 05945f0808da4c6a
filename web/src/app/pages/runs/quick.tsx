// SPDX-License-Identifier: Apache-2.0
// quick.tsx: the filters that people reach for most, one click each.
import { useState, type ReactNode } from 'react';
import { useGet } from '../../common/routes';
import { conditionOn, withCondition, type And, type Condition } from '../../filter';

const HOUR_S = 3600, DAY_S = 24 * HOUR_S;
const TRACES_MAX = 500; /* of GET /api/traces, the newest */

/** Since so many seconds ago, to the hour before, so that the address stays the same for a while. */
export function since(now_s: number, seconds: number): Condition {
	return { column: 'timestamp', range: { min: Math.floor((now_s - seconds) / HOUR_S) * HOUR_S } };
}

const isSame = (a: Condition | undefined, b: Condition): boolean =>
	JSON.stringify(a) === JSON.stringify(b);

/** With the condition on its column, or without it where it is there already. */
export function toggled(filter: And, next: Condition): And {
	return withCondition(filter, next.column,
		isSame(conditionOn(filter, next.column), next) ? null : next);
}

export function Quick({ filter, hasVerdicts, onFilter }: {
	filter: And; hasVerdicts: boolean; onFilter: (next: And) => void;
}): ReactNode {
	const [now] = useState(() => Date.now() / 1000);
	const traces = useGet('GET /api/traces', `/api/traces?limit=${TRACES_MAX}`);
	const traced = [...new Set((traces.data?.items ?? []).map((t) => t.run_id)
		.filter((id) => id !== null))];
	const chips: [string, Condition][] = [
		['Last 24 hours', since(now, DAY_S)], ['Last 7 days', since(now, 7 * DAY_S)],
		['Failed', { column: 'status', in: ['failed'] }],
		...(hasVerdicts ? [['INVALID', { column: 'verdict', in: ['INVALID'] }] as [string, Condition]]
			: []),
		...(traced.length ? [['Has trace', { column: 'run_id', in: traced }] as [string, Condition]] : []),
	];
	return (
		<div className="quick" role="group" aria-label="Quick filters">
			{chips.map(([label, condition]) => (
				<button key={label} type="button" className="small"
					aria-pressed={isSame(conditionOn(filter, condition.column), condition)}
					onClick={() => onFilter(toggled(filter, condition))}>{label}</button>
			))}
		</div>
	);
}
