#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""MLPerf's LoadGen against a server: loadgen.py URL FOLDER SCENARIO (Server, SingleStream or Offline)."""
import array
import json
import sys
import threading
import urllib.request

import mlperf_loadgen as lg

QUERIES, TOKENS, RATE = 40, 8, 20


def answer(url, sample):
    body = json.dumps({"model": "sim", "prompt": f"Sample {sample.index}", "max_tokens": TOKENS,
                       "ignore_eos": True, "stream": True}).encode()
    request = urllib.request.Request(url + "/v1/completions", body, {"Content-Type": "application/json"})
    tokens, first = 0, array.array("B", b"x")
    with urllib.request.urlopen(request, timeout=60) as stream:
        for line in stream:
            event = json.loads(line[6:]) if line.startswith(b"data: {") else {}
            if not event.get("choices") or not event["choices"][0].get("text"):
                continue
            tokens += 1
            if tokens == 1:
                lg.FirstTokenComplete([lg.QuerySampleResponse(sample.id, first.buffer_info()[0], 1)])
    data = array.array("B", b"xxxx" * tokens)
    where, size = data.buffer_info()
    lg.QuerySamplesComplete([lg.QuerySampleResponse(sample.id, where, size, tokens)])


def main():
    url, folder, scenario = sys.argv[1:4]
    settings = lg.TestSettings()
    settings.scenario = getattr(lg.TestScenario, scenario)
    settings.mode = lg.TestMode.PerformanceOnly
    settings.use_token_latencies = True
    settings.min_duration_ms = 1000
    settings.min_query_count = settings.max_query_count = QUERIES
    settings.server_target_qps = settings.offline_expected_qps = RATE
    settings.ttft_latency, settings.tpot_latency = 2_000_000_000, 200_000_000
    log = lg.LogSettings()
    where = lg.LogOutputSettings()
    where.outdir, where.copy_summary_to_stdout = folder, False
    log.log_output, log.enable_trace = where, False
    sut = lg.ConstructSUT(lambda samples: [threading.Thread(target=answer, args=(url, s)).start()
                                           for s in samples], lambda: None)
    samples = lg.ConstructQSL(QUERIES, QUERIES, lambda _: None, lambda _: None)
    lg.StartTestWithLogSettings(sut, samples, settings, log, "")
    lg.DestroyQSL(samples)
    lg.DestroySUT(sut)


if __name__ == "__main__":
    main()
