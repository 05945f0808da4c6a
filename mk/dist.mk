# SPDX-License-Identifier: Apache-2.0
# Packages and releases: packaging/dist.sh says what is made, docs/install.md how it is used.
#
#   dist           source, .deb, portable client, bills of materials and checksums in $(O)/dist
#   release-notes  what CHANGES.md says of VERSION=
#   packages-test  each package installed and used, each service started: root, podman, minutes

.PHONY: dist release-notes packages-test
dist: web/dist/.made-of
	$(Q)packaging/dist.sh $(O)/dist

release-notes:
	$(Q)packaging/release-notes.sh "$(VERSION)"

packages-test: dist
	$(Q)mkdir -p $(O)/tmp
	$(Q)DIST=$(abspath $(O)/dist) PROFLLM=$(abspath $(O)/dist/work/deb/files/usr/bin/profllm) \
		TMPDIR=$(abspath $(O)/tmp) prove $(PACKAGES_PROVE) tests/packages/*.t
