// SPDX-License-Identifier: Apache-2.0
// copy.tsx: a line of text with a button that copies it.
import type { ReactNode } from 'react';
import { Icon } from '../parts/icon';
import { toast, toastError } from '../parts/toast';

function copy(text: string): void {
	navigator.clipboard.writeText(text).then(() => toast('Copied.')).catch(toastError);
}

export function CopyLine({ text, label }: { text: string; label: string }): ReactNode {
	return (
		<div className="copy-line">
			<pre tabIndex={0}>{text}</pre>
			<button type="button" className="small icon" aria-label={`Copy ${label}`} title="Copy"
				onClick={() => copy(text)}><Icon name="copy" /></button>
		</div>
	);
}
