/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Starting and stopping, and what libmicrohttpd is told.
 *
 * Threads: the library runs `workers` threads, each with a poll of its own over the connections that
 * it has accepted; a connection stays with its thread. A thread's engine reader and counters are made
 * when it first needs them and found through a key, without a lock; `lock` guards the list of them,
 * for those who add the counters up, and the count of connections that were set aside. Readers are
 * freed when the threads are gone. One thread more, the clerk's, runs what may take long.
 */
#include "server/http_internal.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"

enum {
	CONNECTIONS_DEFAULT = 4096,
	IDLE_TIMEOUT_S_DEFAULT = 75,
	CONNECTION_MEMORY_BYTES = 16384, /* header and reply; a longer header is refused with 431 */
	NOTICE_TEXT_MAX = 512,
	DRAIN_STEP_MS = 5,
	NS_PER_MS = 1000000,
};

#define NOTICE_PAUSE_NS 1000000000ULL

/* ---- what the library calls */

void http_notice(struct http_server *server, const char *text)
{
	uint64_t now_ns = clock_monotonic_ns(), last_ns = atomic_load(&server->noticed_at_ns);

	if (!server->options.notice || (last_ns && now_ns - last_ns < NOTICE_PAUSE_NS))
		return;
	if (atomic_compare_exchange_strong(&server->noticed_at_ns, &last_ns, now_ns))
		server->options.notice(server->options.context, text);
}

static void take_log(void *context, const char *format, va_list arguments)
	__attribute__((format(printf, 2, 0)));

static void take_log(void *context, const char *format, va_list arguments)
{
	char text[NOTICE_TEXT_MAX];
	size_t length;

	(void)vsnprintf(text, sizeof(text), format, arguments);
	length = strlen(text);
	while (length && text[length - 1] == '\n')
		text[--length] = '\0';
	http_notice(context, text);
}

static unsigned digit_of(char c)
{
	if (c >= '0' && c <= '9')
		return (unsigned)(c - '0');
	c |= 0x20;
	return c >= 'a' && c <= 'f' ? (unsigned)(c - 'a' + 10) : 16;
}

/* In place. %00 stays as it stands, as what is no escape does: a zero byte would hide what follows. */
static size_t unescape(void *context, struct MHD_Connection *connection, char *text)
{
	char *from = text, *to = text;

	(void)context;
	(void)connection;
	while (*from) {
		unsigned high = from[0] == '%' ? digit_of(from[1]) : 16;
		unsigned low = high < 16 ? digit_of(from[2]) : 16;

		if (low < 16 && (high || low)) {
			*to++ = (char)(high << 4 | low);
			from += 3;
		} else {
			*to++ = *from++;
		}
	}
	*to = '\0';
	return (size_t)(to - text);
}

static struct http_worker *new_worker(struct http_server *server)
{
	struct http_worker *worker = calloc(1, sizeof(*worker));

	if (!worker)
		return NULL;
	if (engine_reader_new(server->options.engine, &worker->reader) ||
	    pthread_setspecific(server->worker_key, worker)) {
		engine_reader_free(worker->reader);
		free(worker);
		return NULL;
	}
	(void)pthread_mutex_lock(&server->lock);
	worker->next = server->workers;
	server->workers = worker;
	(void)pthread_mutex_unlock(&server->lock);
	return worker;
}

static struct http_worker *find_worker(struct http_server *server)
{
	struct http_worker *worker = pthread_getspecific(server->worker_key);

	return worker ? worker : new_worker(server);
}

static void count_up(_Atomic uint64_t *count)
{
	atomic_store_explicit(count, atomic_load_explicit(count, memory_order_relaxed) + 1,
			      memory_order_relaxed);
}

static enum MHD_Result begin(struct http_server *server, struct MHD_Connection *connection,
			     const char *method, const char *path, struct http_exchange **out)
{
	struct http_worker *worker = find_worker(server);
	struct http_exchange *exchange =
		worker ? http_exchange_begin(server, worker, connection, method, path) : NULL;
	bool is_hopeless;

	if (!exchange)
		return MHD_NO;
	*out = exchange;
	count_up(&worker->begun);
	if (exchange->headers.content_length > HTTP_BODY_MAX)
		exchange->is_too_large = true;
	/* A reply that comes before the body closes the connection, and may be lost when it does; so
	 * a body is read to its end, unless it is not worth it, or the client waits to be told. */
	is_hopeless = exchange->response || exchange->is_too_large;
	if (is_hopeless && (exchange->headers.has_expect || exchange->headers.is_ambiguous ||
			    exchange->headers.content_length > HTTP_BODY_DRAIN_MAX))
		return http_exchange_proceed(exchange);
	return MHD_YES;
}

static enum MHD_Result handle(void *context, struct MHD_Connection *connection, const char *path,
			      const char *method, const char *version, const char *bytes,
			      size_t *count, void **slot)
{
	struct http_exchange *exchange = *slot;
	bool may_go_on;

	(void)version;
	if (!exchange)
		return begin(context, connection, method, path, (struct http_exchange **)slot);
	if (*count == 0)
		return http_exchange_proceed(exchange);
	may_go_on = http_exchange_take_body(exchange, bytes, *count);
	*count = 0;
	return may_go_on ? MHD_YES : MHD_NO;
}

static void end(void *context, struct MHD_Connection *connection, void **slot,
		enum MHD_RequestTerminationCode why)
{
	struct http_exchange *exchange = *slot;
	struct http_worker *worker;

	(void)context;
	(void)connection;
	(void)why;
	if (!exchange)
		return;
	*slot = NULL;
	worker = exchange->worker;
	http_exchange_end(exchange);
	count_up(&worker->ended);
}

/* ---- starting */

static int check_exposure(const struct http_server *server, size_t token_count,
			  struct trouble *trouble)
{
	if (token_count > 0 || server->is_local)
		return 0;
	trouble_set(
		trouble, -EPERM,
		"without admin.tokens HTTP is served on a loopback address only, because anyone "
		"could read the limits");
	trouble_advise(trouble, "set listen.http to 127.0.0.1:%d, or configure a token",
		       HTTP_PORT_DEFAULT);
	return -EPERM;
}

static int open_listener(struct http_server *server, struct trouble *trouble)
{
	int err;

	if (server->options.listener > 0) {
		server->listener = server->options.listener;
		err = http_adopt(server->listener, trouble);
	} else {
		err = http_listen(&server->options.endpoint, &server->listener, trouble);
	}
	if (err)
		return err;
	server->is_local = http_is_local(server->listener);
	return check_exposure(server, server->options.settings->token_count, trouble);
}

static struct MHD_Daemon *start_library(struct http_server *server)
{
	const struct http_server_options *options = &server->options;
	const unsigned flags = MHD_USE_EPOLL_INTERNAL_THREAD | MHD_ALLOW_SUSPEND_RESUME |
			       MHD_USE_TURBO | MHD_USE_ERROR_LOG;
	const unsigned connections_max =
		options->connections_max ? options->connections_max : CONNECTIONS_DEFAULT;
	const unsigned idle_timeout_s =
		options->idle_timeout_s ? options->idle_timeout_s : IDLE_TIMEOUT_S_DEFAULT;
	const struct MHD_OptionItem more[] = {
		{ MHD_OPTION_LISTEN_SOCKET, server->listener, NULL },
		{ MHD_OPTION_CONNECTION_LIMIT, (intptr_t)connections_max, NULL },
		{ MHD_OPTION_CONNECTION_TIMEOUT, (intptr_t)idle_timeout_s, NULL },
		{ MHD_OPTION_CONNECTION_MEMORY_LIMIT, CONNECTION_MEMORY_BYTES, NULL },
		{ MHD_OPTION_STRICT_FOR_CLIENT, 1, NULL },
		/* Of a pool of one it complains. */
		{ options->workers > 1 ? MHD_OPTION_THREAD_POOL_SIZE : MHD_OPTION_END,
		  (intptr_t)options->workers, NULL },
		{ MHD_OPTION_END, 0, NULL },
	};

	/* The logger first, so that it hears of the others. */
	return MHD_start_daemon(flags, 0, NULL, NULL, handle, server, MHD_OPTION_EXTERNAL_LOGGER,
				take_log, server, MHD_OPTION_NOTIFY_COMPLETED, end, server,
				MHD_OPTION_UNESCAPE_CALLBACK, unescape, server, MHD_OPTION_ARRAY,
				more, MHD_OPTION_END);
}

static int start_threads(struct http_server *server, struct trouble *trouble)
{
	sigset_t all, before;
	int err;

	(void)sigfillset(&all);
	(void)pthread_sigmask(SIG_SETMASK, &all, &before);
	err = http_clerk_start(&server->clerk);
	if (!err) {
		errno = 0;
		server->daemon = start_library(server);
		if (!server->daemon) {
			err = errno ? -errno : -EIO;
			server->listener = -1; /* the library has closed it */
		}
	}
	(void)pthread_sigmask(SIG_SETMASK, &before, NULL);
	return err ? trouble_set(trouble, err, "the HTTP server's threads cannot be started: %s",
				 strerror(-err))
		   : 0;
}

static int set_up(struct http_server *server, struct trouble *trouble)
{
	const struct settings *settings = server->options.settings;
	int err = tokens_set(&server->tokens, settings->tokens, settings->token_count);

	if (!err)
		err = -pthread_key_create(&server->worker_key, NULL);
	if (err)
		return trouble_set(trouble, err, "the HTTP server cannot be made: %s",
				   strerror(-err));
	server->has_worker_key = true;
	server->generation = (int)settings->ratelimit_headers;
	if (server->options.started_at_ms == 0)
		server->options.started_at_ms = http_wall_ms();
	if (!server->options.version)
		server->options.version = "0.0.0";
	return open_listener(server, trouble);
}

int http_server_start(const struct http_server_options *options, struct http_server **out,
		      struct trouble *trouble)
{
	struct http_server *server = calloc(1, sizeof(*server));
	int err;

	if (!server || tokens_init(&server->tokens)) {
		free(server);
		return trouble_set(trouble, -ENOMEM, "out of memory");
	}
	server->options = *options;
	server->listener = -1;
	(void)pthread_mutex_init(&server->lock, NULL);
	(void)pthread_cond_init(&server->has_resumed, NULL);
	http_clerk_init(&server->clerk);
	err = set_up(server, trouble);
	if (!err)
		err = start_threads(server, trouble);
	if (err) {
		http_server_free(server);
		return err;
	}
	/* It may be gone before the server is. */
	server->options.settings = NULL;
	*out = server;
	return 0;
}

/* ---- other settings */

struct http_prepared {
	struct setting_token *tokens;
	size_t token_count;
	int generation;
};

int http_server_prepare(const struct http_server *server, const struct settings *settings,
			struct http_prepared **out, struct trouble *trouble)
{
	struct http_prepared *prepared;
	int err = check_exposure(server, settings->token_count, trouble);

	if (err)
		return err;
	prepared = calloc(1, sizeof(*prepared));
	if (!prepared || tokens_copy(settings->tokens, settings->token_count, &prepared->tokens)) {
		free(prepared);
		return trouble_set(trouble, -ENOMEM, "out of memory");
	}
	prepared->token_count = settings->token_count;
	prepared->generation = (int)settings->ratelimit_headers;
	*out = prepared;
	return 0;
}

void http_server_commit(struct http_server *server, struct http_prepared *prepared)
{
	tokens_exchange(&server->tokens, prepared->tokens, prepared->token_count);
	atomic_store(&server->generation, prepared->generation);
	free(prepared);
}

void http_server_discard(struct http_prepared *prepared)
{
	if (!prepared)
		return;
	free(prepared->tokens);
	free(prepared);
}

int http_server_configure(struct http_server *server, const struct settings *settings,
			  struct trouble *trouble)
{
	struct http_prepared *prepared;
	int err = http_server_prepare(server, settings, &prepared, trouble);

	if (!err)
		http_server_commit(server, prepared);
	return err;
}

/* ---- stopping */

static bool is_busy(struct http_server *server)
{
	uint64_t begun = 0, ended = 0;

	(void)pthread_mutex_lock(&server->lock);
	for (struct http_worker *worker = server->workers; worker; worker = worker->next) {
		ended += atomic_load_explicit(&worker->ended, memory_order_relaxed);
		begun += atomic_load_explicit(&worker->begun, memory_order_relaxed);
	}
	(void)pthread_mutex_unlock(&server->lock);
	return begun != ended;
}

static bool is_asking(struct http_server *server)
{
	bool found = false;

	(void)pthread_mutex_lock(&server->lock);
	for (struct http_worker *worker = server->workers; worker; worker = worker->next)
		found |= atomic_load(&worker->is_asking);
	(void)pthread_mutex_unlock(&server->lock);
	return found;
}

void http_server_stop(struct http_server *server, uint64_t grace_ms)
{
	const struct timespec step = { .tv_nsec = DRAIN_STEP_MS * NS_PER_MS };
	uint64_t until_ns = clock_monotonic_ns() + grace_ms * NS_PER_MS;

	if (!server->daemon)
		return;
	atomic_store(&server->is_stopping, true);
	(void)MHD_quiesce_daemon(server->daemon);
	while (is_busy(server) && clock_monotonic_ns() < until_ns)
		(void)nanosleep(&step, NULL);
	/* The library must not be stopped while a connection is suspended, or about to be. */
	atomic_store(&server->is_closing, true);
	while (is_asking(server))
		(void)nanosleep(&step, NULL);
	(void)pthread_mutex_lock(&server->lock);
	while (server->set_aside)
		(void)pthread_cond_wait(&server->has_resumed, &server->lock);
	(void)pthread_mutex_unlock(&server->lock);
	MHD_stop_daemon(server->daemon);
	server->daemon = NULL;
	http_clerk_stop(&server->clerk);
}

void http_server_free(struct http_server *server)
{
	struct http_worker *worker, *next;

	if (!server)
		return;
	http_server_stop(server, 0);
	if (server->listener >= 0)
		close(server->listener);
	for (worker = server->workers; worker; worker = next) {
		next = worker->next;
		engine_reader_free(worker->reader);
		free(worker->spare);
		free(worker);
	}
	if (server->has_worker_key)
		(void)pthread_key_delete(server->worker_key);
	http_clerk_done(&server->clerk);
	tokens_done(&server->tokens);
	(void)pthread_cond_destroy(&server->has_resumed);
	(void)pthread_mutex_destroy(&server->lock);
	free(server);
}

unsigned http_server_port(const struct http_server *server)
{
	return http_port(server->listener);
}
