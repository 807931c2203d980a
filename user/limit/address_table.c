/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * One lock for every 64th set. Under it a word is read, the clock is asked, and the word is stored:
 * one caller at a time, so what is admitted is what one caller would have been admitted. Words are
 * stored whole, for programs that read them meanwhile. That taking over the word least in debt, with
 * its debt, loses no debt is argued at the top of bpf/table.h.
 *
 * Whoever uses the memory holds one of the locks, whichever it is, and who exchanges the memory holds
 * them all. So while it is exchanged nothing is charged, what is copied is all there is, and the first
 * charge after it builds upon the copy: to the buckets it is as if nothing had happened. The secret
 * goes along, so that each word has its place in the new memory too.
 *
 * The node's bucket is charged with any lock held, thus by many at once: by compare-and-swap, the TAT
 * read before the clock, as argued in bpf/table.h (1). With all locks held nobody is between the two,
 * so a passed TAT may be brought to 0, which is the same.
 *
 * hooks.refusing_until_ns only ever saves programs a look; too high it costs them one, too low it lets
 * a connection pass. It is raised after the word was stored and before the caller learns of it, and
 * each step of the sweep brings it down to what the limit in force can owe: after a limit of days has
 * been replaced by one of seconds, and before words of seconds can wrap.
 *
 * A word that nobody has swept for too long looks as if it were in debt again (sluice/word.h). So who
 * adopts words that an earlier table left asks how long ago that table was last swept. No debt of a
 * class lasts longer than the class's longest capacity: if that much has passed, and an eighth for
 * charges that came after the sweep, all words of the class are cleared. Until then those of class 0
 * are at most 9.7 s older than the sweep, and those that it had not come to 6.4 s older still: less
 * than the 17 s after which they come round; the other classes have more to spare.
 */
#include "limit/address_table.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

#include <sluice/key.h>
#include <sluice/word.h>

enum { LOCKS = 64, AFTER_SWEEP_SHARE = 8 };

struct address_table {
	uint32_t set_count;
	struct siphash_key secret;
	_Atomic uint64_t capacity_ns; /* of the limit in force */
	struct address_memory memory; /* under any of the locks */
	pthread_mutex_t locks[LOCKS];
};

static void lock_all(struct address_table *table)
{
	for (int at = 0; at < LOCKS; at++)
		(void)pthread_mutex_lock(&table->locks[at]);
}

static void unlock_all(struct address_table *table)
{
	for (int at = 0; at < LOCKS; at++)
		(void)pthread_mutex_unlock(&table->locks[at]);
}

static uint64_t load(const __u64 *from)
{
	return __atomic_load_n(from, __ATOMIC_RELAXED);
}

/* Whole, and not before what was stored earlier: programs read meanwhile. */
static void store(__u64 *to, uint64_t value)
{
	__atomic_store_n(to, value, __ATOMIC_RELEASE);
}

static bool swap(__u64 *word, __u64 *seen, uint64_t to)
{
	return __atomic_compare_exchange_n(word, seen, to, false, __ATOMIC_SEQ_CST,
					   __ATOMIC_SEQ_CST);
}

static void store_secret(struct hooks *hooks, const struct siphash_key *secret)
{
	store(&hooks->secret.half[0], secret->half[0]);
	store(&hooks->secret.half[1], secret->half[1]);
}

/* Whether no debt can be left that is at most so long. */
static bool is_over(uint64_t unswept_ns, uint64_t longest_ticks, __s8 tick_shift)
{
	uint64_t longest_ns = gcra_wait_ns(longest_ticks, tick_shift);

	return unswept_ns > longest_ns + longest_ns / AFTER_SWEEP_SHARE;
}

/* What an earlier table has left, without what must have passed: see the top. */
static void adopt(struct address_table *table, uint64_t now_ns)
{
	struct hooks *hooks = table->memory.hooks;
	uint64_t unswept_ns = now_ns - hooks->swept_ns;
	bool is_old[WORD_CLASSES];

	for (uint32_t class = 0; class < WORD_CLASSES; class ++)
		is_old[class] = is_over(unswept_ns, WORD_CAPACITY_MAX, word_tick_shift(class));
	for (uint32_t at = 0; is_old[0] && at < table->set_count; at++) {
		__u64 *words = table->memory.sets[at].word;

		for (uint32_t index = 0; index < SET_WORDS; index++)
			if (words[index] != WORD_EMPTY && is_old[word_class(words[index])])
				store(&words[index], WORD_EMPTY);
	}
	if (is_over(unswept_ns, GCRA_CAPACITY_MAX, GCRA_TICK_SHIFT))
		store(&hooks->node_tat, 0);
}

int address_table_new(const struct address_memory *memory, uint32_t set_count,
		      const struct siphash_key *secret, uint64_t now_ns, struct address_table **out)
{
	struct address_table *table = calloc(1, sizeof(*table));
	struct hooks *hooks = memory->hooks;

	if (!table)
		return -ENOMEM;
	table->memory = *memory;
	table->set_count = set_count;
	if (hooks->secret.half[0] || hooks->secret.half[1])
		adopt(table, now_ns);
	else
		store_secret(hooks, secret);
	table->secret = hooks->secret;
	store(&hooks->swept_ns, now_ns);
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

/* Pages that are zero on both sides are not written, so that they need not exist. */
static void copy_sets(struct bucket_set *to, const struct bucket_set *from, uint32_t count)
{
	for (uint32_t at = 0; at < count; at++)
		for (uint32_t index = 0; index < SET_WORDS; index++)
			if (to[at].word[index] != from[at].word[index])
				store(&to[at].word[index], from[at].word[index]);
}

/* The digest is the first to go and the last to come: programs judge by whole tables only. A secret
 * that is there says that all the words are, should we be killed in between. */
void address_table_move(struct address_table *table, const struct address_memory *to)
{
	static const struct siphash_key none;
	struct hooks *old, *new = to->hooks;
	uint64_t digest;

	lock_all(table);
	old = table->memory.hooks;
	digest = load(&old->limits_digest);
	store(&old->limits_digest, 0);
	store(&new->limits_digest, 0);
	store_secret(new, &none);
	copy_sets(to->sets, table->memory.sets, table->set_count);
	store(&new->refusing_until_ns, load(&old->refusing_until_ns));
	store(&new->node_tat, load(&old->node_tat));
	store(&new->swept_ns, load(&old->swept_ns));
	store_secret(new, &table->secret);
	store(&new->limits_digest, digest);
	table->memory = *to;
	unlock_all(table);
}

void address_table_announce(struct address_table *table, uint64_t digest, uint64_t capacity_ns)
{
	(void)pthread_mutex_lock(&table->locks[0]);
	if (digest)
		table->capacity_ns = capacity_ns;
	store(&table->memory.hooks->limits_digest, digest);
	(void)pthread_mutex_unlock(&table->locks[0]);
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

/* If a next request of who owns such a TAT would be refused: until when. */
static void raise_until(struct hooks *hooks, const struct gcra_limit *limit, uint64_t tat,
			uint64_t now, uint64_t now_ns)
{
	uint64_t wanted = gcra_debt(limit, tat, now) + gcra_cost(limit, 1), until_ns;
	__u64 seen;

	if (wanted <= limit->capacity)
		return;
	until_ns = now_ns + gcra_wait_ns(wanted - limit->capacity, limit->tick_shift);
	seen = load(&hooks->refusing_until_ns);
	while (seen < until_ns && !swap(&hooks->refusing_until_ns, &seen, until_ns))
		;
}

static bool take(const struct address_memory *memory, const struct place *place,
		 const struct gcra_limit *limit, uint64_t tokens, uint64_t now_ns,
		 uint64_t *wait_ns)
{
	struct bucket_set *set = &memory->sets[place->set];
	uint32_t tag = place_tag(place, METER_HOOKS), at = choose_word(set, tag, now_ns);
	bool is_own = set->word[at] != WORD_EMPTY && word_tag(set->word[at]) == tag;
	uint64_t now = word_ticks(now_ns, limit->word_class), tat = now;
	struct gcra_verdict verdict;

	if (!word_has_passed(set->word[at], now_ns))
		tat = word_tat(set->word[at], now_ns, limit->word_class);
	verdict = gcra_take(limit, tat, now, tokens);
	if (verdict.admitted || (is_own && verdict.clamped))
		store(&set->word[at], word_pack(tag, limit->word_class, verdict.tat));
	if (verdict.admitted || is_own)
		raise_until(memory->hooks, limit, verdict.tat, now, now_ns);
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
	admitted = take(&table->memory, &place, limit, tokens, clock(), wait_ns);
	(void)pthread_mutex_unlock(lock);
	return admitted;
}

static bool take_node(__u64 *bucket, const struct gcra_limit *limit, uint64_t (*clock)(void),
		      uint64_t *wait_ns)
{
	__u64 seen = __atomic_load_n(bucket, __ATOMIC_SEQ_CST);

	for (;;) {
		uint64_t now = gcra_ticks(clock(), GCRA_TICK_SHIFT);
		struct gcra_verdict verdict = gcra_take(limit, seen ? seen : now, now, 1);

		*wait_ns = gcra_wait_ns(verdict.wait_ticks, GCRA_TICK_SHIFT);
		if (!verdict.admitted && !verdict.clamped)
			return false;
		/* 0 says that it was never charged. */
		if (swap(bucket, &seen, verdict.tat + !verdict.tat))
			return verdict.admitted;
	}
}

bool address_table_take_node(struct address_table *table, unsigned stripe,
			     const struct gcra_limit *limit, uint64_t (*clock)(void),
			     uint64_t *wait_ns)
{
	pthread_mutex_t *lock = &table->locks[stripe % LOCKS];
	bool admitted;

	(void)pthread_mutex_lock(lock);
	admitted = take_node(&table->memory.hooks->node_tat, limit, clock, wait_ns);
	(void)pthread_mutex_unlock(lock);
	return admitted;
}

/* What is kept once for all sets. */
static void keep_up(struct address_table *table, uint64_t now_ns)
{
	uint64_t now = gcra_ticks(now_ns, GCRA_TICK_SHIFT), latest = now_ns + table->capacity_ns;
	struct hooks *hooks;
	__u64 seen;

	lock_all(table);
	hooks = table->memory.hooks;
	seen = load(&hooks->node_tat);
	if (seen && gcra_has_passed(seen, now))
		store(&hooks->node_tat, 0);
	if (load(&hooks->refusing_until_ns) > latest)
		store(&hooks->refusing_until_ns, latest);
	store(&hooks->swept_ns, now_ns);
	unlock_all(table);
}

size_t address_table_sweep(struct address_table *table, unsigned step, uint64_t now_ns)
{
	size_t cleared = 0;

	keep_up(table, now_ns);
	for (uint32_t at = step; at < table->set_count; at += ADDRESS_TABLE_STEPS) {
		__u64 *words;

		(void)pthread_mutex_lock(&table->locks[at % LOCKS]);
		words = table->memory.sets[at].word;
		for (uint32_t index = 0; index < SET_WORDS; index++) {
			if (words[index] == WORD_EMPTY || !word_has_passed(words[index], now_ns))
				continue;
			store(&words[index], WORD_EMPTY);
			cleared++;
		}
		(void)pthread_mutex_unlock(&table->locks[at % LOCKS]);
	}
	return cleared;
}
