#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# Fail on a row of docs/architecture.md, "What happens when", that names no test in its last column, or
# one that does not exist.
set -eu

awk -F '|' '
	/^## / { inside = /^## What happens when/ }
	inside && /^\|/ && !/^\|---/ && !/^\| Event/ { print $(NF - 1) }
' docs/architecture.md | while IFS= read -r named; do
	# shellcheck disable=SC2016 # these are the backquotes of Markdown
	tests=$(echo "$named" | grep -oE '`[^`]+`' | tr -d '`')
	[ -n "$tests" ] || echo "docs/architecture.md: a row names no test"
	for name in $tests; do
		case $name in
		*.sh) [ -x "$name" ] || echo "docs/architecture.md: there is no $name" ;;
		*) grep -rqE "^static void $name\\(" tests || echo "docs/architecture.md: no test is named $name" ;;
		esac
	done
done
