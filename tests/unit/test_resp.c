/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The codec: what is a request and what is refused, with which words; that it does not matter how
 * the bytes arrive; and the bytes of every kind of reply in both versions.
 */
#include "test.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "wire/resp.h"

#define ARGUMENTS_SHOWN_MAX 2048

static const struct resp_bounds usual = {
	.arguments_max = 64,
	.argument_bytes_max = 1 << 20,
	.inline_bytes_max = 64 * 1024,
	.request_bytes_max = 2 << 20,
};

static const struct resp_bounds stranger = {
	.arguments_max = 10,
	.argument_bytes_max = 16384,
	.inline_bytes_max = 64 * 1024,
	.request_bytes_max = 2 << 20,
	.is_unauthenticated = true,
};

static struct resp_request request;

/* `[GET] [a b]`, with what is not printable as `\xNN`. */
static void show(char *out)
{
	char *at = out;
	size_t i, k;

	*at = '\0';
	for (i = 0; i < request.count; i++) {
		at += sprintf(at, "%s[", i ? " " : "");
		for (k = 0; k < request.arguments[i].length; k++) {
			unsigned char c = (unsigned char)request.arguments[i].data[k];

			at += sprintf(at, c < ' ' || c > '~' ? "\\x%02x" : "%c", c);
			assert_true(at - out < ARGUMENTS_SHOWN_MAX - 8);
		}
		at += sprintf(at, "]");
		assert_int_equal(request.arguments[i].data[request.arguments[i].length], 0);
	}
}

/* The bytes in a block of exactly their size, so that a sanitizer sees what is read beyond. */
static int decode(const char *bytes, size_t length, const struct resp_bounds *bounds,
		  char shown[ARGUMENTS_SHOWN_MAX], size_t *consumed)
{
	uint8_t *copy = malloc(length ? length : 1);
	int whole;

	assert_non_null(copy);
	memcpy(copy, bytes, length);
	request.error[0] = '\0';
	whole = resp_decode(copy, length, bounds, &request, consumed);
	if (whole == 1)
		show(shown);
	if (whole == 0)
		assert_memory_equal(copy, bytes, length);
	free(copy);
	return whole;
}

#define BYTES(text) text, sizeof(text) - 1

static const struct {
	const char *name;
	const char *bytes;
	size_t length;
	const char *shown;
} requests[] = {
	{ "one word", BYTES("*1\r\n$4\r\nPING\r\n"), "[PING]" },
	{ "two", BYTES("*2\r\n$4\r\nECHO\r\n$2\r\nhi\r\n"), "[ECHO] [hi]" },
	{ "an empty argument", BYTES("*2\r\n$4\r\nECHO\r\n$0\r\n\r\n"), "[ECHO] []" },
	{ "any bytes", BYTES("*1\r\n$5\r\n\0\r\n\xff*\r\n"), "[\\x00\\x0d\\x0a\\xff*]" },
	{ "an empty array", BYTES("*0\r\n"), "" },
	{ "a null array", BYTES("*-1\r\n"), "" },
	{ "a very null array", BYTES("*-7\r\n"), "" },
	{ "inline", BYTES("PING\r\n"), "[PING]" },
	{ "inline without CR", BYTES("PING\n"), "[PING]" },
	{ "an empty line", BYTES("\r\n"), "" },
	{ "a line of blanks", BYTES(" \t \n"), "" },
	{ "words and blanks", BYTES("  SET \t key  value \r\n"), "[SET] [key] [value]" },
	{ "double quotes", BYTES("ECHO \"a b\"\r\n"), "[ECHO] [a b]" },
	{ "empty quotes", BYTES("ECHO \"\" ''\r\n"), "[ECHO] [] []" },
	{ "escapes", BYTES("ECHO \"\\n\\r\\t\\b\\a\\\"\\\\\\q\"\r\n"),
	  "[ECHO] [\\x0a\\x0d\\x09\\x08\\x07\"\\q]" },
	{ "hexadecimal escapes", BYTES("ECHO \"\\x00\\xfFz\\xg0\"\r\n"),
	  "[ECHO] [\\x00\\xffzxg0]" },
	{ "single quotes", BYTES("ECHO 'a\\n\\'b'\r\n"), "[ECHO] [a\\n'b]" },
	{ "quotes within a word", BYTES("ECHO a\"b c\"\r\n"), "[ECHO] [ab c]" },
	{ "a backslash outside of quotes", BYTES("ECHO a\\x41\r\n"), "[ECHO] [a\\x41]" },
	{ "inline with any bytes", BYTES("a\0b \xfe\n"), "[a\\x00b] [\\xfe]" },
	{ "a dollar is a word", BYTES("$4\r\n"), "[$4]" },
};

static void decodes_requests(void **state)
{
	char shown[ARGUMENTS_SHOWN_MAX];
	size_t i, consumed;

	(void)state;
	for (i = 0; i < COUNT_OF(requests); i++) {
		check_row_equal(
			&requests[i],
			decode(requests[i].bytes, requests[i].length, &usual, shown, &consumed), 1);
		check_row_equal(&requests[i], consumed, requests[i].length);
		check_row_text(&requests[i], shown, requests[i].shown);
	}
}

static void asks_for_more_at_every_byte(void **state)
{
	char shown[ARGUMENTS_SHOWN_MAX];
	size_t i, length, consumed;

	(void)state;
	for (i = 0; i < COUNT_OF(requests); i++)
		for (length = 0; length < requests[i].length; length++)
			check_row_equal(&requests[i],
					decode(requests[i].bytes, length, &usual, shown, &consumed),
					0);
}

static void leaves_what_comes_after_a_request(void **state)
{
	char bytes[256], shown[ARGUMENTS_SHOWN_MAX];
	size_t i, consumed;

	(void)state;
	for (i = 0; i < COUNT_OF(requests); i++) {
		memcpy(bytes, requests[i].bytes, requests[i].length);
		strcpy(bytes + requests[i].length, "*1\r\n$");
		check_row_equal(&requests[i],
				decode(bytes, requests[i].length + 5, &usual, shown, &consumed), 1);
		check_row_equal(&requests[i], consumed, requests[i].length);
		check_row_text(&requests[i], shown, requests[i].shown);
	}
}

static const struct {
	const char *name;
	const char *bytes;
	const char *error; /* after `Protocol error: ` */
	const struct resp_bounds *bounds;
} refused[] = {
	{ "no number of arguments", "*\r", "invalid multibulk length", &usual },
	{ "no digit", "*x", "invalid multibulk length", &usual },
	{ "a plus", "*+", "invalid multibulk length", &usual },
	{ "a leading zero", "*01", "invalid multibulk length", &usual },
	{ "minus zero", "*-0\r", "invalid multibulk length", &usual },
	{ "a space", "* ", "invalid multibulk length", &usual },
	{ "CR without LF", "*1\r*", "invalid multibulk length", &usual },
	{ "too many digits", "*1111111111111111111", "invalid multibulk length", &usual },
	{ "more than an int of arguments", "*2147483648\r\n", "invalid multibulk length", &usual },
	{ "the same of a stranger", "*2147483648\r\n", "invalid multibulk length", &stranger },
	{ "too many arguments", "*65\r\n", "invalid multibulk length", &usual },
	{ "too many of a stranger", "*11\r\n", "unauthenticated multibulk length", &stranger },
	{ "no bulk", "*1\r\nP", "expected '$', got 'P'", &usual },
	{ "a number", "*1\r\n:", "expected '$', got ':'", &usual },
	{ "an array within", "*2\r\n$1\r\na\r\n*", "expected '$', got '*'", &usual },
	{ "no bulk but control", "*1\r\n\n", "expected '$', got '?'", &usual },
	{ "a null argument", "*1\r\n$-1\r\n", "invalid bulk length", &usual },
	{ "no length", "*1\r\n$\r", "invalid bulk length", &usual },
	{ "no digit in a length", "*1\r\n$a", "invalid bulk length", &usual },
	{ "a length with a fraction", "*1\r\n$1.", "invalid bulk length", &usual },
	{ "512 MB", "*1\r\n$536870912\r\n", "invalid bulk length", &usual },
	{ "one byte too long", "*1\r\n$1048577\r\n", "invalid bulk length", &usual },
	{ "too long of a stranger", "*1\r\n$16385\r\n", "unauthenticated bulk length", &stranger },
	{ "longer than it says", "*1\r\n$2\r\nabc", "invalid bulk length", &usual },
	{ "shorter than it says", "*1\r\n$2\r\na\r\n", "invalid bulk length", &usual },
	{ "ended by CR only", "*1\r\n$2\r\nab\rx", "invalid bulk length", &usual },
	{ "unbalanced double quotes", "ECHO \"a\n", "unbalanced quotes in request", &usual },
	{ "unbalanced single quotes", "ECHO 'a\\'\n", "unbalanced quotes in request", &usual },
	{ "a word after quotes", "ECHO \"a\"b\n", "unbalanced quotes in request", &usual },
	{ "a backslash at the end", "ECHO \"a\\\n", "unbalanced quotes in request", &usual },
	{ "eleven words of a stranger", "a b c d e f g h i j k\n", "too big inline request",
	  &stranger },
};

static void refuses_with_the_words_of_redis(void **state)
{
	char shown[ARGUMENTS_SHOWN_MAX], wanted[128];
	size_t i, consumed;

	(void)state;
	for (i = 0; i < COUNT_OF(refused); i++) {
		check_row_equal(&refused[i],
				decode(refused[i].bytes, strlen(refused[i].bytes),
				       refused[i].bounds, shown, &consumed),
				-EPROTO);
		snprintf(wanted, sizeof(wanted), "Protocol error: %s", refused[i].error);
		check_row_text(&refused[i], request.error, wanted);
	}
}

/* The rows above end at the byte that makes them wrong. */
static void refuses_not_before_the_byte_that_is_wrong(void **state)
{
	char shown[ARGUMENTS_SHOWN_MAX];
	size_t i, length, consumed;

	(void)state;
	for (i = 0; i < COUNT_OF(refused); i++)
		for (length = 0; length < strlen(refused[i].bytes); length++)
			check_row_equal(&refused[i],
					decode(refused[i].bytes, length, refused[i].bounds, shown,
					       &consumed),
					0);
}

static void bounds_lines_and_requests(void **state)
{
	static char line[64 * 1024 + 2];
	static char big[3 << 20];
	struct resp_bounds bounds = usual;
	size_t consumed;
	int length;

	(void)state;
	memset(line, 'a', sizeof(line));
	assert_int_equal(resp_decode((uint8_t *)line, 64 * 1024, &usual, &request, &consumed), 0);
	assert_int_equal(resp_decode((uint8_t *)line, 64 * 1024 + 1, &usual, &request, &consumed),
			 -EPROTO);
	assert_string_equal(request.error, "Protocol error: too big inline request");
	line[64 * 1024] = '\n';
	assert_int_equal(resp_decode((uint8_t *)line, sizeof(line), &usual, &request, &consumed),
			 1);
	line[64 * 1024] = 'a';
	line[64 * 1024 + 1] = '\n';
	assert_int_equal(resp_decode((uint8_t *)line, sizeof(line), &usual, &request, &consumed),
			 -EPROTO);

	/* Three arguments that may be, but not together: refused when the last is announced. */
	length = sprintf(big, "*3\r\n$900000\r\n");
	memcpy(big + length + 900000, "\r\n$900000\r\n", 11);
	memcpy(big + length + 1800011, "\r\n$900000\r\n", 11);
	assert_int_equal(resp_decode((uint8_t *)big, 1800000, &bounds, &request, &consumed), 0);
	assert_int_equal(
		resp_decode((uint8_t *)big, (size_t)length + 1800022, &bounds, &request, &consumed),
		-EPROTO);
	bounds.request_bytes_max = 3 << 20;
	assert_int_equal(
		resp_decode((uint8_t *)big, (size_t)length + 1800022, &bounds, &request, &consumed),
		0);
}

static const struct {
	const char *name;
	const char *text;
	int err;
	int64_t value;
} integers[] = {
	{ "zero", "0", 0, 0 },
	{ "one", "1", 0, 1 },
	{ "minus one", "-1", 0, -1 },
	{ "the highest", "9223372036854775807", 0, INT64_MAX },
	{ "the lowest", "-9223372036854775808", 0, INT64_MIN },
	{ "one too high", "9223372036854775808", -ERANGE, 0 },
	{ "one too low", "-9223372036854775809", -ERANGE, 0 },
	{ "far too high", "99999999999999999999999999999", -ERANGE, 0 },
	{ "too high and no number", "99999999999999999999x", -EINVAL, 0 },
	{ "nothing", "", -EINVAL, 0 },
	{ "minus", "-", -EINVAL, 0 },
	{ "minus zero", "-0", -EINVAL, 0 },
	{ "plus", "+1", -EINVAL, 0 },
	{ "a leading zero", "01", -EINVAL, 0 },
	{ "a space", " 1", -EINVAL, 0 },
	{ "a fraction", "1.0", -EINVAL, 0 },
	{ "hexadecimal", "0x1", -EINVAL, 0 },
};

static void reads_integers_as_redis_does(void **state)
{
	size_t i;

	(void)state;
	for (i = 0; i < COUNT_OF(integers); i++) {
		struct resp_argument argument = { integers[i].text, strlen(integers[i].text) };
		int64_t value = 77;

		check_row_equal(&integers[i], resp_argument_integer(&argument, &value),
				integers[i].err);
		check_row_equal(&integers[i], value, integers[i].err ? 77 : integers[i].value);
	}
}

/* ---- replies */

static struct resp_writer writer;

static void check_written(const char *wanted, int64_t owed)
{
	assert_false(writer.is_failed);
	assert_int_equal(writer.length, strlen(wanted));
	assert_memory_equal(writer.data, wanted, writer.length);
	assert_int_equal(writer.owed, owed);
	writer.owed = 0;
	resp_writer_cut(&writer, 0);
}

static void write_all(unsigned protocol)
{
	resp_writer_init(&writer, protocol, 1 << 20);
	resp_write_integer(&writer, 0);
	resp_write_integer(&writer, 1234567890);
	resp_write_integer(&writer, INT64_MAX);
	resp_write_integer(&writer, INT64_MIN);
	check_written(":0\r\n:1234567890\r\n:9223372036854775807\r\n:-9223372036854775808\r\n", -4);
	resp_write_boolean(&writer, true);
	resp_write_boolean(&writer, false);
	check_written(":1\r\n:0\r\n", -2);
	resp_write_bulk(&writer, "a\r\nb", 4);
	resp_write_bulk(&writer, NULL, 0);
	resp_write_text(&writer, "text");
	check_written("$4\r\na\r\nb\r\n$0\r\n\r\n$4\r\ntext\r\n", -3);
	resp_write_simple(&writer, "OK");
	resp_write_simple(&writer, "a\r\nb");
	check_written("+OK\r\n+a  b\r\n", -2);
	resp_write_error(&writer, "ERR %s", "no '\r\n-ERR\x1b[31m\xc3\xa9\x7f'");
	check_written("-ERR no '  -ERR [31m?? '\r\n", -1);
	resp_write_array(&writer, 3);
	resp_write_integer(&writer, 1);
	resp_write_array(&writer, 0);
	check_written("*3\r\n:1\r\n*0\r\n", 0);
}

static void writes_replies_of_both_versions(void **state)
{
	(void)state;
	write_all(2);
	resp_write_null(&writer);
	check_written("$-1\r\n", -1);
	resp_write_map(&writer, 2);
	check_written("*4\r\n", 3);
	resp_write_double(&writer, 0.1);
	resp_write_double(&writer, -INFINITY);
	check_written("$3\r\n0.1\r\n$4\r\n-inf\r\n", -2);
	resp_writer_done(&writer);

	write_all(3);
	resp_write_null(&writer);
	check_written("_\r\n", -1);
	resp_write_map(&writer, 2);
	check_written("%2\r\n", 3);
	resp_write_double(&writer, 0.1);
	resp_write_double(&writer, 1.0 / 3);
	resp_write_double(&writer, 1e300);
	resp_write_double(&writer, INFINITY);
	resp_write_double(&writer, NAN);
	check_written(",0.1\r\n,0.3333333333333333\r\n,1e+300\r\n,inf\r\n,nan\r\n", -5);
	resp_writer_done(&writer);
}

static void cuts_a_long_error(void **state)
{
	char text[3 * RESP_ERROR_MAX];

	(void)state;
	memset(text, 'x', sizeof(text) - 1);
	text[sizeof(text) - 1] = '\0';
	resp_writer_init(&writer, 2, 1 << 20);
	resp_write_error(&writer, "%s", text);
	assert_int_equal(writer.length, RESP_ERROR_MAX - 1 + 3);
	assert_memory_equal(writer.data + writer.length - 3, "x\r\n", 3);
	resp_writer_done(&writer);
}

static void fails_for_good_when_full(void **state)
{
	(void)state;
	resp_writer_init(&writer, 2, 1000);
	while (!writer.is_failed)
		resp_write_text(&writer, "0123456789");
	assert_true(writer.length <= 1024 && writer.length > 900);
	resp_write_integer(&writer, 1);
	assert_true(writer.is_failed);
	resp_writer_done(&writer);
	assert_null(writer.data);

	resp_writer_init(&writer, 2, 1000);
	resp_write_bulk(&writer, "", SIZE_MAX - 64);
	assert_true(writer.is_failed);
	resp_writer_done(&writer);
}

static void announces_parts_that_were_counted_later(void **state)
{
	struct resp_writer part;

	(void)state;
	resp_writer_init(&writer, 3, 1000);
	resp_writer_init(&part, 3, 1000);
	resp_write_text(&part, "a");
	resp_write_array(&part, 2);
	resp_write_integer(&part, 1);
	resp_write_null(&part);
	assert_int_equal(resp_writer_count(&part), 2);
	writer.owed = 1;
	resp_write_array(&writer, resp_writer_count(&part));
	resp_write_part(&writer, &part);
	check_written("*2\r\n$1\r\na\r\n*2\r\n:1\r\n_\r\n", 0);
	resp_writer_done(&part);
	resp_writer_done(&writer);
}

static void drops_what_was_sent(void **state)
{
	(void)state;
	resp_writer_init(&writer, 2, 1000);
	resp_writer_drop(&writer, 0);
	resp_write_simple(&writer, "abc");
	resp_writer_drop(&writer, 2);
	check_written("bc\r\n", -1);
	resp_writer_drop(&writer, 0);
	resp_writer_done(&writer);
	resp_writer_done(&writer);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(decodes_requests),
		cmocka_unit_test(asks_for_more_at_every_byte),
		cmocka_unit_test(leaves_what_comes_after_a_request),
		cmocka_unit_test(refuses_with_the_words_of_redis),
		cmocka_unit_test(refuses_not_before_the_byte_that_is_wrong),
		cmocka_unit_test(bounds_lines_and_requests),
		cmocka_unit_test(reads_integers_as_redis_does),
		cmocka_unit_test(writes_replies_of_both_versions),
		cmocka_unit_test(cuts_a_long_error),
		cmocka_unit_test(fails_for_good_when_full),
		cmocka_unit_test(announces_parts_that_were_counted_later),
		cmocka_unit_test(drops_what_was_sent),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
