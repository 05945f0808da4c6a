// SPDX-License-Identifier: Apache-2.0
// types.ts: answers of the routes of /api/launch and a run's events.
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
	/** Number of experiments whose duration is unknown. */
	n_unknown?: number;
}
export interface Check {
	ok: boolean;
	findings: Finding[];
	plan: Plan | null;
}

/** Values at one time, by their name. */
export interface Sample {
	at: number;
	values: Record<string, number>;
}

const TIME_KEYS = ['t_s', 'time_s', 'at_s', 'at', 'elapsed_s', 't'];

/**
 * The numbers of a telemetry event, whatever it holds: names of nested members are joined by
 * spaces. Its time is the first member that is a time, else `otherwise`.
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
	label: string;
	unit: string;
	points: [number, number][];
}

/** What is watched, in the order in which it is read: name, label, unit, factor. */
const WATCHED: [name: string, label: string, unit: string, factor?: number][] = [
	['done', 'Requests done', ''], ['running', 'Running in the server', ''],
	['waiting', 'Waiting in the server', ''], ['kv_cache_usage', 'KV cache', '%', 100],
	['tokens', 'Output tokens', ''], ['failed', 'Failed requests', ''],
	['gpu_utilization_percent', 'GPU utilization', '%'], ['gpu_power_w', 'GPU power', 'W'],
	['gpu_memory_bytes', 'GPU memory', 'bytes'], ['host_cpus_busy', 'Host', 'CPUs busy'],
	['host_memory_bytes', 'Host memory', 'bytes'], ['process_cpus_busy', 'Server', 'CPUs busy'],
	['process_rss_bytes', 'Server memory', 'bytes'],
];
/** Constant, or the same as another one. */
const NOT_DRAWN = ['total', 'admitted'];

/** Series from samples: what is known, in its order; then whatever else there is, under its own name. */
export function linesOf(samples: Sample[]): Line[] {
	const by = new Map<string, [number, number][]>();
	for (const s of samples)
		for (const [name, v] of Object.entries(s.values)) {
			const points = by.get(name) ?? [];
			points.push([s.at, v]);
			by.set(name, points);
		}
	const known = WATCHED.flatMap(([name, label, unit, factor = 1]): Line[] => (by.has(name)
		? [{ name, label, unit, points: by.get(name)!.map(([at, v]) => [at, v * factor]) }] : []));
	const others = [...by]
		.filter(([name]) => !NOT_DRAWN.includes(name) && !known.some((l) => l.name === name))
		.map(([name, points]) => ({ name, label: name.replace(/_/g, ' '), unit: '', points }));
	return [...known, ...others];
}

export const secondsText = (s: number | null): string => {
	if (s === null) return 'unknown';
	if (s < 90) return `${Number(s.toPrecision(2))} s`;
	return s < 5400 ? `${Math.round(s / 60)} min` : `${Number((s / 3600).toPrecision(2))} h`;
};
