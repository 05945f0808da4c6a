# SPDX-License-Identifier: Apache-2.0
# Checks of the source tree that do not run the program.
#
#   tidy     layers, lengths, banned calls, dead files: one line per finding (tools/tidy.sh)
#   headers  every header compiles by itself
#   lint     cppcheck over every source file, remembering those that did not change
#   analyse  clang-tidy over every source file that changed (.clang-tidy): minutes, so not in `check`
#   unused   no global function without a caller outside its own file

.PHONY: headers lint unused
HEADERS := $(wildcard src/*/*.h src/*/*/*.h)

tidy:
	$(Q)tools/tidy.sh

$(O)/headers/%.ok: src/%.h
	@mkdir -p $(@D)
	$(Q)printf '#include "%s"\n' "$*.h" | \
		$(CC) -std=c17 -D_GNU_SOURCE $(WARN) -Isrc -I$(O)/gen -fsyntax-only \
		-MD -MP -MF $(@:.ok=.d) -MT $@ -x c -
	$(Q)touch $@
headers: $(HEADERS:src/%.h=$(O)/headers/%.ok)
-include $(HEADERS:src/%.h=$(O)/headers/%.d)

lint: $(O)/gen/version.h
	$(Q)mkdir -p $(O)/lint
	$(Q)cppcheck --quiet --std=c17 --enable=warning,performance,portability --inline-suppr \
		--suppressions-list=tools/cppcheck.txt --cppcheck-build-dir=$(O)/lint --error-exitcode=1 \
		-j $(shell nproc) -D_GNU_SOURCE -D__linux__ -Isrc -I$(O)/gen $(SRC)

# An object is newer than all that its source includes, so the mark follows it.
.PHONY: analyse
CLANG_TIDY ?= $(shell command -v clang-tidy || command -v clang-tidy-14 || echo clang-tidy)
$(O)/analyse/%.ok: $(O)/obj/%.o
	@mkdir -p $(@D)
	$(call say,TIDY,src/$*.c)
	$(Q)$(CLANG_TIDY) -quiet src/$*.c -- -std=c17 -D_GNU_SOURCE $(CPPFLAGS)
	$(Q)touch $@
analyse: $(SRC:src/%.c=$(O)/analyse/%.ok)

unused: $(OBJ) $(call layer_obj,lib)
	$(Q)tools/unused.sh $(O)/obj

check: tidy headers lint unused
	$(Q)$(MAKE) --no-print-directory suite WHAT=unit
