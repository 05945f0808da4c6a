# SPDX-License-Identifier: Apache-2.0
# The documentation as a web site that can be searched: $(O)/site/html/index.html.
.PHONY: site
site:
	$(Q)tools/site/build.sh $(O)/site
	$(Q)tools/site/check.pl $(O)/site/html
	@echo "$(O)/site/html/index.html"
