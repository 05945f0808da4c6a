#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# gate.sh SUITE BASELINE RESULT: measures, compares with a known good result, sends the documents.
#
# Run by the pipelines in this folder. Exit status: 0 as good as the baseline; 3 slower with
# evidence, more failed requests, or not judgeable (no baseline, another workload, too few runs: the
# log gives the reason); 1 it could not be measured. Words after the three are given to `profllm
# run` (--set ...). Each call measures everything again: --resume would keep the runs that an
# earlier build left in this folder, and judge those. Pass --resume only to continue an interrupted
# run of the same build.
#
# BASELINE is the result of one release that a person chose. Do not replace it after each green
# build: a build that is 3 % slower passes a limit of 5 %, and so does the next one, and ten of them
# together are 26 % slower without one failure. Replace it when a change of speed is accepted, and
# say so in the commit.
#
# PROFLLM_UPLOAD_URL and PROFLLM_TOKEN_FILE name a dashboard; without the first nothing is sent. The
# documents are sent whatever the gate says, so that a regression can be seen. RESULT with .xml and
# .md in place of .json are the outcome for CI as JUnit XML and as Markdown; the latter is also
# added to GitHub's summary of the step.
set -u
if [ $# -lt 3 ]; then
	echo "usage: gate.sh SUITE BASELINE RESULT [words for profllm run]" >&2
	exit 2
fi
suite=$1 baseline=$2 result=$3
shift 3
: "${PROFLLM:=profllm}"
status=0
junit=${result%.json}.xml summary=${result%.json}.md
rm -f "$junit" "$summary"

"$PROFLLM" run --config "$suite" --output "$result" "$@" \
	${PROFLLM_UPLOAD_URL:+--upload "$PROFLLM_UPLOAD_URL"} \
	${PROFLLM_TOKEN_FILE:+--token-file "$PROFLLM_TOKEN_FILE"} || exit 1

if [ -e "$baseline" ]; then
	"$PROFLLM" bench compare "$baseline" "$result" --fail-if 'output_throughput<-5%' \
		--fail-if 'median_tpot_ms>+5%' --fail-if 'p99_ttft_ms>+10%' \
		--junit "$junit" --summary "$summary" || status=$?
	[ -z "${GITHUB_STEP_SUMMARY:-}" ] || cat "$summary" >>"$GITHUB_STEP_SUMMARY"
else
	echo "NOT JUDGED: no baseline at $baseline;" \
		"copy the result of a release that is known to be good there" >&2
	status=3
fi
exit "$status"
