/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What happens when another CPU comes between, provoked by a thread that rewrites a word without
 * pause while packets are run: a meter that was charged and another that then refuses, and a bucket
 * of the node that is never won. Each test ends soon after it has happened for the first time; that
 * it does is a matter of chance, so there are very many attempts, and a machine on which it never
 * does skips the test.
 */
#include "harness.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <unistd.h>

#define CLIENT "198.51.100.7"

enum { ROUNDS = 2000, ROUND_PACKETS = 100000 };

/* A word and what it is rewritten with, in turn. */
struct rewriter {
	__u64 *word;
	__u64 value[2];
	atomic_bool stop;
	pthread_t thread;
};

static bool leave_cpu(int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	for (int other = 0; other < sysconf(_SC_NPROCESSORS_CONF); other++)
		if (other != cpu)
			CPU_SET(other, &set);
	return sched_setaffinity(0, sizeof(set), &set) == 0;
}

static void *rewrite(void *argument)
{
	struct rewriter *rewriter = argument;

	for (uint64_t turn = 0; !atomic_load_explicit(&rewriter->stop, memory_order_relaxed);
	     turn++)
		__atomic_store_n(rewriter->word, rewriter->value[turn & 1], __ATOMIC_RELAXED);
	return NULL;
}

/* A thread that is not where the frames are run. */
static void *rewrite_elsewhere(void *argument)
{
	return leave_cpu(sched_getcpu()) ? rewrite(argument) : NULL;
}

static void start(struct rewriter *rewriter)
{
	assert_int_equal(pthread_create(&rewriter->thread, NULL, rewrite_elsewhere, rewriter), 0);
}

static void stop(struct rewriter *rewriter)
{
	atomic_store(&rewriter->stop, true);
	pthread_join(rewriter->thread, NULL);
}

static void need_two_cpus(void)
{
	if (sysconf(_SC_NPROCESSORS_ONLN) > 1)
		return;
	print_message("# a race needs two CPUs, and this machine has one\n");
	skip();
}

/* Rewrite the word while packets are run, until a note is made; how often it was. */
static uint64_t provoke(struct harness *harness, struct rewriter *rewriter, enum note note,
			uint8_t flags)
{
	static struct frame frame;
	uint64_t noted = 0;

	frame_of_tcp(&frame, CLIENT, 443, flags, 0);
	*rewriter->word = rewriter->value[0];
	start(rewriter);
	for (int round = 0; round < ROUNDS && !noted; round++) {
		harness_repeat(harness, &frame, ROUND_PACKETS);
		noted = harness_note(harness, note);
	}
	stop(rewriter);
	if (!noted) {
		print_message("# in %d packets no such race was lost\n", ROUNDS * ROUND_PACKETS);
		skip();
	}
	return noted;
}

static uint64_t packets(const struct harness *harness, enum reason reason)
{
	return harness_counter(harness, reason).packets;
}

/* The address's word of packets goes to and fro between hardly any debt and full debt. */
static void a_meter_that_was_charged_when_another_refused_is_counted(void **state)
{
	struct harness *harness = *state;
	struct settings settings = harness_settings();
	struct rewriter rewriter = {};
	const struct gcra_limit *limits;
	struct place place;
	__u64 now, charged, in_vain;
	uint32_t tag;

	need_two_cpus();
	settings.ip[METER_CONNECTIONS] = RATE_LIMIT(1000000, 4000000);
	settings.ip[METER_PACKETS] = RATE_LIMIT(100, 10);
	harness_apply(harness, &settings);
	limits = harness_slot(harness)->ip;
	place = harness_place(harness, CLIENT);
	tag = place_tag(&place, METER_PACKETS);
	now = word_ticks(harness_now(harness), 0);
	rewriter.word = &harness_set(harness, CLIENT)->word[place.way];
	/* A tick of debt, so that no other meter takes the word. */
	rewriter.value[0] = word_pack(tag, 0, now + 1);
	rewriter.value[1] = word_pack(tag, 0, now + limits[METER_PACKETS].capacity);
	in_vain = provoke(harness, &rewriter, NOTE_SPENT_IN_VAIN, TCP_SYN);

	/* Connections were charged for what was admitted and for what was spent in vain. */
	charged = harness_set(harness, CLIENT)->word[(place.way + 1) % SET_WORDS];
	assert_int_equal(word_tag(charged), place_tag(&place, METER_CONNECTIONS));
	if (packets(harness, REASON_IP_CONNECTIONS) == 0)
		assert_int_equal(word_ahead(charged, harness_now(harness)),
				 (packets(harness, REASON_ADMITTED) + in_vain) *
					 limits[METER_CONNECTIONS].interval);
}

/* The node's bucket changes between every look at it and the swap, though it has room all the time.
 */
static void a_node_whose_bucket_is_never_won_passes_the_packet_and_counts_it(void **state)
{
	struct harness *harness = *state;
	struct settings settings = harness_settings();
	struct rewriter rewriter = {};

	need_two_cpus();
	settings.node[METER_PACKETS] = RATE_LIMIT(1000000, 1ULL << 40);
	harness_apply(harness, &settings);
	harness->config->slot[harness->config->active].node[METER_PACKETS].slice = 0;
	rewriter.word = &harness->node->tat[METER_PACKETS];
	rewriter.value[0] = gcra_ticks(harness_now(harness), GCRA_TICK_SHIFT);
	rewriter.value[1] = rewriter.value[0] + 1;
	provoke(harness, &rewriter, NOTE_NODE_TRIES, TCP_ACK);
	assert_int_equal(packets(harness, REASON_ADMITTED) % ROUND_PACKETS, 0);
	assert_int_equal(packets(harness, REASON_NODE_PACKETS), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(a_meter_that_was_charged_when_another_refused_is_counted,
				       harness_reset),
		cmocka_unit_test_setup(
			a_node_whose_bucket_is_never_won_passes_the_packet_and_counts_it,
			harness_reset),
	};

	return cmocka_run_group_tests_name("races", tests, harness_open_xdp, harness_close);
}
