-- SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
-- GCRA in Redis as it is usually written, the peer of bench_daemon.sh: answers as TENANT.HIT does.
-- KEYS[1]: the tenant. ARGV: microseconds a token, tokens of the burst.
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local interval = tonumber(ARGV[1])
local capacity = interval * ARGV[2]
local tat = tonumber(redis.call('GET', KEYS[1]) or 0)
local next = math.max(tat, now) + interval
local wait = next - now - capacity
if wait > 0 then
	return { 0, math.ceil(wait / 1000), 0, 'rate_limited', wait * 1000 }
end
redis.call('SET', KEYS[1], string.format('%.0f', next), 'PX', math.ceil((next - now) / 1000))
return { 1, 0, math.floor(-wait / interval), 'ok', 0 }
