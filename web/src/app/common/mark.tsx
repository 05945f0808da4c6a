// SPDX-License-Identifier: Apache-2.0
// mark.tsx: a dot in a group's color and shape, as in the charts.
import type { ReactNode } from 'react';
import { shapeOf } from '../colour';

interface Props { form: number; colour: string; isShown?: boolean }

export function Mark({ form, colour, isShown = true }: Props): ReactNode {
	return (
		<svg className="mark" viewBox="0 0 10 10" width="10" height="10" aria-hidden="true">
			<path d={shapeOf(form)} style={isShown ? { fill: colour }
				: { fill: 'none', stroke: colour, strokeWidth: 1.5 }} />
		</svg>
	);
}
