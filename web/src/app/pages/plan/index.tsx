// SPDX-License-Identifier: Apache-2.0
// plan: for one workload: which configuration carries a load, what more GPUs bring, which parameter
// matters; and what GPUs cost.
import type { ReactNode } from 'react';
import type { Curves } from '../../../lib/api';
import { useIsBlock } from '../../common/block';
import { useColumns, type Columns } from '../../common/columns';
import { Prices } from '../../common/prices';
import { both, useRead } from '../../common/routes';
import { NoRuns, Scope } from '../../common/scope';
import { asked, type And } from '../../filter';
import { Failure, Loading } from '../../parts/states';
import { count } from '../../show';
import { useFilter, usePageTarget } from '../../state';
import { choiceCodec, navigate, textCodec, useUrlState } from '../../url';
import { Calculator } from './calculator';
import { Capacity } from './capacity';
import { Impact } from './impact';
import { Scaling } from './scaling';
import '../../common/pages.css';

const TABS = [['capacity', 'Capacity'], ['calculator', 'Calculator'], ['scaling', 'Scaling'],
	['impact', 'Impact'], ['prices', 'Prices']] as const;
const tabCodec = choiceCodec(TABS.map(([name]) => name), 'capacity');
const text = textCodec('');

/** What every view of the plan is about: the runs of one workload. */
export interface ViewProps { columns: Columns; filter: And | null; workload: Curves }

function Workload({ answer }: { answer: Curves }): ReactNode {
	const [, setWorkload] = useUrlState('w', text);
	return (
		<label className="pick workload">
			<span>Workload</span>
			<select value={answer.workload} onChange={(e) => setWorkload(e.target.value)}>
				{answer.workloads.map((w) => (
					<option key={w.key} value={w.key}>{w.label} ({count(w.runs, 'run')})</option>
				))}
			</select>
		</label>
	);
}

function View({ columns }: { columns: Columns }): ReactNode {
	const [tab] = useUrlState('tab', tabCodec);
	const [w] = useUrlState('w', text);
	const [filter] = useFilter(), isBlock = useIsBlock();
	const answer = useRead('POST /api/analysis/curves', { filter: asked(filter), ...w && { workload: w } });
	if (tab === 'prices')
		return <Prices />;
	if (answer.isError)
		return <Failure error={answer.error} onRetry={() => void answer.refetch()} />;
	if (!answer.data)
		return <Loading />;
	if (!answer.data.workloads.length)
		return <NoRuns />;
	const props = { columns, workload: answer.data, filter: both(filter, answer.data.workload
		? [{ column: 'workload', in: [answer.data.workload] }] : []) };
	return (
		<>
			{!isBlock && <Workload answer={answer.data} />}
			{tab === 'scaling' ? <Scaling {...props} /> : tab === 'impact' ? <Impact {...props} />
				: tab === 'calculator' ? <Calculator {...props} /> : <Capacity {...props} />}
		</>
	);
}

function Tabs(): ReactNode {
	const [tab] = useUrlState('tab', tabCodec), target = usePageTarget();
	return (
		<div className="segments" role="group" aria-label="View">
			{TABS.map(([name, label]) => (
				<button key={name} type="button" aria-pressed={tab === name}
					onClick={() => navigate(target('/plan', name === 'capacity' ? {} : { tab: name }))}>
					{label}</button>
			))}
		</div>
	);
}

export default function Plan(): ReactNode {
	const columns = useColumns(), isBlock = useIsBlock();
	return (
		<div className="page plan-page">
			{!isBlock && <div className="page-head"><h1>Plan</h1><Tabs /><Scope /></div>}
			{columns.error ? <Failure error={columns.error} onRetry={columns.retry} />
				: !columns.isReady ? <Loading /> : <View columns={columns} />}
		</div>
	);
}
