/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The server as a whole: what it is made of, in which order it starts and stops. */
#include "server/resp_server.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "server/resp_connection.h"
#include "server/resp_handshake.h"

#define KIB ((size_t)1024)
#define MIB (1024 * KIB)

static void set_u32(uint32_t *value, size_t standard)
{
	*value = *value ? *value : (uint32_t)standard;
}

static void set_size(size_t *value, size_t standard)
{
	*value = *value ? *value : standard;
}

static void set_standards(struct resp_server_options *options)
{
	struct resp_bounds *bounds = &options->bounds;

	options->workers = options->workers ? options->workers : 1;
	if (options->workers > RESP_WORKERS_MAX)
		options->workers = RESP_WORKERS_MAX;
	set_u32(&options->connections_max, 16384);
	set_u32(&options->awaited_max, 16384);
	set_u32(&bounds->arguments_max, 64);
	if (bounds->arguments_max > RESP_ARGUMENTS_ROOM)
		bounds->arguments_max = RESP_ARGUMENTS_ROOM;
	set_u32(&bounds->argument_bytes_max, MIB);
	set_u32(&bounds->inline_bytes_max, 64 * KIB);
	set_u32(&bounds->request_bytes_max, 2 * MIB);
	bounds->is_unauthenticated = false;
	set_size(&options->output_soft_bytes, 8 * MIB);
	set_size(&options->output_hard_bytes, 64 * MIB);
	set_size(&options->pool_bytes, 512 * MIB);
	if (!options->stall_timeout_ms)
		options->stall_timeout_ms = 60 * 1000;
	options->version = options->version ? options->version : "0.0.0";
}

static int add_listeners(struct resp_server *server, struct trouble *trouble)
{
	const struct resp_server_options *options = &server->options;
	struct resp_listener *next = server->listeners;
	size_t i;
	int err = 0;

	if (options->inherited_count + !!options->unix_path + !!options->tcp > RESP_LISTENERS_MAX)
		return trouble_set(trouble, -E2BIG, "cannot inherit %zu sockets",
				   options->inherited_count);
	for (i = 0; i < options->inherited_count && !err; i++) {
		err = resp_listener_inherit(options->inherited[i], next, trouble);
		next += !err;
	}
	if (!err && options->unix_path) {
		err = resp_listener_open_unix(options->unix_path, options->unix_group, next,
					      trouble);
		next += !err;
	}
	if (!err && options->tcp) {
		err = resp_listener_open_tcp(options->tcp, next, trouble);
		next += !err;
	}
	server->listener_count = (unsigned)(next - server->listeners);
	for (i = 0; i < server->listener_count; i++)
		if (!server->listeners[i].is_unix)
			server->tcp_port = resp_listener_port(&server->listeners[i]);
	return err;
}

static int start_workers(struct resp_server *server)
{
	unsigned i;
	int err = 0;

	server->workers = calloc(server->options.workers, sizeof(*server->workers));
	if (!server->workers)
		return -ENOMEM;
	/* All of them exist before the first thread may hand something to another. */
	for (i = 0; i < server->options.workers && !err; i++)
		err = resp_worker_init(&server->workers[i], server, i);
	if (err) {
		server->options.workers = i;
		return err;
	}
	err = resp_acceptor_start(server);
	/* The acceptor's last: until then no connection can come to a worker without a thread. */
	for (i = server->options.workers; i > 0 && !err; i--)
		err = resp_worker_start(&server->workers[i - 1]);
	return err;
}

int resp_server_start(const struct resp_server_options *options, struct resp_server **out,
		      struct trouble *trouble)
{
	struct resp_server *server = calloc(1, sizeof(*server));
	int err = -ENOMEM;

	if (!server)
		return trouble_set(trouble, err, "no memory");
	server->options = *options;
	set_standards(&server->options);
	server->started_ns = clock_monotonic_ns();
	err = resp_table_new(resp_handshake, resp_handshake_count, options->commands,
			     options->command_count, &server->table);
	if (err) {
		trouble_set(trouble, err, "cannot take the commands: %s", strerror(-err));
		goto fail;
	}
	err = add_listeners(server, trouble);
	if (err)
		goto fail;
	err = start_workers(server);
	if (err) {
		trouble_set(trouble, err, "cannot start the workers: %s", strerror(-err));
		goto fail;
	}
	*out = server;
	return 0;

fail:
	resp_server_free(server);
	return err;
}

void resp_server_stop(struct resp_server *server, uint64_t grace_ms)
{
	unsigned i;

	if (server->is_stopped)
		return;
	server->is_stopped = true;
	server->grace = (struct timeval){
		.tv_sec = (time_t)(grace_ms / 1000),
		.tv_usec = (suseconds_t)(grace_ms % 1000 * 1000),
	};
	/* Worker 0 ends the others; on a start that failed it may be missing. */
	for (i = 0; server->workers && i < server->options.workers; i++)
		if (i == 0 || !server->workers[0].has_thread)
			resp_worker_end(&server->workers[i]);
	for (i = 0; server->workers && i < server->options.workers; i++)
		if (server->workers[i].has_thread)
			pthread_join(server->workers[i].thread, NULL);
}

void resp_server_free(struct resp_server *server)
{
	unsigned i;

	if (!server)
		return;
	resp_server_stop(server, 0);
	for (i = 0; i < server->listener_count; i++)
		resp_listener_close(&server->listeners[i]);
	for (i = 0; server->workers && i < server->options.workers; i++)
		resp_worker_done(&server->workers[i]);
	/* Who still owes a reply would write to freed memory. */
	assert(__atomic_load_n(&server->replies_awaited, __ATOMIC_RELAXED) == 0);
	free(server->workers);
	resp_table_free(server->table);
	free(server);
}

unsigned resp_server_port(const struct resp_server *server)
{
	return server->tcp_port;
}

static uint64_t read_counter(const uint64_t *counter)
{
	return __atomic_load_n(counter, __ATOMIC_RELAXED);
}

void resp_server_stats(const struct resp_server *server, struct resp_server_stats *out)
{
	struct resp_server_stats stats = {
		.connections = read_counter(&server->connections),
		.pool_bytes = read_counter(&server->pool_used),
	};
	unsigned i;

	for (i = 0; i < server->options.workers; i++) {
		const struct resp_counters *counters = &server->workers[i].counters;

		stats.accepted += read_counter(&counters->accepted);
		stats.refused += read_counter(&counters->refused);
		stats.commands += read_counter(&counters->commands);
		stats.malformed += read_counter(&counters->malformed);
		stats.closed_idle += read_counter(&counters->closed_idle);
		stats.closed_stalled += read_counter(&counters->closed_stalled);
		stats.closed_full += read_counter(&counters->closed_full);
		stats.input_bytes += read_counter(&counters->input_bytes);
		stats.output_bytes += read_counter(&counters->output_bytes);
	}
	*out = stats;
}
