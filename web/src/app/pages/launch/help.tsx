// SPDX-License-Identifier: Apache-2.0
// help.tsx: the keys of a configuration, searchable.
import { useMemo, useState, type ReactNode } from 'react';
import { useGet } from '../../common/routes';
import { Failure, Loading } from '../../parts/states';
import type { Help as Entry, Schema } from './types';

const SHOWN = 60;

interface Found extends Entry { section: string }

function all(schema: Schema): Found[] {
	return [...schema.sections.flatMap((s) => s.keys.map((k) => ({ ...k, section: s.name }))),
		...schema.arguments.map((k) => ({ ...k, section: `server, ${k.group}` }))];
}

export function find(list: Found[], search: string): Found[] {
	const words = search.toLowerCase().split(/[\s-]+/).filter((w) => w !== '');
	const text = (k: Found): string => `${k.key} ${k.section} ${k.help ?? ''}`.toLowerCase();
	const hits = list.filter((k) => words.every((w) => text(k).includes(w)));
	const isNear = (k: Found): boolean => words.every((w) => k.key.toLowerCase().includes(w));
	return [...hits.filter(isNear), ...hits.filter((k) => !isNear(k))];
}

export function Help(): ReactNode {
	const answer = useGet('GET /api/launch/schema', '/api/launch/schema');
	const [search, setSearch] = useState('');
	const list = useMemo(() => (answer.data ? all(answer.data as unknown as Schema) : []), [answer.data]);
	const found = find(list, search);
	if (answer.isError)
		return <Failure error={answer.error} onRetry={() => void answer.refetch()} />;
	if (!answer.data)
		return <Loading />;
	return (
		<div className="launch-help">
			<input type="search" value={search} placeholder={`Search ${list.length} keys`}
				aria-label="Search keys" onChange={(e) => setSearch(e.target.value)} />
			<dl tabIndex={0} aria-label="Keys">{found.slice(0, SHOWN).map((k) => (
				<div key={`${k.section}/${k.key}`}>
					<dt><code>{k.key}</code> <span className="dim">{k.section}</span></dt>
					<dd>{k.help}
						{k.value && <> <span className="dim">{k.value}</span></>}
						{k.default && <> <span className="dim">Default: {k.default}</span></>}</dd>
				</div>
			))}</dl>
			{found.length > SHOWN && <p className="dim small-text">{found.length - SHOWN} more: search to find them.</p>}
		</div>
	);
}
