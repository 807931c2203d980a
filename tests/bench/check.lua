-- SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
-- What wrk asks for bench_daemon.sh: the path given, with one of 100 000 tenants, made beforehand.
-- Its last line: requests a second, milliseconds of the median and of the 99th percentile, answers
-- that were no 200, and all of them.
local requests, at = {}, 0

function init(args)
	for tenant = 1, 100000 do
		requests[tenant] = wrk.format('GET', string.format('%s?tenant=t%012d', wrk.path, tenant))
	end
	at = math.floor(#requests * (args[1] or 0))
end

-- In steps that have no common divisor with their number, so neighbours are no neighbours in time.
function request()
	at = (at + 61803) % #requests
	return requests[at + 1]
end

function done(summary, latency)
	print(string.format('%.0f %.3f %.3f %d %d', summary.requests / summary.duration * 1e6,
		latency:percentile(50) / 1000, latency:percentile(99) / 1000, summary.errors.status,
		summary.requests))
end
