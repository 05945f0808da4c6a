// SPDX-License-Identifier: Apache-2.0
// fullness.tsx: how many of the store's columns are used, under the table of runs.
import type { ReactNode } from 'react';
import { useQuery } from '@tanstack/react-query';
import type { Summary } from '../../../lib/api';
import { whole } from '../../../lib/format';
import { get } from '../../api';
import { isNearlyFull } from './view';

/** One statistic, so that no others are computed for this line. */
const ASKED = '/api/data/summary?statistics=request_throughput';

export function Fullness(): ReactNode {
	const answer = useQuery({
		queryKey: [ASKED], queryFn: ({ signal }) => get<Summary>(ASKED, signal),
	});
	const columns = answer.data?.columns;
	if (!columns)
		return null;
	const { used, limit } = columns;
	const isFull = isNearlyFull(used, limit);
	return (
		<p className={`fullness ${isFull ? 'warn-text' : ''}`} role={isFull ? 'alert' : undefined}
			data-used={used} data-limit={limit}
			title="Columns for names that no schema lists, such as tags.NAME">
			{whole(used)} of {whole(limit)} columns used ({whole(Math.round(100 * used / limit))} %)
			{isFull && '. New parameters will soon have no column. Remove runs whose column names contain '
				+ 'numbers, such as one per request or layer.'}
		</p>
	);
}
