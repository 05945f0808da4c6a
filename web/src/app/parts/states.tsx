// SPDX-License-Identifier: Apache-2.0
// states.tsx: what a page shows without content: while loading, when empty, or after an error.
import { Component, type ReactNode } from 'react';
import { ApiError } from '../api';
import { setParams } from '../url';
import { Icon, type IconName } from './icon';

export function Loading({ what = 'Loading' }: { what?: string }): ReactNode {
	return (
		<div className="state loading" role="status">
			<span className="spinner" aria-hidden="true" />
			<span>{what}…</span>
		</div>
	);
}

interface EmptyProps { title: string; icon?: IconName; children?: ReactNode }

export function Empty({ title, icon = 'search', children }: EmptyProps): ReactNode {
	return (
		<div className="state empty">
			<span className="state-mark"><Icon name={icon} /></span>
			<p className="state-title">{title}</p>
			{children && <div className="state-text">{children}</div>}
		</div>
	);
}

interface FailureProps {
	error: unknown; onRetry?: (() => void) | undefined; title?: string; children?: ReactNode;
}

export function Failure({ error, onRetry, title, children }: FailureProps): ReactNode {
	const api = error instanceof ApiError ? error : null;
	const text = error instanceof Error ? error.message : String(error);
	/* The server's sentence, without the place in the request before it. */
	const said = api?.pointer && text.startsWith(`${api.pointer}: `) ? text.slice(api.pointer.length + 2) : text;
	return (
		<div className="state failure" role="alert">
			<span className="state-mark"><Icon name="warning" /></span>
			<p className="state-title">{title ?? (api?.status === 400 ? 'This cannot be answered' : api?.title)
				?? 'Something went wrong'}</p>
			<div className="state-text">
				<p title={api?.pointer}>{said.charAt(0).toUpperCase()}{said.slice(1)}</p>
			</div>
			{children}
			{api?.pointer?.startsWith('/filter/') && <button type="button" onClick={() => setParams({ f: null })}>
				Clear the filter</button>}
			{onRetry && <button type="button" onClick={onRetry}>Try again</button>}
		</div>
	);
}

interface BoundaryProps { children: ReactNode }
interface BoundaryState { error: unknown }

/** The browsers' words where a part of the program could not be fetched from the dashboard. */
const NOT_LOADED = /preload CSS|dynamically imported module|importing a module script/i;

/** Give it a key that changes with the page, so that one broken page does not stay. */
export class Boundary extends Component<BoundaryProps, BoundaryState> {
	override state: BoundaryState = { error: null };

	static getDerivedStateFromError(error: unknown): BoundaryState {
		return { error: error ?? new Error('unknown') };
	}

	override render(): ReactNode {
		if (this.state.error === null)
			return this.props.children;
		/* What failed to load is not asked for again by the program, only by a reload. */
		if (this.state.error instanceof Error && NOT_LOADED.test(this.state.error.message))
			return <Failure title="Server unreachable" onRetry={() => location.reload()}
				error="This page could not be loaded from the dashboard. See whether it still runs." />;
		return <Failure error={this.state.error} title="This page broke"
			onRetry={() => this.setState({ error: null })} />;
	}
}
