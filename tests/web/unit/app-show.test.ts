// SPDX-License-Identifier: Apache-2.0
import { age, columnLabel, count, exactCell, given, measured, NOTHING, showCell, showValue, when,
	zonedTime,
} from '../../../web/src/app/show';

it('rounds what was measured to four digits, whole numbers never', () => {
	expect([0, 1, 999.96, 1234.5, 1234567, 0.00012345, 12.34567, -3.14159, 123.456].map(measured))
		.toEqual(['0', '1', '1000', '1,235', '1,234,567', '0.0001234', '12.35', '−3.142', '123.5']);
	expect([1e15, 1.5e-7, Infinity, -Infinity, NaN].map(measured))
		.toEqual(['1.000e15', '1.500e-7', '∞', '−∞', NOTHING]);
});

it('shows parameters as typed, local times, and four kinds of nothing apart', () => {
	expect(given(131072)).toBe('131072');
	expect(showCell('server.max_model_len', 131072)).toBe('131072');
	expect(showCell('output_throughput', 131072)).toBe('131,072');
	expect(showCell('timestamp', 1767225600)).toBe('2026-01-01 05:30');
	expect(exactCell('timestamp', 1767225600.5)).toBe('2026-01-01T00:00:00.500Z');
	expect(when(1e20)).toBe('100000000000000000000');
	expect([undefined, null, false, 0, ''].map((v) => showCell('server.a', v)))
		.toEqual([NOTHING, 'null', 'false', '0', '“”']);
	expect(showCell('a', 'inf')).toBe('∞');
	expect(showValue('a', null)).toBe('missing');
	expect(exactCell('a', 0.1 + 0.2)).toBe('0.30000000000000004');
});

it('shows times as ages within a day, and the zone in titles', () => {
	const now = Date.UTC(2026, 2, 1, 12) / 1000;
	expect([5, 60, 3599, 3600, 86_399].map((ago) => age(now - ago, now)))
		.toEqual(['just now', '1 min ago', '59 min ago', '1 h ago', '23 h ago']);
	expect(age(now - 86_400, now)).toBe('2026-02-28 17:30');
	expect(age(now + 60, now)).toBe('2026-03-01 17:31');
	expect(age(now - 5, now, true)).toBe('17:29:55');
	expect(age(now - 90_005, now, true)).toBe('2026-02-28 16:29:55');
	expect(zonedTime(now)).toMatch(/^2026-03-01 17:30:00 GMT\+5:30 \(Asia\/(Kolkata|Calcutta)\)$/);
});

it('names columns and counts', () => {
	expect(['server.tensor_parallel_size', 'median_ttft_ms', 'tags.a.b_ms', 'ms'].map(columnLabel))
		.toEqual(['tensor parallel size', 'Median TTFT', 'a b ms', 'ms']);
	expect([0, 1, 2500].map((n) => count(n, 'run'))).toEqual(['0 runs', '1 run', '2,500 runs']);
});
