// SPDX-License-Identifier: Apache-2.0
// types.ts: what the routes of /api/launch and a run's events say.
import type { Values } from '../../api';

export interface Help {
	key: string;
	value: string | null;
	default: string | null;
	help: string | null;
}
export interface Section {
	name: string;
	keys: Help[];
}
export interface Schema {
	sections: Section[];
	arguments: (Help & { group: string })[];
}
export interface Example {
	name: string;
	title: string;
	config: string;
}
export interface Finding {
	level?: 'error' | 'warning';
	line: number | null;
	column: number | null;
	text: string;
}

export interface PlanServer {
	name: string;
	role: string;
	gpus: number;
	command: string | null;
}
export interface PlanTime {
	total_s: number | null;
	basis: string;
}
export interface Planned {
	name: string;
	mode: string;
	document: string;
	is_kept: boolean;
	gpus: string;
	servers: PlanServer[];
	benchmark: string | null;
	time: PlanTime | null;
}
export interface Plan {
	suite: string | null;
	experiments: Planned[];
	total_s: number | null;
	n_run?: number;
	/** Experiments of which nothing says how long they take. */
	n_unknown?: number;
}
export interface Check {
	ok: boolean;
	findings: Finding[];
	plan: Plan | null;
}

/** Numbers of one moment, by their name. */
export interface Sample {
	at: number;
	values: Record<string, number>;
}

const TIME_KEYS = ['t_s', 'time_s', 'at_s', 'at', 'elapsed_s', 't'];

/**
 * The numbers of a telemetry event, whatever it holds: members of members are joined by spaces.
 * Its time is the first member that is one, else what the caller counts.
 */
export function sampleOf(data: unknown, otherwise: number): Sample {
	const values: Record<string, number> = {};
	let at = otherwise;
	const look = (v: unknown, name: string, depth: number): void => {
		if (typeof v === 'number' && Number.isFinite(v)) {
			values[name] = v;
		} else if (typeof v === 'object' && v !== null && depth < 4) {
			const list = Object.entries(v as Record<string, unknown>);
			const label = (v as Values).name;
			for (const [key, w] of list)
				look(
					w,
					[
						typeof label === 'string' && Array.isArray(v)
							? label
							: name,
						Array.isArray(v) ? `#${key}` : key,
					]
						.filter(Boolean)
						.join(' '),
					depth + 1,
				);
		}
	};
	look(data, '', 0);
	for (const key of TIME_KEYS)
		if (key in values) {
			at = values[key];
			break;
		}
	for (const key of TIME_KEYS) delete values[key];
	return { at, values };
}

export interface Line {
	name: string;
	points: [number, number][];
}

/** Series by name from samples, those that ever changed first. */
export function linesOf(samples: Sample[]): Line[] {
	const by = new Map<string, [number, number][]>();
	for (const s of samples)
		for (const [name, v] of Object.entries(s.values)) {
			const points = by.get(name) ?? [];
			points.push([s.at, v]);
			by.set(name, points);
		}
	const changes = (l: Line): boolean => l.points.some(([, v]) => v !== l.points[0][1]);
	return [...by]
		.map(([name, points]) => ({ name, points }))
		.sort((a, b) => Number(changes(b)) - Number(changes(a)));
}

export const secondsText = (s: number | null): string => {
	if (s === null) return 'unknown';
	if (s < 90) return `${Number(s.toPrecision(2))} s`;
	return s < 5400 ? `${Math.round(s / 60)} min` : `${Number((s / 3600).toPrecision(2))} h`;
};
