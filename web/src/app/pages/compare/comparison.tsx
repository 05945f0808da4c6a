// SPDX-License-Identifier: Apache-2.0
// comparison.tsx: one group against the baseline: metrics, a table by configuration, and the
// configurations that only one side has.
import { useState, type ReactNode } from 'react';
import type { CompareAlone, CompareConfiguration, CompareMetric, Comparison } from '../../../lib/api';
import type { Columns } from '../../common/columns';
import { Interval, intervalText, percent, reachOf } from '../../common/interval';
import { Num, Twin } from '../../common/twin';
import { count } from '../../show';
import { Figures, isMain } from './metrics';
import { headlineOf } from './words';

const OPEN_UP_TO = 40;

function configurationRow(c: CompareConfiguration, better: number, reach: number): ReactNode[] {
	const way = c.evident * better;
	const tone = way > 0 ? 'good' : way < 0 ? 'bad' : 'plain';
	const [a, b] = c.runs, [sa, sb] = c.sessions.map((s) => s.length);
	return [
		c.configuration, <Num v={c.baseline} />, <Num v={c.value} />,
		<span className="num" data-value={c.effect ?? ''}>{percent(c.effect)}</span>,
		c.not_comparable ? <span className="dim">not comparable: {c.not_comparable}</span>
			: <><Interval effect={c.effect} interval={c.interval} reach={reach} tone={tone} />
				<span className="dim small-text"> {intervalText(c.interval)}</span></>,
		<span title={`sessions ${sa} : ${sb}`}>{a} : {b}</span>,
	];
}

function Configurations({ c, m, columns }: { c: Comparison; m: CompareMetric; columns: Columns }): ReactNode {
	const reach = reachOf(m.configurations.filter((o) => !o.not_comparable));
	const total = m.n_configurations + (m.verdict === 'not_comparable' ? 0 : m.not_comparable);
	const shown = m.configurations.length < total ? ` (${m.configurations.length} of ${total})` : '';
	return (
		<Twin title={`${columns.measure(m.metric).label} by configuration: ${c.side}${shown}`}
			isOpen={m.configurations.length <= OPEN_UP_TO}
			heads={[{ text: 'Configuration' }, { text: c.baseline, isNumber: true }, { text: c.side, isNumber: true },
				{ text: 'Change', isNumber: true }, { text: 'Interval' }, { text: 'Runs', isNumber: true }]}
			rows={m.configurations.map((o) => configurationRow(o, m.better, reach))} />
	);
}

interface AloneProps { list: CompareAlone[]; n: number; name: string; other: string }

function Alone({ list, n, name, other }: AloneProps): ReactNode {
	if (!n)
		return null;
	return (
		<Twin title={`${count(n, 'configuration')} only in ${name}, not in ${other}`}
			heads={[{ text: 'Configuration' }, { text: 'Runs', isNumber: true }]}
			rows={list.map((o) => [o.configuration, o.runs])} />
	);
}

export function ComparisonCard({ c, columns, primary }: {
	c: Comparison; columns: Columns; primary: string;
}): ReactNode {
	const [isAll, setAll] = useState(false);
	const [wanted, setWanted] = useState('');
	const main = c.metrics.filter((m) => isMain(m.metric) || m.is_primary);
	const shown = isAll || !main.length ? c.metrics : main;
	const chosen = headlineOf(c.metrics, wanted || primary);
	const name = `${c.side} against ${c.baseline}`;
	return (
		<section className="card" aria-label={name}>
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
			{chosen && <p className="sentence">{chosen.sentence}.</p>}
			{shown.length > 0 && (
				<Figures c={c} shown={shown} columns={columns} reach={reachOf(shown)} chosen={chosen?.metric ?? ''}
					onChoose={setWanted} />
			)}
			{chosen && chosen.configurations.length > 0 && <Configurations c={c} m={chosen} columns={columns} />}
			<Alone list={c.only_baseline} n={c.alone[0]} name={c.baseline} other={c.side} />
			<Alone list={c.only_side} n={c.alone[1]} name={c.side} other={c.baseline} />
		</section>
	);
}
