# SPDX-License-Identifier: Apache-2.0
# What is generated from schema/: the rows of src/schema/schema.c, src/engine/args.c and
# src/store/known.c and the JSON Schema of experiments while building; the pages of docs/reference
# and the types of web/, which are committed.
#
#   reference  writes those anew; tidy refuses one that is not what the schema gives

.PHONY: reference reference-check
$(O)/gen/gen: tools/gen.c tools/gen_args.c tools/gen_experiment.c tools/gen_tree.c tools/gen_types.c \
		tools/gen_api.c tools/gen_api_types.c tools/gen_columns.c $(call layer_obj,base json) \
		| tools/gen.h tools/gen_tree.h tools/gen_api.h
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
EXPERIMENT_SCHEMAS := schema/experiment.json schema/result.json schema/engine_args.json \
		schema/columns.json
$(O)/gen/experiment/schema_text.h: $(EXPERIMENT_SCHEMAS) $(O)/gen/gen
	@mkdir -p $(@D)
	$(call say,GEN,$@)
	$(Q)$(O)/gen/gen experiment-literal $< $@
$(O)/obj/experiment/document.o: $(O)/gen/experiment/schema_text.h
$(O)/gen/experiment.schema.json: $(EXPERIMENT_SCHEMAS) $(O)/gen/gen
	$(Q)$(O)/gen/gen experiment-schema $< $@
$(O)/gen/store/columns_rows.h: $(EXPERIMENT_SCHEMAS) $(O)/gen/gen
	@mkdir -p $(@D)
	$(call say,GEN,$@)
	$(Q)$(O)/gen/gen columns schema/columns.json $@
$(O)/obj/store/known.o: $(O)/gen/store/columns_rows.h
$(O)/gen/web/api_text.h: schema/api.json $(O)/gen/gen
	@mkdir -p $(@D)
	$(call say,GEN,$@)
	$(Q)$(O)/gen/gen api-literal $< $@
$(O)/obj/web/data_api.o: $(O)/gen/web/api_text.h
lint $(FUZZERS:%=$(O)/fuzz/%): | $(O)/gen/web/api_text.h $(O)/gen/schema/result_rows.h \
		$(O)/gen/engine/args_rows.h $(O)/gen/experiment/schema_text.h \
		$(O)/gen/store/columns_rows.h

$(O)/gen/result.md: schema/result.json $(O)/gen/gen
	$(Q)$(O)/gen/gen page $< $@
$(O)/gen/engine-args.md: schema/engine_args.json $(O)/gen/gen
	$(Q)$(O)/gen/gen arg-page $< $@
$(O)/gen/experiment-document.md: $(EXPERIMENT_SCHEMAS) $(O)/gen/gen
	$(Q)$(O)/gen/gen experiment-page $< $@
$(O)/gen/experiment.ts: $(EXPERIMENT_SCHEMAS) $(O)/gen/gen
	$(Q)$(O)/gen/gen experiment-types $< $@
$(O)/gen/api.md: schema/api.json $(O)/gen/gen
	$(Q)$(O)/gen/gen api-page $< $@
$(O)/gen/api.ts: schema/api.json $(O)/gen/gen
	$(Q)$(O)/gen/gen api-types $< $@
TYPES_MADE := experiment api
PAGES_MADE := result engine-args experiment-document api
reference: $(PAGES_MADE:%=$(O)/gen/%.md) $(TYPES_MADE:%=$(O)/gen/%.ts)
	$(Q)mkdir -p docs/reference
	$(Q)cp $(filter %.md,$^) docs/reference/
	$(Q)cp $(filter %.ts,$^) web/src/lib/
reference-check: $(PAGES_MADE:%=$(O)/gen/%.md) $(TYPES_MADE:%=$(O)/gen/%.ts)
	$(Q)for t in $(TYPES_MADE); do cmp -s $(O)/gen/$$t.ts web/src/lib/$$t.ts || { \
		echo "web/src/lib/$$t.ts:1: not what schema/ gives; run make reference"; \
		exit 1; }; done
	$(Q)for p in $(PAGES_MADE); do cmp -s $(O)/gen/$$p.md docs/reference/$$p.md || { \
		echo "docs/reference/$$p.md:1: not what schema/ gives; run make reference"; \
		exit 1; }; done
tidy: reference-check

# The JSON Schema of experiments for other programs; profllm run --print-schema prints it too.
.PHONY: install-schema
install: install-schema
install-schema: $(O)/gen/experiment.schema.json
	install -D -m 644 $< $(DESTDIR)$(PREFIX)/share/profllm/experiment.schema.json
