/* SPDX-License-Identifier: Apache-2.0 */
/* score_verb.h - shared by verbs that report a record: which numbers, which files. */
#pragma once
#include "client/record/file.h"
#include "core/opt/opt.h"
#include "out/report/report.h"

extern const char *const score_reports[];

struct score_choice {
	const char *percentile_metrics, *metric_percentiles;
	struct opt_list goodput;
	bool save_result, append_result, save_detailed;
	const char *result_dir, *result_filename, *record;
	bool plot_timeline, plot_dataset_stats, plot_turns;
	const char *timeline_itl_thresholds;
	bool strict;
	const char *report;              /* "short", "full", "json" */
};

/*
 * The rows: R(member, name, ...) of a set whose struct has a choice; and three defaults. The set's
 * own defaults set .report.
 */
#define SCORE_ROWS(R, blocks, percentiles, limits) \
	R(percentile_metrics, "percentile-metrics", .group = "Metrics", .arg = "NAMES", \
	    .help = "comma list of blocks to report: ttft, tpot, itl, e2el, client_queue_time, " \
		    "e2el_including_client_queue; default: " blocks), \
	R(metric_percentiles, "metric-percentiles", .group = "Metrics", .arg = "LIST", \
	    .help = "comma list of percentiles, each from 0 to 100; default: " percentiles), \
	R(goodput, "goodput", .group = "Metrics", .arg = "NAME:MS", .flags = OPT_MANY, \
	    .help = "limits in milliseconds for ttft, tpot, e2el; default: " limits), \
	R(save_result, "save-result", .group = "Output", .help = "write the result as JSON"), \
	R(append_result, "append-result", .group = "Output", \
	    .help = "append the result to the file, one JSON object per line"), \
	R(save_detailed, "save-detailed", .group = "Output", \
	    .help = "include arrays with one element per request in the result"), \
	R(result_dir, "result-dir", .group = "Output", .arg = "DIR", \
	    .help = "folder for results; created when missing"), \
	R(result_filename, "result-filename", .group = "Output", .arg = "FILE", \
	    .help = "name of the result file instead of the generated one"), \
	R(record, "record", .group = "Output", .arg = "FILE", \
	    .help = "write the record, merged when there are several, to this file"), \
	R(plot_timeline, "plot-timeline", .group = "Output", \
	    .help = "draw every request over time as one self-contained page"), \
	R(timeline_itl_thresholds, "timeline-itl-thresholds", .group = "Output", .arg = "MS,MS", \
	    .help = "two limits that color the gaps between tokens on that page; not given: twice " \
		    "and four times the median ITL"), \
	R(plot_dataset_stats, "plot-dataset-stats", .group = "Output", \
	    .help = "draw histograms of prompt and answer lengths: a page, and a PNG through gnuplot"), \
	R(plot_turns, "plot-turns", .group = "Output", \
	    .help = "draw TTFT, context length and cached tokens by the turn of a conversation"), \
	R(report, "report", .group = "Output", .arg = "FORM", .choices = score_reports, \
	    .help = "short: summary, vLLM's report and the verdict; full: every row; json: the " \
		    "result on stdout"), \
	R(strict, "strict", .group = "Output", \
	    .help = "exit with 3 unless the verdict is VALID"),

/* Applies the options to the recorded ones. -1: a wrong one (ERR_USAGE). */
int score_choose(const struct score_choice *o, struct report_meta *m, struct arena *a,
		 struct err *e);
/* Prints the report and writes the requested files. Returns the exit status; -1 with e. */
int score_show(const struct score_choice *o, struct record *record, const struct record_info *info,
	       struct report_meta *meta, struct arena *a, struct err *e);
