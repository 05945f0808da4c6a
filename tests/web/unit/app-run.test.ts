// SPDX-License-Identifier: Apache-2.0
import { foundOf, foundText } from '../../../web/src/app/pages/run/search';
import { readFileSync } from 'node:fs';
import {
	errorText, failureOf, fineText, LOG_LINES_MAX, REMEDIES, spoilsText,
} from '../../../web/src/app/pages/run/verdict';
import type { Reason } from '../../../web/src/lib/api';

const reason = (spoils: string[]): Reason => ({ level: 'DEGRADED', code: 'x', text: 'y', spoils });

it('says which metrics not to use, and which are not affected', () => {
	expect(spoilsText(['itl'])).toBe('Do not use: ITL.');
	expect(spoilsText(['ttft', 'request_goodput'])).toBe('Do not use: TTFT, goodput.');
	expect(spoilsText([])).toBe('');
	expect(spoilsText(['ttft', 'tpot', 'itl', 'e2el', 'request_throughput', 'input_throughput',
		'output_throughput', 'total_token_throughput', 'request_goodput']))
		.toBe('Do not use any metric of this run.');
	expect(fineText([reason(['itl', 'tpot']), reason(['ttft', 'e2el'])]))
		.toBe('Not affected: request throughput, input throughput, output throughput, '
			+ 'total token throughput, goodput.');
	expect(fineText([reason([])])).toBe('');
});

it('has the remedies of the troubleshooting page', () => {
	const page = readFileSync(new URL('../../../docs/guide/troubleshooting.md', import.meta.url), 'utf8');
	const plain = (text: string): string => text.replace(/`|\]\([^)]*\)|\[/g, '');
	const rows = page.split('\n').flatMap((line) => {
		const [, codes, , helps] = /^\| (`\w+`(?:, `\w+`)*) \| (.*) \| (.*) \|$/.exec(line) ?? [];
		return codes ? codes.replace(/`/g, '').split(', ').map((c) => [c, plain(helps)]) : [];
	});
	const known = new Map(rows as [string, string][]);
	expect(known.size).toBeGreaterThan(15);
	for (const [code, text] of Object.entries(REMEDIES)) {
		const there = known.get(code)!.replace(/^the same/, 'a core of its own');
		expect([code, text]).toEqual([code, there]);
	}
});

it('reads why a run failed, with the end of its log', () => {
	expect(failureOf({ error: null })).toBeNull();
	expect(failureOf(null)).toBeNull();
	const log = Array.from({ length: 70 }, (_, i) => `line ${i}`).join('\n');
	const failed = failureOf({ error: { stage: 'start', category: null, reason: 'It died.',
		log_tail: `${log}\n` } })!;
	expect([failed.stage, failed.category, failed.reason]).toEqual(['start', '', 'It died.']);
	expect([failed.log.length, failed.log[0], failed.log.at(-1), failed.left])
		.toEqual([LOG_LINES_MAX, 'line 20', 'line 69', 20]);
	expect(failureOf({ error: { reason: 'x' } })!.log).toEqual([]);
});

test('the error budget is one line with its age and level; without a calibration there is none', () => {
	const values = {
		'error_budget.source': 'kept', 'error_budget.age_s': 10800,
		'error_budget.streams': 1000, 'error_budget.events_per_s': 100,
		'error_budget.ttft.mean_ms': 0.02, 'error_budget.ttft.low_ms': 0,
		'error_budget.ttft.high_ms': 0.06, 'error_budget.itl.high_ms': 0.012 };

	expect(errorText(values)).toBe('Error of these numbers: TTFT +0.020 ms (mean; 95 %: 0.000 to 0.060), '
		+ 'ITL p99 within 0.012 ms; calibrated 3 h before at 1000 streams x 100.0 events/s.');
	expect(errorText({ ...values, 'error_budget.source': 'calibrated' }))
		.toContain('calibrated after the run at');
	expect(errorText({ ...values, 'error_budget.itl.high_ms': undefined })).toBe('');
	expect(errorText({})).toBe('');
});

it('says what a search found', () => {
	const capacity = { limits: [{ limit: 'p99_ttft_ms<100' }, { limit: 'failed requests' }],
		capacity: 56.31, interval: [24.5, 130.4], variable: 'request_rate',
		binding: 'p99_ttft_ms<100', is_precise: false,
		points: [{ load: 40, requests: 400, failed: 1, passed: true, kind: 'bracket' }, null] };
	const found = foundOf({ results: { capacity } })!;
	expect(foundText(found)).toBe('Largest load that keeps p99_ttft_ms<100: 56.31 requests/s '
		+ '(95 % interval 24.5 to 130.4). p99_ttft_ms<100 is reached first. '
		+ 'Safe to configure: 24.5.');
	expect(found.levels[0]).toEqual({ load: 40, requests: 400, failed: 1, isPassed: true,
		kind: 'short' });
	expect(foundText({ ...found, interval: null })).toBe('No load was found that keeps p99_ttft_ms<100.');
	expect([null, {}, { results: 1 }, { results: { capacity: { limits: [] } } }].map(foundOf))
		.toEqual([null, null, null, null]);
});
