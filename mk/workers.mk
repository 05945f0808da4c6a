# SPDX-License-Identifier: Apache-2.0
# Programs that drive an engine for `bench throughput`, `latency`, `startup` and `mm-processor`:
# they stand in "workers" beside the program, or in libexec/profllm/workers once installed.
WORKER_SCRIPTS := $(patsubst workers/%,$(O)/workers/%,$(wildcard workers/*.py))
WORKERS := $(WORKER_SCRIPTS)
LIBEXEC := $(DESTDIR)$(PREFIX)/libexec/profllm/workers

$(O)/profllm: | $(WORKERS)
all: $(WORKERS)

$(O)/workers/%.py: workers/%.py
	$(Q)install -D -m 644 $< $@

.PHONY: install-workers
install: install-workers
install-workers: $(WORKERS)
	install -d $(LIBEXEC)
	install -m 644 $(WORKER_SCRIPTS) $(LIBEXEC)
