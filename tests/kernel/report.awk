# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# One TAP report of what init.sh and the tests within have said: numbered anew, each sentence led by
# the name of its test. As in tests/run.sh a test that ends badly without `not ok`, or that says
# nothing at all, has failed; and so has one that never ended, and the machine if it was not turned
# off. What failed is told again at the end, where tests/run.sh shows it.

function comment(line) {
	line = "# " name ": " line
	print line
	said[++lines] = line
}

function say(verdict, sentence) {
	printf "%s %d - %s\n", verdict, ++number, sentence
	said[++lines] = "# " verdict " " number " - " sentence
	bad += verdict == "not ok"
}

function describe(line) {
	sub(/^(not )?ok *[0-9]* *-? */, "", line)
	return name ": " line
}

function member(line, what) {
	sub(".*\"" what "\": \"?", "", line)
	sub(/[",}].*/, "", line)
	return line
}

# What bench_insns says in JSON: of the program's size, and then of its growth.
function insns(line,    title) {
	title = member(line, "case")
	if (sub(/^verified: /, "", title))
		printf "# insns kernel=%s program=%s verified=%d\n", kernel, title,
			member(line, "figure")
	else if (sub(/^growth: /, "", title))
		printf "# insns kernel=%s program=%s recorded=%d ratio=%s\n", kernel, title,
			member(line, "peer_figure"), member(line, "ratio")
}

# The last lines of the test that has failed are kept for the end.
function end_test(    at) {
	if (bad > bad_before)
		for (at = lines > 30 ? lines - 29 : 1; at <= lines; at++)
			kept[++kept_lines] = said[at]
	lines = 0
}

{ sub(/\r$/, "") }
$1 == "@kernel" { kernel = $2; print "# " substr($0, 2); next }
$1 == "@begin" { name = $2; tests = 0; bad_before = bad; next }
$1 == "@skip" { say("ok", $2 " # SKIP " left_out_why); next }
$1 == "@over" { over = 1; next }
$1 == "@end" {
	if (bad == bad_before && ($3 != 0 || tests == 0))
		say("not ok", name ": ended with status " $3 " after " tests + 0 " tests")
	end_test()
	printf "# %s: %.0f s\n", name, $4 - last
	last = $4
	name = ""
	next
}
/^ok / { tests++; say("ok", describe($0)); next }
/^not ok / { tests++; say("not ok", describe($0)); next }
/^\{"case": / { insns($0); next }
/^1\.\.[0-9]+$/ || /^# (not )?ok - / { next }
{ sub(/^# ?/, ""); comment($0) }
END {
	if (name != "")
		say("not ok", name ": did not end")
	end_test()
	if (!over)
		say("not ok", "the machine ran to its end")
	print "1.." number
	if (kept_lines)
		print "# What has failed, once more:"
	for (at = 1; at <= kept_lines; at++)
		print kept[at]
	exit bad > 0
}
