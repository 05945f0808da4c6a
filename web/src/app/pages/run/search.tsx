// SPDX-License-Identifier: Apache-2.0
// search.tsx: the result of a search for the largest load within limits: the answer in a sentence,
// and the measured levels.
import type { ReactNode } from 'react';
import { Num, Twin } from '../../common/twin';
import { Link } from '../../parts/link';
import { measured } from '../../show';
import { usePageTarget } from '../../state';

export interface Level { load: number; requests: number; failed: number; isPassed: boolean; kind: string }
export interface Found {
	limits: string[]; binding: string | null; load: number | null; interval: [number, number] | null;
	unit: string; isPrecise: boolean; levels: Level[];
}

const object = (v: unknown): Record<string, unknown> =>
	(typeof v === 'object' && v !== null && !Array.isArray(v) ? v as Record<string, unknown> : {});
const list = (v: unknown): unknown[] => (Array.isArray(v) ? v : []);
const number = (v: unknown): number | null => (typeof v === 'number' && Number.isFinite(v) ? v : null);

/** results.capacity of a document; null: the run was not a search. */
export function foundOf(document: unknown): Found | null {
	const given = object(object(object(document).results).capacity);
	if (!list(given.limits).length)
		return null;
	const [low, high] = list(given.interval).map(number);
	return {
		limits: list(given.limits).flatMap((l) => {
			const text = object(l).limit;
			return typeof text === 'string' && !text.includes(' ') ? [text] : []; // not that on failed requests
		}),
		binding: typeof given.binding === 'string' ? given.binding : null,
		load: number(given.capacity), interval: typeof low === 'number' && typeof high === 'number'
			? [low, high] : null,
		unit: given.variable === 'max_concurrency' ? 'requests at once' : 'requests/s',
		isPrecise: given.is_precise === true,
		levels: list(given.points).map((p): Level => {
			const of = object(p);
			return { load: number(of.load) ?? 0, requests: number(of.requests) ?? 0, failed: number(of.failed) ?? 0,
				isPassed: of.passed === true, kind: of.kind === 'bracket' ? 'short' : 'long' };
		}),
	};
}

/** "Largest load that keeps p99_ttft_ms<100: 56.31 requests/s (95 % interval 24.5 to 130.4)." */
export function foundText(f: Found): string {
	const limits = f.limits.join(', ');
	if (f.load === null || !f.interval)
		return `No load was found that keeps ${limits}.`;
	return `Largest load that keeps ${limits}: ${measured(f.load)} ${f.unit} (95 % interval `
		+ `${measured(f.interval[0])} to ${measured(f.interval[1])}).${f.binding ? ` ${f.binding} is reached first.` : ''}`
		+ ` Safe to configure: ${measured(f.interval[0])}.`;
}

export function Search({ document }: { document: unknown }): ReactNode {
	const found = foundOf(document), target = usePageTarget();
	if (!found)
		return null;
	return (
		<section className="card" aria-label="Search">
			<h2>Search</h2>
			<p className="answer">{foundText(found)}</p>
			{!found.isPrecise && found.interval && <p className="dim">The search ended before the asked precision was
				reached: a larger budget makes the interval narrower.</p>}
			<p><Link to={target('/plan', { tab: 'capacity' })}>Plan: GPUs needed</Link></p>
			<Twin title={`${found.levels.length} measured loads`} heads={[{ text: `Load (${found.unit})`, isNumber: true },
				{ text: 'Requests', isNumber: true }, { text: 'Failed', isNumber: true }, { text: 'Level' },
				{ text: 'Limits' }]}
			rows={found.levels.map((l) => [<Num key="l" v={l.load} />, <Num key="r" v={l.requests} />,
				<Num key="f" v={l.failed} />, l.kind, l.isPassed ? 'kept' : 'not kept'])} />
		</section>
	);
}
