// SPDX-License-Identifier: Apache-2.0
// help.tsx: the keys that have an effect on the current page.
import { type ReactNode, useState } from 'react';
import { shortcuts } from './keys';
import { Dialog } from './parts/dialog';

const NAMES: Record<string, string> = {
	ArrowLeft: '←', ArrowRight: '→', ArrowUp: '↑', ArrowDown: '↓', Escape: 'Esc', ' ': 'Space',
};

export function Help({ onClose }: { onClose: () => void }): ReactNode {
	const [keys] = useState(shortcuts);
	return (
		<Dialog title="Keyboard shortcuts" onClose={onClose}>
			<dl className="keys">
				{keys.map(({ key, text }) => (
					<div key={key}><dt><kbd>{NAMES[key] ?? key}</kbd></dt><dd>{text}</dd></div>
				))}
				<div><dt><kbd>Esc</kbd></dt><dd>close what is open</dd></div>
			</dl>
			<p className="dim">
				The address holds the whole view: filters, order, columns, selected runs. Send it, and
				the other side sees the same.
			</p>
		</Dialog>
	);
}
