// SPDX-License-Identifier: Apache-2.0
// prices.tsx: the price per hour of each kind of GPU and the power of its board. The server keeps
// both for all users; no price is shipped or guessed.
import type { ReactNode } from 'react';
import type { Price, PriceRequest } from '../../lib/api';
import { change } from '../api';
import { Link } from '../parts/link';
import { Empty, Failure, Loading } from '../parts/states';
import { toastError } from '../parts/toast';
import { refresh, useCanChange, type ColumnOption } from '../query';
import { age, zonedTime } from '../show';
import { usePageTarget } from '../state';
import { Amount } from './amount';
import { COMPUTED, type Columns } from './columns';
import { useGet } from './routes';
import { lastWho } from './who';

export const COST = 'usd_per_m_output';

/** Metrics that can be chosen although no run has them by itself. */
export function computed(columns: Columns): ColumnOption[] {
	const like = columns.of('tokens_per_s_per_gpu');
	return !like ? [] : Object.entries(COMPUTED).flatMap(([column, c]) =>
		(c && !columns.of(column) ? [{ ...like, column, label: c.label, unit: c.unit }] : []));
}

/** was: what the field showed; the server refuses a change that would undo another user's unseen. */
function save(gpu: string, part: PriceRequest, was: number | null): void {
	const who = lastWho();
	change('PUT', `/api/settings/prices/${encodeURIComponent(gpu)}`, { ...part, was, ...who && { who } })
		.catch(toastError).finally(refresh);
}

interface UsdProps { price: Pick<Price, 'gpu' | 'usd_per_hour'>; isBare?: boolean }

const Usd = ({ price, isBare = false }: UsdProps): ReactNode => (
	<Amount label={isBare ? `Price of ${price.gpu}` : price.gpu} unit="$/h" isBare={isBare} placeholder="none"
		value={price.usd_per_hour} onValue={(v) => save(price.gpu, { usd_per_hour: v }, price.usd_per_hour)} />
);

/** Fields for the GPUs of a page, for a menu. */
export function PriceFields({ gpus }: { gpus: string[] }): ReactNode {
	const prices = useGet('GET /api/settings/prices', '/api/settings/prices');
	const canChange = useCanChange(), target = usePageTarget();
	const known = new Map(prices.data?.items.map((p) => [p.gpu, p]));
	return (
		<div className="prices">
			<p className="dim">$ for one hour of one GPU, for everybody who uses this dashboard</p>
			{gpus.map((gpu) => (canChange
				? <Usd key={gpu} price={known.get(gpu) ?? { gpu, usd_per_hour: null }} />
				: <p key={gpu}>{gpu} <span className="num">{known.get(gpu)?.usd_per_hour ?? 'no price'}</span></p>))}
			<p><Link to={target('/plan', { tab: 'prices' })}>All prices and board power</Link></p>
		</div>
	);
}

/** "Set a price for b200": a field for each GPU that has none. */
export function Unpriced({ gpus }: { gpus: string[] }): ReactNode {
	const canChange = useCanChange();
	if (!gpus.length)
		return null;
	return (
		<div className="unpriced" role="group" aria-label="GPUs without a price">
			<span className="warn-text">{canChange ? 'Set a price for' : 'No price is set for'}</span>
			{gpus.map((gpu) => (canChange ? <Usd key={gpu} price={{ gpu, usd_per_hour: null }} />
				: <span key={gpu}>{gpu}</span>))}
		</div>
	);
}

/** All prices, with the user and time of each entry. */
export function Prices(): ReactNode {
	const prices = useGet('GET /api/settings/prices', '/api/settings/prices');
	const canChange = useCanChange();
	if (prices.isError)
		return <Failure error={prices.error} onRetry={() => void prices.refetch()} />;
	if (!prices.data)
		return <Loading />;
	if (!prices.data.items.length)
		return <Empty title="No run names its GPU">
			<p>Prices are for the GPUs that runs name: <code>gpu</code> of a server in an experiment, or
				{' '}<code>--metadata gpu=NAME</code> of a benchmark.</p></Empty>;
	return (
		<section className="card" aria-label="Prices and power">
			<h2>Prices and power</h2>
			<p className="dim">$/M output tokens needs a price for the GPU. Tokens/s per kW needs its power where a run
				did not measure it. No price is known until one is entered.</p>
			<div className="scroll-x" tabIndex={0} role="region" aria-label="Table of prices and power">
				<table className="plain-table prices-table">
					<thead><tr><th scope="col">GPU</th><th scope="col">$ per GPU hour</th>
						<th scope="col">Board power</th><th scope="col">From</th></tr></thead>
					<tbody>{prices.data.items.map((p) => (
						<tr key={p.gpu}>
							<th scope="row">{p.gpu}</th>
							<td>{canChange ? <Usd price={p} isBare /> : p.usd_per_hour ?? 'no price'}</td>
							<td>{canChange ? <Amount label={`Power of ${p.gpu}`} unit="W" isBare placeholder="none"
								value={p.power_w} onValue={(v) => save(p.gpu, { power_w: v }, p.power_w)} />
								: p.power_w !== null && `${p.power_w} W`}</td>
							<td className="dim">{[p.source, p.at !== null && (p.who || 'entered'),
								p.at !== null && age(p.at, Date.now() / 1000)].filter(Boolean).map((part, i) => (
								<span key={i} title={p.at !== null ? zonedTime(p.at) : undefined}>
									{i > 0 && ', '}{part}</span>))}</td>
						</tr>
					))}</tbody>
				</table>
			</div>
		</section>
	);
}
