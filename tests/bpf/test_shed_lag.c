/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Shedding by a coarse clock: whatever the limit, and wherever in its lag the fine clock stands,
 * what the programs shed is what the daemon's own table would refuse.
 */
#include "shed_fixture.h"

enum { TICK_MAX_NS = 512 };

static uint64_t random_state = 1;

static uint64_t draw(uint64_t below)
{
	random_state = random_state * 6364136223846793005ULL + 1442695040888963407ULL;
	return (random_state >> 33) * below >> 31;
}

/* Whether the daemon would refuse a request at that instant; asked without a trace. */
static bool would_refuse(uint64_t at_ns)
{
	struct hooks *hooks = sluiced.memory.hooks;
	uint64_t now_ns = daemon_now_ns, until_ns = hooks->refusing_until_ns;
	struct place place;
	struct bucket_set *set = set_of(CLIENT, &place), before = *set;
	bool refused;

	daemon_now_ns = at_ns;
	refused = !request(CLIENT);
	daemon_now_ns = now_ns;
	*set = before;
	hooks->refusing_until_ns = until_ns;
	return refused;
}

/* Requests now and then, and a look of the kernel whose coarse clock lies behind as it may. */
static bool shed_is_right(struct harness *harness, uint64_t interval_ns)
{
	uint64_t now_ns, coarse_ns, lag_ns = draw(HARNESS_LAG_NS + 1);
	uint64_t late_ns;
	struct ran ran;

	daemon_now_ns += draw(2) ? draw(interval_ns + 1) : 0;
	for (uint64_t requests = draw(4); requests; requests--)
		(void)request(CLIENT);
	now_ns = daemon_now_ns + (draw(4) ? draw(interval_ns) : interval_ns - draw(2000));
	coarse_ns = now_ns - lag_ns;
	late_ns = coarse_ns + HARNESS_LAG_NS;
	harness_clock(harness, now_ns, lag_ns);
	ran = syn(harness, CLIENT);
	/* A clock that lies behind the last charge finds more debt than there can be, and lets
	 * pass. */
	if (ran.reason == REASON_ADMITTED)
		return coarse_ns < daemon_now_ns || !would_refuse(late_ns + 2 * TICK_MAX_NS);
	assert_int_equal(ran.reason, REASON_SHED_IP);
	for (int instant = 0; instant < 8; instant++)
		if (!would_refuse(coarse_ns + draw(HARNESS_LAG_NS + 1)))
			return false;
	return would_refuse(coarse_ns) && would_refuse(late_ns);
}

/* So a connection that is refused is one whose request would be, whenever within the lag it came.
 */
static void what_is_shed_the_daemon_would_refuse_at_any_instant_within_the_lag(void **state)
{
	enum { LIMITS = 400, LOOKS = 20 };
	struct harness *harness = *state;

	for (int i = 0; i < LIMITS; i++) {
		static const double rates[] = { 100, 10, 1, 0.1, 0.01, 0.001, 0.0001 };
		double rate = rates[draw(COUNT_OF(rates))] * (double)(1 + draw(1000)) / 500;
		struct settings settings = shedding(rate, 1 + draw(draw(2) ? 5 : 100));
		uint64_t longest;

		if (limit_build(&settings.ip_hooks, BUCKET_WORD, &sluiced.client, &longest))
			settings.ip_hooks.burst = longest ? longest : 1;
		if (!longest)
			settings.ip_hooks.rate = 1;
		memset(sluiced.memory.sets, 0, IP_SETS * sizeof(struct bucket_set));
		sluiced.memory.hooks->refusing_until_ns = 0;
		daemon_now_ns += draw(1000 * SECOND_NS);
		configure(harness, &settings);
		for (uint64_t taken = draw(sluiced.client.burst + 1); taken; taken--)
			(void)request(CLIENT);
		for (int look = 0; look < LOOKS; look++)
			if (!shed_is_right(harness, gcra_wait_ns(sluiced.client.interval,
								 sluiced.client.tick_shift)))
				fail_msg("limit %d (rate %g, burst %llu), look %d", i, rate,
					 (unsigned long long)sluiced.client.burst, look);
	}
	print_message("# %llu shed, %llu not\n",
		      (unsigned long long)harness_counter(harness, REASON_SHED_IP).packets,
		      (unsigned long long)harness_counter(harness, REASON_ADMITTED).packets);
	assert_true(harness_counter(harness, REASON_SHED_IP).packets > LIMITS);
	assert_true(harness_counter(harness, REASON_ADMITTED).packets > LIMITS);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(what_is_shed_the_daemon_would_refuse_at_any_instant_within_the_lag),
	};

	return cmocka_run_group_tests_name("shed by a coarse clock, xdp", tests, harness_open_xdp,
					   harness_close) +
	       cmocka_run_group_tests_name("shed by a coarse clock, xdp.frags", tests,
					   harness_open_frags, harness_close) +
	       cmocka_run_group_tests_name("shed by a coarse clock, tc", tests, harness_open_tc,
					   harness_close);
}
