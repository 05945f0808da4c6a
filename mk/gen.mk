# SPDX-License-Identifier: Apache-2.0
# What is generated from schema/result.json: the rows of src/schema/schema.c while building,
# and the page docs/reference/result.md, which is committed.
#
#   reference  writes the page anew; tidy refuses a page that is not what the schema gives

.PHONY: reference reference-check
$(O)/gen/gen: tools/gen.c $(call layer_obj,base json)
	@mkdir -p $(@D)
	$(call say,TOOL,$@)
	$(Q)$(CC) $(BASE_CFLAGS) $(WARN) $(CFLAGS) $(CPPFLAGS) $(LDFLAGS) -o $@ $^ -lcrypto -lz -lm

$(O)/gen/schema/result_rows.h: schema/result.json $(O)/gen/gen
	@mkdir -p $(@D)
	$(call say,GEN,$@)
	$(Q)$(O)/gen/gen rows $< $@
$(O)/obj/schema/schema.o: $(O)/gen/schema/result_rows.h
lint $(FUZZERS:%=$(O)/fuzz/%): | $(O)/gen/schema/result_rows.h

$(O)/gen/result.md: schema/result.json $(O)/gen/gen
	$(Q)$(O)/gen/gen page $< $@
reference: $(O)/gen/result.md
	$(Q)mkdir -p docs/reference
	$(Q)cp $< docs/reference/result.md
reference-check: $(O)/gen/result.md
	$(Q)cmp -s $< docs/reference/result.md || { echo "docs/reference/result.md:1: not what" \
		"schema/result.json gives; run make reference"; exit 1; }
tidy: reference-check
