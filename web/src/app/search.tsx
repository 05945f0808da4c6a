// SPDX-License-Identifier: Apache-2.0
// search.tsx: one search over pages, boards, saved views, metrics and runs; the arrows move, Enter goes.
import { useDeferredValue, useEffect, useId, useMemo, useRef, useState, type KeyboardEvent, type ReactNode } from 'react';
import { useQuery } from '@tanstack/react-query';
import { get } from './api';
import { useColumns } from './common/columns';
import { choicesOf } from './common/metrics';
import { addressOf, targetOf, useBoards, type Saved } from './common/saved';
import { found, PLACES, type Hit } from './find';
import { PAGES } from './pages';
import { Dialog } from './parts/dialog';
import { useApply } from './query';
import { showCell } from './show';
import { usePageTarget } from './state';
import { navigate } from './url';
import './common/pages.css';

const EACH_MAX = 8, WORD_MIN = 2;

/** The first few of each kind that have all words; only pages before the first letter. */
function useHits(word: string): { label: string; hits: Hit[] }[] {
	const target = usePageTarget(), columns = useColumns(), boards = useBoards().data ?? [];
	const views = useQuery({ queryKey: ['presets'],
		queryFn: ({ signal }) => get<{ items: Saved[] }>('/api/filters/presets', signal) }).data?.items ?? [];
	const isAsked = word.trim().length >= WORD_MIN;
	const runs = useApply({ filter: { and: [{ column: '*', text: word.trim() }] }, limit: EACH_MAX,
		shown: 'all', columns: ['name', 'timestamp'] }, isAsked).data?.items ?? [];
	const metrics = useMemo(() => (isAsked ? choicesOf(columns.numbers, (c) => columns.measure(c).label, word, null,
		'').groups.flatMap((g) => g.items) : []), [columns, word, isAsked]);
	const pages = [...PAGES.filter((p) => p.group !== 'none').map((p) => ({ name: p.label, to: p.path })), ...PLACES]
		.map(({ name, to }): Hit => ({ name, note: '', to: target(to.split('?')[0],
			Object.fromEntries(new URLSearchParams(to.split('?')[1] ?? ''))) }));
	return [
		{ label: 'Pages', hits: found(pages, word) },
		...word.trim() ? [
			{ label: 'Boards', hits: found(boards.map((b): Hit => ({ name: b.name, note: 'board',
				to: `/boards/${b.id}` })), word) },
			{ label: 'Saved views', hits: found(views.map((v): Hit => ({ name: v.name, note: 'view',
				to: addressOf(targetOf(v.body)) })), word) },
			{ label: 'Metrics', hits: metrics.map((m): Hit => ({ name: m.label, note: m.column,
				to: target('/charts', { view: 'any', y: m.column }) })) },
			{ label: 'Runs', hits: isAsked ? runs.map((r): Hit => ({ name: showCell('name', r.values.name ?? `run ${r.id}`),
				note: `run ${r.id}`, to: target(`/runs/${r.id}`) })) : [] },
		] : [],
	].map((g) => ({ ...g, hits: g.hits.slice(0, g.label === 'Pages' ? undefined : EACH_MAX) }))
		.filter((g) => g.hits.length > 0);
}

export function Search({ onClose }: { onClose: () => void }): ReactNode {
	const [word, setWord] = useState(''), [chosen, setChosen] = useState(0), id = useId();
	const groups = useHits(useDeferredValue(word)), flat = groups.flatMap((g) => g.hits);
	const at = Math.min(chosen, flat.length - 1), input = useRef<HTMLInputElement>(null);
	useEffect(() => input.current?.focus(), []); // after the dialog took the focus
	const go = (hit: Hit | undefined): void => {
		if (!hit)
			return;
		onClose();
		navigate(hit.to);
	};
	const pressed = (event: KeyboardEvent): void => {
		const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
		if (step) {
			const next = (at + step + flat.length) % Math.max(1, flat.length);
			setChosen(next);
			document.getElementById(`${id}-${next}`)?.scrollIntoView({ block: 'nearest' });
		} else if (event.key === 'Enter') {
			go(flat[at]);
		} else {
			return;
		}
		event.preventDefault();
	};
	return (
		<Dialog title="Search" onClose={onClose}>
			<div className="search" onKeyDown={pressed}>
				<input type="text" role="combobox" aria-expanded="true" aria-autocomplete="list" ref={input} value={word}
					aria-label="Search pages, boards, views, metrics and runs" aria-controls={`${id}-list`}
					aria-activedescendant={at >= 0 ? `${id}-${at}` : undefined} spellCheck={false} autoComplete="off"
					placeholder="Page, board, view, metric or run" onChange={(event) => {
						setWord(event.target.value);
						setChosen(0);
					}} />
				<div className="search-list" role="listbox" id={`${id}-list`} aria-label="Found" tabIndex={-1}>
					{groups.map((g) => (
						<div key={g.label} role="group" aria-label={g.label}>
							<div className="choices-group" aria-hidden="true">{g.label}</div>
							{g.hits.map((hit) => {
								const i = flat.indexOf(hit);
								return (
									<div key={hit.to} role="option" id={`${id}-${i}`} aria-selected={i === at} className="choice"
										data-to={hit.to} onPointerMove={() => setChosen(i)} onClick={() => go(hit)}>
										<span className="choice-label">{hit.name}</span>
										{hit.note && <span className="choice-name">{hit.note}</span>}
									</div>
								);
							})}
						</div>
					))}
				</div>
				{flat.length === 0 && <p className="dim" role="status">Nothing has “{word}” in its name.</p>}
			</div>
		</Dialog>
	);
}
