// SPDX-License-Identifier: Apache-2.0
// thin.ts: an answer without the parts that a block does not draw, so that a frozen board stays
// small.
import type { Compare } from '../../../lib/api';
import { headlineOf } from '../compare/words';

/** Configurations are drawn on the page of a comparison only; its sentence needs those of one metric. */
export function thinned(route: string, answer: unknown, primary = ''): unknown {
	if (route !== '/api/data/compare')
		return answer;
	const compare = answer as Compare;
	return { ...compare, parameters: [], comparisons: compare.comparisons.map((c) => {
		const main = headlineOf(c.metrics, primary);
		return { ...c, metrics: c.metrics.map((m) => (m === main ? { ...m, loads: [] }
			: { ...m, loads: [], configurations: [] })) };
	}) };
}
