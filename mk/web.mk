# SPDX-License-Identifier: Apache-2.0
# The front end: web/ becomes pages in web/dist, packed into the program by one assembler file.
#
# WEB=0 leaves them out, and with them node and npm: the program then says that it has no pages.
# web/dist and web/node_modules belong to the sources and not to $(O), so that sanitizer and
# coverage builds take the pages that are already there.

WEB ?= 1
PAGES := timeline.html dataset.html turns.html
WEB_SRC := $(wildcard web/package*.json web/tsconfig.json web/*.mjs) $(shell find web/pages web/src -type f)

.PHONY: web
web: web/dist/.made-of
web/dist/.made-of: $(WEB_SRC) tools/web.sh
	$(Q)tools/web.sh

# Rewritten when WEB has changed since the last time.
$(O)/gen/web.mode: FORCE
	@mkdir -p $(@D)
	@echo $(WEB) | cmp -s - $@ || echo $(WEB) >$@

$(O)/gen/assets.S: $(O)/gen/web.mode tools/assets.sh $(if $(filter 0,$(WEB)),,web/dist/.made-of)
	$(Q)tools/assets.sh $@ web/dist $(if $(filter 0,$(WEB)),,$(PAGES))
$(O)/obj/assets.o: $(O)/gen/assets.S
	@mkdir -p $(@D)
	$(call say,AS,$@)
	$(Q)$(CC) $(CFLAGS) -c -o $@ $<

# The dashboard's front end, whose files stay files, and the examples it offers.
EXAMPLES := $(wildcard examples/*.yaml)
$(O)/gen/app.S: $(O)/gen/web.mode tools/app-assets.sh $(EXAMPLES) \
		$(if $(filter 0,$(WEB)),,web/dist/.made-of)
	$(Q)tools/app-assets.sh $@ web_assets "$(if $(filter 0,$(WEB)),,web/dist/app)" '*' \
		web_examples examples '*.yaml'
$(O)/obj/app.o: $(O)/gen/app.S
	@mkdir -p $(@D)
	$(call say,AS,$@)
	$(Q)$(CC) $(CFLAGS) -c -o $@ $<
