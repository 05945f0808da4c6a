// SPDX-License-Identifier: Apache-2.0
// block.ts: what a part of a page knows when it is a block of a board: that it has no controls, and
// the answers that it is frozen at.
import { createContext, useContext } from 'react';

export interface BlockState {
	/** Of the block and of its frozen state. */
	id: string;
	/** Answers by route; null: the block follows the store. */
	frozen: Record<string, unknown> | null;
	/** Called with each answer that the block shows. */
	onAnswer: (route: string, answer: unknown) => void;
}

export const BlockContext = createContext<BlockState | null>(null);

export const useIsBlock = (): boolean => useContext(BlockContext) !== null;
