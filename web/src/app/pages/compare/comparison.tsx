// SPDX-License-Identifier: Apache-2.0
// comparison.tsx: one group against the baseline: metrics, both sides over the load, a table by
// configuration, and the configurations that only one side has.
import { Fragment, useState, type ReactNode } from 'react';
import type { Compare, CompareAlone, CompareConfiguration, CompareMetric, Comparison } from '../../../lib/api';
import { useIsBlock } from '../../common/block';
import type { Columns } from '../../common/columns';
import { intervalText, percent, type Tone } from '../../common/interval';
import { Num, Twin } from '../../common/twin';
import { count } from '../../show';
import { aloneReason, baselineOf, type Configured } from './configured';
import { ForestAxis, ForestRow, rangeOf } from '../../common/forest';
import { Figures, isMain, Statistics, TONE_CLASS } from './metrics';
import { Multiples } from './multiples';
import { Pair } from './pair';
import { headlineOf, toneOf } from './words';

const ROWS_SHOWN = 20;

/** By its own sessions if these are enough, else by the metric's overall verdict. */
function toneOfConfiguration(o: CompareConfiguration, m: CompareMetric): Tone {
	const way = o.evident * m.better;
	if (way !== 0)
		return way > 0 ? 'good' : 'bad';
	const is = (o.effect ?? 0) * m.better;
	return toneOf(m.verdict) === 'plain' || Math.abs(o.effect ?? 0) < m.effect_min ? 'plain' : is > 0 ? 'good' : 'bad';
}

interface PartProps { answer: Compare; c: Comparison; m: CompareMetric; columns: Columns; by: Map<string, Configured> }

function Configurations({ answer, c, m, columns, by }: PartProps): ReactNode {
	const [isAll, setAll] = useState(false);
	const [open, setOpen] = useState<string | null>(null);
	const total = m.n_configurations + (m.verdict === 'not_comparable' ? 0 : m.not_comparable);
	const rows = isAll ? m.configurations : m.configurations.slice(0, ROWS_SHOWN);
	const range = rangeOf(m.configurations.filter((o) => !o.not_comparable));
	const baseline = baselineOf(answer);
	return (
		<section aria-label="Configurations">
			<h3>{columns.measure(m.metric).label} by configuration, the worst change first</h3>
			<div className="scroll-x" tabIndex={0} role="region" aria-label="List of configurations">
				<table className="plain-table figures configurations">
					<thead><tr><th scope="col">Configuration</th><th scope="col" className="num aside">{c.baseline}</th>
						<th scope="col" className="num aside">{c.side}</th><th scope="col" className="num">Change</th>
						<th scope="col" className="forest-cell"><ForestAxis range={range} /></th>
						<th scope="col">Runs</th></tr></thead>
					<tbody>{rows.map((o) => {
						const known = by.get(o.configuration), tone = toneOfConfiguration(o, m);
						const isOpen = open === o.configuration;
						return (
							<Fragment key={o.configuration}>
								<tr data-configuration={o.configuration}>
									<th scope="row"><button type="button" className="small quiet" aria-expanded={isOpen}
										title={o.configuration} onClick={() => setOpen(isOpen ? null : o.configuration)}>
										{known?.short ?? o.configuration}</button>
									{o.not_comparable && <p className="dim small-text narrow-only">not comparable:{' '}
										{o.not_comparable}</p>}</th>
									<td className="num aside"><Num v={o.baseline} /></td>
									<td className="num aside"><Num v={o.value} /></td>
									<td className={`num delta-number ${o.not_comparable ? '' : TONE_CLASS[tone]}`}
										data-value={o.effect ?? ''}>{percent(o.effect)}</td>
									<td className="forest-cell" title={intervalText(o.interval)}>{o.not_comparable
										? <span className="dim">not comparable: {o.not_comparable}</span>
										: <ForestRow e={o} range={range} tone={tone} />}</td>
									<td className="dim one-line">{o.runs.join(' : ')}</td>
								</tr>
								{isOpen && known && <tr className="pair-row"><td colSpan={6}>
									<Pair c={c} known={known} baseline={baseline} runs={[o.runs[0], o.runs[1]]} /></td></tr>}
							</Fragment>
						);
					})}</tbody>
				</table>
			</div>
			{m.configurations.length > ROWS_SHOWN && (
				<button type="button" className="small" aria-expanded={isAll} onClick={() => setAll(!isAll)}>
					{isAll ? `First ${ROWS_SHOWN}` : `All ${m.configurations.length}`}</button>
			)}
			{m.configurations.length < total && <p className="dim small-text">The {m.configurations.length} with
				the largest changes of {total}.</p>}
		</section>
	);
}

interface AloneProps {
	list: CompareAlone[]; n: number; name: string; other: string; reason: (configuration: string) => string;
	by: Map<string, Configured>;
}

function Alone({ list, n, name, other, reason, by }: AloneProps): ReactNode {
	if (!n)
		return null;
	return (
		<Twin title={`${count(n, 'configuration')} only in ${name}, not in ${other}`}
			heads={[{ text: 'Configuration' }, { text: 'Why' }, { text: 'Runs', isNumber: true }]}
			rows={list.map((o) => [<span title={o.configuration}>{by.get(o.configuration)?.short ?? o.configuration}</span>,
				reason(o.configuration), o.runs])} />
	);
}

interface Props { answer: Compare; c: Comparison; columns: Columns; primary: string; by: Map<string, Configured> }

export function ComparisonCard({ answer, c, columns, primary, by }: Props): ReactNode {
	const [isAll, setAll] = useState(false);
	const [wanted, setWanted] = useState(''), isBlock = useIsBlock();
	const main = c.metrics.filter((m) => isMain(m.metric) || m.is_primary);
	const shown = isAll || !main.length ? c.metrics : main;
	const chosen = headlineOf(c.metrics, wanted || primary);
	const name = `${c.side} against ${c.baseline}`;
	const baseline = baselineOf(answer);
	const why = (group: number, other: number) => (configuration: string): string => {
		const one = by.get(configuration);
		return one ? aloneReason(one, by.values(), answer.matched_by, group, other, answer.groups[group].name)
			: 'this combination';
	};
	return (
		<section className="card" role={isBlock ? 'group' : undefined} aria-label={name}>
			<div className="card-head">
				<h2>{name}</h2>
				<span className="dim">{c.refused ? 'not compared' : `${count(c.matched, 'matched configuration')}; `
					+ 'geometric means over these'}</span>
				{main.length > 0 && main.length < c.metrics.length && (
					<button type="button" className="small push" aria-pressed={isAll}
						onClick={() => setAll(!isAll)}>All {c.metrics.length} metrics</button>
				)}
			</div>
			{c.refused && <p>{c.reason}</p>}
			{shown.length > 0 && (
				<>
					<Figures c={c} shown={shown} columns={columns} chosen={chosen?.metric ?? ''} onChoose={setWanted} />
					{!isBlock && <Statistics shown={shown} columns={columns} />}
				</>
			)}
			{!isBlock && chosen && chosen.configurations.length > 0 && (
				<>
					<Multiples answer={answer} m={chosen} sides={[c.baseline, c.side]} columns={columns} by={by} />
					<Configurations answer={answer} c={c} m={chosen} columns={columns} by={by} />
				</>
			)}
			{!isBlock && <Alone list={c.only_baseline} n={c.alone[0]} name={c.baseline} other={c.side} by={by}
				reason={why(baseline, c.group)} />}
			{!isBlock && <Alone list={c.only_side} n={c.alone[1]} name={c.side} other={c.baseline} by={by}
				reason={why(c.group, baseline)} />}
		</section>
	);
}
