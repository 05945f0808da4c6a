// SPDX-License-Identifier: Apache-2.0
// job.ts: what a job does, as it does it: server-sent events of /api/jobs/ID/events.
import { useEffect, useRef } from 'react';

export type Handlers = Record<string, (data: unknown) => void>;

/** After the "end" event nothing more is asked for; the browser connects again after a break. */
export function follow(job: string, handlers: Handlers, onEnd: () => void): () => void {
	const source = new EventSource(`/api/jobs/${encodeURIComponent(job)}/events`);
	for (const [name, handle] of Object.entries(handlers))
		source.addEventListener(name, (event) => {
			try {
				handle(JSON.parse((event as MessageEvent<string>).data));
			} catch {
				// a line that is no JSON says nothing
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

/** As long as job is one; handlers are the latest ones. */
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
