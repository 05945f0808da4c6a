// SPDX-License-Identifier: Apache-2.0
// slo.ts: limits that a service must hold, in the address.
import type { Slo } from '../../../lib/api';
import { jsonCodec } from '../../url';

export interface Limit {
	column: string;
	side: 'max' | 'min';
	value: number | null;
}

export const USUAL: Limit[] = [{ column: 'p95_ttft_ms', side: 'max', value: 1000 }];
/** Of one question: ANALYSE_SLO_MAX of src/results/analyse/analyse_internal.h. */
export const LIMITS_MAX = 8;

export const limitsCodec = jsonCodec<Limit[]>((v) => {
	if (!Array.isArray(v)) throw new Error('limits are a list');
	return v.slice(0, LIMITS_MAX).map((entry): Limit => {
		const { column, side, value } = entry as Record<string, unknown>;
		if (typeof column !== 'string') throw new Error('a limit names a column');
		return {
			column,
			side: side === 'min' ? 'min' : 'max',
			value: typeof value === 'number' && Number.isFinite(value) ? value : null,
		};
	});
}, USUAL);

/** Rows without a number ask for nothing. */
export function asked(limits: Limit[]): Slo[] {
	return limits.flatMap((l) =>
		l.value === null
			? []
			: [
					l.side === 'max'
						? { column: l.column, max: l.value }
						: { column: l.column, min: l.value },
				],
	);
}
