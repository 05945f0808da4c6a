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
	    .help = "Comma list of blocks to report: ttft, tpot, itl, e2el, client_queue_time, " \
		    "e2el_including_client_queue; default: " blocks "."), \
	R(metric_percentiles, "metric-percentiles", .group = "Metrics", .arg = "LIST", \
	    .help = "Comma list of percentiles, each from 0 to 100; default: " percentiles "."), \
	R(goodput, "goodput", .group = "Metrics", .arg = "NAME:MS", .flags = OPT_MANY, \
	    .help = "Limits in milliseconds for ttft, tpot, e2el; default: " limits "."), \
	R(save_result, "save-result", .group = "Output", .help = "Write the result as JSON."), \
	R(append_result, "append-result", .group = "Output", \
	    .help = "Append the result to the file, one JSON object per line."), \
	R(save_detailed, "save-detailed", .group = "Output", \
	    .help = "Include arrays with one element per request in the result."), \
	R(result_dir, "result-dir", .group = "Output", .arg = "DIR", \
	    .help = "Folder for results; created when missing."), \
	R(result_filename, "result-filename", .group = "Output", .arg = "FILE", \
	    .help = "Name of the result file instead of the generated one."), \
	R(record, "record", .group = "Output", .arg = "FILE", \
	    .help = "Write the record, merged when there are several, to this file."), \
	R(plot_timeline, "plot-timeline", .group = "Output", \
	    .help = "Draw every request over time as one self-contained page."), \
	R(timeline_itl_thresholds, "timeline-itl-thresholds", .group = "Output", .arg = "MS,MS", \
	    .help = "Two limits that color the gaps between tokens on that page; not given: twice " \
		    "and four times the median ITL."), \
	R(plot_dataset_stats, "plot-dataset-stats", .group = "Output", \
	    .help = "Draw histograms of prompt and answer lengths: a page, and a PNG through gnuplot."), \
	R(plot_turns, "plot-turns", .group = "Output", \
	    .help = "Draw TTFT, context length and cached tokens by the turn of a conversation."), \
	R(report, "report", .group = "Output", .arg = "FORM", .choices = score_reports, \
	    .help = "short: summary, vLLM's report and the verdict; full: every row; json: the " \
		    "result on stdout."), \
	R(strict, "strict", .group = "Output", \
	    .help = "Exit with 3 unless the verdict is VALID."),

/* Applies the options to the recorded ones. -1: a wrong one (ERR_USAGE). */
int score_choose(const struct score_choice *o, struct report_meta *m, struct arena *a,
		 struct err *e);
/* Prints the report and writes the requested files. Returns the exit status; -1 with e. */
int score_show(const struct score_choice *o, struct record *record, const struct record_info *info,
	       struct report_meta *meta, struct arena *a, struct err *e);
