// SPDX-License-Identifier: Apache-2.0
// Generated from schema/api.json by `make reference`.

/** What every answer that is an object has. */
export interface Answer {
	data_version: number;
	query_ms: number;
}

export type Cell = boolean | number | string | null;
export type Filter = FilterAnd | FilterOr | FilterNot | FilterIn | FilterRange | FilterText | FilterMissing;

export interface FilterAnd {
	/** an empty list is true */
	and: Filter[];
}

export interface FilterOr {
	/** an empty list is false */
	or: Filter[];
}

export interface FilterNot { not: Filter }

export interface FilterIn {
	column: string;
	/** null stands for null or absent */
	in: Cell[];
}

export interface FilterRange { column: string; range: Range }

export interface Range {
	/** belongs to the range */
	min?: number | 'inf' | '-inf';
	/** belongs to it too */
	max?: number | 'inf' | '-inf';
}

export interface FilterText {
	/** `*`: any column that holds texts */
	column: string;
	/** occurs in the value, letters A-Z in either case */
	text: string;
}

export interface FilterMissing {
	column: string;
	/** true: null or absent */
	missing: boolean;
}

export type Shown = 'usual' | 'excluded' | 'archived' | 'all';
export type Flag = 'excluded' | 'archived' | 'superseded' | 'removed';

export interface Sort {
	column: string;
	/** false unless given; runs without a value come last in both orders */
	descending?: boolean;
}

export interface Problem {
	/** always `about:blank` */
	type: string;
	title: string;
	status: number;
	/** one sentence */
	detail: string;
	/** JSON pointer into the request */
	pointer?: string;
}

export interface Option {
	column: string;
	/** run, metric, or what stands before the first dot: server, benchmark, hardware */
	group: string;
	/** for people */
	label: string;
	kind: 'text' | 'number' | 'bool' | 'mixed';
	unit: string | null;
	better: 'higher' | 'lower' | null;
	/** values of the runs that match */
	distinct: number;
	/** matching runs with null or nothing */
	missing: number;
	/** all matching runs have the same */
	is_constant: boolean;
	/** most runs first; absent where a list makes no sense */
	values?: OptionValue[];
	min: number | 'inf' | '-inf' | null;
	max: number | 'inf' | '-inf' | null;
	/** of numbers that are too many for a list */
	histogram?: Bin[];
}

export interface OptionValue { value: Cell; count: number }
export interface Bin { from: number; to: number; count: number }

export interface ApplyRequest {
	filter?: Filter | null;
	/** usual unless given */
	shown?: Shown;
	/** newest first unless given */
	sort?: Sort[] | null;
	/** 50 unless given */
	limit?: number;
	/** `next` of the page before */
	cursor?: string | null;
	/** null: a usual choice */
	columns?: string[] | null;
	/** `auto`: the 30 that split the matching runs most */
	facets?: string[] | 'auto' | null;
	/** 20 unless given */
	facet_values?: number;
	/** 24 unless given */
	bins?: number;
	statistics?: string[] | null;
}

export interface Row { id: number; flags: Flag[]; values: Record<string, Cell> }

export interface FacetValue {
	value: Cell;
	count: number;
	/** by a condition of the filter on this column */
	selected: boolean;
}

export interface Facet {
	column: string;
	distinct: number;
	missing: number;
	/** runs of values that are not listed */
	others: number;
	values: FacetValue[];
	min?: number | 'inf' | '-inf' | null;
	max?: number | 'inf' | '-inf' | null;
	histogram?: Bin[];
}

export interface Statistic {
	column: string;
	/** runs with a finite number */
	count: number;
	missing: number;
	min: number | null;
	max: number | null;
	mean: number | null;
	std: number | null;
	p50: number | null;
	p90: number | null;
	p95: number | null;
	p99: number | null;
}

export interface Preset {
	id: number;
	name: string;
	/** what was saved */
	body: unknown;
	/** seconds since 1970 */
	at: number;
}

export interface PresetRequest { name?: string; body?: unknown }

export interface SummaryRequest {
	filter?: Filter | null;
	shown?: Shown;
	/** null: a usual choice of metrics */
	statistics?: string[] | null;
}

export interface Annotation { id: number; text: string; who: string; at: number }
export interface AnnotationRequest { text: string; who?: string }

export interface Exclusion {
	reason: string;
	who: string;
	at: number;
	/** it was taken back */
	is_over: boolean;
}

export interface ExclusionRequest { reason: string; who?: string }

export interface Trace {
	id: number;
	run: number | null;
	run_id: string | null;
	name: string;
	/** SHA-256 of its bytes */
	hash: string;
	model: string | null;
	commit: string | null;
	state: 'here' | 'missing' | 'expired';
	bytes: number;
	at: number;
}

export interface Badge {
	level: 'good' | 'warn' | 'bad';
	code: string;
	/** one sentence */
	text: string;
}

export interface Version { id: number; received: number }

export interface ExportRequest {
	filter?: Filter | null;
	shown?: Shown;
	sort?: Sort[] | null;
	/** null: all */
	columns?: string[] | null;
	/** csv unless given */
	format?: 'csv' | 'jsonl';
	/** runs at most */
	limit?: number | null;
}

export interface PutResult {
	outcome: 'new' | 'duplicate' | 'conflict' | 'invalid';
	id: number | null;
	run_id: string | null;
	reason?: string | null;
}

export interface JobCounts { new: number; duplicate: number; conflict: number; invalid: number }

export interface JobFile {
	name: string;
	outcome: 'new' | 'duplicate' | 'conflict' | 'invalid' | null;
	runs: number;
	id: number | null;
	reason: string | null;
}

export interface JobHead {
	job_id: string;
	kind: 'upload' | 'run';
	state: JobState;
	/** seconds since 1970 */
	created: number;
	ended: number | null;
	/** files */
	total: number;
	done: number;
	counts: JobCounts;
	/** what its kind keeps */
	detail: Record<string, unknown>;
	run_ids: string[];
}

export type JobState = 'waiting' | 'running' | 'done' | 'failed' | 'cancelled';

export interface CompareRequest {
	/** two or more */
	groups: CompareGroup[];
	metrics?: string[] | null;
	/** which group the others are measured against; 0 */
	baseline?: number;
	/** of the intervals; 0.95 */
	level?: number;
	by?: 'run' | 'document';
}

export interface CompareGroup { name?: string; ids?: number[]; filter?: Filter | null }
export interface AnalysisFilter { filter?: Filter | null; shown?: Shown }

export interface TrendsRequest {
	filter?: Filter | null;
	metric: string;
	/** columns that tell series apart */
	series?: string[] | null;
	axis?: 'commit' | 'time';
	/** 0.001 */
	level?: number;
	/** 0.03 */
	effect?: number;
	/** 300 */
	window?: number;
}

export interface RegressionRequest {
	filter?: Filter | null;
	metric?: string;
	metrics?: string[];
	baseline: RegressionBaseline;
	series?: string[] | null;
	policy?: RegressionPolicy;
}

export interface RegressionBaseline { filter?: Filter; ids?: number[]; commit?: string; last?: number }

export interface RegressionPolicy {
	effect?: number;
	p?: number;
	points_after?: number;
	guards?: string[];
}

export interface ImpactRequest { filter?: Filter | null; metric: string; parameters?: string[] | null }

export interface ScalingRequest {
	filter?: Filter | null;
	metric: string;
	by?: string;
	series?: string[] | null;
}

export interface CapacityRequest {
	filter?: Filter | null;
	/** requests a second */
	rate: number;
	slo?: Slo[];
	configuration?: string[] | null;
}

export interface Slo { column: string; min?: number; max?: number }
export interface ResourcesRequest { filter?: Filter | null; x: string; y: string; color?: string | null }

export interface ParetoRequest {
	filter?: Filter | null;
	x: string;
	y: string;
	better?: Record<string, unknown>;
	group?: string[] | null;
}

export interface DistributionRequest { filter?: Filter | null; metric: string; group?: unknown }
export interface ParallelRequest { filter?: Filter | null; columns: string[]; limit?: number }

export interface Mark {
	id: number;
	series: string;
	at: string;
	kind: 'expected' | 'seen';
	text: string;
	who: string;
	/** seconds since 1970 */
	made: number;
}

export interface MarkRequest {
	series: string;
	at: string;
	kind: 'expected' | 'seen';
	text?: string;
	who?: string;
}

export interface LaunchRequest {
	/** YAML or JSON */
	config: string;
}

export interface Finding {
	level: 'error' | 'warning';
	line: number | null;
	column: number | null;
	text: string;
}

export interface Example {
	name: string;
	/** its first line */
	title: string;
	config: string;
}

export interface LaunchSection { name: string; keys: LaunchKey[] }

export interface LaunchKey {
	key: string;
	value: string | null;
	default: string | null;
	help: string | null;
	group?: string;
}

export interface LoginRequest { token: string }

export interface Health extends Answer {
	status: 'ok';
	version: string;
	store: 'sqlite' | 'postgresql';
	runs: number;
	is_read_only: boolean;
	needs_token: boolean;
	can_launch: boolean;
}

export interface Login extends Answer {
	/** the token's name */
	who: string | null;
}

export interface Options extends Answer {
	/** columns */
	total: number;
	/** that match */
	runs: number;
	/** those that split the matching runs most come first */
	items: Option[];
	next: null;
}

export interface Apply extends Answer {
	/** runs that match */
	total: number;
	items: Row[];
	/** cursor of the next page */
	next: string | null;
	columns: string[];
	facets: Facet[];
	statistics: Statistic[];
}

export interface List extends Answer {
	total: number;
	items: Row[];
	next: string | null;
	columns: string[];
}

export interface Presets extends Answer { items: Preset[] }

export interface Run extends Answer {
	id: number;
	run_id: string;
	kind: string;
	hash: string;
	who: string;
	received: number;
	flags: Flag[];
	values: Record<string, Cell>;
	/** as it came, without per-request arrays; NaN is null, infinite numbers are texts */
	document: unknown;
	has_arrays: boolean;
	/** of the same run_id, newest first */
	versions: Version[];
	annotations: Annotation[];
	/** newest first */
	exclusions: Exclusion[];
	traces: Trace[];
	/** command lines */
	reproduce: string[];
	badges: Badge[];
}

export interface Created extends Answer { id: number }
export interface Attached extends Answer { ids: number[] }
export type Done = Answer;

export interface Summary extends Answer {
	total: number;
	statistics: Statistic[];
	status: Record<string, number>;
	verdicts: Record<string, number>;
}

export interface Traces extends Answer { total: number; items: Trace[]; next: string | null }
export interface Upload extends Answer { results: PutResult[]; notes: string[] }
export interface JobStarted extends Answer { job_id: string }

export interface BatchStarted extends Answer {
	job_id: string;
	/** files */
	total: number;
}

export interface UploadJob extends Answer {
	job_id: string;
	kind: 'upload' | 'run';
	state: JobState;
	/** seconds since 1970 */
	created: number;
	ended: number | null;
	/** files */
	total: number;
	done: number;
	counts: JobCounts;
	/** what its kind keeps */
	detail: Record<string, unknown>;
	run_ids: string[];
	files: JobFile[];
}

export interface Job extends Answer {
	job_id: string;
	kind: 'upload' | 'run';
	state: JobState;
	/** seconds since 1970 */
	created: number;
	ended: number | null;
	/** files */
	total: number;
	done: number;
	counts: JobCounts;
	/** what its kind keeps */
	detail: Record<string, unknown>;
	run_ids: string[];
}

export interface Jobs extends Answer { total: number; items: JobHead[]; next: null }

export interface Compare extends Answer {
	groups: CompareSide[];
	/** those that differ */
	parameters: CompareParameter[];
	metrics: CompareMetric[];
	notes: string[];
}

export interface Trends extends Answer { series: TrendSeries[]; left_out: number }
export interface Regression extends Answer { items: RegressionItem[] }
export interface Impact extends Answer { parameters: ImpactParameter[]; notes: string[] }
export interface Scaling extends Answer { series: ScalingSeries[] }
export interface Capacity extends Answer { configurations: CapacityConfiguration[] }
export interface Resources extends Answer { points: ResourcePoint[] }
export interface Pareto extends Answer { groups: ParetoGroup[]; total: number; shown: number }
export interface Distribution extends Answer { groups: DistributionGroup[] }
export interface Parallel extends Answer { axes: ParallelAxis[]; lines: ParallelLine[]; total: number }
export interface Marks extends Answer { items: Mark[] }
export interface LaunchCheck extends Answer { ok: boolean; findings: Finding[]; plan: unknown }
export interface Examples extends Answer { items: Example[] }

export interface LaunchSchema extends Answer {
	/** of a configuration */
	sections: LaunchSection[];
	/** of an engine */
	arguments: LaunchKey[];
}

export interface CompareSide {
	name: string;
	n: number;
	/** the first 200 */
	ids: number[];
}

export interface CompareParameter {
	column: string;
	group: string;
	/** a list per group */
	values: CompareValue[][];
}

export interface CompareValue { value: Cell; count: number }

export interface CompareMetric {
	column: string;
	unit: string | null;
	better: 'higher' | 'lower' | null;
	groups: CompareFigures[];
	deltas: CompareDelta[];
}

export interface CompareFigures {
	n: number;
	mean: number | null;
	median: number | null;
	std: number | null;
	min: number | null;
	max: number | null;
}

export interface CompareDelta {
	group: number;
	effect: number | null;
	interval: number[] | null;
	p: number | null;
	p_adjusted: number | null;
	method: string | null;
	verdict: 'better' | 'worse' | 'no evidence' | 'not enough data';
	needed: number | null;
}

export interface TrendSeries {
	key: Record<string, Cell>;
	name: string;
	points: TrendPoint[];
	changes: TrendChange[];
}

export interface TrendPoint {
	at: number | null;
	commit: string | null;
	ids: number[];
	n: number;
	value: number;
	low: number | null;
	high: number | null;
}

export interface TrendChange {
	index: number;
	at: number | null;
	commit: string | null;
	before: number;
	after: number;
	effect: number;
	p: number;
	is_marked: boolean;
	verdict: 'better' | 'worse' | null;
}

export interface RegressionItem {
	series: unknown;
	metric: string;
	verdict: 'regression' | 'improvement' | 'no evidence of change' | 'not enough data';
	effect: number | null;
	interval: number[] | null;
	p: number | null;
	n: number[];
	guard: unknown;
	reason: string;
}

export interface ImpactParameter {
	column: string;
	share: number | null;
	p: number | null;
	levels: ImpactLevel[];
	effect: number | null;
	confounded_with: Confounded[];
	note: string | null;
}

export interface ImpactLevel { value: Cell; n: number; median: number | null }
export interface Confounded { column: string; strength: number }
export interface ScalingSeries { key: Record<string, Cell>; points: ScalingPoint[] }

export interface ScalingPoint {
	x: number;
	n: number;
	median: number;
	low: number | null;
	high: number | null;
	speedup: number | null;
	efficiency: number | null;
}

export interface CapacityConfiguration {
	key: Record<string, Cell>;
	gpus_per_server: number | null;
	rate_per_server: Estimate | null;
	servers: number | null;
	gpus: Estimate | null;
	runs: number;
	reason: string | null;
}

export interface Estimate { value: number; low: number | null; high: number | null }
export interface ResourcePoint { id: number; x: number; y: number; values: Record<string, Cell> }
export interface ParetoGroup { key: Record<string, Cell>; points: ParetoPoint[] }
export interface ParetoPoint { id: number; x: number; y: number; is_frontier: boolean }

export interface DistributionGroup {
	key: Record<string, Cell>;
	n: number;
	/** min, p5, p25, p50, p75, p95, max */
	quantiles: number[];
	histogram: Histogram;
}

export interface Histogram { edges: number[]; counts: number[] }

export interface ParallelAxis {
	column: string;
	kind: string;
	min: number | null;
	max: number | null;
	values: Cell[] | null;
}

export interface ParallelLine { id: number; values: Cell[] }

/** What each route takes and gives. */
export interface Routes {
	'GET /api/health': { query: undefined; request: undefined; answer: Health };
	'GET /metrics': { query: undefined; request: undefined; answer: string };
	'GET /api/openapi.json': { query: undefined; request: undefined; answer: unknown };
	'POST /api/login': { query: undefined; request: LoginRequest; answer: Login };
	'POST /api/logout': { query: undefined; request: undefined; answer: Login };
	'GET /api/filters/options': {
		query: { filter?: string;
			shown?: Shown;
			facet_values?: number;
			bins?: number };
		request: undefined; answer: Options;
	};
	'POST /api/filters/apply': { query: undefined; request: ApplyRequest; answer: Apply };
	'GET /api/filters/presets': { query: undefined; request: undefined; answer: Presets };
	'POST /api/filters/presets': { query: undefined; request: PresetRequest; answer: Created };
	'PUT /api/filters/presets/{id}': { query: undefined; request: PresetRequest; answer: Created };
	'DELETE /api/filters/presets/{id}': { query: undefined; request: undefined; answer: Done };
	'GET /api/data/experiments': {
		query: { filter?: string;
			shown?: Shown;
			sort?: string;
			limit?: number;
			cursor?: string;
			columns?: string };
		request: undefined; answer: List;
	};
	'GET /api/data/experiments/{id}': { query: undefined; request: undefined; answer: Run };
	'GET /api/data/experiments/{id}/document': {
		query: undefined; request: undefined; answer: unknown;
	};
	'GET /api/data/experiments/{id}/arrays': { query: undefined; request: undefined; answer: unknown };
	'POST /api/data/experiments/{id}/annotations': {
		query: undefined; request: AnnotationRequest; answer: Created;
	};
	'DELETE /api/annotations/{id}': { query: undefined; request: undefined; answer: Done };
	'PUT /api/data/experiments/{id}/exclusion': {
		query: undefined; request: ExclusionRequest; answer: Done;
	};
	'DELETE /api/data/experiments/{id}/exclusion': { query: undefined; request: undefined; answer: Done };
	'GET /api/data/summary': {
		query: { filter?: string;
			shown?: Shown;
			statistics?: string };
		request: undefined; answer: Summary;
	};
	'POST /api/data/summary': { query: undefined; request: SummaryRequest; answer: Summary };
	'POST /api/data/compare': { query: undefined; request: CompareRequest; answer: Compare };
	'GET /api/export/csv': {
		query: { filter?: string;
			shown?: Shown;
			sort?: string;
			columns?: string;
			format?: 'csv' | 'jsonl';
			limit?: number };
		request: undefined; answer: string;
	};
	'POST /api/export/csv': { query: undefined; request: ExportRequest; answer: string };
	'GET /api/traces': {
		query: { limit?: number;
			cursor?: string };
		request: undefined; answer: Traces;
	};
	'GET /api/export/traces/{id}': { query: undefined; request: undefined; answer: string };
	'DELETE /api/traces/{id}': { query: undefined; request: undefined; answer: Done };
	'POST /api/data/experiments/{id}/traces': { query: undefined; request: FormData; answer: Attached };
	'POST /api/analysis/trends': { query: undefined; request: TrendsRequest; answer: Trends };
	'POST /api/analysis/regression': {
		query: undefined; request: RegressionRequest; answer: Regression;
	};
	'POST /api/analysis/impact': { query: undefined; request: ImpactRequest; answer: Impact };
	'POST /api/analysis/scaling': { query: undefined; request: ScalingRequest; answer: Scaling };
	'POST /api/analysis/capacity': { query: undefined; request: CapacityRequest; answer: Capacity };
	'POST /api/analysis/resources': { query: undefined; request: ResourcesRequest; answer: Resources };
	'POST /api/analysis/pareto': { query: undefined; request: ParetoRequest; answer: Pareto };
	'POST /api/analysis/distribution': {
		query: undefined; request: DistributionRequest; answer: Distribution;
	};
	'POST /api/analysis/parallel': { query: undefined; request: ParallelRequest; answer: Parallel };
	'GET /api/analysis/marks': { query: undefined; request: undefined; answer: Marks };
	'POST /api/analysis/marks': { query: undefined; request: MarkRequest; answer: Created };
	'DELETE /api/analysis/marks/{id}': { query: undefined; request: undefined; answer: Done };
	'POST /api/upload/json': { query: undefined; request: FormData; answer: Upload };
	'POST /api/upload/raw': {
		query: { name?: string };
		request: unknown; answer: Upload;
	};
	'POST /api/upload/batch': { query: undefined; request: FormData; answer: BatchStarted };
	'GET /api/upload/status/{job_id}': { query: undefined; request: undefined; answer: UploadJob };
	'GET /api/jobs': {
		query: { limit?: number };
		request: undefined; answer: Jobs;
	};
	'GET /api/jobs/{id}': { query: undefined; request: undefined; answer: Job };
	'GET /api/jobs/{id}/log': {
		query: { offset?: number };
		request: undefined; answer: string;
	};
	'GET /api/jobs/{id}/events': { query: undefined; request: undefined; answer: string };
	'POST /api/jobs/{id}/cancel': { query: undefined; request: undefined; answer: Done };
	'GET /api/launch/schema': { query: undefined; request: undefined; answer: LaunchSchema };
	'GET /api/launch/examples': { query: undefined; request: undefined; answer: Examples };
	'POST /api/launch/check': { query: undefined; request: LaunchRequest; answer: LaunchCheck };
	'POST /api/launch': { query: undefined; request: LaunchRequest; answer: JobStarted };
}
