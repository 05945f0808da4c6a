# SPDX-License-Identifier: Apache-2.0
# Tests, sanitizers, fuzzing, coverage. tests/README.md says what each kind is for.
#
# WHAT chooses the kinds that `suite` runs: unit (cmocka programs), cli, load and web (.t files).
# A sanitizer run is the same suite built in its own folder with its own flags: -g1 is enough for
# functions and lines in its findings, and the programs are smaller.

WHAT ?= unit cli load
SUITE_FILES = $(if $(filter unit,$(WHAT)),$(UNIT:%=$(O)/unit/%)) \
	$(if $(filter cli,$(WHAT)),$(sort $(wildcard tests/cli/*.t))) \
	$(if $(filter load,$(WHAT)),$(sort $(wildcard tests/load/*.t))) \
	$(if $(filter web,$(WHAT)),$(sort $(wildcard tests/web/*.t)))

# Replacements of NVIDIA's library, in its current and an old version.
FAKE_NVML := $(O)/tests/libfake-nvml.so $(O)/tests/libfake-nvml-old.so
$(O)/tests/libfake-nvml-old.so: FAKE_NVML_FLAGS := -DFAKE_NVML_OLD
$(FAKE_NVML): tests/fake/nvml.c
	@mkdir -p $(@D)
	$(call say,TOOL,$@)
	$(Q)$(CC) $(BASE_CFLAGS) $(FAKE_NVML_FLAGS) -Wall -Wextra -Werror -fvisibility=default \
		-shared -o $@ $<
$(UNIT:%=$(O)/unit/%) $(O)/bench/telemetry suite: | $(FAKE_NVML)

# A replacement of NVIDIA's DCGM library.
FAKE_DCGM := $(O)/tests/libfake-dcgm.so
$(FAKE_DCGM): tests/fake/dcgm.c
	@mkdir -p $(@D)
	$(call say,TOOL,$@)
	$(Q)$(CC) $(BASE_CFLAGS) -Wall -Wextra -Werror -fvisibility=default -shared -o $@ $<
$(UNIT:%=$(O)/unit/%) suite: | $(FAKE_DCGM)

# A replacement of Open MPI, which is found by its name because the test has loaded it.
FAKE_MPI := $(O)/tests/libfake-mpi.so
$(FAKE_MPI): tests/fake/mpi.c
	@mkdir -p $(@D)
	$(call say,TOOL,$@)
	$(Q)$(CC) $(BASE_CFLAGS) -Wall -Wextra -Werror -fvisibility=default -shared \
		-Wl,-soname,libmpi.so.40 -o $@ $<
$(UNIT:%=$(O)/unit/%) suite: | $(FAKE_MPI)

# A replacement for setting the clock and for slow name servers.
FAKE_WORLD := $(O)/tests/libfake-world.so
$(FAKE_WORLD): tests/fake/world.c
	@mkdir -p $(@D)
	$(call say,TOOL,$@)
	$(Q)$(CC) $(BASE_CFLAGS) -Wall -Wextra -Werror -fvisibility=default -shared -o $@ $<
$(O)/bench/fault: | $(FAKE_WORLD)

# Watches that the unit tests which ThreadSanitizer leaves out start no thread.
NO_THREADS := $(O)/tests/libno-threads.so
$(NO_THREADS): tests/fake/no_threads.c
	@mkdir -p $(@D)
	$(call say,TOOL,$@)
	$(Q)$(CC) $(BASE_CFLAGS) -Wall -Wextra -Werror -fvisibility=default -shared -o $@ $<
suite: | $(NO_THREADS)

.PHONY: suite units
units: $(UNIT:%=$(O)/unit/%)

# The same program without what MEDIA=0 and PG=0 leave out, for tests of what it says then.
LESS_OBJ := $(patsubst src/%.c,$(O)/obj/%.o,$(filter-out $(MEDIA_SRC) $(PG_SRC),$(SRC)) \
	$(MEDIA_NONE) $(PG_NONE))
$(O)/less/profllm: $(LESS_OBJ) $(O)/obj/assets.o $(O)/obj/app.o
	@mkdir -p $(@D)
	$(call say,LINK,$@)
	$(Q)$(CC) $(CFLAGS) $(LDFLAGS) -o $@ $^ $(LDLIBS)
suite: $(if $(filter cli,$(WHAT)),$(O)/less/profllm $(O)/client/profllm $(O)/bench/fault \
		$(O)/experiment-config.schema.json)

suite: $(if $(filter unit,$(WHAT)),units) $(if $(filter cli load web,$(WHAT)),$(O)/profllm) \
		$(if $(filter web,$(WHAT)),$(O)/bench/timeline)
	$(Q)mkdir -p $(O)/tmp
	$(Q)O=$(O) PROFLLM=$(abspath $(O)/profllm) TMPDIR=$(abspath $(O)/tmp) WEB=$(WEB) \
		NO_THREADS=$(if $(findstring -fsanitize,$(CFLAGS)),,$(abspath $(NO_THREADS))) \
		CMOCKA_MESSAGE_OUTPUT=TAP tests/with_postgres.sh $(SUITE_RUN) \
		perl tools/suite.pl $(SUITE_FILES)

test:
	$(Q)$(MAKE) --no-print-directory suite WHAT="unit cli load web"

# ASLR is off where the kernel allows it: ThreadSanitizer of gcc 12 cannot place its shadow
# on kernels that randomise more than 28 bits.
ASAN_WHAT ?= unit cli load
FIXED_ADDRESSES = $(shell setarch -R true 2>/dev/null && echo setarch -R)
asan: export ASAN_OPTIONS = detect_stack_use_after_return=1:strict_string_checks=1
asan ubsan: export UBSAN_OPTIONS = print_stacktrace=1
tsan: export TSAN_OPTIONS = halt_on_error=1:second_deadlock_stack=1
# Programs with a sanitizer compute more, most with ThreadSanitizer.
asan ubsan: export JOBS ?= $(shell echo $$(($$(nproc) + 2)))
tsan: export JOBS ?= $(shell nproc)
asan ubsan tsan: export AGAIN ?= 0
ASAN_FLAGS := -O1 -g1 -fsanitize=address,undefined -fno-sanitize-recover=all
asan:
	$(Q)$(MAKE) --no-print-directory suite O=$(O)/asan WHAT="$(ASAN_WHAT)" \
		CFLAGS="$(ASAN_FLAGS)"
# The program alone, for tools/attack.sh.
.PHONY: asan-program
asan-program:
	$(Q)$(MAKE) --no-print-directory O=$(O)/asan CFLAGS="$(ASAN_FLAGS)" $(O)/asan/profllm
ubsan:
	$(Q)$(MAKE) --no-print-directory suite O=$(O)/ubsan WHAT="unit load" \
		CFLAGS="-O1 -g1 -fsanitize=undefined -fno-sanitize-recover=all"
# A test that starts no thread has no race: only those that say `threads: yes` are built.
THREADED = $(shell grep -lE '^(/\*| \*) threads: yes' tests/unit/test_*.c)
tsan:
	$(Q)$(MAKE) --no-print-directory suite O=$(O)/tsan WHAT="unit load" \
		UNIT="$(THREADED:tests/unit/test_%.c=%)" \
		CFLAGS="-O1 -g1 -fsanitize=thread" SUITE_RUN="$(FIXED_ADDRESSES)"

# A dashboard at a hundred times the pace of a team of 20, for HOURS: see tests/cli/dashboard-soak.t.
HOURS ?= 1
.PHONY: soak
soak: $(O)/profllm
	$(Q)mkdir -p $(O)/tmp
	$(Q)PROFLLM=$(abspath $(O)/profllm) TMPDIR=$(abspath $(O)/tmp) \
		SOAK_SECONDS=$$(awk "BEGIN { print int($(HOURS) * 3600) }") perl tests/cli/dashboard-soak.t

# A fuzz target links with the closure of the layers whose headers it includes. Sources are compiled
# once for all targets. Inputs that a run discovers stay under $(O); the corpus in the tree is read only.
FUZZ_CC ?= $(if $(findstring ccache,$(CC)),ccache )clang
FUZZ_ENGINE ?= -fsanitize=fuzzer
FUZZ_SANITIZERS ?= -fsanitize=fuzzer-no-link,address,undefined -fno-sanitize-recover=all
FUZZ_FLAGS := -std=c17 -O1 -g -D_GNU_SOURCE -ffp-contract=off -pthread $(FUZZ_SANITIZERS)
ifneq ($(filter fuzz fuzzers $(O)/fuzz/%,$(MAKECMDGOALS)),)
$(O)/fuzz/obj/%.o: src/%.c | $(O)/gen/version.h
	@mkdir -p $(@D)
	$(call say,FUZZ,$<)
	$(Q)$(FUZZ_CC) $(FUZZ_FLAGS) $(CPPFLAGS) -MMD -MP -c -o $@ $<
fuzz_links = $(sort $(shell $(FUZZ_CC) -MM $(CPPFLAGS) $(1) | grep -oE 'src/[a-z/]*/' | xargs -n 1 basename))
define fuzz_rule
fuzz_layers_$(1) := $$(sort $$(foreach l,$$(call fuzz_links,tests/fuzz/fuzz_$(1).c),\
	$$(call closure,$$(l))))
$(O)/fuzz/$(1): tests/fuzz/fuzz_$(1).c $$(patsubst src/%.c,$(O)/fuzz/obj/%.o,\
		$$(call layer_src,$$(fuzz_layers_$(1)))) \
		$$(if $$(filter page,$$(fuzz_layers_$(1))),$(O)/obj/assets.o) \
		$$(if $$(filter web,$$(fuzz_layers_$(1))),$(O)/obj/app.o)
	@mkdir -p $$(@D)
	$$(call say,FUZZ,$$@)
	$$(Q)$$(FUZZ_CC) $$(FUZZ_FLAGS) $$(CPPFLAGS) -MMD -MP -MF $$@.d -o $$@ \
		$$(filter tests/fuzz/%.c %.o,$$^) $$(FUZZ_ENGINE) $$(LDLIBS) $$(FUZZ_LDLIBS_$(1))
endef
FUZZ_LDLIBS_image := -lwebp
$(foreach f,$(FUZZERS),$(eval $(call fuzz_rule,$(f))))
-include $(wildcard $(O)/fuzz/*.d) $(shell find $(O)/fuzz/obj -name '*.d' 2>/dev/null)
endif
.PHONY: fuzzers
fuzzers: $(FUZZERS:%=$(O)/fuzz/%)
fuzz: fuzzers
	$(Q)O=$(O) SECONDS_EACH=$(FUZZ_SECONDS) tools/fuzz.sh $(FUZZERS)

# Lines that unit and load tests reach; the layers that parse and count must reach 90 %.
COV_LAYERS := http json record metrics
cov:
	$(Q)$(MAKE) --no-print-directory suite O=$(O)/cov WHAT="unit cli load" CFLAGS="-O0 --coverage"
	$(Q)tools/cov.sh $(O)/cov 90 $(COV_LAYERS)

# Whether tests notice that the program is wrong: see tools/mutate.pl. MUTANTS, MUTATE_SEED, UNDER and
# MUTATE (its other arguments) choose. A compiler cache helps: CC="ccache gcc".
MUTANTS ?= 100
.PHONY: mutate
mutate: $(UNIT:%=$(O)/unit/%)
	$(shell mkdir -p $(O)/mutate)$(file >$(O)/mutate/units)
	$(foreach u,$(UNIT),$(file >>$(O)/mutate/units,$(u): $(call layer_obj,$(call \
		closure,$(firstword $(subst _, ,$(u)))))))
	$(Q)$(MAKE) --no-print-directory O=$(O)/cov CFLAGS="-O0 --coverage" units
	$(Q)O=$(O) MUTATE_CC="$(CC) $(BASE_CFLAGS) $(CPPFLAGS)" MUTATE_LIBS="$(TEST_LDLIBS)" \
		tests/with_postgres.sh tools/mutate.pl --count $(MUTANTS) \
		$(if $(MUTATE_SEED),--seed $(MUTATE_SEED)) $(if $(UNDER),--under $(UNDER)) $(MUTATE)
