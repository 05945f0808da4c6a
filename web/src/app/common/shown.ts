// SPDX-License-Identifier: Apache-2.0
// shown.ts: which groups of a chart are visible: the first few, except those that were toggled.
import { listCodec, useUrlState } from '../url';

const codec = listCodec();

export interface Flipped { flipped: string[]; flip: (id: string) => void }

export function useFlipped(): Flipped {
	const [flipped, set] = useUrlState('flip', codec);
	return { flipped, flip: (id) => set((now) => (now.includes(id) ? now.filter((w) => w !== id)
		: [...now, id]), { replace: true }) };
}

export const isSeen = (index: number, id: string, flipped: string[], first: number): boolean =>
	(index < first) !== flipped.includes(id);
