// SPDX-License-Identifier: Apache-2.0
// frame.tsx: the frame around every page: navigation, theme, help, notes, and login.
import { lazy, Suspense, useEffect, useRef, useState, type ReactNode } from 'react';
import { QueryClientProvider } from '@tanstack/react-query';
import { LOGIN_WANTED } from './api';
import { homeBoard } from './common/saved';
import { Views } from './common/views';
import { Help } from './help';
import { useKeys } from './keys';
import { Login } from './login';
import { movedTo, PAGES, placeOf, type Page, type Place } from './pages';
import { Icon } from './parts/icon';
import { Link } from './parts/link';
import { Menu } from './parts/menu';
import { Boundary, Empty, Loading } from './parts/states';
import { Toasts } from './parts/toast';
import { client, useHealth } from './query';
import { useIsFilterBroken, usePageTarget, useSelection } from './state';
import { count } from './show';
import { chooseTheme, useThemeChoice, type Choice } from './theme';
import { navigate, usePath, useSearch } from './url';

const Search = lazy(async () => ({ default: (await import('./search')).Search }));
const GROUPS: [Page['group'], string][] =
	[['explore', 'Explore'], ['changed', 'What changed'], ['decide', 'Decide'], ['add', 'Add']];
/** g followed by one of these goes to that page. */
const LETTERS: Record<string, string> = { overview: 'o', charts: 'c', runs: 'r', compare: 'm', trends: 't',
	plan: 'p', boards: 'b', upload: 'u', launch: 'l' };
const THEMES: [Choice, string, 'sun' | 'moon' | 'screen'][] =
	[['light', 'Light', 'sun'], ['dark', 'Dark', 'moon'], ['system', 'System', 'screen']];

function Navigation({ now, onGo }: { now: string; onGo?: () => void }): ReactNode {
	const target = usePageTarget();
	return (
		<>{GROUPS.filter(([group]) => PAGES.some((p) => p.group === group)).map(([group, label]) => (
			<ul key={group} className="nav-group" aria-label={label} data-label={label}>
				{PAGES.filter((p) => p.group === group).map((p) => (
					<li key={p.name}>
						<Link to={target(p.path)} onClick={onGo}
							aria-current={p.name === now ? 'page' : undefined}>{p.label}</Link>
					</li>
				))}
			</ul>
		))}</>
	);
}

function ThemeMenu(): ReactNode {
	const choice = useThemeChoice();
	const icon = THEMES.find(([name]) => name === choice)![2];
	return (
		<Menu label={`Theme: ${choice}`} title="Light or dark" icon={icon} isBare look="quiet" align="end">
			{(close) => THEMES.map(([name, label, mark]) => (
				<button key={name} type="button" className="menu-item" aria-pressed={name === choice}
					onClick={() => {
						chooseTheme(name);
						close();
					}}>
					<Icon name={mark} /><span>{label}</span>
				</button>
			))}
		</Menu>
	);
}

const STORE_TROUBLE = {
	'store does not answer': 'Store does not answer',
	'store was replaced': 'Store was replaced: restart the dashboard',
};

function State(): ReactNode {
	const health = useHealth();
	if (health.isError)
		return <span className="pulse bad" role="status">Server unreachable</span>;
	if (!health.data)
		return null;
	const { status, runs, version, store, can_change: canChange, needs_token: needsToken, role } = health.data;
	if (status !== 'ok')
		return <span className="pulse bad" role="status">{STORE_TROUBLE[status]}</span>;
	return (
		<>
			<span className="pulse" title={`profllm ${version}, store: ${store}`}>
				{!canChange && role !== 'none' && <span className="tag">read-only</span>}
				<span className="num">{count(runs, 'run')}</span>
			</span>
			{needsToken && role !== 'launch' && (
				<button type="button" className="quiet small"
					onClick={() => dispatchEvent(new Event(LOGIN_WANTED))}>Log in</button>
			)}
		</>
	);
}

function Top({ place, onHelp, onSearch, onViews }: {
	place: Place; onHelp: () => void; onSearch: () => void; onViews: () => void;
}): ReactNode {
	const target = usePageTarget();
	const name = ['run', 'live'].includes(place.page?.name ?? '') ? 'runs' : place.page?.name ?? '';
	return (
		<header className="top">
			<a className="skip" href="#main">Skip to content</a>
			<div className="small-nav">
				<Menu label="Pages" icon="menu" isBare look="quiet">
					{(close) => <nav aria-label="Pages"><Navigation now={name} onGo={close} /></nav>}
				</Menu>
			</div>
			<Link className="brand" to={target('/overview')}>
				<svg viewBox="0 0 32 32" width="22" height="22" aria-hidden="true">
					<rect width="32" height="32" rx="8" className="brand-ground" />
					<path d="M7 22.5h3.5V17H7zM14.25 22.5h3.5v-9.5h-3.5zM21.5 22.5H25V9h-3.5z"
						className="brand-bars" />
				</svg>
				<span>ProfLLM</span>
			</Link>
			<nav className="wide-nav" aria-label="Pages"><Navigation now={name} /></nav>
			<div className="top-tools">
				<State />
				<button type="button" className="quiet icon" aria-label="Search"
					title="Search pages, boards, views, metrics and runs (/)" onClick={onSearch}><Icon name="search" /></button>
				<button type="button" className="quiet views-button" aria-label="Views" title="Saved views of all pages"
					onClick={onViews}><Icon name="star" /><span>Views</span></button>
				<ThemeMenu />
				<button type="button" className="quiet icon" aria-label="Keyboard shortcuts" title="Keyboard shortcuts (?)"
					onClick={onHelp}><Icon name="help" /></button>
			</div>
		</header>
	);
}

function View({ place }: { place: Place }): ReactNode {
	if (!place.page) {
		return (
			<Empty title="There is no such page">
				<p><Link to="/runs">All runs</Link></p>
			</Empty>
		);
	}
	const Component = place.page.view;
	return (
		<Boundary key={`${place.page.name}/${place.id}`}>
			<Suspense fallback={<Loading />}><Component id={place.id} /></Suspense>
		</Boundary>
	);
}

/** The page's name in the window's title, and the focus on the page after going to another. */
function useArrival(place: Place): void {
	const first = useRef(true);
	const name = place.page?.label ?? 'Not found';
	const where = `${place.page?.name}/${place.id}`;
	useEffect(() => {
		document.title = `${place.id || name} · ProfLLM`;
		if (!first.current)
			document.getElementById('main')?.focus({ preventScroll: true });
		first.current = false;
	}, [where, name, place.id]);
}

function Shell(): ReactNode {
	const path = usePath(), moved = movedTo(path, useSearch()), home = path === '/' ? homeBoard() : null;
	const place = placeOf(moved?.replace(/\?.*/, '') ?? (home ? `/boards/${home}` : path));
	const target = usePageTarget();
	const { ids } = useSelection(), isFilterBroken = useIsFilterBroken();
	const [isHelp, setHelp] = useState(false);
	const [isLogin, setLogin] = useState(false);
	const [isViews, setViews] = useState(false);
	const [isSearch, setSearch] = useState(false);
	useArrival(place);
	useKeys([
		{ key: '?', text: 'show these keys', act: () => setHelp(true) },
		{ key: '/', text: 'search pages, boards, views, metrics and runs', act: (event) => {
			event.preventDefault();
			setSearch(true);
		} },
		{ key: 'c', text: 'compare the selected runs', act: () => {
			if (ids.length && PAGES.some((p) => p.name === 'compare'))
				navigate(target('/compare'));
		} },
		...PAGES.filter((p) => LETTERS[p.name]).map((p) => ({ key: `g ${LETTERS[p.name]}`,
			text: `go to ${p.label}`, act: () => navigate(target(p.path)) })),
	]);
	useEffect(() => {
		if (moved)
			navigate(moved, { replace: true });
	}, [moved]);
	useEffect(() => {
		const ask = (): void => setLogin(true);
		addEventListener(LOGIN_WANTED, ask);
		return () => removeEventListener(LOGIN_WANTED, ask);
	}, []);
	return (
		<>
			<Top place={place} onHelp={() => setHelp(true)} onSearch={() => setSearch(true)}
				onViews={() => setViews(true)} />
			{isFilterBroken && <p className="top-note" role="alert">The filter in this address cannot be read, so all
				runs are shown. The address may be incomplete.</p>}
			<main id="main" tabIndex={-1}><View place={place} /></main>
			{isViews && <Views onClose={() => setViews(false)} />}
			{isSearch && <Suspense><Search onClose={() => setSearch(false)} /></Suspense>}
			{isHelp && <Help onClose={() => setHelp(false)} />}
			{isLogin && <Login onClose={() => setLogin(false)} />}
			<Toasts />
		</>
	);
}

export function App(): ReactNode {
	return <QueryClientProvider client={client}><Shell /></QueryClientProvider>;
}
