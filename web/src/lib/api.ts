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
	and: Filter[]; // an empty list is true
}

export interface FilterOr {
	or: Filter[]; // an empty list is false
}

export interface FilterNot { not: Filter }

export interface FilterIn {
	column: string;
	in: Cell[]; // null means null or absent
}

export interface FilterRange { column: string; range: Range }

export interface Range {
	/** belongs to the range; `inf`, `-inf`, of `timestamp` also `2026-11-22T08:00:00Z` */
	min?: number | string;
	max?: number | string; // belongs to it too, and is not below min
}

export interface FilterText {
	column: string; // `*`: any column that holds texts
	text: string; // occurs in the value, letters A-Z in either case
}

export interface FilterMissing {
	column: string;
	missing: boolean; // true: null or absent
}

export type Shown = 'usual' | 'excluded' | 'archived' | 'all';
export type Flag = 'excluded' | 'archived' | 'superseded';

export interface Sort {
	column: string;
	descending?: boolean; // false unless given; runs without a value come last in both orders
}

export interface Problem {
	type: string; // always `about:blank`
	title: string; status: number;
	detail: string; // one sentence
	pointer?: string; // JSON pointer into the request
	traces?: Trace[]; // what may be asked for by number, where a run has several
}

export interface Option {
	column: string;
	group: string; // run, metric, or what comes before the first dot: server, benchmark, hardware
	label: string; // for people
	/** what the column is for, as the page about columns lists them: hardware, engine, load */
	role: string;
	short: string | null; // what goes in front of a value in a short label: TP of TP4
	differs: boolean; // two runs, and two in a hundred, lack its most common value; not of metrics
	same_as: string | null; // the column that splits the runs in the same way and comes first
	kind: 'text' | 'number' | 'bool' | 'mixed'; unit: string | null;
	better: 'higher' | 'lower' | null;
	distinct: number; // values of the runs that match
	missing: number; // matching runs with null or nothing
	is_constant: boolean; // all matching runs have the same
	values?: OptionValue[]; // most runs first; absent where a list makes no sense
	min: number | 'inf' | '-inf' | null; // least finite number of the runs that match
	max: number | 'inf' | '-inf' | null; // largest finite number of the runs that match
	histogram?: Bin[]; // of numbers that are too many for a list
}

export interface Constant { column: string; label: string; value: Cell }
export interface OptionValue { value: Cell; count: number }
export interface Bin { from: number; to: number; count: number }

export interface ApplyRequest {
	filter?: Filter | null;
	shown?: Shown; // usual unless given
	sort?: Sort[] | null; // newest first unless given
	limit?: number; // 50 unless given
	cursor?: string | null; // `next` of the page before
	/** null: up to four in which the runs differ, the main metrics, verdict and time */
	columns?: string[] | null;
	facets?: string[] | 'auto' | null; // `auto`: the 30 that split the matching runs most
	facet_values?: number; // 20 unless given
	bins?: number; // 24 unless given
	statistics?: string[] | null;
	/** repeats of one configuration are one row; facets still count runs */
	group?: 'configuration' | null;
}

export interface Row {
	id: number; flags: Flag[]; values: Record<string, Cell>;
	n?: number; // runs in a folded row
	configuration?: number | null; // of these runs, to filter by
	ids?: number[]; // newest first, at most 200 (FOLD_IDS_MAX)
	spread?: Record<string, number>; // half the range of each metric of a folded row
}

export interface FacetValue {
	value: Cell; count: number;
	selected: boolean; // by a condition of the filter on this column
}

export interface Facet {
	column: string; distinct: number; missing: number;
	others: number; // runs of values that are not listed
	values: FacetValue[]; min?: number | 'inf' | '-inf' | null; max?: number | 'inf' | '-inf' | null;
	histogram?: Bin[];
}

export interface ColumnsUsed {
	used: number; // columns whose names no schema lists, of all runs in the store
	limit: number; // how many of these there may be
}

export interface Statistic {
	column: string;
	count: number; // runs with a finite number
	missing: number; min: number | null; max: number | null; mean: number | null; std: number | null;
	p50: number | null; p90: number | null; p95: number | null; p99: number | null;
}

export interface Preset {
	id: number; name: string;
	body: unknown; // what was saved
	at: number; // seconds since 1970
}

export interface PresetRequest {
	name?: string; body?: unknown;
	filters?: unknown; // instead of a body with this as its member `filter`
}

export interface PresetChange {
	name?: string; body?: unknown;
	filters?: unknown; // instead of a body with this as its member `filter`
	was?: number; // the `at` of what was read: refused with 409 when it was saved since
}

export interface SummaryRequest {
	filter?: Filter | null; shown?: Shown;
	statistics?: string[] | null; // null: a usual choice of metrics
}

export interface SeriesTrack {
	key: string; // one of those that docs/guide/dashboard.md lists, in that order
	label: string; unit: string | null;
	t_s: number[]; // seconds after the start, ascending
	y: (number | null)[]; // the mean around each time
	min: (number | null)[] | null; // least value there; null: equals y
	max: (number | null)[] | null; // greatest value there; null: equals y
}

export interface Sketch {
	key: 'ttft_ms' | 'tpot_ms' | 'itl_ms' | 'e2el_ms'; label: string; unit: string;
	n: number; // values in all
	p: number[]; // from 0 to 1, ascending
	value: (number | null)[]; // so large is quantile p
	is_spoiled: boolean; // a reason of the verdict spoils this metric
	spoiled_by: string | null; // that reason, the worst one
}

export interface SketchPrompt { prompt_tokens: number[]; ttft_ms: (number | null)[] }

export interface SketchTurn {
	turn: number[]; // from 1
	ttft_ms_median: (number | null)[];
	n: number[]; // requests that succeeded
}

export interface RunTag {
	tag: string; who: string;
	at: number; // seconds since 1970
}

export interface Tag { tag: string; runs: number[] }
export interface Annotation { id: number; text: string; who: string; at: number }

export interface BulkRequest {
	ids?: number[] | null; // either these
	filter?: Filter | null; // or the runs of a filter
	shown?: Shown; // for a filter; usual unless given
	action: 'exclude' | 'include' | 'delete' | 'tag' | 'untag';
	text?: string; // the reason of an exclusion; the tag
	who?: string; // where no token tells
}

export interface AnnotationRequest {
	text: string;
	who?: string; // where no token tells
}

export interface Exclusion {
	reason: string; who: string; at: number;
	is_over: boolean; // it was taken back
}

export interface ExclusionRequest {
	reason: string;
	who?: string; // where no token tells
}

export interface Trace {
	id: number; run: number | null; run_id: string | null; name: string;
	hash: string; // SHA-256 of its bytes
	model: string | null; commit: string | null;
	/** left_out: the backup that the store was restored from has no files of traces */
	state: 'here' | 'missing' | 'expired' | 'left_out';
	bytes: number; at: number;
}

export interface Badge {
	level: 'good' | 'warn' | 'bad'; code: string;
	text: string; // one sentence
}

export interface Reason {
	level: string | null; // DEGRADED or INVALID
	code: string | null;
	text: string | null; // one sentence; null where the document has only the code
	spoils: string[]; // the metrics that it is about
}

export interface Version { id: number; received: number }

export interface ExportRequest {
	filter?: Filter | null; shown?: Shown; sort?: Sort[] | null;
	columns?: string[] | null; // null: all
	format?: 'csv' | 'jsonl'; // csv unless given
	limit?: number | null; // runs at most
}

export interface PutResult {
	outcome: 'new' | 'duplicate' | 'conflict' | 'invalid'; id: number | null; run_id: string | null;
	reason?: string | null;
}

export interface JobCounts { new: number; duplicate: number; conflict: number; invalid: number }

export interface JobFile {
	name: string; outcome: 'new' | 'duplicate' | 'conflict' | 'invalid' | null; runs: number;
	id: number | null; reason: string | null;
}

export interface JobHead {
	job_id: string; kind: 'upload' | 'run'; state: JobState;
	created: number; // seconds since 1970
	ended: number | null;
	total: number; // files; of an experiment, the runs that it left
	done: number; counts: JobCounts;
	detail: Record<string, unknown>; // what its kind keeps
	run_ids: string[];
}

export type JobState = 'waiting' | 'running' | 'done' | 'failed' | 'cancelled';

export interface CompareRequest {
	groups?: CompareGroup[];
	ids?: (number | string)[]; // instead of groups: each run is a group of its own
	metrics?: string[] | null; // an empty list: parameters alone
	/** the metric that is judged without adjustment for the others; null: none */
	primary?: string | null;
	baseline?: number; // which group the others are measured against; 0
	level?: number; // of the intervals; 0.95
	ignore?: string[]; // columns that are no part of a configuration
	comparable_only?: boolean; // a verdict over the comparable configurations, however many are not
	include_invalid?: boolean; // also runs that failed, and metrics that are INVALID
}

export interface CompareGroup { name?: string; ids?: number[]; filter?: Filter | null }

export interface TrendsRequest {
	filter?: Filter | null; metric: string;
	series?: string[] | null; // columns that tell series apart
	axis?: 'commit' | 'version' | 'day' | 'time' | null; // default: by the data
	level?: number; // 0.00001
	effect?: number; // 0.03
	window?: number; // 90
	news?: number; // points; is_new tells changes that were not there before them
	include_invalid?: boolean; // also runs that failed, and metrics that are INVALID
}

export interface RegressionRequest {
	filter?: Filter | null; metric?: string; metrics?: string[]; baseline: RegressionBaseline;
	series?: string[] | null; policy?: RegressionPolicy;
	include_invalid?: boolean; // also runs that failed, and metrics that are INVALID
}

export interface RegressionBaseline { filter?: Filter; ids?: number[]; commit?: string; last?: number }

export interface RegressionPolicy {
	effect?: number; p?: number; points_after?: number; guards?: string[];
}

export interface ImpactRequest {
	filter?: Filter | null; metric: string; parameters?: string[] | null;
	include_invalid?: boolean; // also runs that failed, and metrics that are INVALID
}

export interface ScalingRequest {
	filter?: Filter | null; metric: string;
	by: string; // such as server.tensor_parallel_size
	series?: string[] | null;
	include_invalid?: boolean; // also runs that failed, and metrics that are INVALID
}

export interface CapacityRequest {
	filter?: Filter | null;
	/** requests per second; null: 70 % of the highest that a configuration carries within the limits */
	rate: number | null;
	/** 1 to 8; null: of most searches; without one P99 TTFT within twice the lowest measured */
	slo: Slo[] | null;
	configuration?: string[] | null;
	include_invalid?: boolean; // also runs that failed, and metrics that are INVALID
}

export interface Slo { column: string; min?: number; max?: number }

export interface ResourcesRequest {
	filter?: Filter | null; x: string; y: string; color?: string[] | string | null;
	include_invalid?: boolean; // also runs that failed, and metrics that are INVALID
}

export interface ParetoRequest {
	filter?: Filter | null; x: string; y: string; better?: ParetoWanted;
	group?: string[] | string | null;
	include_invalid?: boolean; // also runs that failed, and metrics that are INVALID
}

export interface CurvesRequest {
	filter?: Filter | null;
	/** a key of `workloads`; the one with the most configurations unless given */
	workload?: string | null;
	x?: string | null; // tokens_per_s_per_user unless given
	/** tokens_per_s_per_gpu unless given, or output_throughput where GPUs are unknown */
	y?: string | null;
	color?: string | null; // chosen by the data unless given; null: none
	include_invalid?: boolean; // points of INVALID runs, too; they count for nothing
	at?: number | null; // x of the reading line
	/** dollars per GPU hour by gpu_model; those of /api/settings/prices unless given */
	prices?: Record<string, number> | null;
}

export interface OverviewRequest {
	workload?: string | null; // a key of `workloads`
	/** speed per user at low load and throughput per GPU at others unless given */
	rank?: 'user' | 'gpu' | 'kw' | 'ttft' | 'usd' | null;
	need?: OverviewNeed | null;
	include_invalid?: boolean; // also runs that failed, and metrics that are INVALID
	/** dollars per GPU hour by gpu_model; those of /api/settings/prices unless given */
	prices?: Record<string, number> | null;
}

export interface PriceRequest {
	usd_per_hour?: number | null; // of one GPU; stays as it is unless given
	power_w?: number | null; // of one board; null: the vendor's figure again
	/** what the member was when it was read: refused with 409 when it is another one now */
	was?: number | null;
	who?: string; // where no token says so
}

export interface Price {
	gpu: string; // a value of gpu_model
	usd_per_hour: number | null; power_w: number | null;
	who: string; // who entered it; empty: it was not entered
	at: number | null; // when, seconds since 1970
	/** the document that states the power; null: people entered it, or it is unknown */
	source: string | null;
}

export interface OverviewNeed {
	tokens_per_s_per_user?: number | null; // at least
	p99_ttft_ms?: number | null; // at most
}

export interface ParetoWanted { x?: 'higher' | 'lower'; y?: 'higher' | 'lower' }

export interface DistributionRequest {
	filter?: Filter | null; metric: string; group?: string[] | string | null;
	include_invalid?: boolean; // also runs that failed, and metrics that are INVALID
}

export interface ParallelRequest {
	filter?: Filter | null; columns: string[]; limit?: number;
	include_invalid?: boolean; // also runs that failed, and metrics that are INVALID
}

export type MarkKind = 'expected' | 'seen' | 'not_real';

export interface Mark {
	id: number; series: string;
	metric: string | null; // null: set before marks named one
	at: string; kind: MarkKind; text: string; who: string;
	made: number; // seconds since 1970
}

export interface MarkRequest {
	series: string; // its id
	metric: string;
	at: string; // commit, or seconds since 1970
	kind: MarkKind; text?: string;
	who?: string; // where no token tells
}

export interface LaunchRequest {
	config: string; // YAML or JSON
}

export interface Finding {
	level: 'error' | 'warning'; line: number | null; column: number | null; text: string;
}

export interface Example {
	name: string;
	title: string; // its first line
	config: string;
}

export interface LaunchSection { name: string; keys: LaunchKey[] }

export interface LaunchKey {
	key: string; value: string | null; default: string | null; help: string | null; group?: string;
}

export interface LiveRequest {
	/** the client's own name of the run: beginning again with it continues the same run */
	run_id?: string;
	name: string;
	kind: string; // what is run: bench serve, run
	total?: number | null; // requests
}

export interface LiveSample {
	t_s: number; // since the run began
	done?: number; // requests so far
	failed?: number; total?: number | null;
	stage?: string; // what is under way
	tokens_per_s?: number | null; // output
	running?: number | null; waiting?: number | null; kv_cache_percent?: number | null;
	gpu_util_percent?: number | null; gpu_power_w?: number | null;
	ttft_ms?: number | null; // mean since the sample before
	itl_ms?: number | null;
}

export interface LiveSamples {
	samples: LiveSample[]; // at most 120, in the order of their times
}

export interface LiveEnd {
	result?: Record<string, unknown>; // taken into the store as an upload is
	failure?: string; // why there is none, or not all of it
}

export interface LiveItem {
	id: string; name: string; kind: string; who: string; stage: string | null;
	started_s: number; // seconds since 1970
	seen_s: number; // when it last sent something
	elapsed_s: number; // of the last sample
	total: number | null; // requests
	done: number; failed: number;
	tokens_per_s: number | null; // of the last sample
	ttft_ms: number | null;
	run: number | null; // the number of its result
	failure: string | null;
	state: 'running' | 'done' | 'lost'; // lost: nothing was sent for a minute
}

export interface LiveTrack {
	key: string; label: string; unit: string | null; t_s: number[]; y: (number | null)[];
	min: (number | null)[] | null; max: (number | null)[] | null;
}

export interface LiveSeries {
	start_s: number | null; duration_s: number; tracks: LiveTrack[];
	failed_s: number[]; // when requests failed
	missing: string[];
}

export interface LoginRequest { token: string }

export interface Health extends Answer {
	status: 'ok' | 'store does not answer' | 'store was replaced';
	store_silent_s: number; // since the store answered last
	version: string; store: 'sqlite' | 'postgresql'; runs: number; is_read_only: boolean;
	needs_token: boolean; can_launch: boolean; can_change: boolean;
	/** what this visitor may do; each includes those before it */
	role: 'none' | 'read' | 'upload' | 'launch';
}

export interface Login extends Answer { ok: boolean }

export interface Options extends Answer {
	total: number; // columns
	runs: number; // that match
	items: Option[]; // those that split the matching runs most come first
	next: null;
}

export interface Apply extends Answer {
	total: number; // runs that match
	folded?: number; // rows that folding leaves
	items: Row[];
	next: string | null; // cursor of the next page
	columns: string[]; facets: Facet[]; statistics: Statistic[];
	/** of the first page: what all runs that match have in common, at most six facts */
	constants?: Constant[];
	constants_total?: number; // columns with one value
}

export interface List extends Answer {
	total: number; items: Row[]; next: string | null; columns: string[];
}

export interface Prices extends Answer { items: Price[] }
export interface Presets extends Answer { items: Preset[] }

export interface Tags extends Answer {
	items: Tag[]; // in alphabetical order
}

export interface Run extends Answer {
	id: number; run_id: string; kind: string; hash: string; who: string; received: number;
	flags: Flag[]; values: Record<string, Cell>;
	/** as it came, without per-request arrays; NaN is null, infinite numbers are texts */
	document: unknown;
	has_arrays: boolean;
	versions: Version[]; // of the same run_id, newest first
	tags: RunTag[]; annotations: Annotation[];
	exclusions: Exclusion[]; // newest first
	traces: Trace[];
	reproduce: string[]; // command lines
	badges: Badge[];
	reasons: Reason[]; // why the run judged itself as it did
}

export interface RunSeries extends Answer {
	start_s: number | null; // since 1970
	duration_s: number;
	tracks: SeriesTrack[]; // those that are known, at most 600 points each
	failed_s: number[]; // when requests failed; of more than 600 every second, third ...
	missing: string[]; // what is not known, a sentence each
}

export interface RunSketches extends Answer {
	metrics: Sketch[];
	by_prompt: SketchPrompt | null; // a request each; of more than 2,000 the same sample each time
	by_turn: SketchTurn | null; // of conversations
	missing: string[]; // what is not known, a sentence each
}

export interface Bulk extends Answer {
	changed: number; skipped: number;
	notes: string[]; // why some were skipped
}

export interface Created extends Answer { id: number }

export interface Saved extends Answer {
	id: number;
	at: number; // seconds since 1970
}

export interface LiveBegun extends Answer { id: string }

export interface LiveEnded extends Answer {
	results?: PutResult[]; notes?: string[];
	run: number | null; // the number of the result's run
}

export interface LiveList extends Answer {
	items: LiveItem[]; // newest first; those that are over for an hour at most
}

export interface LiveRun extends Answer {
	id: string; name: string; kind: string; who: string; stage: string | null;
	started_s: number; // seconds since 1970
	seen_s: number; elapsed_s: number; total: number | null; done: number; failed: number;
	tokens_per_s: number | null; ttft_ms: number | null; run: number | null; failure: string | null;
	state: 'running' | 'done' | 'lost'; series: LiveSeries;
}

export interface Attached extends Answer { ids: number[] }
export type Done = Answer;

export interface Summary extends Answer {
	total: number; statistics: Statistic[]; status: Record<string, number>;
	verdicts: Record<string, number>; columns: ColumnsUsed;
}

export interface Traces extends Answer { total: number; items: Trace[]; next: string | null }
export interface Upload extends Answer { results: PutResult[]; notes: string[] }
export interface JobStarted extends Answer { job_id: string }

export interface BatchStarted extends Answer {
	job_id: string;
	total: number; // files
}

export interface UploadJob extends Answer {
	job_id: string; kind: 'upload' | 'run'; state: JobState;
	created: number; // seconds since 1970
	ended: number | null;
	total: number; // files; of an experiment, the runs that it left
	done: number; counts: JobCounts;
	detail: Record<string, unknown>; // what its kind keeps
	run_ids: string[]; files: JobFile[];
}

export interface Job extends Answer {
	job_id: string; kind: 'upload' | 'run'; state: JobState;
	created: number; // seconds since 1970
	ended: number | null;
	total: number; // files; of an experiment, the runs that it left
	done: number; counts: JobCounts;
	detail: Record<string, unknown>; // what its kind keeps
	run_ids: string[];
}

export interface Jobs extends Answer { total: number; items: JobHead[]; next: null }

export interface Compare extends Answer {
	groups: CompareSide[];
	parameters: CompareParameter[]; // those that differ
	matched_by: string[]; // columns that tell configurations apart
	groups_by: string[]; // configured columns with one value in each group, not the same in all
	configurations: CompareConfigured[]; // of all groups, at most 2,000
	/** of each group but the baseline; empty for a single group or without metrics */
	comparisons: Comparison[];
	trust: MetricTrust[]; notes: string[];
}

export interface Trends extends Answer {
	metric: string; unit: string | null; better: 'higher' | 'lower' | null; axis: string;
	order: string; // what a point is, and what orders them
	level: number; effect: number;
	reason: string | null; // why no change is reported
	is_judged: boolean; // a series has points enough
	axes: TrendAxis[]; // on which the runs have several places
	series: TrendSeries[];
	left_out: number; // runs
	trust: MetricTrust[]; notes: string[];
}

export interface Regression extends Answer {
	items: RegressionItem[]; trust: MetricTrust[]; notes: string[];
}

export interface Impact extends Answer {
	metric: string; unit: string | null; better: 'higher' | 'lower' | null; n: number;
	matched: ImpactStep[]; // everything else equal, the largest effects first, at most 40
	parameters: ImpactParameter[]; trust: MetricTrust[]; notes: string[];
}

export interface Scaling extends Answer {
	metric: string; unit: string | null; better: 'higher' | 'lower' | null; by: string;
	/** what efficiency is a share of; constant: a metric per GPU or kW over numbers of GPUs */
	ideal: 'proportional' | 'constant';
	series: ScalingSeries[]; trust: MetricTrust[]; notes: string[];
}

export interface Capacity extends Answer {
	rate: number | null; // null: none was asked for, and no configuration keeps the limits
	slo: Slo[]; // the limits that were used
	/** the limits of runs of `search: {find: rate}`, most runs first, at most 8 */
	searches: CapacitySearch[];
	binding: number; // the place in `slo` of the limit that most configurations pass first
	configurations: CapacityConfiguration[]; // fewest GPUs first
	left_out: number; // runs
	configurations_left_out: number; trust: MetricTrust[]; notes: string[];
}

export interface Resources extends Answer {
	points: ResourcePoint[]; x: Axis; y: Axis; total: number; shown: number; left_out: number;
	trust: MetricTrust[]; notes: string[];
}

export interface Pareto extends Answer {
	groups: ParetoGroup[]; groups_left_out: number; better: ParetoBetter; x: Axis; y: Axis;
	total: number; shown: number; left_out: number; trust: MetricTrust[]; notes: string[];
}

export interface Curves extends Answer {
	workload: string;
	workloads: Workload[]; // most configurations first
	x: Axis; y: Axis;
	color: string | null; // the column of colors; null: all runs have one
	configuration: string[]; // columns
	colors: CurveColor[]; // in the order of the legend, which no filter changes
	load: string | null; // the column that orders points along a line
	common: CurveFact[]; // what all runs shown have
	lines: CurveLine[];
	sentence: string; // which color leads where
	reading: CurveReading[];
	at: number | null; // x of the reading line
	left_out: CurveLeftOut; trust: MetricTrust[]; notes: string[];
	total: number; // points
	shown: number; // points
	unpriced: string[]; // GPUs of these runs that have no price, at most 8
}

export interface Overview extends Answer {
	runs: number; // that were looked at: the newest 100,000 of a larger store
	matching: number; // runs of the store
	workload: string;
	workloads: Workload[]; // most configurations first
	rows_by: string | null; // the column whose values are rows
	loads: OverviewLoad[]; rows: OverviewRow[];
	at_need: OverviewAtNeed[]; // empty without a need
	sentence: string;
	unpriced: string[]; // GPUs of this workload that have no price, at most 8
	changes: OverviewChange[]; // unreviewed ones, the largest of each commit
	/** the newest version against the one before, of each suite or workload; the newest three */
	versions: OverviewVersion[];
	attention: OverviewAttention; latest: OverviewSuite[];
}

export interface Distribution extends Answer {
	metric: string; unit: string | null; better: 'higher' | 'lower' | null;
	groups: DistributionGroup[]; total: number; left_out: number; groups_left_out: number;
	trust: MetricTrust[]; notes: string[];
}

export interface Parallel extends Answer {
	axes: ParallelAxis[]; lines: ParallelLine[]; total: number; shown: number;
	left_out: number; // runs that failed
	trust: MetricTrust[]; notes: string[];
}

export interface Marks extends Answer { items: Mark[] }
export interface LaunchCheck extends Answer { ok: boolean; findings: Finding[]; plan: unknown }
export interface Examples extends Answer { items: Example[] }

export interface LaunchSchema extends Answer {
	sections: LaunchSection[]; // of a configuration
	arguments: LaunchKey[]; // of an engine
}

export interface CompareSide {
	name: string; n: number;
	ids: number[]; // the first 200
	configurations: (number | null)[]; // of each of ids: equal for repeats of one configuration
}

export interface CompareParameter {
	column: string; group: string;
	differs: 'between' | 'within'; // groups, or only runs of one group
	values: CompareValue[][]; // a list per group
}

export interface CompareConfigured {
	configuration: string; // its name
	values: Cell[]; // in the columns of `matched_by`
	ids: number[][]; // of each group some of its runs
}

export interface CompareValue { value: Cell; count: number }

export interface Comparison {
	group: number; baseline: string; side: string; level: number;
	refused: 'empty' | 'same_runs' | 'unmatched' | 'invalid' | null;
	reason: string | null; // of a refusal, a sentence
	runs: number[]; // of the baseline, of the group
	runs_on_both_sides: number; // left out
	sessions_unknown: number[]; // runs whose server session is not known
	matched: number; // configurations of both sides
	alone: number[]; // configurations of one side alone
	only_baseline: CompareAlone[]; only_side: CompareAlone[]; metrics: CompareMetric[];
	notes: string[];
}

export interface CompareAlone { configuration: string; runs: number }
export type CompareVerdict = CompareChange | 'no_change' | 'mixed' | 'not_enough_data' | 'not_comparable';
export type CompareChange = 'better' | 'worse' | 'better_small' | 'worse_small' | 'changed' | 'changed_small';

export interface CompareMetric {
	metric: string; unit: string | null;
	better: number; // 1 larger, -1 smaller, 0 neither
	effect_min: number; // the least change worth naming, as a share
	is_primary: boolean; verdict: CompareVerdict;
	words: string; // the verdict for people
	reason: string | null; // why the verdict is missing
	sentence: string; // change, interval, counts, verdict and what would do
	baseline: number | null; // geometric mean over configurations
	value: number | null; // the same figure of the group
	effect: number | null; // value / baseline - 1
	interval: number[] | null; // of effect
	interval_narrow: number[] | null; // at twice the error, for no change
	p: number | null; df: number | null;
	rule: 'sessions' | 'configurations' | null; // what the interval rests on
	n_configurations: number;
	n_clusters: number; // configurations that shared a server count once
	scatter: number | null; // standard deviation of a logarithm
	q: number | null; // p for many metrics
	is_beyond_effect_min: boolean; // all of the interval is
	higher: number; // configurations
	lower: number; equal: number; p_sign: number | null; p_ranks: number | null;
	do_ranks_disagree: boolean;
	spread: number | null; // standard deviation between configurations
	p_differ: number | null; // that configurations differ in the effect
	do_effects_differ: boolean;
	sessions_needed: number | null; // of each configuration and side
	configurations_needed: number | null; runs: number[]; sessions: number[];
	invalid: number[]; // runs left out
	degraded: number[]; missing: number[];
	not_comparable: number; // configurations
	unpaired: number; // matched configurations without a value on one side
	loads: CompareLoad[];
	/** worst change first, those not comparable last; of very many the first and the last */
	configurations: CompareConfiguration[];
}

export interface CompareConfiguration {
	configuration: string; baseline: number | null; value: number | null; effect: number | null;
	interval: number[] | null; interval_narrow: number[] | null; p: number | null; df: number | null;
	rule: 'sessions' | 'configurations' | null; n_configurations: number; n_clusters: number;
	scatter: number | null;
	evident: number; // 1 larger, -1 smaller by its own sessions, 0 not known
	not_comparable: string | null; // why
	runs: number[];
	sessions: number[][]; // means of sessions, of each side
}

export interface CompareLoad {
	load: string; baseline: number | null; value: number | null; effect: number | null;
	interval: number[] | null; interval_narrow: number[] | null; p: number | null; df: number | null;
	rule: 'sessions' | 'configurations' | null; n_configurations: number; n_clusters: number;
	scatter: number | null; evident: number;
}

export interface MetricTrust {
	column: string;
	failed: number; // runs that failed, and count for no metric
	invalid: number; // runs in which it is INVALID; they are left out
	would_lead: boolean; // one of those would be the best of all
	degraded: number; // runs that count, in which it is DEGRADED
}

export interface TrendSeries {
	id: string; key: Record<string, Cell>; name: string;
	begins: TrendBegin | null; // the series that it takes the place of
	points: TrendPoint[];
	levels: TrendLevel[]; // between changes
	changes: TrendChange[];
}

export interface TrendAxis { axis: 'commit' | 'version' | 'day'; runs: number; places: number }

export interface TrendLevel {
	from: number; // the first point
	to: number; // the point after the last
	value: number; // median
	low: number; // of the noise: median - 2 MAD
	high: number;
}

export interface TrendPoint {
	at: number | null; commit: string | null; version: string | null; ids: number[]; n: number;
	sessions: number;
	value: number; // mean over server sessions, of logarithms
	low: number | null; high: number | null;
}

export interface TrendChange {
	index: number; at: number | null; commit: string | null;
	commit_before: string | null; // of the point before
	version: string | null; is_new: boolean; before: number; after: number; effect: number | null;
	interval: number[] | null; // 95 %, of the change of the geometric mean
	p: number | null;
	also_in: number; // series that changed there, this one too
	also_of: number; // series with a point there
	is_marked: boolean;
	mark: TrendMark | null; // also one that was set before marks named a metric: it marks nothing
	verdict: 'better' | 'worse' | 'changed';
	guard: string | null; // why better does not count
	also: TrendAlso[]; // what else changed there
	text: string; // a sentence
	command: string | null; // the live A/B that decides it
	before_ids: number[]; // runs since the change before, the latest first
	after_ids: number[]; // runs until the next change
}

export interface TrendAlso { column: string; before: Cell; after: Cell }

export interface TrendBegin {
	series: string; at: number | null; commit: string | null; before: number; after: number;
	effect: number | null; // of the step, which is not tested
	changes: TrendAlso[]; // of what was configured
	text: string;
}

export interface TrendMark {
	id: number; metric: string | null; kind: MarkKind; text: string; who: string;
}

export interface RegressionItem {
	series: string; key: Record<string, Cell>; name: string; metric: string; unit: string | null;
	better: 'higher' | 'lower' | null; verdict: CompareVerdict;
	words: string; // the verdict for people
	before: number | null; // geometric mean over server sessions
	after: number | null; // the same figure after
	effect: number | null; // after / before - 1
	interval: number[] | null; // of effect, at 1 - policy.p
	p: number | null; // adjusted for all items
	n: number[]; // runs of both sides
	sessions: number[]; // server sessions they come from
	sessions_needed: number | null; // a side, that would do
	guard: RegressionGuard | null; // why it is not comparable
	reason: string | null; // why the verdict is missing
	sentence: string; // change, interval, verdict and what would do
}

export interface RegressionGuard { text: string }

export interface ImpactStep {
	column: string; from: Cell; to: Cell;
	effect: number; // the change, as a share
	interval: number[] | null; // 95 %
	pairs: number; // of configurations, at least 3
	also: string[]; // columns that change along with this one, at most 4
	also_total: number;
}

export interface ImpactParameter {
	column: string;
	share: number | null; // of the variance, by itself: no proof of a cause
	p: number | null; p_adjusted: number | null; levels: ImpactLevel[]; effect: number | null;
	confounded_with: Confounded[]; note: string | null;
}

export interface ImpactLevel {
	value: Cell;
	to?: Cell; // the end, of a range
	n: number; median: number | null;
}

export interface Confounded { column: string; strength: number | null }

export interface ScalingSeries {
	key: Record<string, Cell>; name: string;
	version: string | null; // of the engine: the newest that was measured at two sizes
	n: number; points: ScalingPoint[];
}

export interface ScalingPoint {
	x: number; n: number; median: number; low: number | null; high: number | null;
	speedup: number | null; efficiency: number | null;
}

export interface CapacityConfiguration {
	key: Record<string, Cell>; name: string;
	version: string | null; // of the engine: the newest that was measured at two loads or searched
	gpus_per_server: number | null; rate_per_server: Estimate; servers: number | null; gpus: Estimate;
	headroom: number | null; // what the servers carry beyond the rate, as a share of it
	usd_per_hour: number | null; // of these GPUs, where they have a price
	runs: number;
	searches: number; // runs whose search with these limits found the rate; 0: it follows from loads
	/** where the limit is reached; or the limits held at every load, at none, or there is one load */
	state: 'found' | 'needs_higher_load' | 'never' | 'one_load';
	reason: string | null;
	loads: CapacityLoad[]; // in the order of their rates
}

export interface CapacitySearch {
	slo: Slo[]; runs: number;
	is_asked: boolean; // these are the limits of this answer
}

export interface CapacityLoad {
	rate: number | null; // requests/s; of a load whose requests failed: no less than was offered
	holds: boolean;
	is_failing: boolean; // more than 1 % of its requests failed
	runs: number;
	values: Estimate[]; // of the metric of each limit
}

export interface Estimate { value: number | null; low: number | null; high: number | null }

export interface ResourcePoint {
	id: number; x: number; y: number;
	is_degraded: boolean; // x or y is DEGRADED in it
	values: Record<string, Cell>;
}

export interface ParetoGroup { key: Record<string, Cell>; name: string; n: number; points: ParetoPoint[] }

export interface ParetoPoint {
	id: number; x: number; y: number;
	is_degraded: boolean; // x or y is DEGRADED in it
	is_frontier: boolean;
}

export interface DistributionGroup {
	key: Record<string, Cell>; name: string; n: number; mean: number;
	quantiles: number[]; // least, 5, 25, 50, 75, 95 %, most
	histogram: Histogram;
}

export interface Histogram { edges: number[]; counts: number[] }

export interface ParallelAxis {
	column: string; unit: string | null; better: 'higher' | 'lower' | null; kind: 'number' | 'text';
	min: number | null; max: number | null;
	values: Cell[]; // of texts
}

export interface Axis { column: string; unit: string | null; better: 'higher' | 'lower' | null }

export interface Workload {
	key: string; // of the column `workload`; empty: runs without one
	label: string; runs: number;
	configurations: number; // that have a result that counts
}

export interface CurveColor { key: string; points: number }
export interface CurveFact { column: string; label: string; value: string }

export interface CurveLine {
	name: string; // its configuration in a few words
	color: string; // a key of `colors`
	points: CurvePoint[]; // by load
}

export interface CurvePoint {
	ids: number[]; // its repeats, at most 200
	x: number; // the median
	y: number;
	x_min: number; // the lower end of the median's 95 % interval; of up to six repeats the least
	x_max: number; y_min: number; y_max: number; load: number | null; label: string;
	is_frontier: boolean; // of its color
	is_best: boolean; // on the frontier of all colors
	is_degraded: boolean; // x or y is DEGRADED in one of its runs
	is_invalid: boolean; // of INVALID runs, with include_invalid: on no line and no frontier
	tip: CurveTip[];
}

export interface CurveTip { label: string; value: string }

export interface CurveReading {
	color: string;
	y: number | null; // the best measured one at this x or better
	/** on a monotone curve through the color's frontier; null outside the x that were measured */
	between: number | null;
	low: number | null; // the least x of the color's frontier
	high: number | null; // the greatest x of it
}

export interface CurveLeftOut {
	invalid: number; // runs
	missing: number; // runs without both metrics, and failed ones
	would_lead: boolean; // an INVALID run would be on the frontier of all colors
}

export interface OverviewLoad { name: 'low' | 'middle' | 'high'; value: number | null; label: string }

export interface OverviewRow {
	name: string;
	cells: (OverviewCell | null)[]; // of each load
}

export interface OverviewCell {
	id: number;
	ids: number[]; // repeats; where none counts, INVALID runs
	configuration: string;
	version: string | null; // of the engine; null: all runs have one
	tokens_per_s_per_user: number | null; tokens_per_s_per_gpu: number | null;
	p99_ttft_ms: number | null; median_ttft_ms: number | null; usd_per_m_output: number | null;
	is_best: boolean; // of this load, or level with the best
	is_degraded: boolean; // the metric that ranks is DEGRADED in a run of these
	invalid: number; // runs left out
	would_lead: boolean; // an INVALID run is better than the best
}

export interface OverviewAtNeed { name: string; id: number; tokens_per_s_per_gpu: number }

export interface OverviewChange {
	metric: string; commit: string | null; previous: string | null; effect: number;
	verdict: 'better' | 'worse' | 'changed';
	series: number; // that changed there
	series_total: number; before_ids: number[]; after_ids: number[];
	name: string; // of the metric
}

export interface OverviewVersion {
	by: 'suite' | 'workload'; name: string; older: string; newer: string; metric: string;
	metric_name: string;
	effect: number | null; // as `Compare` has it
	interval: number[] | null;
	verdict: CompareVerdict | null; // null: not compared
	text: string; // counts of configurations, or why there are none
	notes: string[]; // of the comparison
}

export interface OverviewAttention { invalid: number; failed: number; degraded: number }

export interface OverviewSuite {
	suite: string | null; runs: number;
	time: number | null; // of its newest run; null: none has a time
}

export interface ParetoBetter { x: 'higher' | 'lower'; y: 'higher' | 'lower' }
export interface ParallelLine { id: number; values: Cell[] }

/** What each route takes and gives. */
export interface Routes {
	'GET /api/health': { query: undefined; request: undefined; answer: Health };
	'GET /api/health/ready': { query: undefined; request: undefined; answer: Health };
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
	'POST /api/filters/presets': { query: undefined; request: PresetRequest; answer: Saved };
	'PUT /api/filters/presets/{id}': { query: undefined; request: PresetChange; answer: Saved };
	'DELETE /api/filters/presets/{id}': { query: undefined; request: undefined; answer: Done };
	'GET /api/boards': { query: undefined; request: undefined; answer: Presets };
	'POST /api/boards': { query: undefined; request: PresetRequest; answer: Saved };
	'PUT /api/boards/{id}': { query: undefined; request: PresetChange; answer: Saved };
	'DELETE /api/boards/{id}': { query: undefined; request: undefined; answer: Done };
	'GET /api/settings/prices': { query: undefined; request: undefined; answer: Prices };
	'PUT /api/settings/prices/{gpu}': { query: undefined; request: PriceRequest; answer: Done };
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
	'GET /api/data/experiments/{id}/series': {
		query: undefined; request: undefined; answer: RunSeries;
	};
	'GET /api/data/experiments/{id}/sketches': {
		query: undefined; request: undefined; answer: RunSketches;
	};
	'POST /api/data/experiments/{id}/annotations': {
		query: undefined; request: AnnotationRequest; answer: Created;
	};
	'DELETE /api/annotations/{id}': { query: undefined; request: undefined; answer: Done };
	'GET /api/tags': { query: undefined; request: undefined; answer: Tags };
	'POST /api/data/bulk': { query: undefined; request: BulkRequest; answer: Bulk };
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
	'POST /api/analysis/curves': { query: undefined; request: CurvesRequest; answer: Curves };
	'POST /api/analysis/overview': { query: undefined; request: OverviewRequest; answer: Overview };
	'POST /api/analysis/distribution': {
		query: undefined; request: DistributionRequest; answer: Distribution;
	};
	'POST /api/analysis/parallel': { query: undefined; request: ParallelRequest; answer: Parallel };
	'GET /api/analysis/marks': { query: undefined; request: undefined; answer: Marks };
	'POST /api/analysis/marks': { query: undefined; request: MarkRequest; answer: Created };
	'DELETE /api/analysis/marks/{id}': { query: undefined; request: undefined; answer: Done };
	'POST /api/upload/json': { query: undefined; request: string; answer: Upload };
	'POST /api/upload/raw': {
		query: { name?: string };
		request: unknown; answer: Upload;
	};
	'POST /api/upload/batch': { query: undefined; request: FormData; answer: BatchStarted };
	'GET /api/upload/status/{job_id}': { query: undefined; request: undefined; answer: UploadJob };
	'GET /api/live': { query: undefined; request: undefined; answer: LiveList };
	'POST /api/live': { query: undefined; request: LiveRequest; answer: LiveBegun };
	'GET /api/live/{id}': { query: undefined; request: undefined; answer: LiveRun };
	'POST /api/live/{id}/samples': { query: undefined; request: LiveSamples; answer: Done };
	'POST /api/live/{id}/end': { query: undefined; request: LiveEnd; answer: LiveEnded };
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
