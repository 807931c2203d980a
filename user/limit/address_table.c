/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * One lock for every 64th set. Under it a word is read, the clock is asked, and the word is stored:
 * one caller at a time, so what is admitted is what one caller would have been admitted. Words are
 * stored whole, for programs that read them meanwhile. That taking over the word least in debt, with
 * its debt, loses no debt is argued at the top of bpf/table.h.
 */
#include "limit/address_table.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

#include <sluice/key.h>
#include <sluice/word.h>

enum { LOCKS = 64 };

struct address_table {
	struct bucket_set *sets;
	uint32_t set_count;
	struct siphash_key secret;
	pthread_mutex_t locks[LOCKS];
};

int address_table_new(struct bucket_set *sets, uint32_t set_count, const struct siphash_key *secret,
		      struct address_table **out)
{
	struct address_table *table = calloc(1, sizeof(*table));

	if (!table)
		return -ENOMEM;
	table->sets = sets;
	table->set_count = set_count;
	table->secret = *secret;
	for (int at = 0; at < LOCKS; at++)
		(void)pthread_mutex_init(&table->locks[at], NULL);
	*out = table;
	return 0;
}

void address_table_free(struct address_table *table)
{
	if (!table)
		return;
	for (int at = 0; at < LOCKS; at++)
		(void)pthread_mutex_destroy(&table->locks[at]);
	free(table);
}

/* How long until the word is full again, in the finest ticks; 0 or less: it may be taken. */
static int64_t word_left(uint64_t word, uint64_t now_ns)
{
	int shift = WORD_TICK_SHIFT_STEP * (int)word_class(word);

	if (word_has_passed(word, now_ns))
		return 0;
	return (int64_t)((uint64_t)word_ahead(word, now_ns) << shift);
}

/* The address's own word, else the one least in debt, which is a passed one if there is any. */
static uint32_t choose_word(const struct bucket_set *set, uint32_t tag, uint64_t now_ns)
{
	uint32_t least = 0;

	for (uint32_t at = 0; at < SET_WORDS; at++) {
		if (set->word[at] != WORD_EMPTY && word_tag(set->word[at]) == tag)
			return at;
		if (word_left(set->word[at], now_ns) < word_left(set->word[least], now_ns))
			least = at;
	}
	return least;
}

static bool take(struct bucket_set *set, uint32_t tag, const struct gcra_limit *limit,
		 uint64_t tokens, uint64_t now_ns, uint64_t *wait_ns)
{
	uint32_t at = choose_word(set, tag, now_ns);
	bool is_own = set->word[at] != WORD_EMPTY && word_tag(set->word[at]) == tag;
	uint64_t now = word_ticks(now_ns, limit->word_class), tat = now;
	struct gcra_verdict verdict;

	if (!word_has_passed(set->word[at], now_ns))
		tat = word_tat(set->word[at], now_ns, limit->word_class);
	verdict = gcra_take(limit, tat, now, tokens);
	if (verdict.admitted || (is_own && verdict.clamped))
		__atomic_store_n(&set->word[at], word_pack(tag, limit->word_class, verdict.tat),
				 __ATOMIC_RELAXED);
	*wait_ns = gcra_wait_ns(verdict.wait_ticks, limit->tick_shift);
	return verdict.admitted;
}

bool address_table_take(struct address_table *table, const union address *client,
			uint32_t ipv6_prefix, const struct gcra_limit *limit, uint64_t tokens,
			uint64_t (*clock)(void), uint64_t *wait_ns)
{
	union address key = address_key(client, ipv6_prefix);
	struct place place = key_place(&table->secret, &key, table->set_count - 1);
	pthread_mutex_t *lock = &table->locks[place.set % LOCKS];
	bool admitted;

	(void)pthread_mutex_lock(lock);
	admitted = take(&table->sets[place.set], place_tag(&place, METER_HOOKS), limit, tokens,
			clock(), wait_ns);
	(void)pthread_mutex_unlock(lock);
	return admitted;
}

size_t address_table_sweep(struct address_table *table, unsigned step, uint64_t now_ns)
{
	size_t cleared = 0;

	for (uint32_t at = step; at < table->set_count; at += ADDRESS_TABLE_STEPS) {
		struct bucket_set *set = &table->sets[at];

		(void)pthread_mutex_lock(&table->locks[at % LOCKS]);
		for (uint32_t index = 0; index < SET_WORDS; index++) {
			if (set->word[index] == WORD_EMPTY || !word_has_passed(set->word[index], now_ns))
				continue;
			__atomic_store_n(&set->word[index], WORD_EMPTY, __ATOMIC_RELAXED);
			cleared++;
		}
		(void)pthread_mutex_unlock(&table->locks[at % LOCKS]);
	}
	return cleared;
}
