// SPDX-License-Identifier: Apache-2.0
// menu.tsx: a button that opens a small panel below itself. Escape and a click elsewhere close it.
import { useEffect, useId, useLayoutEffect, useRef, useState, type ReactNode } from 'react';
import { Icon, type IconName } from './icon';

interface Props {
	label: string;
	icon?: IconName;
	title?: string;
	look?: string;
	isBare?: boolean; /* only the icon is seen */
	align?: 'start' | 'end';
	children: (close: () => void) => ReactNode;
}

export function Menu(props: Props): ReactNode {
	const { label, icon, title, look = '', isBare = false, align = 'start', children } = props;
	const [isOpen, setOpen] = useState(false);
	const root = useRef<HTMLDivElement>(null);
	const panel = useRef<HTMLDivElement>(null);
	const button = useRef<HTMLButtonElement>(null);
	const id = useId();
	useEffect(() => {
		if (!isOpen)
			return;
		const outside = (event: Event): void => {
			if (event.target instanceof Node && !root.current?.contains(event.target))
				setOpen(false);
		};
		addEventListener('pointerdown', outside);
		addEventListener('focusin', outside);
		return () => {
			removeEventListener('pointerdown', outside);
			removeEventListener('focusin', outside);
		};
	}, [isOpen]);
	useLayoutEffect(() => {
		const box = panel.current;
		if (!box)
			return;
		const { left, right } = box.getBoundingClientRect();
		if (right > innerWidth - 8)
			box.style.translate = `${innerWidth - 8 - right}px 0`;
		else if (left < 8)
			box.style.translate = `${8 - left}px 0`;
	}, [isOpen]);
	const close = (): void => {
		setOpen(false);
		button.current?.focus();
	};
	return (
		<div className="menu" ref={root} onKeyDown={(event) => {
			if (event.key === 'Escape' && isOpen) {
				event.stopPropagation();
				event.preventDefault();
				close();
			}
		}}>
			<button type="button" ref={button} className={`${look} ${isBare ? 'icon' : ''}`}
				aria-expanded={isOpen} aria-controls={isOpen ? id : undefined}
				aria-label={isBare ? label : undefined} title={title}
				onClick={() => setOpen(!isOpen)}>
				{icon && <Icon name={icon} />}
				{!isBare && <span>{label}</span>}
				{!isBare && <Icon name="down" />}
			</button>
			{isOpen && <div className={`menu-panel ${align}`} id={id} ref={panel}>{children(close)}</div>}
		</div>
	);
}
