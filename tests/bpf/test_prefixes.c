/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Filling and changing the prefix tries as the command line and the daemon do it: long lists, what
 * was said by hand over a new configuration, rules that have ended, and a kernel without batches
 * (made of this one by a filter of system calls).
 */
#include "harness.h"

#include <errno.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <linux/bpf.h>
#include <linux/filter.h>
#include <linux/seccomp.h>

#include <bpf/bpf.h>

#include "dataplane/apply.h"
#include "dataplane/maps.h"

enum { MANY = 20000, BY_HAND = 3000 };

#define NOW_NS HARNESS_START_NS
#define NOW_S ((uint32_t)(HARNESS_START_NS / SECOND_NS))

static union address numbered(uint32_t number)
{
	union address address = { .byte = { [10] = 0xff, [11] = 0xff } };
	uint32_t spread = number * 2654435761u;

	memcpy(&address.word[3], &spread, sizeof(spread));
	return address;
}

static struct prefix_key key_of(uint32_t number)
{
	union address address = numbered(number);

	return prefix_key_of(&address, 128);
}

static void open_maps(struct harness *harness, struct maps *maps)
{
	harness_maps(harness, maps);
	maps->config->slot[0].generation = 1;
}

/* Settings that name so many addresses, every third to be denied, the others exempt. */
static struct settings settings_naming(struct setting_prefix *prefixes, size_t count)
{
	struct settings settings = harness_settings();

	for (uint32_t at = 0; at < count; at++)
		prefixes[at] = (struct setting_prefix){
			.address = numbered(at),
			.bits = 128,
			.action = at % 3 ? PREFIX_EXEMPT : PREFIX_DENY,
		};
	settings.prefixes = prefixes;
	settings.prefix_count = count;
	return settings;
}

static void load(struct maps *maps, const struct settings *settings)
{
	struct trouble trouble = {};
	int err = apply_prepare(maps, settings, &trouble);

	if (err)
		fail_msg("%s", trouble.cause);
	apply_turn_over(maps);
}

struct census {
	size_t entries, by_hand, configured, wrong_length;
};

static int count_entry(const struct prefix_key *key, const struct prefix_entry *entry, void *data)
{
	struct census *census = data;

	census->entries++;
	census->by_hand += entry->by_hand.action != PREFIX_NONE;
	census->configured += entry->configured.action != PREFIX_NONE;
	census->wrong_length += entry->bits != key->bits;
	return 0;
}

static struct census census_of(const struct maps *maps)
{
	struct census census = {};

	assert_int_equal(maps_each_prefix(maps, maps->config->active & 1, count_entry, &census), 0);
	assert_int_equal(census.wrong_length, 0);
	return census;
}

static enum prefix_action action_for(const struct maps *maps, uint32_t number, uint64_t now_ns)
{
	union address address = numbered(number);
	struct rule_found found;

	return maps_rule_find(maps, &address, now_ns, &found) ? PREFIX_NONE : found.rule.action;
}

/* By hand, deny every address of an even number below 2 * count. */
static void deny_by_hand(struct maps *maps, uint32_t count, uint32_t expires_s)
{
	struct prefix_rule rule = { .action = PREFIX_DENY, .expires_s = expires_s };

	for (uint32_t at = 0; at < count; at++) {
		struct prefix_key key = key_of(2 * at);

		assert_int_equal(maps_prefix_set(maps, &key, &rule, NOW_NS), 0);
	}
}

/* Long enough for many batches, and carried over twice, so that both tries have been emptied. */
static void carry_long_lists(struct harness *harness)
{
	static struct setting_prefix prefixes[MANY];
	struct settings settings = settings_naming(prefixes, MANY);
	struct census census;
	struct maps maps;

	open_maps(harness, &maps);
	load(&maps, &settings);
	census = census_of(&maps);
	assert_int_equal(census.entries, MANY);
	assert_int_equal(census.configured, MANY);
	deny_by_hand(&maps, BY_HAND, 0);
	for (int times = 0; times < 2; times++) {
		load(&maps, &settings);
		census = census_of(&maps);
		assert_int_equal(census.entries, MANY);
		assert_int_equal(census.configured, MANY);
		assert_int_equal(census.by_hand, BY_HAND);
	}
	for (uint32_t at = 0; at < MANY; at++)
		assert_int_equal(action_for(&maps, at, NOW_NS),
				 (at < 2 * BY_HAND && at % 2 == 0) || at % 3 == 0 ? PREFIX_DENY
										  : PREFIX_EXEMPT);
	settings.prefix_count = 1000;
	load(&maps, &settings);
	census = census_of(&maps);
	assert_int_equal(census.configured, 1000);
	assert_int_equal(census.entries, 500 + BY_HAND);
	maps_close(&maps);
}

static void long_lists_are_loaded_whole_with_what_was_said_by_hand(void **state)
{
	carry_long_lists(*state);
}

/* What a kernel answers that has no batches for tries. */
static bool forbid_batches(void)
{
	enum { ENOTSUPP_OF_THE_KERNEL = 524 };
	struct sock_filter program[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_bpf, 0, 4),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[0])),
		BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, BPF_MAP_LOOKUP_BATCH, 0, 2),
		BPF_JUMP(BPF_JMP | BPF_JGT | BPF_K, BPF_MAP_DELETE_BATCH, 1, 0),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOTSUPP_OF_THE_KERNEL),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog filter = { COUNT_OF(program), program };

	return !prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) &&
	       !prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter);
}

static void where_there_are_no_batches_they_are_loaded_one_by_one(void **state)
{
	pid_t child = fork();
	int status;

	assert_true(child >= 0);
	if (!child) {
		struct prefix_key key;
		struct prefix_entry entry;
		LIBBPF_OPTS(bpf_map_batch_opts, options);
		uint32_t count = 1;
		struct harness *harness = *state;
		struct maps maps;

		if (!forbid_batches())
			_exit(2);
		harness_maps(harness, &maps);
		if (bpf_map_lookup_batch(maps.fd[MAP_PREFIXES_0], NULL, &key, &key, &entry, &count,
					 &options) != -524)
			_exit(3);
		maps_close(&maps);
		carry_long_lists(harness); /* leaves by a failed assertion, or comes back */
		_exit(0);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
}

static void a_rule_by_hand_is_that_of_its_own_prefix_alone(void **state)
{
	struct setting_prefix around = { .address = numbered(0),
					 .bits = 120,
					 .action = PREFIX_DENY };
	struct prefix_rule exempt = { .action = PREFIX_EXEMPT }, none = {};
	struct settings settings = harness_settings();
	struct prefix_key key = key_of(0);
	struct maps maps;

	settings.prefixes = &around;
	settings.prefix_count = 1;
	open_maps(*state, &maps);
	load(&maps, &settings);
	assert_int_equal(action_for(&maps, 0, NOW_NS), PREFIX_DENY);
	assert_int_equal(maps_prefix_set(&maps, &key, &none, NOW_NS), -ENOENT);
	assert_int_equal(maps_prefix_set(&maps, &key, &exempt, NOW_NS), 0);
	assert_int_equal(action_for(&maps, 0, NOW_NS), PREFIX_EXEMPT);
	assert_int_equal(census_of(&maps).entries, 2);
	assert_int_equal(maps_prefix_set(&maps, &key, &none, NOW_NS), 0);
	assert_int_equal(census_of(&maps).entries, 1);
	assert_int_equal(action_for(&maps, 0, NOW_NS), PREFIX_DENY);
	maps_close(&maps);
}

/* Else every packet of a node without lists would pay for a look-up. */
static void programs_are_told_whether_there_is_any_rule(void **state)
{
	struct prefix_rule deny = { .action = PREFIX_DENY }, none = {};
	struct settings settings = harness_settings();
	struct prefix_key one = key_of(1), other = key_of(2);
	struct maps maps;

	open_maps(*state, &maps);
	load(&maps, &settings);
	assert_false(maps_slot(&maps)->flags & CONFIG_HAS_PREFIXES);
	assert_int_equal(maps_prefix_set(&maps, &one, &deny, NOW_NS), 0);
	assert_int_equal(maps_prefix_set(&maps, &other, &deny, NOW_NS), 0);
	assert_true(maps_slot(&maps)->flags & CONFIG_HAS_PREFIXES);
	load(&maps, &settings);
	assert_true(maps_slot(&maps)->flags & CONFIG_HAS_PREFIXES);
	assert_int_equal(maps_prefix_set(&maps, &one, &none, NOW_NS), 0);
	assert_true(maps_slot(&maps)->flags & CONFIG_HAS_PREFIXES);
	assert_int_equal(maps_prefix_set(&maps, &other, &none, NOW_NS), 0);
	assert_false(maps_slot(&maps)->flags & CONFIG_HAS_PREFIXES);
	maps_close(&maps);
}

static void a_rule_that_has_ended_cannot_be_taken_back_and_is_forgotten(void **state)
{
	struct prefix_rule deny = { .action = PREFIX_DENY, .expires_s = NOW_S + 10 }, none = {};
	struct settings settings = harness_settings();
	struct prefix_key key = key_of(1);
	struct maps maps;

	open_maps(*state, &maps);
	load(&maps, &settings);
	assert_int_equal(maps_prefix_set(&maps, &key, &deny, NOW_NS), 0);
	assert_int_equal(action_for(&maps, 1, NOW_NS + 10 * SECOND_NS - 1), PREFIX_DENY);
	assert_int_equal(action_for(&maps, 1, NOW_NS + 10 * SECOND_NS), PREFIX_NONE);
	assert_int_equal(maps_prefix_set(&maps, &key, &none, NOW_NS + 10 * SECOND_NS), -ENOENT);
	assert_int_equal(census_of(&maps).entries, 0);
	maps_close(&maps);
}

/* apply_prepare() reads the clock itself, so these have ended long ago, or will in a hundred years.
 */
static void a_new_configuration_keeps_the_ends_and_leaves_out_what_has_ended(void **state)
{
	struct settings settings = harness_settings();
	struct prefix_rule ended = { .action = PREFIX_DENY, .expires_s = 1 };
	struct prefix_rule lasting = { .action = PREFIX_DENY, .expires_s = UINT32_MAX };
	struct prefix_key one = key_of(1), other = key_of(2);
	union address address = numbered(2);
	struct rule_found found;
	struct maps maps;

	open_maps(*state, &maps);
	load(&maps, &settings);
	assert_int_equal(maps_prefix_set(&maps, &one, &ended, 0), 0);
	assert_int_equal(maps_prefix_set(&maps, &other, &lasting, 0), 0);
	assert_int_equal(census_of(&maps).entries, 2);
	load(&maps, &settings);
	assert_int_equal(census_of(&maps).entries, 1);
	assert_int_equal(maps_rule_find(&maps, &address, NOW_NS, &found), 0);
	assert_true(found.by_hand);
	assert_int_equal(found.rule.expires_s, UINT32_MAX);
	assert_int_equal(found.bits, 128);
	maps_close(&maps);
}

/* A node that is told whom to deny again and again, for a while each, and never gets a new
 * configuration. */
static void what_has_ended_does_not_pile_up(void **state)
{
	struct settings settings = harness_settings();
	struct maps maps;
	size_t most = 0;

	open_maps(*state, &maps);
	load(&maps, &settings);
	for (uint32_t at = 0; at < 4000; at++) {
		struct prefix_rule deny = { .action = PREFIX_DENY, .expires_s = NOW_S + at + 100 };
		struct prefix_key key = key_of(at);
		size_t entries;

		assert_int_equal(maps_prefix_set(&maps, &key, &deny, NOW_NS + at * SECOND_NS), 0);
		if (at % 100)
			continue;
		entries = census_of(&maps).entries;
		most = entries > most ? entries : most;
	}
	/* A hundred are in force at any time. */
	if (most > 150)
		fail_msg("%zu entries for 100 rules", most);
	maps_close(&maps);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(long_lists_are_loaded_whole_with_what_was_said_by_hand,
				       harness_reset),
		cmocka_unit_test_setup(where_there_are_no_batches_they_are_loaded_one_by_one,
				       harness_reset),
		cmocka_unit_test_setup(a_rule_by_hand_is_that_of_its_own_prefix_alone,
				       harness_reset),
		cmocka_unit_test_setup(programs_are_told_whether_there_is_any_rule, harness_reset),
		cmocka_unit_test_setup(a_rule_that_has_ended_cannot_be_taken_back_and_is_forgotten,
				       harness_reset),
		cmocka_unit_test_setup(
			a_new_configuration_keeps_the_ends_and_leaves_out_what_has_ended,
			harness_reset),
		cmocka_unit_test_setup(what_has_ended_does_not_pile_up, harness_reset),
	};

	return cmocka_run_group_tests_name("prefixes", tests, harness_open_xdp, harness_close);
}
