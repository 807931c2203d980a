/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Requests of any bytes, cut in two ways: all at once, and byte by byte as they might come from a
 * slow client. Both must give the same requests, the same refusal at the end, and read nothing that
 * is not there. The first byte chooses the bounds.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "wire/resp.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const struct resp_bounds bounds[] = {
	{ 64, 1 << 20, 64 * 1024, 2 << 20, false },
	{ 10, 16384, 64 * 1024, 2 << 20, true },
	{ 3, 16, 32, 48, false },
};

/* What the requests said: each argument with its length, then how it ended. */
struct digest {
	uint64_t value;
	size_t requests;
};

static struct resp_request request;

static void must(bool condition)
{
	if (!condition)
		abort();
}

static void digest_bytes(struct digest *digest, const void *bytes, size_t length)
{
	const uint8_t *at = bytes;
	size_t i;

	for (i = 0; i < length; i++)
		digest->value = (digest->value ^ at[i]) * 1099511628211u;
}

static void digest_request(struct digest *digest, const struct resp_bounds *limits)
{
	size_t i;
	int64_t number;

	must(request.count <= limits->arguments_max);
	digest->requests++;
	digest_bytes(digest, &request.count, sizeof(request.count));
	for (i = 0; i < request.count; i++) {
		const struct resp_argument *argument = &request.arguments[i];

		must(argument->length <= limits->argument_bytes_max);
		must(argument->data[argument->length] == '\0');
		digest_bytes(digest, &argument->length, sizeof(argument->length));
		digest_bytes(digest, argument->data, argument->length);
		(void)resp_argument_integer(argument, &number);
	}
}

/* Decode what is whole; returns how many bytes that were, or -1 after a refusal. */
static long decode(uint8_t *data, size_t length, const struct resp_bounds *limits,
		   struct digest *digest)
{
	size_t done = 0, consumed;
	int whole;

	while ((whole = resp_decode(data + done, length - done, limits, &request, &consumed)) ==
	       1) {
		must(consumed > 0 && consumed <= length - done);
		done += consumed;
		digest_request(digest, limits);
	}
	if (whole == 0)
		return (long)done;
	must(strncmp(request.error, "Protocol error: ", 16) == 0);
	digest_bytes(digest, request.error, strlen(request.error));
	return -1;
}

/* A block of its own for each step: the sanitizer sees every byte too far. */
static bool step(const uint8_t *from, size_t length, const struct resp_bounds *limits,
		 struct digest *digest, size_t *begin)
{
	uint8_t *copy = malloc(length);
	long done;

	must(copy != NULL);
	memcpy(copy, from, length);
	done = decode(copy, length, limits, digest);
	free(copy);
	if (done < 0)
		return false;
	*begin += (size_t)done;
	return true;
}

static void write_error(const uint8_t *data, size_t size)
{
	struct resp_writer writer;
	size_t i;

	resp_writer_init(&writer, 2, 1 << 20);
	resp_write_error(&writer, "ERR %.*s", (int)size, (const char *)data);
	must(writer.length >= 7 && memcmp(writer.data + writer.length - 2, "\r\n", 2) == 0);
	for (i = 0; i < writer.length - 2; i++)
		must(writer.data[i] >= ' ' && writer.data[i] <= '~');
	resp_writer_done(&writer);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct digest at_once = { 0 }, by_byte = { 0 };
	const struct resp_bounds *limits;
	size_t begin = 0, end;
	uint8_t *copy;

	if (size < 2)
		return 0;
	limits = &bounds[data[0] % 3];
	data++;
	size--;

	copy = malloc(size);
	must(copy != NULL);
	memcpy(copy, data, size);
	(void)decode(copy, size, limits, &at_once);
	free(copy);

	for (end = 1; end <= size; end++)
		if (!step(data + begin, end - begin, limits, &by_byte, &begin))
			break;
	must(at_once.requests == by_byte.requests && at_once.value == by_byte.value);
	write_error(data, size);
	return 0;
}
