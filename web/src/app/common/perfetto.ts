// SPDX-License-Identifier: Apache-2.0
// perfetto.ts: a trace shown by ui.perfetto.dev, in a window of its own, after a click. The trace
// goes from this window to that one by a message; it is not uploaded.
import { send } from '../api';

const VIEWER = 'https://ui.perfetto.dev';
const ASK_MS = 100;
const WAIT_MS = 60_000;
const NO_ANSWER = 'The viewer did not answer. Download the trace and open it there.';

/** Waits until the viewer is ready. */
function ready(viewer: Window): Promise<void> {
	return new Promise((then, fail) => {
		const began = Date.now();
		const timer = setInterval(() => {
			if (viewer.closed || Date.now() - began > WAIT_MS) {
				end();
				fail(new Error(NO_ANSWER));
			} else {
				viewer.postMessage('PING', VIEWER);
			}
		}, ASK_MS);
		const hear = (event: MessageEvent): void => {
			if (event.origin !== VIEWER || event.data !== 'PONG') return;
			end();
			then();
		};
		const end = (): void => {
			clearInterval(timer);
			removeEventListener('message', hear);
		};
		addEventListener('message', hear);
	});
}

/** Called within the click: otherwise browsers block the window. */
export async function openInPerfetto(trace: { id: number; name: string }): Promise<void> {
	const viewer = window.open(VIEWER);
	if (!viewer) throw new Error('The browser did not open a window for the viewer.');
	const bytes = send(`/api/export/traces/${trace.id}`).then((answer) => answer.arrayBuffer());
	const [buffer] = await Promise.all([bytes, ready(viewer)]);
	viewer.postMessage({ perfetto: { buffer, title: trace.name, fileName: trace.name } }, VIEWER);
}
