// SPDX-License-Identifier: Apache-2.0
// job.ts: a job's progress as it happens: server-sent events of /api/jobs/ID/events.
import { useEffect, useRef } from 'react';

export type Handlers = Record<string, (data: unknown) => void>;

/** After the "end" event nothing more is requested; the browser reconnects after a break. */
export function follow(job: string, handlers: Handlers, onEnd: () => void): () => void {
	const source = new EventSource(`/api/jobs/${encodeURIComponent(job)}/events`);
	for (const [name, handle] of Object.entries(handlers))
		source.addEventListener(name, (event) => {
			try {
				handle(JSON.parse((event as MessageEvent<string>).data));
			} catch {
				// a line that is not JSON is ignored
			}
		});
	source.addEventListener('end', () => {
		source.close();
		onEnd();
	});
	source.addEventListener('error', () => {
		if (source.readyState === EventSource.CLOSED)
			onEnd();
	});
	return () => source.close();
}

/** Follows while job is not null; handlers are the latest ones. */
export function useJob(job: string | null, handlers: Handlers, onEnd: () => void): void {
	const now = useRef({ handlers, onEnd });
	now.current = { handlers, onEnd };
	const names = Object.keys(handlers).join(' ');
	useEffect(() => {
		if (job === null)
			return undefined;
		const bound = Object.fromEntries(names.split(' ').map((name) =>
			[name, (data: unknown) => now.current.handlers[name]?.(data)]));
		return follow(job, bound, () => now.current.onEnd());
	}, [job, names]);
}
