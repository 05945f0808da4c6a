# SPDX-License-Identifier: Apache-2.0
# Programs that drive an engine for `bench throughput`, `latency`, `startup` and `mm-processor`:
# they are in "workers" next to the program, or in libexec/profllm/workers once installed.
WORKER_SCRIPTS := $(patsubst workers/%,$(O)/workers/%,$(wildcard workers/*.py))
WORKER_PROGRAMS := $(O)/workers/llama_worker
WORKER_OBJ := $(patsubst workers/%.c,$(O)/obj/workers/%.o,$(wildcard workers/*.c))
WORKERS := $(WORKER_SCRIPTS) $(WORKER_PROGRAMS)
LIBEXEC := $(DESTDIR)$(PREFIX)/libexec/profllm/workers

$(O)/profllm: | $(WORKERS)
all: $(WORKERS)

$(O)/workers/%.py: workers/%.py
	$(Q)install -D -m 644 $< $@

$(O)/obj/workers/%.o: workers/%.c
	@mkdir -p $(@D)
	$(call say,CC,$<)
	$(Q)$(CC) $(BASE_CFLAGS) $(WARN) $(CFLAGS) $(CPPFLAGS) -Iworkers -MMD -MP -c -o $@ $<

# It is linked with what frames and JSON need; llama.cpp's library is loaded at run time.
$(O)/workers/llama_worker: $(WORKER_OBJ) $(O)/obj/host/worker/frame.o $(call layer_obj,$(call closure,json))
	@mkdir -p $(@D)
	$(call say,LINK,$@)
	$(Q)$(CC) $(CFLAGS) $(LDFLAGS) -o $@ $^ -Wl,--as-needed $(LDLIBS) -ldl

# What tests drive it with in place of that library.
FAKE_LLAMA := $(O)/workers/fake/libllama.so
$(FAKE_LLAMA): tests/cli/fake_engines/fake_llama.c
	@mkdir -p $(@D)
	$(call say,TOOL,$@)
	$(Q)$(CC) $(filter-out -pthread,$(BASE_CFLAGS)) -Wall -Wextra -fvisibility=default \
		-shared -o $@ $<
suite: $(FAKE_LLAMA)

.PHONY: install-workers lint-workers
lint: lint-workers
lint-workers:
	$(Q)cppcheck --quiet --std=c17 --enable=warning,performance,portability --error-exitcode=1 \
		--suppressions-list=tools/cppcheck.txt -D_GNU_SOURCE -D__linux__ -Isrc -Iworkers \
		$(wildcard workers/*.c)

install: install-workers
install-workers: $(WORKERS)
	install -d $(LIBEXEC)
	install -m 644 $(WORKER_SCRIPTS) $(LIBEXEC)
	install -m 755 $(WORKER_PROGRAMS) $(LIBEXEC)

-include $(WORKER_OBJ:.o=.d)
