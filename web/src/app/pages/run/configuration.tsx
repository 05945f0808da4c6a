// SPDX-License-Identifier: Apache-2.0
// configuration.tsx: the parameters that the user set for a run, or all of them, searchable; and
// its document.
import { useMemo, useState, type ReactNode } from 'react';
import type { Run } from '../../../lib/api';
import { whole } from '../../../lib/format';
import { Icon } from '../../parts/icon';
import { Empty } from '../../parts/states';
import { count, exactCell, showCell } from '../../show';
import { flagCodec, textCodec, useUrlState } from '../../url';
import { givenColumns, matching, settings, type Setting } from './config';

const text = textCodec('');
const flag = flagCodec(false);
const NOT_SET = 'not set';

/** isMixed: set ones and defaults, so that each is labeled. */
function Group({ name, list, isMixed }: { name: string; list: Setting[]; isMixed: boolean }): ReactNode {
	return (
		<section className="card" aria-label={name}>
			<h2>{name} <span className="dim num">{list.length}</span></h2>
			<dl className="facts wide">{list.map((s) => (
				<div key={s.column}>
					<dt title={s.column}>{s.column.slice(name.length + 1)}
						{isMixed && s.isGiven && <span className="tag">given</span>}</dt>
					<dd title={exactCell(s.column, s.value)} data-column={s.column}
						className={s.value === null ? 'dim' : undefined}>{s.value === null ? NOT_SET
							: showCell(s.column, s.value)}</dd>
				</div>
			))}</dl>
		</section>
	);
}

export function Configuration({ run }: { run: Run }): ReactNode {
	const [search, setSearch] = useUrlState('q', text);
	const [isAll, setAll] = useUrlState('all', flag);
	const given = useMemo(() => givenColumns(run.document), [run.document]);
	const all = useMemo(() => settings(run.values, given), [run.values, given]);
	/* A search covers all of them: most settings that users look for are defaults. */
	const isGivenOnly = !isAll && search === '' && all.some((s) => s.isGiven);
	const shown = matching(all, search, isGivenOnly);
	const groups = [...new Set(shown.map((s) => s.group))];
	return (
		<>
			<div className="tools">
				<input type="search" value={search} placeholder="Search parameters and values"
					aria-label="Search parameters and values"
					onChange={(e) => setSearch(e.target.value, { replace: true })} />
				{given && (
					<label className="row tight">
						<input type="checkbox" checked={!isAll}
							onChange={(e) => setAll(!e.target.checked)} />
						Given parameters only
					</label>
				)}
				<span className="dim num">{shown.length < all.length && `${whole(shown.length)} of `}
					{count(all.length, 'parameter')}</span>
			</div>
			{groups.map((g) => <Group key={g} name={g} isMixed={!isGivenOnly} list={shown.filter((s) => s.group === g)} />)}
			{!shown.length && <Empty title="No parameters match" />}
		</>
	);
}

function Part({ name, value }: { name: string; value: unknown }): ReactNode {
	const [isOpen, setOpen] = useState(false);
	return (
		<details onToggle={(e) => setOpen(e.currentTarget.open)}>
			<summary><Icon name="right" /><code>{name}</code></summary>
			{isOpen && <pre className="document" tabIndex={0}>{JSON.stringify(value, null, 2)}</pre>}
		</details>
	);
}

export function Document({ run }: { run: Run }): ReactNode {
	const { document } = run;
	const parts: [string, unknown][] = typeof document === 'object' && document !== null
		&& !Array.isArray(document) ? Object.entries(document) : [['document', document]];
	const simple = parts.filter(([, v]) => typeof v !== 'object' || v === null);
	return (
		<section className="card document-parts" aria-label="Document">
			<div className="card-head">
				<h2>Document</h2>
				<a className="button small push" href={`/api/data/experiments/${run.id}/document`}
					download={`${run.run_id || run.id}.json`}><Icon name="download" />Download</a>
			</div>
			{simple.length > 0 && (
				<pre className="document" tabIndex={0}>{JSON.stringify(Object.fromEntries(simple), null, 2)}</pre>
			)}
			{parts.filter(([, v]) => typeof v === 'object' && v !== null)
				.map(([name, v]) => <Part key={name} name={name} value={v} />)}
		</section>
	);
}
