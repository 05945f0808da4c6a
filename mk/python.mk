# SPDX-License-Identifier: Apache-2.0
# The Python package (python/): libprofllm, the program and its workers in a wheel for this machine.
# Nothing else needs Python.
#
#   wheel  build/profllm-VERSION-py3-none-linux_MACHINE.whl, for pip install

PYTHON ?= python3
NATIVE := $(O)/native

.PHONY: wheel
wheel: $(O)/profllm $(LIB)
	$(Q)rm -rf $(NATIVE) $(O)/profllm-*.whl
	$(Q)mkdir -p $(NATIVE)/workers
	$(Q)cp $(O)/profllm $(LIB) $(NATIVE)
	$(Q)cp $(WORKERS) $(NATIVE)/workers
	$(Q)strip --strip-debug $(addprefix $(NATIVE)/,profllm $(notdir $(LIB)) \
		$(addprefix workers/,$(notdir $(WORKER_PROGRAMS))))
	$(Q)PROFLLM_NATIVE=$(NATIVE) PYTHONDONTWRITEBYTECODE=1 $(PYTHON) python/backend.py $(O)
