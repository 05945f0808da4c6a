# SPDX-License-Identifier: Apache-2.0
# What tools/gen.pl generates from schema/: rows and literals of C and the JSON Schema of
# experiments while building; the pages of docs/reference and the types of web/, which are
# committed.
#
#   reference  writes the committed ones again; tidy refuses one that differs from the schema

.PHONY: reference reference-check
GENERATOR := tools/gen.pl $(wildcard tools/Gen/*.pm)
EXPERIMENT_SCHEMAS := schema/experiment.json schema/result.json schema/engine_args.json \
		schema/columns.json
# $(call generate,OUT,KIND,SCHEMA...): the first schema is the one that is named.
define generate
$(O)/gen/$(1): $(3) $$(GENERATOR)
	@mkdir -p $$(@D)
	$$(call say,GEN,$$@)
	$$(Q)tools/gen.pl $(2) $$< $$@
endef
$(eval $(call generate,core/schema/result_rows.h,rows,schema/result.json))
$(eval $(call generate,host/engine/args_rows.h,arg-rows,schema/engine_args.json))
$(eval $(call generate,experiment/config/schema_text.h,experiment-literal,$(EXPERIMENT_SCHEMAS)))
$(eval $(call generate,experiment.schema.json,experiment-schema,$(EXPERIMENT_SCHEMAS)))
$(eval $(call generate,results/store/columns_rows.h,columns,schema/columns.json $(EXPERIMENT_SCHEMAS)))
$(eval $(call generate,results/index/columns_rows.h,columns-index,schema/columns.json $(EXPERIMENT_SCHEMAS)))
$(eval $(call generate,input/encode/unicode_tables.h,unicode,schema/unicode.json))
$(eval $(call generate,input/chat/known_rows.h,chat,schema/chat_templates.json))
$(eval $(call generate,web/api_text.h,api-literal,schema/api.json))
$(eval $(call generate,result.md,page,schema/result.json))
$(eval $(call generate,engine-args.md,arg-page,schema/engine_args.json))
$(eval $(call generate,experiment-document.md,experiment-page,$(EXPERIMENT_SCHEMAS)))
$(eval $(call generate,experiment.ts,experiment-types,$(EXPERIMENT_SCHEMAS)))
$(eval $(call generate,api.md,api-page,schema/api.json))
$(eval $(call generate,api.ts,api-types,schema/api.json))

$(O)/obj/core/schema/schema.o: $(O)/gen/core/schema/result_rows.h
$(O)/obj/host/engine/args.o: $(O)/gen/host/engine/args_rows.h
$(O)/obj/experiment/config/document.o: $(O)/gen/experiment/config/schema_text.h
$(O)/obj/results/store/known.o: $(O)/gen/results/store/columns_rows.h
$(O)/obj/results/index/names.o $(O)/obj/results/index/derive.o: $(O)/gen/results/index/columns_rows.h
$(O)/obj/input/encode/chars.o: $(O)/gen/input/encode/unicode_tables.h
$(O)/obj/input/chat/chat.o: $(O)/gen/input/chat/known_rows.h
$(O)/obj/web/routes.o: $(O)/gen/web/api_text.h
lint $(FUZZERS:%=$(O)/fuzz/%): | $(O)/gen/web/api_text.h $(O)/gen/core/schema/result_rows.h \
		$(O)/gen/host/engine/args_rows.h $(O)/gen/experiment/config/schema_text.h \
		$(O)/gen/results/store/columns_rows.h \
		$(O)/gen/results/index/columns_rows.h $(O)/gen/input/encode/unicode_tables.h \
		$(O)/gen/input/chat/known_rows.h

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

# The JSON Schemas of experiments' documents, for other programs, and of their configurations, for
# editors; profllm run --print-schema and --print-config-schema print them too. `profllm init` finds
# the latter where it is installed, or next to the program.
CONFIG_SCHEMA := $(O)/experiment-config.schema.json
all: $(CONFIG_SCHEMA)
$(CONFIG_SCHEMA): $(O)/profllm
	$(call say,GEN,$@)
	$(Q)$< run --print-config-schema >$@.new && mv $@.new $@

.PHONY: install-schema
install: install-schema
install-schema: $(O)/gen/experiment.schema.json $(CONFIG_SCHEMA)
	install -D -m 644 $< $(DESTDIR)$(PREFIX)/share/profllm/experiment.schema.json
	install -D -m 644 $(CONFIG_SCHEMA) $(DESTDIR)$(PREFIX)/share/profllm/experiment-config.schema.json
