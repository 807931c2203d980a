/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The thread that runs slow routes (those that wait for the disk, or go through all tenants), one
 * after the other, so that no check waits for them. Thread safe.
 */
#ifndef SLUICE_SERVER_HTTP_CLERK_H
#define SLUICE_SERVER_HTTP_CLERK_H

#include <pthread.h>
#include <stdbool.h>

struct http_exchange;

struct http_clerk {
	pthread_t thread;
	bool is_running;      /* the thread is there */
	pthread_mutex_t lock; /* guards the rest */
	pthread_cond_t has_news;
	struct http_exchange *first, *last;
	bool is_ending;
};

void http_clerk_init(struct http_clerk *clerk);
/* -errno of pthread_create(). */
int http_clerk_start(struct http_clerk *clerk);

/* Run the route of an exchange, of which http_exchange_ask() has been called; then it is answered. */
void http_clerk_give(struct http_clerk *clerk, struct http_exchange *exchange);

/* When nothing more will be given: returns when all that was given is done. A second call does
 * nothing. */
void http_clerk_stop(struct http_clerk *clerk);
void http_clerk_done(struct http_clerk *clerk); /* stops, if it has not been */

#endif
