/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A token is as good as a key of 256 random bits should be, so one round of SHA-256 is enough to keep
 * it unreadable in the configuration. Digests are compared in constant time, and all of them, so
 * that an answer's delay does not tell how much of a guess was right.
 */
#include "server/tokens.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <openssl/crypto.h>
#include <openssl/sha.h>

_Static_assert((int)SHA256_BYTES == SHA256_DIGEST_LENGTH, "a digest");

int tokens_init(struct tokens *tokens)
{
	*tokens = (struct tokens){ .count = 0 };
	return -pthread_rwlock_init(&tokens->lock, NULL);
}

void tokens_done(struct tokens *tokens)
{
	free(tokens->token);
	tokens->token = NULL;
	tokens->count = 0;
	(void)pthread_rwlock_destroy(&tokens->lock);
}

int tokens_copy(const struct setting_token *from, size_t count, struct setting_token **out)
{
	struct setting_token *copy = NULL;

	if (count) {
		copy = reallocarray(NULL, count, sizeof(*copy));
		if (!copy)
			return -ENOMEM;
		memcpy(copy, from, count * sizeof(*copy));
	}
	*out = copy;
	return 0;
}

void tokens_exchange(struct tokens *tokens, struct setting_token *copy, size_t count)
{
	struct setting_token *old;

	(void)pthread_rwlock_wrlock(&tokens->lock);
	old = tokens->token;
	tokens->token = copy;
	tokens->count = count;
	(void)pthread_rwlock_unlock(&tokens->lock);
	free(old);
}

int tokens_set(struct tokens *tokens, const struct setting_token *from, size_t count)
{
	struct setting_token *copy;
	int err = tokens_copy(from, count, &copy);

	if (!err)
		tokens_exchange(tokens, copy, count);
	return err;
}

size_t tokens_count(struct tokens *tokens)
{
	size_t count;

	(void)pthread_rwlock_rdlock(&tokens->lock);
	count = tokens->count;
	(void)pthread_rwlock_unlock(&tokens->lock);
	return count;
}

bool tokens_find(struct tokens *tokens, const char *presented, size_t length,
		 struct token_holder *out)
{
	uint8_t digest[SHA256_BYTES];
	bool is_found = false;
	size_t i;

	if (length == 0 || length > TOKEN_BYTES_MAX)
		return false;
	(void)SHA256((const unsigned char *)presented, length, digest);
	(void)pthread_rwlock_rdlock(&tokens->lock);
	for (i = 0; i < tokens->count; i++) {
		const struct setting_token *token = &tokens->token[i];

		if (CRYPTO_memcmp(token->sha256, digest, sizeof(digest)) != 0)
			continue;
		memcpy(out->name, token->name, sizeof(out->name));
		out->scopes = token->scopes;
		is_found = true;
	}
	(void)pthread_rwlock_unlock(&tokens->lock);
	return is_found;
}
