/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Reads limits, `{connections: {rate, burst}, ...}`, and holds each against limit_build(), so that
 * a limit no bucket can hold is refused where it is written, with the nearest one that can be held.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/parse.h"
#include "limit/settings_draft.h"

enum { WORD_DEBT_DAYS = 26, WHOLE_DEBT_DAYS = 52, DAY_S = 86400 };

/* One {rate, burst} with the places of both. */
struct draft_limit {
	struct rate_limit wanted;
	struct yaml_place rate_place; /* line 0: not given */
	struct yaml_place burst_place;
	bool bytes;
	bool whole;
	bool dry_run;
};

/* In plain digits, for numbers that people wrote as such. */
static void format_plain(double number, char out[RATE_TEXT_MAX])
{
	snprintf(out, RATE_TEXT_MAX, number >= 1 ? "%.0f" : "%.2g", number);
}

static double rate_max(const struct draft_limit *limit)
{
	return limit->bytes ? RATE_MAX_BYTES : RATE_MAX_TOKENS;
}

static int read_rate(struct yaml_reader *reader, void *target)
{
	struct draft_limit *limit = target;
	const char *must = limit->bytes
				   ? "must be bytes per second above 0, as 125000, 10MB or 64KiB"
				   : "must be a number above 0";
	char most[RATE_TEXT_MAX], must_range[96];
	const char *word;
	double rate;
	int err = yaml_read_word(reader, must, &word);

	if (err)
		return err;
	err = limit->bytes ? parse_size(word, &rate) : parse_decimal(word, &rate);
	if (err == -ERANGE || (!err && rate > rate_max(limit))) {
		format_plain(rate_max(limit), most);
		snprintf(must_range, sizeof(must_range),
			 "must be above 0 and at most %s per second", most);
		return yaml_fail_got(reader, must_range);
	}
	if (err || rate <= 0)
		return yaml_fail_got(reader, must);
	limit->wanted.rate = rate;
	limit->rate_place = yaml_place(reader);
	return 0;
}

static int check_burst_range(struct yaml_reader *reader, const struct draft_limit *limit)
{
	char must[96];

	if (limit->bytes && limit->wanted.burst < BURST_BYTES_MIN)
		return yaml_fail_got(reader, "must be at least 1500 bytes, because a full-sized "
					     "packet could never pass");
	if (limit->wanted.burst > 1ULL << RATE_BURST_MAX_BITS) {
		snprintf(must, sizeof(must), "must be at most %llu", 1ULL << RATE_BURST_MAX_BITS);
		return yaml_fail_got(reader, must);
	}
	return 0;
}

static int read_burst(struct yaml_reader *reader, void *target)
{
	struct draft_limit *limit = target;
	const char *must = limit->bytes ? "must be whole bytes, as 65536, 64KiB or 20MB"
					: "must be a whole number of at least 1";
	uint64_t burst;
	const char *word;
	int err = yaml_read_word(reader, must, &word);

	if (err)
		return err;
	err = limit->bytes ? parse_size_whole(word, &burst)
			   : parse_uint(word, 0, UINT64_MAX, &burst);
	if (err == -ERANGE)
		burst = UINT64_MAX;
	else if (err || (!limit->bytes && burst == 0))
		return yaml_fail_got(reader, must);
	limit->wanted.burst = burst;
	limit->burst_place = yaml_place(reader);
	return check_burst_range(reader, limit);
}

void *draft_grow(void *entries, size_t entry_bytes, struct yaml_place **places, size_t count,
		 size_t *room)
{
	size_t more = *room ? *room * 2 : 16;
	struct yaml_place *grown;

	if (count < *room)
		return entries;
	grown = reallocarray(*places, more, sizeof(*grown));
	if (!grown)
		return NULL;
	*places = grown;
	entries = reallocarray(entries, more, entry_bytes);
	if (entries)
		*room = more;
	return entries;
}

int read_bool(struct yaml_reader *reader, bool *out)
{
	static const char must[] = "must be true or false";
	const char *word;
	int err = yaml_read_word(reader, must, &word);

	if (err)
		return err;
	if (strcmp(word, "true") != 0 && strcmp(word, "false") != 0)
		return yaml_fail_got(reader, must);
	*out = word[0] == 't';
	return 0;
}

static int read_meter_dry_run(struct yaml_reader *reader, void *target)
{
	struct draft_limit *limit = target;

	return read_bool(reader, &limit->dry_run);
}

static enum bucket_kind kind_of(const struct draft_limit *limit)
{
	if (limit->whole)
		return limit->bytes ? BUCKET_WHOLE_BYTES : BUCKET_WHOLE;
	return limit->bytes ? BUCKET_WORD_BYTES : BUCKET_WORD;
}

/* The debt of a full burst, burst / rate, is longer than a bucket can remember. */
static int fail_too_long(struct yaml_reader *reader, const struct draft_limit *limit,
			 uint64_t longest_burst)
{
	unsigned days = limit->whole ? WHOLE_DEBT_DAYS : WORD_DEBT_DAYS;
	uint64_t burst_min = limit->bytes ? BURST_BYTES_MIN : 1;
	char least[RATE_TEXT_MAX];

	if (longest_burst >= burst_min)
		return yaml_fail_at(reader, limit->burst_place, "burst",
				    "at this rate the burst can be at most %llu, got %llu",
				    (unsigned long long)longest_burst,
				    (unsigned long long)limit->wanted.burst);
	format_plain((double)burst_min / days / DAY_S * 1.05, least);
	return yaml_fail_at(reader, limit->rate_place, "rate",
			    "is too low: must be at least %s per second, because a bucket "
			    "forgets after %u days",
			    least, days);
}

static int check_limit(struct yaml_reader *reader, const struct draft_limit *limit)
{
	struct gcra_limit built;
	uint64_t longest_burst;
	int err = limit_build(&limit->wanted, kind_of(limit), &built, &longest_burst);

	switch (err) {
	case 0:
		return 0;
	case -EOVERFLOW:
		return fail_too_long(reader, limit, longest_burst);
	default:
		return yaml_fail_at(reader, limit->rate_place, NULL,
				    "cannot be enforced: give a lower rate or burst");
	}
}

static bool is_given(struct yaml_place place)
{
	return place.line != 0;
}

/* Both parts have been read, or one is missing: at place, below which they stand. */
static int finish_limit(struct yaml_reader *reader, const struct draft_limit *limit,
			struct yaml_place place, struct rate_limit *out)
{
	int err;

	if (!is_given(limit->rate_place) || !is_given(limit->burst_place))
		return yaml_fail_at(reader, place, NULL,
				    "%s is missing: a limit needs both, as {rate: %s}",
				    is_given(limit->rate_place) ? "burst" : "rate",
				    limit->bytes ? "10MB, burst: 20MB" : "50, burst: 100");
	err = check_limit(reader, limit);
	if (!err)
		*out = limit->wanted;
	return err;
}

static int read_limit(struct yaml_reader *reader, const struct limit_scope *scope, enum meter meter,
		      struct rate_limit *out)
{
	static const struct yaml_key keys[] = {
		{ "rate", read_rate },
		{ "burst", read_burst },
		{ "dry_run", read_meter_dry_run },
		{ NULL, NULL },
	};
	struct draft_limit limit = { .bytes = meter == METER_BYTES, .whole = scope->whole };
	struct yaml_place place = yaml_key_place(reader);
	int err = yaml_read_map(reader, keys, &limit);

	if (limit.dry_run)
		*scope->dry |= 1u << meter;
	return err ? err : finish_limit(reader, &limit, place, out);
}

static int read_meter(struct yaml_reader *reader, const struct limit_scope *scope, enum meter meter)
{
	return read_limit(reader, scope, meter, &scope->limit[meter]);
}

static int read_connections(struct yaml_reader *reader, void *target)
{
	return read_meter(reader, target, METER_CONNECTIONS);
}

static int read_packets(struct yaml_reader *reader, void *target)
{
	return read_meter(reader, target, METER_PACKETS);
}

static int read_bytes(struct yaml_reader *reader, void *target)
{
	return read_meter(reader, target, METER_BYTES);
}

static int read_hooks(struct yaml_reader *reader, void *target)
{
	struct limit_scope *scope = target;

	return read_limit(reader, scope, METER_HOOKS, scope->hooks);
}

static int read_brief_rate(struct yaml_reader *reader, void *target)
{
	struct limit_scope *scope = target;

	return read_rate(reader, scope->brief);
}

static int read_brief_burst(struct yaml_reader *reader, void *target)
{
	struct limit_scope *scope = target;

	return read_burst(reader, scope->brief);
}

int read_meters(struct yaml_reader *reader, void *target)
{
	static const struct yaml_key keys[] = {
		{ "connections", read_connections },
		{ "packets", read_packets },
		{ "bytes", read_bytes },
		{ NULL, NULL },
	};

	return yaml_read_map(reader, keys, target);
}

int read_scope(struct yaml_reader *reader, struct limit_scope *scope)
{
	static const struct yaml_key keys[] = {
		{ "connections", read_connections },
		{ "packets", read_packets },
		{ "bytes", read_bytes },
		{ "hooks", read_hooks },
		{ "rate", read_brief_rate },
		{ "burst", read_brief_burst },
		{ NULL, NULL },
	};
	struct draft_limit brief = { .whole = scope->whole };
	struct yaml_place place = yaml_key_place(reader);
	int err;

	scope->brief = &brief;
	err = yaml_read_map(reader, keys, scope);
	scope->brief = NULL;
	if (err || (!is_given(brief.rate_place) && !is_given(brief.burst_place)))
		return err;
	if (scope->hooks->burst)
		return yaml_fail_at(
			reader, is_given(brief.rate_place) ? brief.rate_place : brief.burst_place,
			is_given(brief.rate_place) ? "rate" : "burst",
			"is short for hooks, which are given too: leave one of them out");
	return finish_limit(reader, &brief, place, scope->hooks);
}
