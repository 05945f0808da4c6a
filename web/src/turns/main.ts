// SPDX-License-Identifier: Apache-2.0
// main.ts: the page of --plot-turns: a run's conversations by turn.
import '../lib/theme.css';
import './turns.css';
import { json } from '../lib/column';
import { h } from '../lib/dom';
import { whole } from '../lib/format';
import { turnsView, type Sessions, type Turn } from '../lib/turns';

interface Meta {
	date: string;
	model: string | null;
	backend: string | null;
	dataset: string | null;
	verdict: string;
	sessions: Sessions;
	per_turn_metrics: Turn[];
}

function counts(s: Sessions): string {
	const parts = [`${whole(s.completed)} of ${whole(s.n)} conversations completed`];
	if (s.failed)
		parts.push(`${whole(s.failed)} with a failed turn`);
	if (s.unfinished)
		parts.push(`${whole(s.unfinished)} unfinished`);
	return parts.join(', ');
}

function main(): void {
	const meta = json<Meta>('meta');
	const words = [meta.dataset && `dataset ${meta.dataset}`, meta.model, meta.backend,
		counts(meta.sessions), meta.date];
	document.title = `Turns of ${meta.model ?? 'a run'} ${meta.date}`;
	(document.getElementById('app') as HTMLElement).replaceChildren(
		h('header', { class: 'head' }, h('h1', {}, 'Conversations by turn'),
			h('span', { class: `badge ${meta.verdict}` }, meta.verdict),
			h('span', { class: 'facts' }, words.filter(Boolean).join(' · '))),
		h('main', { class: 'sheet' }, turnsView(meta.per_turn_metrics, meta.sessions)));
	document.body.dataset['ready'] = 'yes';
}

try {
	main();
} catch (e: unknown) {
	(document.getElementById('app') as HTMLElement).replaceChildren(h('p', { class: 'failure' },
		`This page cannot be shown: ${e instanceof Error ? e.message : String(e)}`));
	throw e;
}
