// SPDX-License-Identifier: Apache-2.0
// presets.ts: common pairs of metrics; the first one is the page's default.
import { COST } from '../../common/prices';

export const X_USUAL = 'tokens_per_s_per_user', Y_USUAL = 'tokens_per_s_per_gpu';

/** Name, X axis, Y axis. */
export const PRESETS: [string, string, string][] = [
	['Tokens/s/GPU against tokens/s/user', X_USUAL, Y_USUAL],
	['Tokens/s/GPU against P99 TTFT', 'p99_ttft_ms', Y_USUAL],
	['$/M against tokens/s/user', X_USUAL, COST],
	['Tokens/s/kW against tokens/s/user', X_USUAL, 'tokens_per_s_per_kw'],
	['Throughput against E2EL', 'median_e2el_ms', 'output_throughput'],
];
