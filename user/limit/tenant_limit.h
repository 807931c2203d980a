/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The limit of one tenant: what an operator wrote, and what its buckets are held to. Pure functions
 * of their arguments; thread safe.
 */
#ifndef SLUICE_LIMIT_TENANT_LIMIT_H
#define SLUICE_LIMIT_TENANT_LIMIT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <jansson.h>

#include <sluice/gcra.h>

#include "limit/build.h"

enum {
	TENANT_ID_MAX = 64,
	LIMIT_MESSAGE_MAX = 256,
	LIMIT_BODY_BYTES_MAX = 65536, /* of a limit as JSON */
};

struct tenant_limit {
	bool unlimited;           /* then nothing else counts */
	bool burst_bytes_given;   /* else bytes.burst is one second's worth */
	struct rate_limit hooks;  /* both given, or unlimited */
	struct rate_limit bytes;  /* rate 0: bytes are not limited */
	uint64_t max_body_bytes;  /* 0: none */
	uint64_t max_queue;       /* hooks; 0: none */
	uint64_t max_queue_bytes; /* 0: none */
	struct gcra_limit
		hook_bucket; /* built from the above, BUCKET_WHOLE; capacity 0: unlimited */
	struct gcra_limit byte_bucket; /* BUCKET_WHOLE_BYTES; capacity 0: none */
};

/* Whether text is a tenant id: [A-Za-z0-9_-]{1,64}. */
bool tenant_id_is_valid(const char *text, size_t length);

/* What a byte bucket holds when nobody said: one second's worth, rounded up to whole bytes. */
uint64_t tenant_limit_default_burst(double bytes_per_second);

/*
 * Check what was written and build the buckets' limits; bytes.burst is filled in if it was not
 * given. -EINVAL, -ERANGE, -EOVERFLOW with a message that begins with the wrong key and a space:
 * "burst must be at most 4503598 at this rate, got 5000000". *limit is untouched on failure.
 */
int tenant_limit_build(struct tenant_limit *limit, char message[LIMIT_MESSAGE_MAX]);

/*
 * From a JSON object as PUT …/rate-limit takes it (keys rate, burst, bytes_per_second, burst_bytes,
 * max_body_bytes, max_queue, max_queue_bytes; or unlimited alone), built. -EINVAL with the message
 * of the admin API for the first of these, in this order: not an object; an unknown field (the
 * first by name); unlimited and what stands beside it; rate missing, burst missing; then each key
 * in the order above; then what no bucket can hold. *out is untouched on failure.
 */
int tenant_limit_from_json(const json_t *value, struct tenant_limit *out,
			   char message[LIMIT_MESSAGE_MAX]);

/*
 * The same from bytes. What is no JSON, empty, or longer than LIMIT_BODY_BYTES_MAX "must be a JSON
 * object"; a field given twice and a number beyond 64 bits are refused with their own words.
 * -EINVAL, or -ENOMEM.
 */
int tenant_limit_parse(const char *text, size_t length, struct tenant_limit *out,
		       char message[LIMIT_MESSAGE_MAX]);

/*
 * {rate, burst, …}: what was given and nothing else, so that tenant_limit_from_json() of it makes
 * the same limit; whole rates are JSON integers. NULL is {rate: null, burst: null}, what the admin
 * API shows where there is no limit. The caller owns it; NULL: no memory. Reals are doubles: dump
 * them with JSON_REAL_PRECISION(17) (jansson's default) to keep them, 15 to show 0.1 as 0.1.
 */
json_t *tenant_limit_to_json(const struct tenant_limit *limit);

#endif
