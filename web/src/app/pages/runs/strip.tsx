// SPDX-License-Identifier: Apache-2.0
// strip.tsx: the number of runs, the best ones, and problems of some; or medians of metrics that
// the user chose.
import { useState, type ReactNode } from 'react';
import { whole } from '../../../lib/format';
import { ApiError } from '../../api';
import { asked, onlyValue, type And } from '../../filter';
import { Icon } from '../../parts/icon';
import { Link } from '../../parts/link';
import { useApply, type ColumnOption, type Facet, type Item, type Statistic } from '../../query';
import { measured, NOTHING } from '../../show';
import type { Shown } from '../../state';
import { ColumnPicker } from './columns';
import { counting, defaultStatistics, judgedOf, labelOf, LEAD_COLUMNS, usable } from './view';

const BEST_RATES = ['tokens_per_s_per_gpu', 'output_throughput', 'request_throughput'];
const BEST_LATENCY = 'p99_ttft_ms';

/** "Output throughput" within a sentence; abbreviations keep their capitals. */
const sentenceCase = (label: string): string =>
	(/^[A-Z][a-z]/.test(label) ? label.charAt(0).toLowerCase() + label.slice(1) : label);

interface Props {
	filter: And;
	shown: Shown;
	total: number | undefined;
	all: number | undefined;
	facets: Facet[] | undefined;
	isBusy: boolean;
	options: Map<string, ColumnOption>;
	chosen: string[];
	nameOf: (row: Item) => string;
	runTarget: (id: number) => string;
	onFilter: (next: And) => void;
	onChosen: (next: string[]) => void;
}

function Value({ v }: { v: number | null | undefined }): ReactNode {
	if (typeof v !== 'number')
		return <span className="num">{NOTHING}</span>;
	return <span className="num" data-value={v} title={String(v)}>{measured(v)}</span>;
}

function Tile({ s, label, unit }: { s: Statistic; label: string; unit: string | null }): ReactNode {
	return (
		<div className="tile" data-statistic={s.column} title={`${label}: median of `
			+ `${whole(s.count)} runs${s.missing ? `, ${whole(s.missing)} without` : ''}${
				judgedOf(s.column) ? '; failed and INVALID ones do not count' : ''}`}>
			<dt>{label}</dt>
			<dd>
				<span className="tile-value"><Value v={s.p50} />{unit
					&& <span className="unit">{unit}</span>}</span>
				{s.count > 0 && <span className="tile-range dim">
					<Value v={s.min} /> to <Value v={s.max} /></span>}
			</dd>
		</div>
	);
}

/** The best run by a metric, as a link, among those in which it is usable. */
function Best({ column, label, isLowest, props }: {
	column: string; label: string; isLowest: boolean; props: Props;
}): ReactNode {
	const { filter, shown, options, runTarget } = props;
	const answer = useApply({ filter: usable(filter, column), shown, limit: 1,
		sort: [{ column, descending: !isLowest }], columns: [...LEAD_COLUMNS, column] });
	const row = answer.data?.items[0], v = row?.values[column];
	const unit = options.get(column)?.unit;
	const of = props.facets?.find((f) => f.column === 'workload')?.distinct ?? 0;
	return (
		<div className="tile" data-best={column} title={of > 1 ? 'Runs of different workloads do not compare: '
			+ 'filter by one workload' : undefined}>
			<dt>{label}{of > 1 && ` of ${of} workloads`}</dt>
			<dd>
				{row && typeof v === 'number' ? <>
					<Link className="tile-value" to={runTarget(row.id)}><Value v={v} />{unit
						&& <span className="unit">{unit}</span>}</Link>
					<span className="tile-range dim">{props.nameOf(row)}</span>
				</> : <span className="tile-value dim">{answer.data ? 'none' : '…'}</span>}
			</dd>
		</div>
	);
}

/** How many runs have a value; a click filters by it. */
function Counted({ column, value, label, props }: {
	column: string; value: string; label: string; props: Props;
}): ReactNode {
	const n = props.facets?.find((f) => f.column === column)?.values
		.find((v) => v.value === value)?.count ?? 0;
	return (
		<div className="tile" data-counted={value}>
			<dt>{label}</dt>
			<dd><button type="button" className={`tile-value text ${n ? 'bad-text' : ''}`} disabled={n === 0}
				title={n ? `Show the runs that are ${value}` : undefined}
				onClick={() => props.onFilter(onlyValue(props.filter, column, value))}>
				<span className="num" data-value={n}>{whole(n)}</span></button></dd>
		</div>
	);
}

function Usual({ props }: { props: Props }): ReactNode {
	const { options } = props;
	/* With very many runs the values of a column are not counted, but its range is known. */
	const has = (c: string): boolean => (options.get(c)?.distinct ?? 0) > 0
		|| typeof options.get(c)?.min === 'number';
	const rate = BEST_RATES.find(has);
	return (
		<dl className="tiles" tabIndex={0} aria-label="Best runs and problems">
			{rate && <Best column={rate} label={`Best ${sentenceCase(labelOf(rate, options))}`}
				isLowest={false} props={props} />}
			{has(BEST_LATENCY) && <Best column={BEST_LATENCY}
				label={`Lowest ${labelOf(BEST_LATENCY, options)}`} isLowest props={props} />}
			<Counted column="verdict" value="INVALID" label="INVALID" props={props} />
			<Counted column="status" value="failed" label="Failed" props={props} />
		</dl>
	);
}

/** The median of a column that the user chose, over the runs in which it counts. */
function Median({ column, props }: { column: string; props: Props }): ReactNode {
	const { filter, shown, options } = props, metric = judgedOf(column);
	const answer = useApply({ filter: metric ? counting(filter, metric) : asked(filter), shown, limit: 0,
		statistics: [column] });
	const s = answer.data?.statistics[0];
	/* Other errors replace the table. */
	if (answer.error instanceof ApiError && answer.error.pointer?.startsWith('/statistics'))
		return <div className="tile"><p role="alert">{answer.error.message}</p></div>;
	return s ? <Tile s={s} label={labelOf(column, options)} unit={options.get(column)?.unit ?? null} /> : null;
}

function Medians({ props }: { props: Props }): ReactNode {
	return (
		<dl className="tiles" tabIndex={0} aria-label="Medians and their ranges">
			{props.chosen.map((column) => <Median key={column} column={column} props={props} />)}
		</dl>
	);
}

export function Strip(props: Props): ReactNode {
	const { total, all, isBusy, options, chosen, onChosen } = props;
	const [isPicking, setPicking] = useState(false);
	return (
		<section className="strip" aria-label="Summary" aria-busy={isBusy}>
			<div className="strip-total" aria-live="polite">
				<p className="big-number" data-total={total}>
					{total === undefined ? '…' : whole(total)}
					<span className="unit">{total === 1 ? 'run' : 'runs'}</span>
				</p>
				<p className="dim num">{total === undefined ? 'loading'
					: all !== undefined && all > total && <>of {whole(all)}</>}</p>
			</div>
			{chosen.length ? <Medians props={props} /> : <Usual props={props} />}
			{options.size > 0 && <button type="button" className="quiet small icon strip-edit"
				aria-label="Select summary metrics" title="Select summary metrics"
				onClick={() => setPicking(true)}><Icon name="pencil" /></button>}
			{isPicking && <ColumnPicker title="Summary metrics" options={options} most={12}
				chosen={chosen.length ? chosen : defaultStatistics(options)}
				isAllowed={(o) => o.kind === 'number' || o.kind === 'mixed'} onChosen={onChosen}
				onClose={() => setPicking(false)} />}
		</section>
	);
}
