# SPDX-License-Identifier: Apache-2.0
# The program whose calls to the system can be made to fail, one at a time: tests/torture/inject.c.
#
#   make torture TORTURE="--seconds 600"   every command line of tests/torture/commands.txt, with a sanitizer
TORTURE ?=
INJECT_WRAPPED = $(shell sed -nE 's/^[A-Za-z].*[ *]__wrap_([a-z0-9_]+).*/-Wl,--wrap=\1/p' \
	tests/torture/inject.c)

$(O)/tests/inject.o: tests/torture/inject.c
	@mkdir -p $(@D)
	$(call say,TOOL,$@)
	$(Q)$(CC) $(BASE_CFLAGS) -Wall -Wextra -Werror -c -o $@ $<

# In the folder of the program, so that it finds its workers there.
$(O)/profllm-torture: $(OBJ) $(O)/tests/inject.o | $(O)/profllm
	$(call say,LINK,$@)
	$(Q)$(CC) $(CFLAGS) $(LDFLAGS) $(INJECT_WRAPPED) -o $@ $^ $(LDLIBS)
suite: $(if $(filter cli,$(WHAT)),$(O)/profllm-torture)

# leak: the quick one, for every point: make torture SANITIZER=leak TORTURE="--new --points 100000"
SANITIZER ?= asan
SANITIZED_asan = $(ASAN_FLAGS)
SANITIZED_leak := -O1 -fsanitize=leak
.PHONY: torture
torture: $(O)/profllm
	$(Q)$(MAKE) --no-print-directory O=$(O)/$(SANITIZER) CFLAGS="$(SANITIZED_$(SANITIZER))" \
		$(O)/$(SANITIZER)/profllm-torture
	$(Q)PROFLLM=$(abspath $(O)/profllm) TORTURED=$(abspath $(O)/$(SANITIZER)/profllm-torture) \
		tests/torture/torture.pl $(TORTURE)
