// SPDX-License-Identifier: Apache-2.0
// capacity: so many requests a second within these limits: which configuration needs fewest GPUs?
import type { ReactNode } from 'react';
import type { CapacityConfiguration, Estimate } from '../../../lib/api';
import { keyId } from '../../charts/axis';
import { Notes } from '../../common/notes';
import { Pick, PickMany } from '../../common/pick';
import type { Columns } from '../../common/columns';
import { useRead } from '../../common/routes';
import { at, scaleOf } from '../../common/scale';
import { Num } from '../../common/twin';
import { Icon } from '../../parts/icon';
import { Empty, Failure, Loading } from '../../parts/states';
import { count, measured, NOTHING } from '../../show';
import { listCodec, numberCodec, useUrlState } from '../../url';
import { asked, LIMITS_MAX, limitsCodec, type Limit } from './slo';
import type { ViewProps } from './index';
import './capacity.css';

const rateCodec = numberCodec(10);
const configurationCodec = listCodec(['auto']);

function Form({ columns, usual }: { columns: Columns; usual: string[] }): ReactNode {
	const [rate, setRate] = useUrlState('rate', rateCodec);
	const [limits, setLimits] = useUrlState('slo', limitsCodec);
	const [by, setBy] = useUrlState('by', configurationCodec);
	const change = (i: number, part: Partial<Limit>): void =>
		setLimits(limits.map((l, k) => (k === i ? { ...l, ...part } : l)), { replace: true });
	return (
		<form className="card capacity-form" aria-label="What is asked for"
			onSubmit={(e) => e.preventDefault()}>
			<label className="field"><span>Requests per second</span>
				<input type="number" min="0" step="any" value={rate} onChange={(e) =>
					setRate(Math.max(0, e.target.valueAsNumber || 0), { replace: true })} /></label>
			<fieldset>
				<legend>Limits</legend>
				{limits.map((l, i) => (
					<div key={i} className="row tight limit">
						<Pick label="" value={l.column} onPick={(column) => change(i, { column })}
							columns={columns} options={columns.numbers} />
						<select value={l.side} aria-label={`Limit ${i + 1}: side`}
							onChange={(e) => change(i, { side: e.target.value as Limit['side'] })}>
							<option value="max">at most</option><option value="min">at least</option>
						</select>
						<input type="number" step="any" aria-label={`Limit ${i + 1}: value`} value={l.value ?? ''}
							onChange={(e) => change(i, { value: Number.isFinite(e.target.valueAsNumber)
								? e.target.valueAsNumber : null })} />
						<span className="dim">{columns.measure(l.column).unit}</span>
						<button type="button" className="small icon quiet" aria-label={`Remove limit ${i + 1}`}
							onClick={() => setLimits(limits.filter((_, k) => k !== i))}><Icon name="cross" /></button>
					</div>
				))}
				<button type="button" className="small" disabled={limits.length >= LIMITS_MAX}
					onClick={() => setLimits([...limits,
					{ column: 'p95_tpot_ms', side: 'max', value: null }])}><Icon name="plus" />Add limit</button>
			</fieldset>
			<PickMany label="Configuration columns" values={by[0] === 'auto' ? usual : by} max={12}
				columns={columns} options={columns.groups}
				onPick={(list) => setBy(list.length ? list : ['auto'])} />
		</form>
	);
}

/** A value and what it may be instead, on one scale for all. */
function Range({ e, most }: { e: Estimate; most: number }): ReactNode {
	const scale = scaleOf([0, most]), x = (v: number): number => 4 + at(scale, v) * 172;
	if (e.value === null)
		return null;
	return (
		<svg className="range" viewBox="0 0 180 14" width="180" height="14" aria-hidden="true">
			<line x1="4" x2="176" y1="7" y2="7" className="ground" />
			{e.low !== null && e.high !== null && <rect x={x(e.low)} y="4" height="6" rx="3"
				width={Math.max(2, x(e.high) - x(e.low))} />}
			<circle cx={x(e.value)} cy="7" r="4.5" />
		</svg>
	);
}

const spanText = (e: Estimate): string => (e.low === null || e.high === null ? ''
	: e.low === e.high ? '' : `${measured(e.low)} to ${measured(e.high)}`);

function Row({ c, rank, most }: { c: CapacityConfiguration; rank: number; most: number }): ReactNode {
	return (
		<tr>
			<td className="num dim">{c.gpus.value === null ? '' : rank}</td>
			<th scope="row">{c.name || 'All runs'}</th>
			<td className="num"><strong><Num v={c.gpus.value} /></strong>
				<span className="dim"> {spanText(c.gpus)}</span></td>
			<td><Range e={c.gpus} most={most} /></td>
			<td className="num">{c.servers ?? NOTHING}{c.gpus_per_server !== null
				&& <span className="dim"> × {count(c.gpus_per_server, 'GPU')}</span>}</td>
			<td className="num"><Num v={c.rate_per_server.value} />
				<span className="dim"> {spanText(c.rate_per_server)}</span></td>
			<td className="num">{c.runs}</td>
			<td className="dim">{c.reason}</td>
		</tr>
	);
}

function Ranked({ list, rate }: { list: CapacityConfiguration[]; rate: number }): ReactNode {
	const best = list[0];
	const most = Math.max(1, ...list.map((c) => c.gpus.high ?? c.gpus.value ?? 0));
	return (
		<>
			{best.gpus.value !== null && (
				<section className="card" aria-label="GPUs needed">
					<p className="dim">GPUs needed for {measured(rate)} requests/s</p>
					<p className="big-number"><Num v={best.gpus.value} /><span className="unit">
						{best.gpus.value === 1 ? 'GPU' : 'GPUs'}
						{spanText(best.gpus) && `, ${spanText(best.gpus)}`}</span></p>
					<p>{best.name || 'All runs'}</p>
				</section>
			)}
			<section className="card" aria-label="Configurations">
				<h2>{count(list.length, 'configuration')}</h2>
				<div className="scroll-x" tabIndex={0} role="region" aria-label="Ranked configurations">
					<table className="plain-table ranked">
						<thead><tr><th scope="col"><span className="unseen">Rank</span></th>
							<th scope="col">Configuration</th><th scope="col" className="num">GPUs</th>
							<th scope="col"><span className="unseen">Range</span></th>
							<th scope="col" className="num">Servers</th>
							<th scope="col" className="num">Requests/s per server</th>
							<th scope="col" className="num">Runs</th><th scope="col">Note</th></tr></thead>
						<tbody>{list.map((c, i) => <Row key={keyId(c.key)} c={c} rank={i + 1} most={most} />)}</tbody>
					</table>
				</div>
			</section>
		</>
	);
}

export function Capacity({ columns, filter }: ViewProps): ReactNode {
	const [rate] = useUrlState('rate', rateCodec);
	const [limits] = useUrlState('slo', limitsCodec);
	const [by] = useUrlState('by', configurationCodec);
	const answer = useRead('POST /api/analysis/capacity', { filter, rate,
		slo: asked(limits), configuration: by[0] === 'auto' ? null : by }, rate > 0);
	return (
		<>
			<Form columns={columns} usual={Object.keys(answer.data?.configurations[0]?.key ?? {})} />
			{rate <= 0 ? <Empty title="Enter a request rate" />
				: answer.isError ? <Failure error={answer.error} onRetry={() => void answer.refetch()} />
					: !answer.data ? <Loading />
						: !answer.data.configurations.length ? (
							<section className="card"><Empty title="No suitable runs">
								<p>Capacity needs runs that were measured at a known load and have these metrics.</p>
							</Empty></section>
						) : <Ranked list={answer.data.configurations} rate={rate} />}
			{answer.data && answer.data.left_out > 0 && <p className="dim">{count(answer.data.left_out, 'run')}
				{' '}excluded: they lack one of the metrics, or do not count for it.</p>}
			<Notes notes={answer.data?.notes} />
		</>
	);
}
