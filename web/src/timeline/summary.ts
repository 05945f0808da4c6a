// SPDX-License-Identifier: Apache-2.0
// summary.ts: the run's main numbers above its timeline: the result's own values.
import { h } from '../lib/dom';
import { fixed2 } from '../lib/format';
import type { Block, Meta } from './data';

const NAMES: Record<string, string> = {
	ttft: 'TTFT', tpot: 'TPOT', itl: 'ITL', e2el: 'E2EL', client_queue_time: 'Client queue',
	e2el_including_client_queue: 'E2EL + queue',
};

/** Key of the result, name, decimals. */
const TOTALS: [string, string, number][] = [
	['completed', 'Completed', 0],
	['failed', 'Failed', 0],
	['cancelled', 'Cancelled', 0],
	['duration', 'Duration (s)', 2],
	['request_throughput', 'Requests/s', 2],
	['request_goodput', 'Goodput (req/s)', 2],
	['output_throughput', 'Output tok/s', 2],
	['max_output_tokens_per_s', 'Peak output tok/s', 2],
	['total_token_throughput', 'Total tok/s', 2],
	['peak_concurrency', 'Peak concurrency', 0],
	['total_input_tokens', 'Input tokens', 0],
	['total_output_tokens', 'Output tokens', 0],
];

function cell(field: string, name: string, value: string, isBad = false): HTMLElement {
	return h('div', { class: isBad ? 'cell bad' : 'cell' }, h('span', { class: 'dim' }, name),
		h('strong', { class: 'num', 'data-field': field }, value));
}

function block(b: Block): HTMLElement {
	const row = (name: string, field: string, v: number): HTMLElement[] => [h('dt', {}, name),
		h('dd', { class: 'num', 'data-field': `${field}_${b.name}_ms` }, fixed2(v))];
	const list = h('dl', {}, ...row('mean', 'mean', b.mean), ...row('median', 'median', b.median),
		...b.percentiles.flatMap(([p, v]) => row(`P${p}`, `p${p}`, v)));
	return h('div', { class: 'block' }, h('span', { class: 'dim' }, `${NAMES[b.name] ?? b.name} (ms)`),
		list);
}

export function summary(meta: Meta): HTMLElement {
	const box = h('section', { class: 'summary', 'aria-label': 'Summary' });
	for (const [key, name, decimals] of TOTALS) {
		const value = meta.summary[key];
		if (value === undefined || (key === 'cancelled' && value === 0))
			continue;
		box.append(cell(key, name, value.toFixed(decimals), key === 'failed' && value > 0));
	}
	box.append(...meta.summary.blocks.map(block));
	return box;
}

export function verdict(meta: Meta): HTMLElement {
	const { name, reasons } = meta.verdict;
	const badge = h('span', { class: `badge ${name}`, 'data-field': 'verdict' }, name);
	if (!reasons.length)
		return badge;
	const list = h('ul', {}, ...reasons.map((r) => h('li', {},
		h('span', { class: `badge ${r.level}` }, r.level), ` ${r.text}`)));
	return h('details', { class: 'verdict' },
		h('summary', {}, badge, reasons.length > 1 ? ` ${reasons.length} reasons` : ' 1 reason'),
		list);
}

export function heading(meta: Meta): HTMLElement {
	const f = meta.facts, rate = f['request_rate'];
	const words = [f['model'], f['backend'], f['dataset'] && `dataset ${f['dataset']}`,
		rate === 'inf' ? 'all at once' : `${rate} req/s`,
		f['max_concurrency'] ? `concurrency ${f['max_concurrency']}` : null, f['label'], f['date'],
		f['version'] && `ProfLLM ${f['version']}`];
	return h('header', { class: 'head' }, h('h1', {}, 'Timeline'), verdict(meta),
		h('span', { class: 'facts' }, words.filter(Boolean).join(' · ')));
}
