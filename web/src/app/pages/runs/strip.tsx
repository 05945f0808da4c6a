// SPDX-License-Identifier: Apache-2.0
// strip.tsx: how many runs there are, large, and what they say in a few numbers.
import { useState, type ReactNode } from 'react';
import { whole } from '../../../lib/format';
import { ApiError } from '../../api';
import { asked, type And } from '../../filter';
import { Icon } from '../../parts/icon';
import { useApply, type ColumnOption, type Statistic } from '../../query';
import { measured, NOTHING } from '../../show';
import type { Shown } from '../../state';
import { ColumnPicker } from './columns';
import { defaultStatistics, labelOf } from './view';

interface Props {
	filter: And;
	shown: Shown;
	total: number | undefined;
	all: number | undefined;
	queryMs: number | undefined;
	isBusy: boolean;
	options: Map<string, ColumnOption>;
	chosen: string[];
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
			+ `${whole(s.count)} runs${s.missing ? `, ${whole(s.missing)} without` : ''}`}>
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

export function Strip(props: Props): ReactNode {
	const { filter, shown, total, all, queryMs, isBusy, options, chosen, onChosen } = props;
	const [isPicking, setPicking] = useState(false);
	const columns = chosen.length ? chosen : defaultStatistics(options);
	const answer = useApply({ filter: asked(filter), shown, limit: 0, statistics: columns },
		columns.length > 0);
	/* What else is wrong stands in place of the table. */
	const refused = answer.error instanceof ApiError
		&& answer.error.pointer?.startsWith('/statistics') ? answer.error.message : null;
	return (
		<section className="strip" aria-label="Summary">
			<div className="strip-total" aria-live="polite">
				<p className="big-number" data-total={total}>
					{total === undefined ? '…' : whole(total)}
					<span className="unit">{total === 1 ? 'run' : 'runs'}</span>
				</p>
				<p className="dim num">
					{all !== undefined && total !== undefined && all > total
						&& <>of {whole(all)} · </>}
					<span className={isBusy ? 'busy' : ''}>
						{queryMs === undefined ? 'asking' : `${measured(Number(queryMs.toPrecision(2)))} ms`}
					</span>
				</p>
			</div>
			{refused && <p role="alert">{refused}</p>}
			<dl className="tiles" tabIndex={0} aria-label="Medians and their ranges">
				{(refused ? [] : answer.data?.statistics ?? []).map((s) => (
					<Tile key={s.column} s={s} label={labelOf(s.column, options)}
						unit={options.get(s.column)?.unit ?? null} />
				))}
			</dl>
			{options.size > 0 && <button type="button" className="quiet small icon strip-edit"
				aria-label="Choose the numbers above the table" title="Choose numbers"
				onClick={() => setPicking(true)}><Icon name="pencil" /></button>}
			{isPicking && <ColumnPicker title="Numbers above the table" chosen={columns} options={options}
				isAllowed={(o) => o.kind === 'number' || o.kind === 'mixed'} most={12}
				usual={defaultStatistics(options)} onChosen={onChosen}
				onClose={() => setPicking(false)} />}
		</section>
	);
}
