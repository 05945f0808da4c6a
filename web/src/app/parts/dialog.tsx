// SPDX-License-Identifier: Apache-2.0
// dialog.tsx: the browser's own modal dialog: it keeps the focus, closes by Escape, by its cross
// and by a click outside it, and never changes the address.
import { useEffect, useId, useRef, type MouseEvent, type ReactNode } from 'react';
import { Icon } from './icon';

interface Props {
	title: string;
	onClose: () => void;
	children: ReactNode;
	foot?: ReactNode;
	/** wide: an editor; side: a panel from the edge, on small screens */
	look?: 'usual' | 'wide' | 'side';
}

export function Dialog({ title, onClose, children, foot, look = 'usual' }: Props): ReactNode {
	const ref = useRef<HTMLDialogElement>(null);
	const id = useId();
	useEffect(() => {
		const dialog = ref.current!;
		const before = document.activeElement;
		dialog.showModal();
		return () => {
			dialog.close();
			if (before instanceof HTMLElement)
				before.focus();
		};
	}, []);
	const clicked = (event: MouseEvent): void => {
		if (event.target === ref.current)
			onClose();
	};
	return (
		<dialog ref={ref} className={`dialog ${look}`} aria-labelledby={id} onMouseDown={clicked}
			onCancel={(event) => {
				event.preventDefault();
				onClose();
			}}>
			<div className="dialog-inner">
				<header className="dialog-head">
					<h2 id={id}>{title}</h2>
					<button type="button" className="quiet icon" aria-label="Close" onClick={onClose}>
						<Icon name="cross" />
					</button>
				</header>
				<div className="dialog-body">{children}</div>
				{foot && <footer className="dialog-foot">{foot}</footer>}
			</div>
		</dialog>
	);
}
