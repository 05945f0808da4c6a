#!/usr/bin/perl
# SPDX-License-Identifier: Apache-2.0
# The commands of docs/guide/ from p on; docs.t runs those before.
# suite: first
use strict;
use warnings;
use FindBin;

$ENV{DOCS} //= '^docs/guide/[^a-o]';
do "$FindBin::Bin/docs.t";
die($@) if $@;
