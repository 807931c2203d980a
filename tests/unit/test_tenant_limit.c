/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A tenant's limit as JSON: the admin API's messages in its order, what no bucket can hold, and
 * that what is written is read back as it was.
 */
#include "test.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "limit/tenant_limit.h"
#include "limit/term_text.h"

static const struct message_row {
	const char *name; /* the body */
	const char *message;
} message_rows[] = {
	{ "", "body must be a JSON object" },
	{ "nonsense", "body must be a JSON object" },
	{ "[]", "body must be a JSON object" },
	{ "5", "body must be a JSON object" },
	{ "null", "body must be a JSON object" },
	{ "{", "body must be a JSON object" },
	{ "{} {}", "body must be a JSON object" },
	{ "{\"rate\": 1, \"burst\": \"\\u0000\"}", "body must be a JSON object" },
	{ "{\"rate\": 1, \"rate\": 2, \"burst\": 1}", "body must not give a field twice" },
	{ "{\"rate\": 1e999, \"burst\": 1}", "body must not hold a number beyond 64 bits" },
	{ "{\"rate\": 1, \"burst\": 9223372036854775808}",
	  "body must not hold a number beyond 64 bits" },

	{ "{\"rate\": 1, \"burst\": 1, \"per\": 1}", "unknown field \"per\"" },
	{ "{\"z\": 1, \"per\": 1, \"rate\": 0}", "unknown field \"per\"" },
	{ "{\"\": 1}", "unknown field \"\"" },
	{ "{\"Rate\": 1}", "unknown field \"Rate\"" },
	{ "{\"a\\n\\\"\\u001b[31m\": 1}", "unknown field \"a\\n\\\"\\e[31m\"" },

	{ "{}", "rate is required" },
	{ "{\"burst\": 0}", "rate is required" },
	{ "{\"rate\": 0}", "burst is required" },
	{ "{\"rate\": 0, \"burst\": 1}", "rate must be a number greater than 0, got 0" },
	{ "{\"rate\": -1, \"burst\": 0}", "rate must be a number greater than 0, got -1" },
	{ "{\"rate\": 0.0, \"burst\": 1}", "rate must be a number greater than 0, got 0.0" },
	{ "{\"rate\": -2.5, \"burst\": 1}", "rate must be a number greater than 0, got -2.5" },
	{ "{\"rate\": \"5\", \"burst\": 1}", "rate must be a number greater than 0, got \"5\"" },
	{ "{\"rate\": null, \"burst\": 1}", "rate must be a number greater than 0, got nil" },
	{ "{\"rate\": true, \"burst\": 1}", "rate must be a number greater than 0, got true" },
	{ "{\"rate\": [1, 2.0], \"burst\": 1}",
	  "rate must be a number greater than 0, got [1, 2.0]" },
	{ "{\"rate\": {\"b\": null, \"a\": \"x\"}, \"burst\": 1}",
	  "rate must be a number greater than 0, got %{\"a\" => \"x\", \"b\" => nil}" },
	{ "{\"rate\": 1, \"burst\": 0}", "burst must be an integer of at least 1, got 0" },
	{ "{\"rate\": 1, \"burst\": 1.5}", "burst must be an integer of at least 1, got 1.5" },
	{ "{\"rate\": 1, \"burst\": 2.0}", "burst must be an integer of at least 1, got 2.0" },
	{ "{\"rate\": 1, \"burst\": 1e3}", "burst must be an integer of at least 1, got 1.0e3" },
	{ "{\"rate\": 1, \"burst\": null}", "burst must be an integer of at least 1, got nil" },
	{ "{\"rate\": 1, \"burst\": \"2\"}", "burst must be an integer of at least 1, got \"2\"" },

	{ "{\"rate\": 1, \"burst\": 1, \"bytes_per_second\": 0}",
	  "bytes_per_second must be a number greater than 0, got 0" },
	{ "{\"rate\": 1, \"burst\": 1, \"bytes_per_second\": \"1MB\"}",
	  "bytes_per_second must be a number greater than 0, got \"1MB\"" },
	{ "{\"rate\": 1, \"burst\": 1, \"bytes_per_second\": 5, \"burst_bytes\": 0}",
	  "burst_bytes must be an integer of at least 1, got 0" },
	{ "{\"rate\": 1, \"burst\": 1, \"burst_bytes\": 0}",
	  "burst_bytes must be an integer of at least 1, got 0" },
	{ "{\"rate\": 1, \"burst\": 1, \"burst_bytes\": 5}", "burst_bytes needs bytes_per_second" },
	{ "{\"rate\": 1, \"burst\": 1, \"max_body_bytes\": 0}",
	  "max_body_bytes must be an integer of at least 1, got 0" },
	{ "{\"rate\": 1, \"burst\": 1, \"max_queue\": 1.0}",
	  "max_queue must be an integer of at least 1, got 1.0" },
	{ "{\"rate\": 1, \"burst\": 1, \"max_queue_bytes\": -1}",
	  "max_queue_bytes must be an integer of at least 1, got -1" },

	{ "{\"unlimited\": false}", "unlimited must be true or left out, got false" },
	{ "{\"unlimited\": null, \"rate\": 1, \"burst\": 1}",
	  "unlimited must be true or left out, got nil" },
	{ "{\"unlimited\": true, \"rate\": 0}", "unlimited must stand alone, got rate too" },
	{ "{\"unlimited\": true, \"max_queue\": 1}",
	  "unlimited must stand alone, got max_queue too" },

	{ "{\"rate\": 100000001, \"burst\": 1}", "rate must be at most 100000000, got 100000001" },
	{ "{\"rate\": 1e-9, \"burst\": 1}",
	  "rate must be at least 2.3e-07, because a bucket forgets after 52 days, got 1e-09" },
	{ "{\"rate\": 1, \"burst\": 5000000}",
	  "burst must be at most 4503598 at this rate, got 5000000" },
	{ "{\"rate\": 1, \"burst\": 9223372036854775807}",
	  "burst must be at most 4398046511104, got 9223372036854775807" },
	{ "{\"rate\": 1, \"burst\": 1, \"bytes_per_second\": 200000000000}",
	  "bytes_per_second must be at most 110000000000, got 200000000000" },
	{ "{\"rate\": 1, \"burst\": 1, \"bytes_per_second\": 1, \"burst_bytes\": 5000000}",
	  "burst_bytes must be at most 4503598 at this rate, got 5000000" },
	{ "{\"rate\": 1, \"burst\": 1, \"bytes_per_second\": 1e-9}",
	  "bytes_per_second must be at least 2.3e-07, because a bucket forgets after 52 days, got "
	  "1e-09" },
};

static void what_is_wrong_is_said_in_the_order_of_the_admin_api(void **state)
{
	(void)state;
	for (size_t i = 0; i < COUNT_OF(message_rows); i++) {
		const struct message_row *row = &message_rows[i];
		struct tenant_limit limit, before;
		char message[LIMIT_MESSAGE_MAX] = "";

		memset(&limit, 0x5a, sizeof(limit));
		before = limit;
		check_row_equal(row,
				tenant_limit_parse(row->name, strlen(row->name), &limit, message),
				-EINVAL);
		check_row_text(row, message, row->message);
		check_row(row, memcmp(&limit, &before, sizeof(limit)) == 0);
	}
}

static void a_body_is_bounded(void **state)
{
	size_t length = LIMIT_BODY_BYTES_MAX;
	char *body = malloc(length + 1);
	char message[LIMIT_MESSAGE_MAX];
	struct tenant_limit limit;

	(void)state;
	assert_non_null(body);
	memset(body, ' ', length + 1);
	memcpy(body, "{\"rate\":1,\"burst\":2}", 20);
	assert_int_equal(tenant_limit_parse(body, length, &limit, message), 0);
	assert_int_equal(limit.hooks.burst, 2);
	assert_int_equal(tenant_limit_parse(body, length + 1, &limit, message), -EINVAL);
	assert_string_equal(message, "body must be a JSON object");
	/* Deeper than any stack should go. */
	memset(body, '[', length);
	assert_int_equal(tenant_limit_parse(body, length, &limit, message), -EINVAL);
	assert_string_equal(message, "body must be a JSON object");
	free(body);
}

static struct tenant_limit must_parse(const char *body)
{
	struct tenant_limit limit;
	char message[LIMIT_MESSAGE_MAX];

	if (tenant_limit_parse(body, strlen(body), &limit, message))
		fail_msg("%s: %s", body, message);
	return limit;
}

static void a_whole_limit_is_read_and_built(void **state)
{
	struct tenant_limit limit =
		must_parse("{\"max_queue\":5,\"burst\":2,\"rate\":0.5,\"bytes_per_second\":1000.5,"
			   "\"max_body_bytes\":7,\"max_queue_bytes\":9223372036854775807}");

	(void)state;
	assert_false(limit.unlimited);
	assert_true(limit.hooks.rate == 0.5);
	assert_int_equal(limit.hooks.burst, 2);
	assert_int_equal(limit.hook_bucket.tick_shift, GCRA_TICK_SHIFT);
	assert_true(limit.hook_bucket.capacity == 4000000000ULL << GCRA_TICK_SHIFT);
	assert_false(limit.burst_bytes_given);
	assert_int_equal(limit.bytes.burst, 1001);
	assert_true(limit.byte_bucket.capacity > 0);
	assert_int_equal(limit.max_body_bytes, 7);
	assert_int_equal(limit.max_queue, 5);
	assert_true(limit.max_queue_bytes == INT64_MAX);
	limit = must_parse("{\"rate\":5,\"burst\":1}");
	assert_int_equal(limit.byte_bucket.capacity, 0);
	assert_int_equal(limit.max_queue, 0);
	limit = must_parse("{\"unlimited\":true}");
	assert_true(limit.unlimited);
	assert_int_equal(limit.hook_bucket.capacity, 0);
}

static const struct default_burst_row {
	const char *name;
	double bytes_per_second;
	uint64_t burst;
} default_burst_rows[] = {
	{ "whole", 1000, 1000 },
	{ "a fraction is rounded up", 1000.2, 1001 },
	{ "less than a byte", 0.001, 1 },
	{ "the most", RATE_MAX_BYTES, 110000000000ULL },
	{ "beyond any bucket", 1e300, 1ULL << RATE_BURST_MAX_BITS },
};

static void a_second_of_bytes_is_a_burst_by_default(void **state)
{
	(void)state;
	for (size_t i = 0; i < COUNT_OF(default_burst_rows); i++)
		check_row(&default_burst_rows[i],
			  tenant_limit_default_burst(default_burst_rows[i].bytes_per_second) ==
				  default_burst_rows[i].burst);
}

static const char *const round_trips[] = {
	"{\"rate\":5,\"burst\":10}",
	"{\"rate\":0.5,\"burst\":10,\"bytes_per_second\":1000000}",
	"{\"rate\":5,\"burst\":10,\"bytes_per_second\":0.25,\"burst_bytes\":77,"
	"\"max_body_bytes\":1,\"max_queue\":2,\"max_queue_bytes\":3}",
	"{\"unlimited\":true}",
};

static void what_is_written_is_read_back(void **state)
{
	(void)state;
	for (size_t i = 0; i < COUNT_OF(round_trips); i++) {
		struct tenant_limit limit = must_parse(round_trips[i]), again;
		json_t *json = tenant_limit_to_json(&limit);
		char *text = json_dumps(json, JSON_COMPACT);

		assert_string_equal(text, round_trips[i]);
		again = must_parse(text);
		assert_memory_equal(&limit, &again, sizeof(limit));
		free(text);
		json_decref(json);
	}
}

static void no_limit_is_written_as_nulls(void **state)
{
	json_t *json = tenant_limit_to_json(NULL);
	char *text = json_dumps(json, JSON_COMPACT);

	(void)state;
	assert_string_equal(text, "{\"rate\":null,\"burst\":null}");
	free(text);
	json_decref(json);
}

static const struct id_row {
	const char *name;
	bool valid;
} id_rows[] = {
	{ "acme", true }, { "A_-9", true },  { "-", true },    { "", false },
	{ "x.y", false }, { "a b", false },  { "a/b", false }, { "caf\xc3\xa9", false },
	{ "a@", false },  { "bad[", false },
};

static void tenant_ids_are_words_of_64_characters(void **state)
{
	char id[TENANT_ID_MAX + 1];

	(void)state;
	for (size_t i = 0; i < COUNT_OF(id_rows); i++)
		check_row_equal(&id_rows[i],
				tenant_id_is_valid(id_rows[i].name, strlen(id_rows[i].name)),
				id_rows[i].valid);
	memset(id, 'a', sizeof(id));
	assert_true(tenant_id_is_valid(id, TENANT_ID_MAX));
	assert_false(tenant_id_is_valid(id, TENANT_ID_MAX + 1));
	assert_false(tenant_id_is_valid("a\0b", 3));
}

static const struct real_row {
	const char *name;
	double value;
} real_rows[] = {
	{ "0.0", 0.0 },           { "1.0", 1 },          { "10.0", 10 },
	{ "100.0", 100 },         { "1.0e3", 1000 },     { "1234.0", 1234 },
	{ "123456.5", 123456.5 }, { "0.1", 0.1 },        { "0.01", 0.01 },
	{ "0.001", 0.001 },       { "1.0e-5", 0.00001 }, { "0.0012", 0.0012 },
	{ "1.5e300", 1.5e300 },   { "-2.5", -2.5 },      { "0.3333333333333333", 1.0 / 3 },
	{ "5.0e-324", 5e-324 },
};

static void reals_are_shown_as_short_as_they_are_exact(void **state)
{
	(void)state;
	for (size_t i = 0; i < COUNT_OF(real_rows); i++) {
		json_t *value = json_real(real_rows[i].value);
		char text[TERM_TEXT_MAX];

		term_format(value, text);
		check_row_text(&real_rows[i], text, real_rows[i].name);
		json_decref(value);
	}
}

static void what_is_shown_is_bounded_at_a_whole_character(void **state)
{
	char long_text[400], shown[TERM_TEXT_MAX];
	json_t *value;

	(void)state;
	for (size_t i = 0; i + 1 < sizeof(long_text); i += 2)
		memcpy(long_text + i, "\xc3\xa9", 2);
	for (size_t skip = 0; skip < 2; skip++) {
		long_text[0] = 'a';
		long_text[1] = 'b';
		value = json_stringn(long_text + skip, sizeof(long_text) - skip);
		assert_non_null(value);
		term_format(value, shown);
		assert_true(strlen(shown) >= TERM_TEXT_MAX - 6);
		assert_string_equal(shown + strlen(shown) - 5, "\xc3\xa9...");
		json_decref(value);
	}
	value = json_loads("[[[[[[[[[[[[1]]]]]]]]]]]]", 0, NULL);
	term_format(value, shown);
	assert_string_equal(shown, "[[[[[[[[[...]]]]]]]]]");
	json_decref(value);
	term_format_string("\xff\xc2\x9b\x7f", 4, shown);
	assert_string_equal(shown, "\"\\xFF\\x{9B}\\x7F\"");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_wrong_is_said_in_the_order_of_the_admin_api),
		cmocka_unit_test(a_body_is_bounded),
		cmocka_unit_test(a_whole_limit_is_read_and_built),
		cmocka_unit_test(a_second_of_bytes_is_a_burst_by_default),
		cmocka_unit_test(what_is_written_is_read_back),
		cmocka_unit_test(no_limit_is_written_as_nulls),
		cmocka_unit_test(tenant_ids_are_words_of_64_characters),
		cmocka_unit_test(reals_are_shown_as_short_as_they_are_exact),
		cmocka_unit_test(what_is_shown_is_bounded_at_a_whole_character),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
