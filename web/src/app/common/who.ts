// SPDX-License-Identifier: Apache-2.0
// who.ts: the name that users sign with; the browser keeps it.

const KEY = 'profllm-who';

export function lastWho(): string {
	try {
		return localStorage.getItem(KEY) ?? '';
	} catch {
		return ''; // storage is forbidden: it is typed each time
	}
}

export function keepWho(who: string): void {
	try {
		localStorage.setItem(KEY, who);
	} catch {
		// it then holds for this time only
	}
}
