# SPDX-License-Identifier: Apache-2.0
# One non-recursive makefile; mk/ holds the words that are more than a build.
# `make V=1` shows commands, `make O=dir` builds elsewhere, `make DEV=1` makes warnings errors,
# `make help` lists the words. Without pages and node: WEB=0; without pictures, sound and video:
# MEDIA=0; without PostgreSQL: PG=0.
#
#   all (default)  build/profllm             check  tidy, headers, analyser, unit tests
#   demo           simulator and benchmark   test   every test but sanitizers and fuzz
#   demo-sweep     a sweep, plots, a search    demo-offline  the engine without clients
#   demo-run       experiments from one file each, with server and document
#   asan ubsan tsan  sanitizer runs          fuzz   every fuzz target, FUZZ_SECONDS each
#   tidy           what a tool can judge     cov    line coverage of the parsers and metrics
#   bench          our own cost              install clean   lib  libprofllm alone   wheel  for Python
#   dist           packages of a release    packages-test  install and start each of them
#   mutate         MUTANTS changes of the program, one at a time: does a unit test notice?
#   torture        every command line of a list, one call to the system failing at a time
#   soak           a dashboard under a hundred times a team's load for HOURS (1), with restarts and kill -9
#   client         the load generator alone: bench serve, bench score, doctor, sim, tokenizer, dataset

O ?= build
ifeq ($(origin CC),default)
CC := gcc
endif
PREFIX ?= /usr/local
FUZZ_SECONDS ?= 60
V ?= 0
DEV ?= 0
MEDIA ?= 1
PG ?= 1
Q := $(if $(filter 1,$(V)),,@)
say = $(if $(filter 1,$(V)),,@printf '  %-6s %s\n' $(1) $(2))

WARN := -Wall -Wextra -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wvla -Wconversion -Wformat-security \
	$(if $(filter 1,$(DEV)),-Werror)
BASE_CFLAGS := -std=c17 -O2 -g -D_GNU_SOURCE -ffp-contract=off -fno-omit-frame-pointer -pthread \
	-fPIC -fvisibility=hidden -fno-semantic-interposition
CFLAGS ?=
LDFLAGS ?=
# Only what is called is linked; every other library is loaded when it is first needed
# (base/library.h). Some tests and benches call one themselves.
CLIENT_PKGS := libssl libcrypto libpcre2-8 zlib
PKGS := $(CLIENT_PKGS) libzstd
LDLIBS := -Wl,--as-needed $(shell pkg-config --libs $(PKGS) 2>/dev/null || \
	echo -lssl -lcrypto -lpcre2-8 -lz -lzstd) -lm -pthread
# Tests are linked by a faster linker where there is one.
TEST_LDLIBS := $(LDLIBS) -lcmocka -larchive -lpq -lsqlite3 $(shell echo 'int main(void) { return 0; }' | \
	$(CC) -fuse-ld=mold -x c - -o /dev/null 2>/dev/null && echo -fuse-ld=mold)
CPPFLAGS := -Isrc -I$(O)/gen -include src/core/base/banned.h

# The last part of a layer's name is its own: no two have the same.
LAYERS := $(shell sed -nE 's,^([a-z]+/)?([a-z]+):.*,\2,p' src/LAYERS)
closure = $(shell awk -v want=$(1) -f tools/closure.awk src/LAYERS)
# What needs headers that a build may lack, and what takes its place.
MEDIA_SRC := $(addprefix src/input/media/,audio.c decoders.c video.c)
PG_SRC := src/results/store/postgres.c
PACKED_SRC := src/core/json/yaml.c $(addprefix src/input/table/,codec.c unpack.c)
PACKED_NONE := src/core/json/yaml_none.c src/input/table/none.c
MEDIA_NONE := src/input/media/none.c
PG_NONE := src/results/store/postgres_none.c
LEFT_OUT := $(PACKED_NONE) $(if $(filter 0,$(MEDIA)),$(MEDIA_SRC),$(MEDIA_NONE)) \
	$(if $(filter 0,$(PG)),$(PG_SRC),$(PG_NONE))
layer_src = $(filter-out $(LEFT_OUT),$(wildcard $(foreach l,$(1),src/$(l)/*.c src/*/$(l)/*.c)))
layer_obj = $(patsubst src/%.c,$(O)/obj/%.o,$(call layer_src,$(1))) \
	$(if $(filter page,$(1)),$(O)/obj/assets.o) $(if $(filter web,$(1)),$(O)/obj/app.o)

SRC := src/main.c $(call layer_src,$(filter-out lib,$(LAYERS)))
OBJ := $(SRC:src/%.c=$(O)/obj/%.o) $(O)/obj/assets.o $(O)/obj/app.o
LIBOBJ := $(filter-out $(O)/obj/main.o,$(OBJ))
UNIT := $(patsubst tests/unit/test_%.c,%,$(wildcard tests/unit/test_*.c))
FUZZERS := $(patsubst tests/fuzz/fuzz_%.c,%,$(wildcard tests/fuzz/fuzz_*.c))
BENCHES := $(patsubst bench/%.c,%,$(wildcard bench/*.c))

.PHONY: all help demo test check asan ubsan tsan fuzz tidy cov bench install clean FORCE
.SECONDARY:
.DELETE_ON_ERROR:
all: $(O)/profllm

help:
	@sed -n 's/^#   /  /p' Makefile

-include $(wildcard mk/*.mk)

$(O)/profllm: $(OBJ)
	$(call say,LINK,$@)
	$(Q)$(CC) $(CFLAGS) $(LDFLAGS) -o $@ $^ $(LDLIBS)

$(O)/obj/%.o: src/%.c
	@mkdir -p $(@D)
	$(call say,CC,$<)
	$(Q)$(CC) $(BASE_CFLAGS) $(WARN) $(CFLAGS) $(CPPFLAGS) -MMD -MP -c -o $@ $<

# The load generator alone, which needs libssl, libcrypto, PCRE2 and zlib, and libcurl's headers.
CLIENT_VERBS := bench_serve bench_multi_turn bench_structured_output bench_tap serve_once score sim sim_rows \
	sim_worker tokenizer dataset doctor
CLIENT_SRC := $(filter-out $(PACKED_SRC) $(MEDIA_SRC) $(MEDIA_NONE),\
	$(call layer_src,$(call closure,sweep) hardware doctor model serving console)) \
	$(PACKED_NONE) $(MEDIA_NONE) $(CLIENT_VERBS:%=src/cmd/verbs/%.c)
CLIENT_LDLIBS ?= -Wl,--as-needed $(shell pkg-config --libs $(CLIENT_PKGS) 2>/dev/null || \
	echo -lssl -lcrypto -lpcre2-8 -lz) -lm -pthread
.PHONY: client
client: $(O)/client/profllm
$(O)/client/profllm: $(CLIENT_SRC:src/%.c=$(O)/obj/%.o) $(O)/client/main.o $(O)/client/assets.o
	$(call say,LINK,$@)
	$(Q)$(CC) $(CFLAGS) $(LDFLAGS) -o $@ $^ $(CLIENT_LDLIBS)
$(O)/client/main.o: src/main.c
	@mkdir -p $(@D)
	$(call say,CC,$@)
	$(Q)$(CC) $(BASE_CFLAGS) $(WARN) $(CFLAGS) $(CPPFLAGS) -DPROFLLM_CLIENT -MMD -MP -c -o $@ $<
$(O)/client/assets.S: tools/assets.sh
	@mkdir -p $(@D)
	$(Q)tools/assets.sh $@ web/dist
$(O)/client/assets.o: $(O)/client/assets.S
	$(Q)$(CC) -c -o $@ $<

# The version: the file VERSION of a source tarball, else what git says.
$(O)/gen/version.h: FORCE
	@mkdir -p $(@D)
	@v=$$(cat VERSION 2>/dev/null || git describe --tags --always --dirty 2>/dev/null || echo unknown); \
	printf '#define PROFLLM_VERSION "%s"\n' "$$v" >$@.new; \
	if cmp -s $@.new $@; then rm $@.new; else mv $@.new $@; fi
$(OBJ) $(CLIENT_SRC:src/%.c=$(O)/obj/%.o) $(O)/client/main.o: | $(O)/gen/version.h

# A unit test named after a layer links with that layer's closure and nothing else:
# tests/unit/test_<layer>.c or tests/unit/test_<layer>_<topic>.c. The test itself is compiled without
# optimisation, in a third of the time; what it tests is not.
define unit_rule
$(O)/unit/$(1): tests/unit/test_$(1).c $$(call layer_obj,$$(call closure,$(firstword $(subst _, ,$(1)))))
	@mkdir -p $$(@D)
	$$(call say,UNIT,$$@)
	$$(Q)$$(CC) $$(BASE_CFLAGS) $$(WARN) $$(CFLAGS) -O0 $$(CPPFLAGS) -MMD -MP -MF $$@.d -Itests/unit \
		$$(LDFLAGS) -o $$@ $$< $$(filter %.o,$$^) $$(TEST_LDLIBS)
endef
$(foreach u,$(UNIT),$(eval $(call unit_rule,$(u))))

$(O)/bench/%: bench/%.c $(wildcard bench/kit/*.c) $(LIBOBJ)
	@mkdir -p $(@D)
	$(call say,BENCH,$@)
	$(Q)$(CC) $(BASE_CFLAGS) $(WARN) $(CFLAGS) $(CPPFLAGS) -Ibench $(LDFLAGS) -o $@ $^ $(TEST_LDLIBS)

# Every program in bench/, then its own way of running: bench/run when there is one.
bench: $(O)/profllm $(BENCHES:%=$(O)/bench/%)
	$(Q)for b in $(BENCHES); do echo "== $$b"; \
		PROFLLM=$(abspath $(O)/profllm) $(O)/bench/$$b || exit 1; done

install: $(O)/profllm
	install -D -m 755 $(O)/profllm $(DESTDIR)$(PREFIX)/bin/profllm
	install -D -m 644 LICENSE $(DESTDIR)$(PREFIX)/share/doc/profllm/LICENSE
	$(O)/profllm completion bash >$(O)/profllm.bash
	$(O)/profllm completion zsh >$(O)/_profllm
	install -D -m 644 $(O)/profllm.bash $(DESTDIR)$(PREFIX)/share/bash-completion/completions/profllm
	install -D -m 644 $(O)/_profllm $(DESTDIR)$(PREFIX)/share/zsh/site-functions/_profllm
	tools/man.pl $(O)/profllm $(O)/man
	install -d $(DESTDIR)$(PREFIX)/share/man/man1
	install -m 644 $(O)/man/*.1 $(DESTDIR)$(PREFIX)/share/man/man1

clean:
	rm -rf $(O) web/dist

-include $(OBJ:.o=.d) $(O)/client/main.d $(UNIT:%=$(O)/unit/%.d)
