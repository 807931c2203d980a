/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The tokens of the configuration, and whose a presented one is. Only their SHA-256 is kept. Thread
 * safe: a reload exchanges them all at once.
 */
#ifndef SLUICE_SERVER_TOKENS_H
#define SLUICE_SERVER_TOKENS_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>

#include "limit/settings.h"

enum { TOKEN_BYTES_MAX = 1024 };

struct tokens {
	pthread_rwlock_t lock; /* guards the rest */
	struct setting_token *token;
	size_t count;
};

/* Who presented it. */
struct token_holder {
	char name[ADMIN_NAME_MAX + 1];
	unsigned scopes; /* enum admin_scope */
};

/* 0 or -errno: what pthread_rwlock_init() says. */
int tokens_init(struct tokens *tokens);
void tokens_done(struct tokens *tokens);

/* Copied. -ENOMEM: those before stay. */
int tokens_set(struct tokens *tokens, const struct setting_token *from, size_t count);

/* The same in two steps, of which the second cannot fail: a copy, to be freed with free(), and that
 * copy in place of those before, taken over. */
int tokens_copy(const struct setting_token *from, size_t count, struct setting_token **out);
void tokens_exchange(struct tokens *tokens, struct setting_token *copy, size_t count);

size_t tokens_count(struct tokens *tokens);

/* How long it takes tells nothing of the tokens but how many there are. */
bool tokens_find(struct tokens *tokens, const char *presented, size_t length,
		 struct token_holder *out);

#endif
