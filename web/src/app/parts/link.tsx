// SPDX-License-Identifier: Apache-2.0
// link.tsx: a link to a page of the dashboard; opens elsewhere as links do.
import type { AnchorHTMLAttributes, MouseEvent, ReactNode } from 'react';
import { navigate } from '../url';

interface Props extends AnchorHTMLAttributes<HTMLAnchorElement> {
	to: string;
	children?: ReactNode;
}

export function Link({ to, onClick, ...rest }: Props): ReactNode {
	const clicked = (event: MouseEvent<HTMLAnchorElement>): void => {
		onClick?.(event);
		if (event.defaultPrevented || event.button !== 0 || event.ctrlKey || event.metaKey
			|| event.shiftKey || event.altKey)
			return;
		event.preventDefault();
		navigate(to);
	};
	return <a href={to} onClick={clicked} {...rest} />;
}
