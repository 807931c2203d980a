/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A queue and a thread. An exchange in the queue belongs to the clerk: its connection is set aside,
 * or about to be, until http_exchange_answered() gives it back.
 */
#include "server/http_clerk.h"

#include "server/http_exchange.h"

void http_clerk_init(struct http_clerk *clerk)
{
	*clerk = (struct http_clerk){ .is_running = false };
	(void)pthread_mutex_init(&clerk->lock, NULL);
	(void)pthread_cond_init(&clerk->has_news, NULL);
}

void http_clerk_done(struct http_clerk *clerk)
{
	http_clerk_stop(clerk);
	(void)pthread_cond_destroy(&clerk->has_news);
	(void)pthread_mutex_destroy(&clerk->lock);
}

/* NULL: there will be no more. */
static struct http_exchange *take(struct http_clerk *clerk)
{
	struct http_exchange *exchange;

	(void)pthread_mutex_lock(&clerk->lock);
	while (!clerk->first && !clerk->is_ending)
		(void)pthread_cond_wait(&clerk->has_news, &clerk->lock);
	exchange = clerk->first;
	if (exchange)
		clerk->first = exchange->next;
	(void)pthread_mutex_unlock(&clerk->lock);
	return exchange;
}

static void *work(void *context)
{
	struct http_clerk *clerk = context;
	struct http_exchange *exchange;

	while ((exchange = take(clerk)) != NULL) {
		exchange->route->run(exchange);
		http_exchange_answered(exchange);
	}
	return NULL;
}

int http_clerk_start(struct http_clerk *clerk)
{
	int err = -pthread_create(&clerk->thread, NULL, work, clerk);

	clerk->is_running = !err;
	return err;
}

void http_clerk_give(struct http_clerk *clerk, struct http_exchange *exchange)
{
	(void)pthread_mutex_lock(&clerk->lock);
	exchange->next = NULL;
	if (clerk->first)
		clerk->last->next = exchange;
	else
		clerk->first = exchange;
	clerk->last = exchange;
	(void)pthread_cond_signal(&clerk->has_news);
	(void)pthread_mutex_unlock(&clerk->lock);
}

void http_clerk_stop(struct http_clerk *clerk)
{
	if (!clerk->is_running)
		return;
	(void)pthread_mutex_lock(&clerk->lock);
	clerk->is_ending = true;
	(void)pthread_cond_signal(&clerk->has_news);
	(void)pthread_mutex_unlock(&clerk->lock);
	(void)pthread_join(clerk->thread, NULL);
	clerk->is_running = false;
}
