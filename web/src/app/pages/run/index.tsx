// SPDX-License-Identifier: Apache-2.0
// run: the page of one run.
import type { ReactNode } from 'react';
import type { Run as Answer } from '../../../lib/api';
import { useColumns } from '../../common/columns';
import { useGet } from '../../common/routes';
import { TagLine } from '../../common/tags';
import { Icon } from '../../parts/icon';
import { Link } from '../../parts/link';
import { Failure, Loading } from '../../parts/states';
import { useHealth } from '../../query';
import { age, showCell, zonedTime } from '../../show';
import { usePageTarget, useSelection } from '../../state';
import { choiceCodec, useUrlState } from '../../url';
import type { PageProps } from '../../pages';
import { Configuration, Document } from './configuration';
import { Notes } from './notes';
import { Overview } from './overview';
import { Timeline } from './timeline';
import '../../common/pages.css';

const TABS = ['overview', 'requests', 'configuration', 'notes', 'document'] as const;
type Tab = (typeof TABS)[number];
const tabCodec = choiceCodec<Tab>(TABS, 'overview');
const NAMES: Record<Tab, string> = { overview: 'Overview', requests: 'Requests',
	configuration: 'Configuration', notes: 'Notes and traces', document: 'Document' };

const STATUS: Record<string, string> = { completed: 'good', partial: 'warn', failed: 'bad',
	VALID: 'good', DEGRADED: 'warn', INVALID: 'bad' };

function Tags({ run }: { run: Answer }): ReactNode {
	const words = [run.values.status, run.values.verdict].filter((v) => typeof v === 'string');
	return (
		<>
			{words.map((w) => <span key={w} className={`tag ${STATUS[w] ?? ''}`}>{w}</span>)}
			{run.flags.map((f) => <span key={f} className="tag warn">{f}</span>)}
		</>
	);
}

/** The store's own name for a result that has none; Notes and traces has the whole hash. */
const HASHED = /^sha256:/;

function Head({ run }: { run: Answer }): ReactNode {
	const target = usePageTarget();
	const { has, toggle } = useSelection(), health = useHealth().data;
	const canLaunch = health?.role === 'launch' && health.can_launch && !health.is_read_only;
	const { values } = run, workload = values.workload;
	const facts = [...typeof workload === 'string' ? [workload]
		: ['server.model', 'benchmark.dataset_name'].map((c) => values[c]), values.gpu_model ?? values['hardware.gpu']]
		.filter((v) => typeof v === 'string');
	const at = typeof run.values.timestamp === 'number' ? run.values.timestamp : null;
	const title = run.values.name ?? run.values['server.model'] ?? run.values.model_id ?? run.run_id;
	return (
		<div className="page-head run-head">
			<div>
				<p><Link to={target('/runs')}>Runs</Link> <span className="dim">/ {run.id}</span></p>
				<h1>{showCell('name', title)} <Tags run={run} /></h1>
				<p className="dim">
					{at !== null && <span title={zonedTime(at)}>{age(at, Date.now() / 1000)}</span>}
					{[...facts, HASHED.test(run.run_id ?? '') ? '' : run.run_id].filter(Boolean).map((f) => ` · ${f}`).join('')}</p>
				<TagLine id={run.id} tags={run.tags.map((t) => t.tag)} />
			</div>
			<div className="row">
				<button type="button" aria-pressed={has(run.id)} onClick={() => toggle(run.id)}>
					<Icon name={has(run.id) ? 'check' : 'plus'} />{has(run.id) ? 'In comparison' : 'Add to comparison'}
				</button>
				<Link className="button" to={target('/compare')}><Icon name="compare" />Compare</Link>
				{canLaunch && <Link className="button" to={target('/launch', { from: String(run.id) })}>
					<Icon name="play" />Launch again</Link>}
			</div>
		</div>
	);
}

export default function Run({ id }: PageProps): ReactNode {
	const columns = useColumns();
	const [tab, setTab] = useUrlState('tab', tabCodec), target = usePageTarget();
	const answer = useGet('GET /api/data/experiments/{id}',
		`/api/data/experiments/${encodeURIComponent(id)}`);
	const run = answer.data;
	if (answer.isError)
		return <><h1 className="unseen">Run {id}</h1>
			<Failure error={answer.error} onRetry={() => void answer.refetch()}>
				<Link className="button" to={target('/runs')}>All runs</Link></Failure></>;
	if (!run)
		return <Loading what="Loading the run" />;
	const tabs = TABS.filter((t) => t !== 'requests' || run.has_arrays);
	return (
		<div className="page">
			<Head run={run} />
			<div className="segments start" role="group" aria-label="Parts of the run">
				{tabs.map((t) => (
					<button key={t} type="button" aria-pressed={t === tab} onClick={() => setTab(t)}>
						{NAMES[t]}</button>
				))}
			</div>
			{tab === 'overview' && <Overview run={run} columns={columns} />}
			{tab === 'requests' && (run.has_arrays ? (
				<section className="card" aria-label="Requests"><Timeline id={run.id} /></section>
			) : <p className="card dim">The results of this run have no entry for each request. Measure
				with <code>output: {'{'}detailed: true{'}'}</code> in the experiment file, or <code>--save-detailed</code> of
				bench serve, to see them here.</p>)}
			{tab === 'configuration' && <Configuration run={run} />}
			{tab === 'notes' && <Notes r={run} />}
			{tab === 'document' && <Document run={run} />}
		</div>
	);
}
