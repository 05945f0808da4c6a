# SPDX-License-Identifier: Apache-2.0
# What is generated from schema/: the rows of src/schema/schema.c and src/engine/args.c while
# building, and the pages of docs/reference, which are committed.
#
#   reference  writes the pages anew; tidy refuses a page that is not what the schema gives

.PHONY: reference reference-check
$(O)/gen/gen: tools/gen.c tools/gen_args.c $(call layer_obj,base json) | tools/gen.h
	@mkdir -p $(@D)
	$(call say,TOOL,$@)
	$(Q)$(CC) $(BASE_CFLAGS) $(WARN) $(CFLAGS) $(CPPFLAGS) $(LDFLAGS) -o $@ $^ -lcrypto -lz -lyaml -lm

$(O)/gen/schema/result_rows.h: schema/result.json $(O)/gen/gen
	@mkdir -p $(@D)
	$(call say,GEN,$@)
	$(Q)$(O)/gen/gen rows $< $@
$(O)/obj/schema/schema.o: $(O)/gen/schema/result_rows.h
$(O)/gen/engine/args_rows.h: schema/engine_args.json $(O)/gen/gen
	@mkdir -p $(@D)
	$(call say,GEN,$@)
	$(Q)$(O)/gen/gen arg-rows $< $@
$(O)/obj/engine/args.o: $(O)/gen/engine/args_rows.h
lint $(FUZZERS:%=$(O)/fuzz/%): | $(O)/gen/schema/result_rows.h $(O)/gen/engine/args_rows.h

$(O)/gen/result.md: schema/result.json $(O)/gen/gen
	$(Q)$(O)/gen/gen page $< $@
$(O)/gen/engine-args.md: schema/engine_args.json $(O)/gen/gen
	$(Q)$(O)/gen/gen arg-page $< $@
PAGES_MADE := result engine-args
reference: $(PAGES_MADE:%=$(O)/gen/%.md)
	$(Q)mkdir -p docs/reference
	$(Q)cp $^ docs/reference/
reference-check: $(PAGES_MADE:%=$(O)/gen/%.md)
	$(Q)for p in $(PAGES_MADE); do cmp -s $(O)/gen/$$p.md docs/reference/$$p.md || { \
		echo "docs/reference/$$p.md:1: not what schema/ gives; run make reference"; \
		exit 1; }; done
tidy: reference-check
