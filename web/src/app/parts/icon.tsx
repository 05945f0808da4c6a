// SPDX-License-Identifier: Apache-2.0
// icon.tsx: a few drawings of 16 by 16, in the colour of the text.
import type { ReactNode } from 'react';

const PATHS = {
	cross: 'M4 4l8 8M12 4l-8 8',
	plus: 'M8 3v10M3 8h10',
	check: 'M3.5 8.5l3 3 6-7',
	down: 'M4 6l4 4 4-4',
	up: 'M4 10l4-4 4 4',
	right: 'M6 4l4 4-4 4',
	search: 'M11.5 7a4.5 4.5 0 1 1-9 0 4.5 4.5 0 0 1 9 0zM10.5 10.5l3.5 3.5',
	filter: 'M2 3.5h12l-4.7 5.5v4l-2.6 1v-5z',
	columns: 'M2.5 3h11v10h-11zM6.2 3v10M9.8 3v10',
	link: 'M6.7 9.3a2.6 2.6 0 0 0 3.7 0l2.3-2.3a2.6 2.6 0 0 0-3.7-3.7l-1 1'
		+ 'M9.3 6.7a2.6 2.6 0 0 0-3.7 0L3.3 9a2.6 2.6 0 0 0 3.7 3.7l1-1',
	download: 'M8 2.5v7.5M4.7 7l3.3 3.3L11.3 7M3 13.5h10',
	upload: 'M8 10.5V3M4.7 6l3.3-3.3L11.3 6M3 13.5h10',
	star: 'M8 2.3l1.75 3.6 3.95.55-2.87 2.76.69 3.93L8 11.25l-3.52 1.89.69-3.93'
		+ '-2.87-2.76 3.95-.55z',
	sun: 'M8 5a3 3 0 1 1 0 6 3 3 0 0 1 0-6zM8 1.2v1.6M8 13.2v1.6M1.2 8h1.6M13.2 8h1.6'
		+ 'M3.2 3.2l1.1 1.1M11.7 11.7l1.1 1.1M12.8 3.2l-1.1 1.1M4.3 11.7l-1.1 1.1',
	moon: 'M13.3 9.7A5.7 5.7 0 0 1 6.3 2.7a5.7 5.7 0 1 0 7 7z',
	screen: 'M2 3h12v8H2zM5.5 13.5h5M8 11v2.5',
	menu: 'M2.5 4.5h11M2.5 8h11M2.5 11.5h11',
	more: 'M3.5 8h.01M8 8h.01M12.5 8h.01',
	help: 'M5.8 6a2.25 2.25 0 1 1 3.3 2c-.7.4-1.1.8-1.1 1.6M8 12.3h.01',
	pencil: 'M3 13l.6-2.6 7-7 2 2-7 7zM9.3 4.7l2 2',
	trash: 'M3 4.5h10M6.2 4.5V3h3.6v1.5M4.3 4.5l.6 8.5h6.2l.6-8.5',
	warning: 'M8 2.7l6 10.6H2zM8 6.7v3M8 11.6h.01',
	compare: 'M5 2.5v11M11 2.5v11M2.5 5.5L5 2.5l2.5 3M8.5 10.5l2.5 3 2.5-3',
	external: 'M9 3h4v4M13 3L7.5 8.5M11.5 9.5V13H3V4.5h3.5',
	play: 'M4.5 2.8l8.5 5.2-8.5 5.2z',
	copy: 'M5.5 5.5h8v8h-8zM3.5 10.5h-1v-8h8v1',
} as const;

export type IconName = keyof typeof PATHS;

export function Icon({ name }: { name: IconName }): ReactNode {
	return (
		<svg className="glyph" viewBox="0 0 16 16" width="16" height="16" aria-hidden="true"
			fill="none" stroke="currentColor" strokeWidth="1.5" strokeLinecap="round"
			strokeLinejoin="round">
			<path d={PATHS[name]} />
		</svg>
	);
}
