// SPDX-License-Identifier: Apache-2.0
// block.ts: context of a part of a page that is a block of a board: it has no controls, and may be
// frozen at certain answers.
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
