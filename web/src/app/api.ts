// SPDX-License-Identifier: Apache-2.0
// api.ts: requests to the server, and its refusals. The browser caches what has an ETag.

export type Cell = boolean | number | string | null;
export type Values = Record<string, Cell>;

/** A refusal, as application/problem+json describes it, or a network error (status 0). */
export class ApiError extends Error {
	readonly status: number;
	readonly title: string;
	readonly pointer: string | undefined;

	constructor(status: number, title: string, detail: string, pointer?: string) {
		super(detail || title);
		this.name = 'ApiError';
		this.status = status;
		this.title = title;
		this.pointer = pointer;
	}
}

/** Event: the server requires a token; the frame then asks for it. */
export const LOGIN_WANTED = 'profllm-login-wanted';
/** Event: the server does not answer; the display of its health then asks at once. */
export const NO_ANSWER = 'profllm-no-answer';

async function refusal(answer: Response): Promise<ApiError> {
	const text = await answer.text().catch(() => '');
	try {
		const problem = JSON.parse(text) as { title?: string; detail?: string; pointer?: string };
		return new ApiError(answer.status, problem.title ?? answer.statusText,
			problem.detail ?? '', problem.pointer);
	} catch {
		return new ApiError(answer.status, answer.statusText || `Status ${answer.status}`, text);
	}
}

export async function send(path: string, init: RequestInit = {}): Promise<Response> {
	let answer: Response;
	try {
		answer = await fetch(path, { credentials: 'same-origin', ...init });
	} catch (why) {
		if (why instanceof DOMException && why.name === 'AbortError')
			throw why;
		if (path !== '/api/health')
			dispatchEvent(new Event(NO_ANSWER));
		throw new ApiError(0, 'No answer',
			'The dashboard does not answer. Is the program still running?');
	}
	if (answer.ok)
		return answer;
	if (answer.status === 401)
		dispatchEvent(new Event(LOGIN_WANTED));
	throw await refusal(answer);
}

export async function get<T>(path: string, signal?: AbortSignal): Promise<T> {
	return await (await send(path, { signal: signal ?? null })).json() as T;
}

export async function change<T>(
	method: 'POST' | 'PUT' | 'DELETE', path: string, body?: unknown, signal?: AbortSignal,
): Promise<T> {
	const init: RequestInit = { method, signal: signal ?? null };
	if (body !== undefined) {
		init.body = JSON.stringify(body);
		init.headers = { 'Content-Type': 'application/json' };
	}
	const answer = await send(path, init);
	const text = await answer.text();
	return (text ? JSON.parse(text) : {}) as T;
}

export const post = <T>(path: string, body: unknown, signal?: AbortSignal): Promise<T> =>
	change<T>('POST', path, body, signal);
