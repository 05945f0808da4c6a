# SPDX-License-Identifier: Apache-2.0
# The demo: a simulated server, a real tokenizer, real text, a report. tools/demo.sh does it.
demo: $(O)/profllm
	$(Q)O=$(O) WEB=$(WEB) PROFLLM=$(abspath $(O)/profllm) tools/demo.sh
	$(Q)O=$(O) PROFLLM=$(O)/profllm tools/demo-store.sh

# A sweep, its plots, a search and a comparison, on the simulator.
demo-sweep: $(O)/profllm
	$(Q)O=$(O) PROFLLM=$(abspath $(O)/profllm) tools/demo-sweep.sh

# Throughput, latency, start-up and the multimodal processor, on the simulated engine.
demo-offline: $(O)/profllm
	$(Q)O=$(O) PROFLLM=$(abspath $(O)/profllm) tools/demo-offline.sh

# Whole experiments: server, load, system, document; a suite and what differs in it.
demo-run: $(O)/profllm
	$(Q)O=$(O) PROFLLM=$(abspath $(O)/profllm) tools/demo-run.sh
.PHONY: demo-sweep demo-offline demo-run
