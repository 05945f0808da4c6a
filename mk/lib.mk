# SPDX-License-Identifier: Apache-2.0
# libprofllm: `profllm run` as a function (src/lib/profllm.h), from the program's objects. A linker
# script exports the names in that header and no others.
#
#   lib  build/libprofllm.so.1, which install puts next to the header and profllm.pc
LIB_API := $(shell sed -n 's/^\#define PROFLLM_API //p' src/lib/profllm.h)
LIB := $(O)/libprofllm.so.$(LIB_API)
LIB_DIR := $(DESTDIR)$(PREFIX)/lib

.PHONY: lib install-lib
lib: $(LIB)

$(O)/gen/libprofllm.map: mk/lib.mk
	@mkdir -p $(@D)
	$(Q)printf '{\n\tglobal: profllm_*;\n\tlocal: *;\n};\n' >$@

$(LIB): $(call layer_obj,$(call closure,lib)) $(O)/gen/libprofllm.map
	$(call say,LINK,$@)
	$(Q)$(CC) $(CFLAGS) $(LDFLAGS) -shared -Wl,-soname,$(@F) -Wl,--no-undefined \
		-Wl,--version-script=$(filter %.map,$^) -o $@ $(filter %.o,$^) -Wl,--as-needed $(LDLIBS)

$(O)/profllm.pc: mk/lib.mk $(O)/gen/version.h
	$(Q)printf '%s\n' 'prefix=$(PREFIX)' 'includedir=$${prefix}/include' 'libdir=$${prefix}/lib' \
		'' 'Name: profllm' 'Description: experiments with servers of language models' \
		"Version: $$(sed 's/.*"\(.*\)"/\1/' $(O)/gen/version.h)" \
		'Cflags: -I$${includedir}' 'Libs: -L$${libdir} -lprofllm' >$@

install: install-lib
install-lib: $(LIB) $(O)/profllm.pc
	install -D -m 644 src/lib/profllm.h $(DESTDIR)$(PREFIX)/include/profllm.h
	install -D -m 755 $(LIB) $(LIB_DIR)/$(notdir $(LIB))
	ln -sf $(notdir $(LIB)) $(LIB_DIR)/libprofllm.so
	install -D -m 644 $(O)/profllm.pc $(LIB_DIR)/pkgconfig/profllm.pc

LIB_OBJ := $(call layer_obj,lib)
$(LIB_OBJ): | $(O)/gen/version.h
-include $(LIB_OBJ:.o=.d)
suite: $(if $(filter cli,$(WHAT)),$(LIB))
