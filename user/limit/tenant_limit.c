/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Reads a tenant's limit from JSON in the order of checks that clients of the admin API know, and
 * builds it. What a bucket can hold is checked in tenant_limit_build() alone, which the reader of
 * the configuration file calls too, so that both refuse the same limits with the same words.
 */
#include "limit/tenant_limit.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "limit/term_text.h"

enum { WHOLE_DEBT_DAYS = 52, DAY_S = 86400, NUMBER_TEXT_MAX = 40 };

static int fail(char message[LIMIT_MESSAGE_MAX], int err, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

static int fail(char message[LIMIT_MESSAGE_MAX], int err, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	(void)vsnprintf(message, LIMIT_MESSAGE_MAX, format, arguments);
	va_end(arguments);
	return err;
}

bool tenant_id_is_valid(const char *text, size_t length)
{
	size_t i;

	if (length < 1 || length > TENANT_ID_MAX)
		return false;
	for (i = 0; i < length; i++) {
		char c = text[i];

		if (!(c >= 'a' && c <= 'z') && !(c >= 'A' && c <= 'Z') && !(c >= '0' && c <= '9') &&
		    c != '_' && c != '-')
			return false;
	}
	return true;
}

/* ---- building */

/* The keys of one bucket, for messages. */
struct bucket_keys {
	const char *rate;
	const char *burst;
	double rate_max;
	enum bucket_kind kind;
};

static const struct bucket_keys hook_keys = { "rate", "burst", RATE_MAX_TOKENS, BUCKET_WHOLE };
static const struct bucket_keys byte_keys = { "bytes_per_second", "burst_bytes", RATE_MAX_BYTES,
					      BUCKET_WHOLE_BYTES };

static void format_number(double number, char out[NUMBER_TEXT_MAX])
{
	if (number >= 1 && number < 1e15 && number == floor(number))
		snprintf(out, NUMBER_TEXT_MAX, "%.0f", number);
	else
		snprintf(out, NUMBER_TEXT_MAX, "%.6g", number);
}

/* The debt of a full burst, burst / rate, is longer than a bucket can remember. */
static int fail_too_long(const struct bucket_keys *keys, const struct rate_limit *wanted,
			 uint64_t longest_burst, char message[LIMIT_MESSAGE_MAX])
{
	char least[NUMBER_TEXT_MAX], got[NUMBER_TEXT_MAX];

	if (longest_burst >= 1)
		return fail(message, -EOVERFLOW, "%s must be at most %llu at this rate, got %llu",
			    keys->burst, (unsigned long long)longest_burst,
			    (unsigned long long)wanted->burst);
	snprintf(least, sizeof(least), "%.2g", 1.05 / WHOLE_DEBT_DAYS / DAY_S);
	format_number(wanted->rate, got);
	return fail(message, -EOVERFLOW,
		    "%s must be at least %s, because a bucket forgets after %d days, got %s",
		    keys->rate, least, WHOLE_DEBT_DAYS, got);
}

static int build_bucket(const struct bucket_keys *keys, const struct rate_limit *wanted,
			struct gcra_limit *built, char message[LIMIT_MESSAGE_MAX])
{
	char most[NUMBER_TEXT_MAX], got[NUMBER_TEXT_MAX];
	uint64_t longest_burst;

	format_number(wanted->rate, got);
	format_number(keys->rate_max, most);
	if (!(wanted->rate > 0) || !isfinite(wanted->rate))
		return fail(message, -EINVAL, "%s must be a number greater than 0, got %s",
			    keys->rate, got);
	if (wanted->rate > keys->rate_max)
		return fail(message, -ERANGE, "%s must be at most %s, got %s", keys->rate, most,
			    got);
	if (wanted->burst == 0)
		return fail(message, -EINVAL, "%s must be an integer of at least 1, got 0",
			    keys->burst);
	if (wanted->burst > 1ULL << RATE_BURST_MAX_BITS)
		return fail(message, -ERANGE, "%s must be at most %llu, got %llu", keys->burst,
			    1ULL << RATE_BURST_MAX_BITS, (unsigned long long)wanted->burst);
	if (limit_build(wanted, keys->kind, built, &longest_burst))
		return fail_too_long(keys, wanted, longest_burst, message);
	return 0;
}

/* They travel as JSON integers, which have a sign. */
static int check_counts(const struct tenant_limit *limit, char message[LIMIT_MESSAGE_MAX])
{
	const struct {
		const char *key;
		uint64_t count;
	} counts[] = {
		{ "max_body_bytes", limit->max_body_bytes },
		{ "max_queue", limit->max_queue },
		{ "max_queue_bytes", limit->max_queue_bytes },
	};
	size_t i;

	for (i = 0; i < sizeof(counts) / sizeof(*counts); i++)
		if (counts[i].count > INT64_MAX)
			return fail(message, -ERANGE, "%s must be at most %lld, got %llu",
				    counts[i].key, (long long)INT64_MAX,
				    (unsigned long long)counts[i].count);
	return 0;
}

uint64_t tenant_limit_default_burst(double bytes_per_second)
{
	double burst = ceil(bytes_per_second);

	if (!(burst >= 1))
		return 1;
	return burst < ldexp(1, RATE_BURST_MAX_BITS) ? (uint64_t)burst
						     : 1ULL << RATE_BURST_MAX_BITS;
}

int tenant_limit_build(struct tenant_limit *limit, char message[LIMIT_MESSAGE_MAX])
{
	struct tenant_limit built = *limit;
	int err;

	memset(&built.hook_bucket, 0, sizeof(built.hook_bucket));
	memset(&built.byte_bucket, 0, sizeof(built.byte_bucket));
	if (!built.unlimited) {
		err = build_bucket(&hook_keys, &built.hooks, &built.hook_bucket, message);
		if (err)
			return err;
		if (built.burst_bytes_given && built.bytes.rate == 0)
			return fail(message, -EINVAL, "burst_bytes needs bytes_per_second");
		if (built.bytes.rate != 0 && !built.burst_bytes_given)
			built.bytes.burst = tenant_limit_default_burst(built.bytes.rate);
		if (built.bytes.rate != 0)
			err = build_bucket(&byte_keys, &built.bytes, &built.byte_bucket, message);
		if (!err)
			err = check_counts(&built, message);
		if (err)
			return err;
	}
	*limit = built;
	return 0;
}

/* ---- from JSON */

enum key_kind { KEY_RATE, KEY_COUNT, KEY_FLAG };

static const struct key {
	const char *name;
	enum key_kind kind;
	bool required;
} keys[] = {
	{ "rate", KEY_RATE, true },
	{ "burst", KEY_COUNT, true },
	{ "bytes_per_second", KEY_RATE, false },
	{ "burst_bytes", KEY_COUNT, false },
	{ "max_body_bytes", KEY_COUNT, false },
	{ "max_queue", KEY_COUNT, false },
	{ "max_queue_bytes", KEY_COUNT, false },
	{ "unlimited", KEY_FLAG, false },
};

enum { KEYS = sizeof(keys) / sizeof(*keys) };

static bool is_known(const char *name)
{
	size_t i;

	for (i = 0; i < KEYS; i++)
		if (strcmp(keys[i].name, name) == 0)
			return true;
	return false;
}

static int check_fields(const json_t *object, char message[LIMIT_MESSAGE_MAX])
{
	const char *name, *first = NULL;
	char shown[TERM_TEXT_MAX];
	json_t *value;

	json_object_foreach((json_t *)object, name, value)
	{
		if (!is_known(name) && (!first || strcmp(name, first) < 0))
			first = name;
	}
	if (!first)
		return 0;
	term_format_string(first, strlen(first), shown);
	return fail(message, -EINVAL, "unknown field %s", shown);
}

static int fail_got(const char *key, const char *must, const json_t *got,
		    char message[LIMIT_MESSAGE_MAX])
{
	char shown[TERM_TEXT_MAX];

	term_format(got, shown);
	return fail(message, -EINVAL, "%s must be %s, got %s", key, must, shown);
}

/* `unlimited` says all there is to say. */
static int check_alone(const json_t *object, char message[LIMIT_MESSAGE_MAX])
{
	const json_t *unlimited = json_object_get(object, "unlimited");
	size_t i;

	if (!json_is_true(unlimited))
		return fail_got("unlimited", "true or left out", unlimited, message);
	for (i = 0; i < KEYS; i++)
		if (keys[i].kind != KEY_FLAG && json_object_get(object, keys[i].name))
			return fail(message, -EINVAL, "unlimited must stand alone, got %s too",
				    keys[i].name);
	return 0;
}

static int check_values(const json_t *object, char message[LIMIT_MESSAGE_MAX])
{
	size_t i;

	for (i = 0; i < KEYS; i++)
		if (keys[i].required && !json_object_get(object, keys[i].name))
			return fail(message, -EINVAL, "%s is required", keys[i].name);
	for (i = 0; i < KEYS; i++) {
		const json_t *value = json_object_get(object, keys[i].name);

		if (!value)
			continue;
		if (keys[i].kind == KEY_RATE && !(json_number_value(value) > 0))
			return fail_got(keys[i].name, "a number greater than 0", value, message);
		if (keys[i].kind == KEY_COUNT && json_integer_value(value) < 1)
			return fail_got(keys[i].name, "an integer of at least 1", value, message);
	}
	return 0;
}

static double rate_of(const json_t *object, const char *key)
{
	return json_number_value(json_object_get(object, key));
}

static uint64_t count_of(const json_t *object, const char *key)
{
	return (uint64_t)json_integer_value(json_object_get(object, key));
}

int tenant_limit_from_json(const json_t *value, struct tenant_limit *out,
			   char message[LIMIT_MESSAGE_MAX])
{
	struct tenant_limit limit = { 0 };
	int err;

	if (!json_is_object(value))
		return fail(message, -EINVAL, "body must be a JSON object");
	err = check_fields(value, message);
	if (err)
		return err;
	limit.unlimited = json_object_get(value, "unlimited") != NULL;
	err = limit.unlimited ? check_alone(value, message) : check_values(value, message);
	if (err)
		return err;
	limit.hooks.rate = rate_of(value, "rate");
	limit.hooks.burst = count_of(value, "burst");
	limit.bytes.rate = rate_of(value, "bytes_per_second");
	limit.bytes.burst = count_of(value, "burst_bytes");
	limit.burst_bytes_given = limit.bytes.burst != 0;
	limit.max_body_bytes = count_of(value, "max_body_bytes");
	limit.max_queue = count_of(value, "max_queue");
	limit.max_queue_bytes = count_of(value, "max_queue_bytes");
	if (tenant_limit_build(&limit, message))
		return -EINVAL;
	*out = limit;
	return 0;
}

int tenant_limit_parse(const char *text, size_t length, struct tenant_limit *out,
		       char message[LIMIT_MESSAGE_MAX])
{
	json_error_t error;
	json_t *value;
	int err;

	if (length == 0 || length > LIMIT_BODY_BYTES_MAX)
		return fail(message, -EINVAL, "body must be a JSON object");
	value = json_loadb(text, length, JSON_REJECT_DUPLICATES, &error);
	if (!value && json_error_code(&error) == json_error_out_of_memory)
		return fail(message, -ENOMEM, "not enough memory to read the body");
	if (!value && json_error_code(&error) == json_error_duplicate_key)
		return fail(message, -EINVAL, "body must not give a field twice");
	if (!value && json_error_code(&error) == json_error_numeric_overflow)
		return fail(message, -EINVAL, "body must not hold a number beyond 64 bits");
	err = tenant_limit_from_json(value, out, message);
	json_decref(value);
	return err;
}

/* ---- to JSON */

/* Takes value; NULL is no memory. */
static bool set(json_t *object, const char *key, json_t *value)
{
	return json_object_set_new(object, key, value) == 0;
}

static bool set_rate(json_t *object, const char *key, double rate)
{
	bool is_whole = rate == floor(rate) && rate < 1e15;

	return rate == 0 ||
	       set(object, key, is_whole ? json_integer((json_int_t)rate) : json_real(rate));
}

static bool set_count(json_t *object, const char *key, uint64_t count)
{
	return count == 0 || set(object, key, json_integer((json_int_t)count));
}

json_t *tenant_limit_to_json(const struct tenant_limit *limit)
{
	json_t *object = json_object();
	bool done;

	if (!limit)
		done = set(object, "rate", json_null()) && set(object, "burst", json_null());
	else if (limit->unlimited)
		done = set(object, "unlimited", json_true());
	else
		done = set_rate(object, "rate", limit->hooks.rate) &&
		       set_count(object, "burst", limit->hooks.burst) &&
		       set_rate(object, "bytes_per_second", limit->bytes.rate) &&
		       set_count(object, "burst_bytes",
				 limit->burst_bytes_given ? limit->bytes.burst : 0) &&
		       set_count(object, "max_body_bytes", limit->max_body_bytes) &&
		       set_count(object, "max_queue", limit->max_queue) &&
		       set_count(object, "max_queue_bytes", limit->max_queue_bytes);
	if (!done) {
		json_decref(object);
		return NULL;
	}
	return object;
}
