#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# gate.sh SUITE BASELINE RESULT: measure, compare with what is known to be good, send the documents.
#
# What the pipelines beside this file run. Exit status: 0 as good as the baseline (or there is none
# yet); 3 slower with evidence, or more failed requests, or not judgeable (another workload, too few
# runs: the log gives the reason); 1 it could not be measured. Words after the three are given to
# `profllm run` (--set ...). PROFLLM_UPLOAD_URL and PROFLLM_TOKEN_FILE name a dashboard; without the
# first nothing is sent. The documents are sent whatever the gate says: a regression is to be seen.
set -u
suite=$1 baseline=$2 result=$3
shift 3
: "${PROFLLM:=profllm}"
status=0

"$PROFLLM" run --config "$suite" --output "$result" --resume "$@" \
	${PROFLLM_UPLOAD_URL:+--upload "$PROFLLM_UPLOAD_URL"} \
	${PROFLLM_TOKEN_FILE:+--token-file "$PROFLLM_TOKEN_FILE"} || exit 1

if [ -e "$baseline" ]; then
	"$PROFLLM" bench compare "$baseline" "$result" --fail-if 'output_throughput<-5%' \
		--fail-if 'median_tpot_ms>+5%' --fail-if 'p99_ttft_ms>+10%' || status=$?
else
	echo "no baseline at $baseline: nothing to compare with"
fi
exit "$status"
