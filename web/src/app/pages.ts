// SPDX-License-Identifier: Apache-2.0
// pages.ts: the pages and where they are. Each is pages/NAME/index.tsx, a chunk of its own, whose
// default export takes PageProps; a page without its folder is not in the navigation.
import { lazy, type ComponentType, type LazyExoticComponent } from 'react';

export interface PageProps {
	/** What comes after the page's path: "12" of /runs/12. Empty for most. */
	id: string;
}

export interface Page {
	name: string;
	label: string;
	path: string;
	group: 'explore' | 'changed' | 'decide' | 'add' | 'none';
	view: LazyExoticComponent<ComponentType<PageProps>>;
}

type Loader = () => Promise<{ default: ComponentType<PageProps> }>;
const loaders = import.meta.glob<{ default: ComponentType<PageProps> }>('./pages/*/index.tsx');

const TABLE: [name: string, label: string, group: Page['group']][] = [
	['overview', 'Overview', 'explore'],
	['charts', 'Charts', 'explore'],
	['runs', 'Runs', 'explore'],
	['compare', 'Compare', 'changed'],
	['trends', 'Trends', 'changed'],
	['plan', 'Plan', 'decide'],
	['boards', 'Boards', 'decide'],
	['upload', 'Upload', 'add'],
	['launch', 'Launch', 'add'],
	['run', 'Run', 'none'],
	['live', 'Running', 'none'],
];

export const PAGES: Page[] = TABLE.flatMap(([name, label, group]) => {
	const load = loaders[`./pages/${name}/index.tsx`] as Loader | undefined;
	return load ? [{ name, label, path: `/${name}`, group, view: lazy(load) }] : [];
});

export interface Place { page: Page | null; id: string }

/** /runs/ID is a run; everything else is a page by its first word; / is the overview. */
export function placeOf(path: string): Place {
	const [first = '', ...rest] = path.split('/').filter((w) => w !== '');
	const id = decodeURIComponent(rest.join('/'));
	const name = first === '' ? 'overview' : first === 'runs' && id !== '' ? 'run' : first;
	return { page: PAGES.find((p) => p.name === name) ?? null, id };
}

/** Parameters of the page Runs, which used to be at /: an old link with one of them still opens it. */
const OF_RUNS = ['f', 'shown', 'sort', 'cols', 'stats', 'diff', 'sel'];

/** Pages that are tabs of Plan now. */
const TABS_OF_PLAN = ['capacity', 'scaling', 'impact'];

/** The new address of an old one; null: it has not moved. */
export function movedTo(path: string, search: string): string | null {
	const has = new URLSearchParams(search), tab = path.slice(1);
	if (TABS_OF_PLAN.includes(tab)) {
		has.set('tab', tab);
		return `/plan?${has.toString()}`;
	}
	if (path === '/traces') {
		has.set('has', 'trace');
		return `/runs?${has.toString()}`;
	}
	if (path === '/resources') {
		const color = has.get('c');
		has.delete('c');
		has.set('view', 'any');
		if (color !== null)
			has.set('g', color === '-' ? '' : color);
		return `/charts?${has.toString()}`;
	}
	return path === '/' && OF_RUNS.some((key) => has.has(key)) ? `/runs${search}` : null;
}
