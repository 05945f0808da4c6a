// SPDX-License-Identifier: Apache-2.0
// verdict.ts: what a run's verdict means for its numbers, remedies, and why a run failed. Pure.
import type { Reason } from '../../../lib/api';

/** Metrics that are judged separately, with their usual names. */
const NAMES: [string, string][] = [['ttft', 'TTFT'], ['tpot', 'TPOT'], ['itl', 'ITL'], ['e2el', 'E2EL'],
	['request_throughput', 'request throughput'], ['input_throughput', 'input throughput'],
	['output_throughput', 'output throughput'], ['total_token_throughput', 'total token throughput'],
	['request_goodput', 'goodput']];

const named = (keys: string[]): string => keys.map((k) => NAMES.find(([key]) => key === k)?.[1] ?? k)
	.join(', ');

/** "Do not use: ITL." of one reason; nothing for a note that spoils nothing. */
export function spoilsText(spoils: string[]): string {
	if (!spoils.length)
		return '';
	return NAMES.every(([key]) => spoils.includes(key)) ? 'Do not use any metric of this run.'
		: `Do not use: ${named(spoils)}.`;
}

/** "Not affected: TTFT, TPOT." over all reasons; nothing if all or none are. */
export function fineText(reasons: Reason[]): string {
	const spoiled = new Set(reasons.flatMap((r) => r.spoils));
	const fine = NAMES.map(([key]) => key).filter((key) => !spoiled.has(key));
	return spoiled.size && fine.length ? `Not affected: ${named(fine)}.` : '';
}

/** The client's own error (profllm.error_budget); nothing when it is unknown. */
export function errorText(values: Record<string, unknown>): string {
	const of = (name: string): number => Number(values[`error_budget.${name}`] ?? NaN);
	const ms = (name: string): string => of(name).toFixed(3);
	const age = of('age_s');
	const when = values['error_budget.source'] !== 'kept' ? 'after the run'
		: age < 120 ? `${age.toFixed(0)} s before`
			: age < 7200 ? `${(age / 60).toFixed(0)} min before`
				: `${(age / 3600).toFixed(0)} h before`;
	if ([of('ttft.mean_ms'), of('ttft.high_ms'), of('itl.high_ms'), of('streams')].some(Number.isNaN))
		return '';
	const sign = of('ttft.mean_ms') < 0 ? '' : '+';
	return `Error of these numbers: TTFT ${sign}${ms('ttft.mean_ms')} ms `
		+ `(mean; 95 %: ${ms('ttft.low_ms')} to ${ms('ttft.high_ms')}), `
		+ `ITL p99 within ${ms('itl.high_ms')} ms; `
		+ `calibrated ${when} at ${of('streams')} streams x `
		+ `${of('events_per_s').toPrecision(4)} events/s.`;
}

/** The same as docs/guide/troubleshooting.md, which app-run.test.ts compares. */
export const REMEDIES: Record<string, string> = {
	shared_reads: 'sudo setcap cap_net_raw+ep "$(command -v profllm)": then every TCP segment has its '
		+ 'own stamp; a core of its own; --threads 2 or more; profllm doctor',
	shared_first: 'sudo setcap cap_net_raw+ep "$(command -v profllm)": then every TCP segment has its '
		+ 'own stamp; a core of its own; --threads 2 or more; profllm doctor',
	skew: 'a core of its own; kernel stamps (the default)',
	send_lag: 'a core of its own; --warm-connections N when connecting is slow',
	send_stall: 'a core of its own; --warm-connections N when connecting is slow',
	client_wait: 'a core of its own',
	client_throttled: 'a higher CPU quota of its container',
	no_local_port: '--source-addresses with more addresses of that machine; a wider '
		+ 'net.ipv4.ip_local_port_range; a lower --max-concurrency',
	no_descriptor: 'ulimit -n; a lower --max-concurrency',
	packet_loss: 'a sound network; a client next to the server',
	slow_start: '--num-warmups N',
	few_requests: '--num-prompts N, with the number in the reason',
	slow_connect: '--warm-connections N',
	slow_dns: "the server's address in --base-url",
	server_restarted: 'run again once it is up',
	client_cpu: '--threads',
	answer_at_once: 'streams; no buffering in a proxy before the server',
	role_event: '--compat role-chunk',
	usage_refused: 'correct the server; a tokenizer (--tokenizer) makes our counts exact',
	usage_ignored: '--fix usage, --fix all-text',
	token_count: '--fix usage, --fix all-text',
	answer_length: "--extra-body '{\"max_tokens\": N}' or the field that the server reads",
	constraints_ignored: 'the other --constraint-form, or a server that has structured output',
	constraints_truncated: 'a larger --output-len (bench serve: --structured-output-len)',
	slots_empty: '--num-prompts, ten or more for each slot of --max-concurrency',
	rate_not_carried: 'a lower --request-rate; a higher --max-concurrency where the message names it; '
		+ 'a search for the highest one it carries',
	queue_growing: 'a lower --request-rate; a higher --max-concurrency where the message names it; '
		+ 'a search for the highest one it carries',
	usage: 'read TPOT instead of ITL',
	unstamped: 'a kernel or network driver that stamps; profllm doctor tries it',
	clock_step: 'run again; let the clock be slewed; profllm doctor shows whether it is synchronized',
};

export const LOG_LINES_MAX = 50;

export interface Failed { stage: string; category: string; reason: string; log: string[]; left: number }

/** A failure in the document; null: none. */
export function failureOf(document: unknown): Failed | null {
	const error = typeof document === 'object' && document !== null
		? (document as Record<string, unknown>)['error'] : null;
	if (typeof error !== 'object' || error === null)
		return null;
	const text = (key: string): string => {
		const v = (error as Record<string, unknown>)[key];
		return typeof v === 'string' ? v : '';
	};
	const lines = text('log_tail').replace(/\s+$/, '').split('\n');
	const log = lines.length === 1 && lines[0] === '' ? [] : lines;
	return { stage: text('stage'), category: text('category'), reason: text('reason'),
		log: log.slice(-LOG_LINES_MAX), left: Math.max(0, log.length - LOG_LINES_MAX) };
}
