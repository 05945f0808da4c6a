// SPDX-License-Identifier: Apache-2.0
// mark.tsx: a dot in a group's colour and form, as the drawings have it.
import type { ReactNode } from 'react';

const PATHS = ['M5 1a4 4 0 1 1 0 8 4 4 0 0 1 0-8z', 'M5 0l5 5-5 5-5-5z', 'M5 .7L9.8 9H.2z',
	'M1 1h8v8H1z'];

interface Props { form: number; colour: string; isShown?: boolean }

export function Mark({ form, colour, isShown = true }: Props): ReactNode {
	return (
		<svg className="mark" viewBox="0 0 10 10" width="10" height="10" aria-hidden="true">
			<path d={PATHS[form % PATHS.length]} style={isShown ? { fill: colour }
				: { fill: 'none', stroke: colour, strokeWidth: 1.5 }} />
		</svg>
	);
}
