/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Reads the limits of tenants and of sources. The shape of each value is checked here, where it
 * stands; what the whole of a limit amounts to is tenant_limit_build()'s to say, whose message
 * begins with the key that it is about.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/parse.h"
#include "limit/settings_draft.h"

enum {
	RATE,
	BURST,
	BYTES_PER_SECOND,
	BURST_BYTES,
	MAX_BODY_BYTES,
	MAX_QUEUE,
	MAX_QUEUE_BYTES,
	UNLIMITED,
	KEYS
};

enum { NUMBER_SHOWN_MAX = 40 };

static const char *const key_names[KEYS] = {
	[RATE] = "rate",
	[BURST] = "burst",
	[BYTES_PER_SECOND] = "bytes_per_second",
	[BURST_BYTES] = "burst_bytes",
	[MAX_BODY_BYTES] = "max_body_bytes",
	[MAX_QUEUE] = "max_queue",
	[MAX_QUEUE_BYTES] = "max_queue_bytes",
	[UNLIMITED] = "unlimited",
};

/* One limit with the places of its values; line 0: not given. */
struct draft_tenant {
	struct tenant_limit limit;
	struct yaml_place place[KEYS];
};

/* A number is shown as it was written, and what is none in quotes. */
static int fail_number(struct yaml_reader *reader, const char *must, const char *word)
{
	double number;
	int err = parse_decimal(word[0] == '-' ? word + 1 : word, &number);

	if (err == -EINVAL || strlen(word) > NUMBER_SHOWN_MAX)
		return yaml_fail_got(reader, must);
	return yaml_fail(reader, "%s, got %s", must, word);
}

/* Out of the range of doubles is out of every range. */
static double clamp_rate(int err, double rate)
{
	return err == -ERANGE ? 1e300 : rate;
}

static int read_rate(struct yaml_reader *reader, void *target)
{
	static const char must[] = "must be a number greater than 0";
	struct draft_tenant *draft = target;
	const char *word;
	double rate = 0;
	int err = yaml_read_word(reader, must, &word);

	if (err)
		return err;
	err = parse_decimal(word, &rate);
	if (err == -EINVAL || (!err && rate <= 0))
		return fail_number(reader, must, word);
	draft->limit.hooks.rate = clamp_rate(err, rate);
	draft->place[RATE] = yaml_place(reader);
	return 0;
}

/* Bytes per second, with or without a unit. */
static int read_byte_rate(struct yaml_reader *reader, double *out)
{
	static const char must[] =
		"must be bytes per second greater than 0, as 125000, 10MB or 64KiB";
	const char *word;
	double rate = 0;
	int err = yaml_read_word(reader, must, &word);

	if (err)
		return err;
	err = parse_size(word, &rate);
	if (err == -EINVAL || (!err && rate <= 0))
		return fail_number(reader, must, word);
	*out = clamp_rate(err, rate);
	return 0;
}

static int read_bytes_per_second(struct yaml_reader *reader, void *target)
{
	struct draft_tenant *draft = target;

	draft->place[BYTES_PER_SECOND] = yaml_place(reader);
	return read_byte_rate(reader, &draft->limit.bytes.rate);
}

/* A whole number of at least 1; of bytes, with or without a unit. */
static int read_count(struct yaml_reader *reader, struct draft_tenant *draft, int key, bool bytes,
		      uint64_t *out)
{
	const char *must = bytes ? "must be whole bytes, at least 1, as 65536, 64KiB or 20MB"
				 : "must be an integer of at least 1";
	const char *word;
	uint64_t count = 0;
	int err = yaml_read_word(reader, must, &word);

	if (err)
		return err;
	err = bytes ? parse_size_whole(word, &count) : parse_uint(word, 0, UINT64_MAX, &count);
	if (err == -ERANGE)
		count = UINT64_MAX;
	else if (err || count == 0)
		return fail_number(reader, must, word);
	draft->place[key] = yaml_place(reader);
	*out = count;
	return 0;
}

static int read_burst(struct yaml_reader *reader, void *target)
{
	struct draft_tenant *draft = target;

	return read_count(reader, draft, BURST, false, &draft->limit.hooks.burst);
}

static int read_burst_bytes(struct yaml_reader *reader, void *target)
{
	struct draft_tenant *draft = target;

	draft->limit.burst_bytes_given = true;
	return read_count(reader, draft, BURST_BYTES, true, &draft->limit.bytes.burst);
}

static int read_max_body_bytes(struct yaml_reader *reader, void *target)
{
	struct draft_tenant *draft = target;

	return read_count(reader, draft, MAX_BODY_BYTES, true, &draft->limit.max_body_bytes);
}

static int read_max_queue(struct yaml_reader *reader, void *target)
{
	struct draft_tenant *draft = target;

	return read_count(reader, draft, MAX_QUEUE, false, &draft->limit.max_queue);
}

static int read_max_queue_bytes(struct yaml_reader *reader, void *target)
{
	struct draft_tenant *draft = target;

	return read_count(reader, draft, MAX_QUEUE_BYTES, true, &draft->limit.max_queue_bytes);
}

static int read_unlimited(struct yaml_reader *reader, void *target)
{
	struct draft_tenant *draft = target;
	const char *word;
	int err = yaml_read_word(reader, "must be true or left out", &word);

	if (err)
		return err;
	if (strcmp(word, "true") != 0)
		return yaml_fail_got(reader, "must be true or left out");
	draft->limit.unlimited = true;
	draft->place[UNLIMITED] = yaml_place(reader);
	return 0;
}

/* What tenant_limit_build() says, at the place of the key with which it begins. */
static int fail_built(struct yaml_reader *reader, const struct draft_tenant *draft,
		      struct yaml_place place, const char *message)
{
	size_t length = strcspn(message, " "), key;

	for (key = 0; key < KEYS; key++)
		if (strlen(key_names[key]) == length &&
		    memcmp(key_names[key], message, length) == 0)
			return yaml_fail_at(reader,
					    draft->place[key].line ? draft->place[key] : place,
					    key_names[key], "%s", message + length + 1);
	return yaml_fail_at(reader, place, NULL, "%s", message);
}

static int finish_limit(struct yaml_reader *reader, struct draft_tenant *draft,
			struct yaml_place place)
{
	char message[LIMIT_MESSAGE_MAX];
	size_t key;

	for (key = 0; key < UNLIMITED && draft->limit.unlimited; key++)
		if (draft->place[key].line)
			return yaml_fail_at(reader, draft->place[UNLIMITED], "unlimited",
					    "must stand alone, got %s too", key_names[key]);
	for (key = RATE; key <= BURST && !draft->limit.unlimited; key++)
		if (!draft->place[key].line)
			return yaml_fail_at(reader, place, NULL,
					    "missing required key \"%s\": a limit needs both, as "
					    "{rate: 100, burst: 200}, or {unlimited: true}",
					    key_names[key]);
	if (tenant_limit_build(&draft->limit, message))
		return fail_built(reader, draft, place, message);
	return 0;
}

/* A whole limit. place: of the key whose value it is. */
static int read_limit(struct yaml_reader *reader, struct yaml_place place, struct tenant_limit *out)
{
	static const struct yaml_key keys[] = {
		{ "rate", read_rate },
		{ "burst", read_burst },
		{ "bytes_per_second", read_bytes_per_second },
		{ "burst_bytes", read_burst_bytes },
		{ "max_body_bytes", read_max_body_bytes },
		{ "max_queue", read_max_queue },
		{ "max_queue_bytes", read_max_queue_bytes },
		{ "unlimited", read_unlimited },
		{ NULL, NULL },
	};
	struct draft_tenant draft = { .limit = { .unlimited = false } };
	int err = yaml_read_map(reader, keys, &draft);

	if (!err)
		err = finish_limit(reader, &draft, place);
	if (!err)
		*out = draft.limit;
	return err;
}

int read_default(struct yaml_reader *reader, void *target)
{
	struct settings_draft *draft = target;

	draft->settings->has_fallback = true;
	return read_limit(reader, yaml_key_place(reader), &draft->settings->fallback);
}

static int grow(struct settings_draft *draft)
{
	struct settings *settings = draft->settings;
	void *grown =
		draft_grow(settings->tenants, sizeof(*settings->tenants), &draft->tenant_places,
			   settings->tenant_count, &draft->tenant_room);

	if (!grown)
		return -ENOMEM;
	settings->tenants = grown;
	return 0;
}

static int read_tenant(struct yaml_reader *reader, const char *id, void *target)
{
	struct settings_draft *draft = target;
	struct yaml_place place = yaml_place(reader);
	struct limits_entry entry = { .expires_at_ms = 0 };
	char shown[TENANT_ID_MAX + 1];
	int err;

	if (!tenant_id_is_valid(id, strlen(id))) {
		yaml_show(id, shown, sizeof(shown));
		return yaml_fail(reader, "tenant id \"%s\"%s must match [A-Za-z0-9_-]{1,64}", shown,
				 strlen(shown) < strlen(id) ? "..." : "");
	}
	memcpy(entry.tenant, id, strlen(id));
	err = yaml_enter(reader);
	if (!err)
		err = read_limit(reader, place, &entry.limit);
	if (!err)
		err = grow(draft);
	if (err)
		return err;
	draft->tenant_places[draft->settings->tenant_count] = place;
	draft->settings->tenants[draft->settings->tenant_count++] = entry;
	return 0;
}

int read_tenants(struct yaml_reader *reader, void *target)
{
	return yaml_read_open_map(reader, "must be a map of tenant id to limit", read_tenant,
				  target);
}

static int read_source_rate(struct yaml_reader *reader, void *target)
{
	struct settings *settings = ((struct settings_draft *)target)->settings;
	struct draft_tenant draft = { .limit = { .hooks = { 1, 1 } } };
	char message[LIMIT_MESSAGE_MAX];
	int err;

	draft.place[BYTES_PER_SECOND] = yaml_place(reader);
	err = read_byte_rate(reader, &draft.limit.bytes.rate);
	if (err)
		return err;
	/* Its bucket is that of a tenant's bytes. The key of the message is the one being read. */
	if (tenant_limit_build(&draft.limit, message))
		return yaml_fail(reader, "%s", message + strcspn(message, " ") + 1);
	settings->source_bytes = draft.limit.bytes;
	settings->sources_given = true;
	return 0;
}

static int read_default_source(struct yaml_reader *reader, void *target)
{
	static const struct yaml_key keys[] = {
		{ "bytes_per_second", read_source_rate },
		{ NULL, NULL },
	};

	return yaml_read_map(reader, keys, target);
}

int read_sources(struct yaml_reader *reader, void *target)
{
	static const struct yaml_key keys[] = {
		{ "default", read_default_source },
		{ NULL, NULL },
	};

	return yaml_read_map(reader, keys, target);
}

int read_limits_scope(struct yaml_reader *reader, void *target)
{
	const char *word;
	int err = yaml_read_word(reader, "must be node", &word);

	(void)target;
	if (err)
		return err;
	if (strcmp(word, "fleet") == 0)
		return yaml_fail_got(reader, "is not available yet: must be node");
	return strcmp(word, "node") == 0 ? 0 : yaml_fail_got(reader, "must be node");
}

/* ---- tenants that are given twice */

/* By id and then place in the file. */
static int compare(const void *a, const void *b, void *tenants)
{
	const uint32_t i = *(const uint32_t *)a, j = *(const uint32_t *)b;
	const struct limits_entry *entries = tenants;
	int order = strcmp(entries[i].tenant, entries[j].tenant);

	return order ? order : i < j ? -1 : i > j;
}

int check_tenants(struct yaml_reader *reader, const struct settings_draft *draft)
{
	struct limits_entry *tenants = draft->settings->tenants;
	size_t count = draft->settings->tenant_count, i;
	uint32_t first = 0, second = 0;
	uint32_t *order = calloc(count + 1, sizeof(*order));

	if (!order)
		return -ENOMEM;
	for (i = 0; i < count; i++)
		order[i] = (uint32_t)i;
	qsort_r(order, count, sizeof(*order), compare, tenants);
	/* Of several the one that comes first in the file, as for every other error. */
	for (i = 1; i < count; i++) {
		if (strcmp(tenants[order[i - 1]].tenant, tenants[order[i]].tenant) == 0 &&
		    (!second || order[i] < second)) {
			first = order[i - 1];
			second = order[i];
		}
	}
	free(order);
	if (!second)
		return 0;
	return yaml_fail_at(reader, draft->tenant_places[second], "rate_limits.tenants",
			    "%s is given twice; the first is on line %u", tenants[second].tenant,
			    draft->tenant_places[first].line);
}
