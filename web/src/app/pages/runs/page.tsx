// SPDX-License-Identifier: Apache-2.0
// page.tsx: how many runs there are under the filter.
import type { ReactNode } from 'react';
import { asked } from '../../filter';
import { Failure, Loading } from '../../parts/states';
import { useApply } from '../../query';
import { useFilter, useShown } from '../../state';
import { runsText } from './view';

export function RunsPage(): ReactNode {
	const [filter] = useFilter();
	const [shown] = useShown();
	const all = useApply({ filter: asked(filter), shown, limit: 0 });
	if (all.isError)
		return <Failure error={all.error} onRetry={() => void all.refetch()} />;
	return all.data ? <p className="big-number">{runsText(all.data.total)}</p> : <Loading />;
}
