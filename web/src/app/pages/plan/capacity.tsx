// SPDX-License-Identifier: Apache-2.0
// capacity: at a given number of requests per second within these limits: which configuration needs
// the fewest GPUs?
import { useCallback, useMemo, type ReactNode } from 'react';
import type { Capacity as Answer, CapacityConfiguration, CapacitySearch, Estimate } from '../../../lib/api';
import { keyId, type Size } from '../../charts/axis';
import { Chart } from '../../charts/chart';
import type { Ink } from '../../charts/ink';
import { linesOption, savedLines, type LineSeries, type Rule } from '../../charts/lines';
import { arrange } from '../../colour';
import { Amount } from '../../common/amount';
import { Explain } from '../../common/explain';
import { Legend } from '../../common/legend';
import { begun, Notes } from '../../common/notes';
import { Pick, PickMany } from '../../common/pick';
import { columnsOf, tellingOf, type Columns } from '../../common/columns';
import { useRead } from '../../common/routes';
import { at, scaleOf } from '../../common/scale';
import { isSeen, useFlipped } from '../../common/shown';
import { Num } from '../../common/twin';
import { Icon } from '../../parts/icon';
import { Empty, Failure, Loading } from '../../parts/states';
import { whole } from '../../../lib/format';
import { count, measured, NOTHING } from '../../show';
import { listCodec, useUrlState, type Codec } from '../../url';
import { asked, isBound, LIMITS_MAX, limitsCodec, limitsOf, rankedOf, type Limit } from './slo';
import type { ViewProps } from './index';
import { versionText, withNames } from './names';
import './capacity.css';

/** null: the server chooses. */
const rateCodec: Codec<number | null> = {
	read: (text) => (Number(text) > 0 && Number.isFinite(Number(text)) ? Number(text) : null),
	write: (rate) => (rate === null ? null : String(rate)),
};
type Named = CapacityConfiguration & { full: string };

const configurationCodec = listCodec(['auto']);
const HEIGHT = 380, SHOWN_AT_FIRST = 6;

/** Limits of runs with `search: {find: rate}`: for these the rate was measured. */
function Searched({ list, columns, onPick }: {
	list: CapacitySearch[]; columns: Columns; onPick: (limits: Limit[]) => void;
}): ReactNode {
	return list.length > 0 && (
		<div className="row tight" role="group" aria-label="Limits of searches">
			<span className="dim small-text">Searched:</span>
			{list.map((s) => (
				<button key={JSON.stringify(s.slo)} type="button" className="small" aria-pressed={s.is_asked}
					title={`${count(s.runs, 'run')} searched for the largest request rate within these limits`}
					onClick={() => onPick(limitsOf(s.slo))}>{s.slo.map((l) => {
						const m = columns.measure(l.column);
						return `${m.label} ≤ ${measured(l.max ?? NaN)}${m.unit ? ` ${m.unit}` : ''}`;
					}).join(', ')} <span className="dim">{s.runs}</span></button>
			))}
		</div>
	);
}

function Form({ columns, usual, answer }: {
	columns: Columns; usual: string[]; answer: Answer | undefined;
}): ReactNode {
	const [rate, setRate] = useUrlState('rate', rateCodec);
	const [chosen, setLimits] = useUrlState('slo', limitsCodec);
	const [by, setBy] = useUrlState('by', configurationCodec);
	const limits = chosen.length ? chosen : limitsOf(answer?.slo ?? []);
	const named = by[0] === 'auto' ? usual : by;
	const told = by[0] === 'auto' ? tellingOf(named, answer?.configurations.map((c) => c.key) ?? []) : named;
	const change = (i: number, part: Partial<Limit>): void =>
		setLimits(limits.map((l, k) => (k === i ? { ...l, ...part } : l)), { replace: true });
	return (
		<div className="card capacity-form" role="group" aria-label="What is asked for">
			<div className="field">
				<Amount label="Requests per second" unit="" value={rate ?? answer?.rate ?? null}
					onValue={(v) => setRate(v)} />
				{rate === null && answer?.rate != null && <p className="dim small-text">70 % of the highest rate that a
					configuration carries within the limits</p>}
			</div>
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
				{!chosen.length && limits.length > 0 && <p className="dim small-text">{answer?.searches.length
					? 'the limits of most searches' : 'twice the lowest median of a configuration'}</p>}
				<Searched list={answer?.searches ?? []} columns={columns} onPick={setLimits} />
				<button type="button" className="small" disabled={limits.length >= LIMITS_MAX}
					onClick={() => setLimits([...limits,
						{ column: 'p95_tpot_ms', side: 'max', value: null }])}><Icon name="plus" />Add limit</button>
			</fieldset>
			<div>
				<PickMany label="Configuration columns" values={told} max={12} columns={columns}
					options={columns.groups} onPick={(list) => setBy(list.length ? list : ['auto'])} />
				{told.length < named.length && <p className="dim small-text">{named.length - told.length} more
					{' '}are the same in all, or follow from these</p>}
			</div>
		</div>
	);
}

/** The metric of the limit that binds over the rate: where a line crosses the limit is its capacity. */
function linesOf(answer: Answer, list: CapacityConfiguration[], flipped: string[]): LineSeries[] {
	const k = answer.binding, limit = answer.slo[k].max ?? answer.slo[k].min ?? null;
	arrange(list.map((c) => keyId(c.key)));
	return list.map((c, i) => {
		const id = keyId(c.key), { value, low, high } = c.rate_per_server;
		return { id, name: c.name || 'All runs', isShown: isSeen(i, id, flipped, SHOWN_AT_FIRST), changes: [],
			points: c.loads.flatMap((l) => (l.rate === null || l.values[k].value === null ? [] : [{ x: l.rate,
				value: l.values[k].value, low: l.values[k].low, high: l.values[k].high, facts: [
					['At', `${measured(l.rate)} requests/s`], ['Limits', l.holds ? 'kept' : 'not kept'],
					['From', count(l.runs, 'run')]] as [string, string][] }])),
			answers: c.state === 'found' && value !== null && limit !== null
				? [{ x: value, value: limit, low, high }] : [] };
	});
}

/** Runs that are left out for another reason than their failure, which has a note of its own. */
const otherwiseLeftOut = (answer: Answer): number =>
	answer.left_out - Math.max(0, ...answer.trust.map((t) => t.failed));

function Drawing({ answer, list, columns }: {
	answer: Answer; list: CapacityConfiguration[]; columns: Columns;
}): ReactNode {
	const { flipped, flip } = useFlipped();
	const series = useMemo(() => linesOf(answer, list, flipped), [answer, list, flipped]);
	const slo = answer.slo[answer.binding], limit = slo.max ?? slo.min ?? 0;
	const y = useMemo(() => columns.measure(slo.column), [columns, slo]);
	const make = useCallback((ink: Ink, size: Size) => {
		const most = Math.max(0, ...series.filter((s) => s.isShown).flatMap((s) => s.points.map((p) => Number(p.x))));
		const rules: Rule[] = [{ text: `limit ${measured(limit)}${y.unit ? ` ${y.unit}` : ''}`, at: { y: limit } }];
		if (answer.rate !== null && answer.rate <= most)
			rules.push({ text: `${measured(answer.rate)} requests/s`, at: { x: answer.rate } });
		return linesOption({ y, foot: '', spans: [limit], yScale: 'auto', series, rules,
			x: { name: 'Requests/s of one server', kind: 'number', categories: [] } }, ink, size);
	}, [answer, series, y, limit]);
	if (!series.some((s) => s.points.length))
		return null;
	return (
		<section className="card" aria-label="Latency over load">
			<h2>{y.label} over load</h2>
			<Chart label={`${y.label} over requests/s of one server; the limit is ${measured(limit)}`} height={HEIGHT}
				make={make} saved={savedLines(`${y.label} over load`, series, 'requests_per_s_of_one_server', slo.column)} />
			<Legend label="Configurations" hasForms onToggle={flip} entries={series.map((s, i) =>
				({ id: s.id, name: s.name, isShown: s.isShown, n: list[i].loads.length }))} />
			<p className="dim small-text">A ring is the rate at which a configuration reaches the limit, the bar its
				interval: from a search where there was one, else between the loads on both sides. Numbers in the
				legend: loads measured.</p>
		</section>
	);
}

/** An estimate and its range, on one scale for all. */
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

/** The span next to its value. */
const aside = (e: Estimate): string => (spanText(e) ? ` (${spanText(e)})` : '');

const percentText = (share: number | null): string => (share === null ? NOTHING
	: `${Math.round(share * 100)} %`);

function Row({ c, rank, most }: { c: Named; rank: number; most: number }): ReactNode {
	return (
		<tr>
			<td className="num dim">{rank}</td>
			<th scope="row" title={c.full}>{c.name || 'All runs'}<span className="dim">{versionText(c)}</span></th>
			<td className="num">{isBound(c) && c.servers !== 1 && <span className="dim">at most </span>}
				<strong><Num v={c.gpus.value} /></strong><span className="dim">{aside(c.gpus)}</span></td>
			<td className="range-cell"><Range e={c.gpus} most={most} /></td>
			<td className="num">{c.servers ?? NOTHING}{c.gpus_per_server !== null
				&& <span className="dim"> × {count(c.gpus_per_server, 'GPU')}</span>}</td>
			<td className="num" data-value={c.headroom ?? ''}>{percentText(c.headroom)}</td>
			<td className="num"><Num v={c.usd_per_hour} /></td>
			<td className="num"><Num v={c.rate_per_server.value} />
				<span className="dim">{aside(c.rate_per_server)}</span></td>
			<td className="num" data-value={c.runs}>{whole(c.runs)}</td>
			<td className="dim note">{c.searches > 0 ? 'measured by a search, with its 95 % interval' : c.reason}</td>
		</tr>
	);
}

const STATES: Record<CapacityConfiguration['state'], string> = {
	found: '', needs_higher_load: 'Needs a higher load (limits held at every measured load)',
	never: '', one_load: 'One load only',
};

/** Configurations that the data do not settle, and the measurement that would. */
function Others({ list }: { list: Named[] }): ReactNode {
	return list.length > 0 && (
		<section className="card" aria-label="Not ranked">
			<h2>Not ranked</h2>
			<div className="scroll-x" tabIndex={0} role="region" aria-label="Configurations that are not ranked">
				<table className="plain-table">
					<thead><tr><th scope="col">Configuration</th><th scope="col">Why</th>
						<th scope="col" className="num">Requests/s per server</th>
						<th scope="col" className="num">Runs</th></tr></thead>
					<tbody>{list.map((c) => (
						<tr key={keyId(c.key)}>
							<th scope="row" title={c.full}>{c.name || 'All runs'}<span className="dim">{versionText(c)}</span></th>
							<td>{c.gpus_per_server === null ? 'It is not known how many GPUs a server has'
								: STATES[c.state] || begun(c.reason ?? '')}</td>
							<td className="num">{c.rate_per_server.value !== null && <>at least{' '}
								<Num v={c.rate_per_server.value} /></>}</td>
							<td className="num" data-value={c.runs}>{whole(c.runs)}</td></tr>
					))}</tbody>
				</table>
			</div>
		</section>
	);
}

function Answered({ answer, columns }: { answer: Answer; columns: Columns }): ReactNode {
	const [list, others] = useMemo(() => rankedOf(withNames(answer.configurations)), [answer]);
	const all = useMemo(() => [...list, ...others], [list, others]);
	const best = list.at(0), most = Math.max(1, ...list.map((c) => c.gpus.high ?? c.gpus.value ?? 0));
	return (
		<>
			{best && answer.rate !== null ? (
				<section className="card" aria-label="GPUs needed">
					<p className="dim">GPUs needed for {measured(answer.rate)} requests/s <Explain topic="capacity" /></p>
					<p className="big-number">{isBound(best) && best.servers !== 1 && <span className="unit">at most{' '}
					</span>}<Num v={best.gpus.value} /><span className="unit">
						{best.gpus.value === 1 ? 'GPU' : 'GPUs'}
						{aside(best.gpus)}</span></p>
					<p className="capacity-best" title={best.full}>{best.name || 'All runs'}<span className="dim">{versionText(best)}</span>
						{best.usd_per_hour !== null && <>, $<Num v={best.usd_per_hour} /> per hour</>}
						{best.headroom !== null && <>, <span data-value={best.headroom}>{percentText(best.headroom)}</span>
							{' '}headroom</>}</p>
					{isBound(best) && <p className="dim">Its limits held at every load that was measured, so one server
						may carry more. A higher load, or a search, would tell.</p>}
				</section>
			) : <section className="card" aria-label="GPUs needed"><p role="status">No configuration is known to carry
				this within the limits. Measure at other loads, or widen the limits. <Explain topic="capacity" /></p></section>}
			<Drawing answer={answer} list={all} columns={columns} />
			{list.length > 0 && <section className="card" aria-label="Configurations">
				<h2>{count(list.length, 'configuration')}</h2>
				<div className="scroll-x" tabIndex={0} role="region" aria-label="Ranked configurations">
					<table className="plain-table ranked">
						<thead><tr><th scope="col">Rank</th>
							<th scope="col">Configuration</th><th scope="col" className="num">GPUs</th>
							<th scope="col" className="range-cell"><span className="unseen">Range</span></th>
							<th scope="col" className="num">Servers</th>
							<th scope="col" className="num">Headroom</th>
							<th scope="col" className="num">$/h</th>
							<th scope="col" className="num">Requests/s per server</th>
							<th scope="col" className="num">Runs</th><th scope="col" className="note">Note</th></tr></thead>
						<tbody>{list.map((c, i) => <Row key={keyId(c.key)} c={c} rank={i + 1} most={most} />)}</tbody>
					</table>
				</div>
			</section>}
			<Others list={others} />
		</>
	);
}

export function Capacity({ columns, filter }: ViewProps): ReactNode {
	const [rate] = useUrlState('rate', rateCodec);
	const [limits] = useUrlState('slo', limitsCodec);
	const [by] = useUrlState('by', configurationCodec);
	const slo = asked(limits);
	const answer = useRead('POST /api/analysis/capacity', { filter, rate,
		slo: slo.length ? slo : null, configuration: by[0] === 'auto' ? null : by });
	return (
		<>
			<Form columns={columns} usual={columnsOf((answer.data?.configurations ?? []).map((c) => c.key))} answer={answer.data} />
			{answer.isError ? <Failure error={answer.error} onRetry={() => void answer.refetch()} />
				: !answer.data ? <Loading />
					: !answer.data.configurations.length ? (
						<section className="card"><Empty title="No suitable runs">
							<p>Capacity needs runs that were measured at a known load and have these metrics.</p>
						</Empty></section>
					) : <Answered answer={answer.data} columns={columns} />}
			{answer.data && otherwiseLeftOut(answer.data) > 0 && <p className="dim">
				{count(otherwiseLeftOut(answer.data), 'run')} excluded: {otherwiseLeftOut(answer.data) === 1 ? 'it lacks'
					: 'they lack'} one of the metrics, or the metric does not count.</p>}
			<Notes notes={answer.data?.notes} />
		</>
	);
}
