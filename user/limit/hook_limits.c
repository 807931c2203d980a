/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Hashes what has a meaning, member by member: what pads a struct is nobody's. */
#include "limit/hook_limits.h"

#include <sluice/abi.h>

#include "base/hash.h"

uint64_t hook_limits_digest(const struct gcra_limit *client, const struct gcra_limit *node,
			    const struct settings *settings)
{
	/* No secret: it is to be the same in every process. */
	static const struct siphash_key key = { { 0x736c756963652068ULL, 0x6f6f6b206c696d73ULL } };
	const uint64_t meaning[] = {
		client->interval,
		client->capacity,
		client->burst,
		client->word_class,
		node->interval,
		node->capacity,
		node->burst,
		settings->ipv6_prefix,
		settings->dry_ip >> METER_HOOKS & 1,
		settings->dry_node >> METER_HOOKS & 1,
	};
	uint64_t digest = hash_strong(&key, meaning, sizeof(meaning));

	return digest ? digest : 1;
}
