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
	group: 'look' | 'analyse' | 'manage' | 'none';
	view: LazyExoticComponent<ComponentType<PageProps>>;
}

type Loader = () => Promise<{ default: ComponentType<PageProps> }>;
const loaders = import.meta.glob<{ default: ComponentType<PageProps> }>('./pages/*/index.tsx');

const TABLE: [name: string, label: string, group: Page['group']][] = [
	['runs', 'Runs', 'look'],
	['charts', 'Charts', 'look'],
	['trends', 'Trends', 'look'],
	['compare', 'Compare', 'look'],
	['resources', 'Resources', 'analyse'],
	['impact', 'Impact', 'analyse'],
	['scaling', 'Scaling', 'analyse'],
	['capacity', 'Capacity', 'analyse'],
	['traces', 'Traces', 'manage'],
	['upload', 'Upload', 'manage'],
	['launch', 'Launch', 'manage'],
	['run', 'Run', 'none'],
];

export const PAGES: Page[] = TABLE.flatMap(([name, label, group]) => {
	const load = loaders[`./pages/${name}/index.tsx`] as Loader | undefined;
	return load ? [{ name, label, path: `/${name}`, group, view: lazy(load) }] : [];
});

export interface Place { page: Page | null; id: string }

/** /runs/ID is a run; everything else is a page by its first word; / is the runs. */
export function placeOf(path: string): Place {
	const [first = '', ...rest] = path.split('/').filter((w) => w !== '');
	const id = decodeURIComponent(rest.join('/'));
	const name = first === '' ? 'runs' : first === 'runs' && id !== '' ? 'run' : first;
	return { page: PAGES.find((p) => p.name === name) ?? null, id };
}
