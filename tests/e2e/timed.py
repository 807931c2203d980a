# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Runs a command and prints, instead of its output, how long it took by CLOCK_MONOTONIC, which is
the clock that buckets are filled by. Ends with the command's status."""
import subprocess
import sys
import time

start_ns = time.monotonic_ns()
ended = subprocess.run(sys.argv[1:], stdout=subprocess.DEVNULL, check=False)
print((time.monotonic_ns() - start_ns) / 1e9)
sys.exit(ended.returncode)
