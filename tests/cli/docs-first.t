#!/usr/bin/perl
# SPDX-License-Identifier: Apache-2.0
# The commands of the pages that a reader sees first (README.md, the tutorial, the index of tasks, the
# tables for other tools), each as docs.t runs those of docs/guide/: three files, because they take minutes.
# suite: first
use strict;
use warnings;
use FindBin;

$ENV{DOCS} //= '^(?!docs/guide/)';
do "$FindBin::Bin/docs.t";
die($@) if $@;
