/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Puts engine and servers together. */
#include "daemon/service.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/lock.h"
#include "base/parse.h"
#include "base/version.h"
#include "daemon/internal.h"
#include "daemon/log.h"

enum {
	STOP_GRACE_MS = 5000,
	OUTPUT_SOFT_BYTES = 64 << 20,
	OUTPUT_HARD_BYTES = 128 << 20,
	ENDPOINT_TEXT_MAX = ADDRESS_TEXT_MAX + 10,
};

static void warn(const char *message, void *data)
{
	(void)data;
	log_line(LOG_LEVEL_WARNING, "%s", message);
}

static void notice(void *context, const char *text)
{
	warn(text, context);
}

/* The folder of what outlives the daemon, made if its parent is there; ours alone while we run. */
static int open_state(struct service *service, const char *state, char database[PATH_MAX],
		      struct trouble *trouble)
{
	char holder[LOCK_HOLDER_MAX];
	int err;

	if (snprintf(database, PATH_MAX, "%s/sluice.db", state) >= PATH_MAX)
		return trouble_set(trouble, -ENAMETOOLONG, "%s is too long", state);
	if (mkdir(state, 0750) && errno != EEXIST) {
		err = -errno;
		trouble_set(trouble, 0, "cannot make %s: %s", state, strerror(-err));
		trouble_advise(trouble,
			       "make it, or name another with `state` in the configuration");
		return err;
	}
	service->state_fd = open(state, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	err = service->state_fd < 0 ? -errno : lock_take(service->state_fd, holder);
	if (!err)
		return 0;
	if (err == -EWOULDBLOCK) {
		trouble_set(trouble, 0, "%s is in use by another sluiced%s", database, holder);
		trouble_advise(trouble, "stop that one, or name another folder with `state`");
	} else {
		trouble_set(trouble, 0, "cannot lock %s: %s", state, strerror(-err));
		trouble_advise(trouble,
			       "let this user read it, or name another folder with `state`");
	}
	return err;
}

static struct service *service_of(void *context)
{
	return (struct service *)((char *)context - offsetof(struct service, commands));
}

static bool authenticate(void *context, const struct resp_argument *user,
			 const struct resp_argument *password, struct resp_identity *out)
{
	struct service *service = service_of(context);
	struct token_holder holder;

	(void)user; /* the token alone says who it is */
	if (!tokens_find(&service->tokens, password->data, password->length, &holder))
		return false;
	*out = (struct resp_identity){ .scopes = holder.scopes };
	(void)snprintf(out->name, sizeof(out->name), "%s", holder.name);
	return true;
}

static unsigned worker_count(const struct settings *settings)
{
	long cpus = sysconf(_SC_NPROCESSORS_ONLN);

	if (settings->workers)
		return settings->workers;
	return cpus < 1 ? 1 : cpus > WORKERS_MAX ? WORKERS_MAX : (unsigned)cpus;
}

static void endpoint_text(const struct setting_endpoint *endpoint, char text[ENDPOINT_TEXT_MAX])
{
	char address[ADDRESS_TEXT_MAX];

	format_address(&endpoint->address, address);
	(void)snprintf(text, ENDPOINT_TEXT_MAX, strchr(address, ':') ? "[%s]:%u" : "%s:%u", address,
		       endpoint->port);
}

static int start_engine(struct service *service, const struct settings *settings,
			const char *database, struct trouble *trouble)
{
	struct engine_options options = {
		.settings = settings,
		.tenant_memory = service->tenants.slots,
		.tenant_slots = service->tenants.count,
		.secret = service->tenants.secret,
		.database = database,
		.warn = warn,
	};

	shedding_begin(service);
	options.client_memory =
		(struct address_memory){ service->hooks.sets, service->hooks.hooks };
	return engine_new(&options, &service->engine, trouble);
}

static int start_probes(struct service *service, const struct settings *settings,
			struct trouble *trouble)
{
	struct setting_interface *wanted;

	probes_init(&service->probes, service->engine,
		    service->has_dataplane ? &service->pins : NULL);
	service->has_probes = true;
	watch_init(&service->watch);
	if (probes_copy(settings, &wanted))
		return trouble_set(trouble, -ENOMEM, "out of memory");
	probes_exchange(&service->probes, wanted, settings->interface_count);
	return 0;
}

static void say_where(const struct resp_server_options *options)
{
	char inherited[48] = "";

	if (options->inherited_count)
		(void)snprintf(inherited, sizeof(inherited), "%zu inherited socket%s",
			       options->inherited_count, options->inherited_count > 1 ? "s" : "");
	log_line(LOG_LEVEL_INFO, "answers on %s%s%s%s%s with %u workers", inherited,
		 inherited[0] && (options->unix_path || options->tcp) ? " and " : "",
		 options->unix_path ? options->unix_path : "",
		 options->unix_path && options->tcp ? " and " : "",
		 options->tcp ? options->tcp : "", options->workers);
}

/* Where to listen: what a supervisor has opened, in place of what would be opened of that kind. */
static int listen_resp(struct service *service, const struct settings *settings,
		       struct resp_server_options *options, struct trouble *trouble)
{
	const struct sockets *sockets = &service->sockets;
	char tcp[ENDPOINT_TEXT_MAX];
	int err;

	options->inherited = sockets->resp;
	options->inherited_count = sockets->resp_count;
	if (settings->listen.unix_path[0] && !sockets->has_resp_unix)
		options->unix_path = settings->listen.unix_path;
	if (settings->listen.tcp.port && !sockets->has_resp_tcp) {
		endpoint_text(&settings->listen.tcp, tcp);
		options->tcp = tcp;
	}
	if (!options->unix_path && !options->tcp && !options->inherited_count)
		return 0;
	err = resp_server_start(options, &service->resp, trouble);
	if (!err)
		say_where(options);
	return err;
}

static int start_resp(struct service *service, const struct settings *settings,
		      struct trouble *trouble)
{
	struct resp_server_options options = {
		.context = &service->commands,
		.closed = resp_commands_closed,
		.info = resp_commands_info,
		.authenticate = authenticate,
		.notice = notice,
		.workers = worker_count(settings),
		/* A client may send a million commands before it reads the first answer. */
		.output_soft_bytes = OUTPUT_SOFT_BYTES,
		.output_hard_bytes = OUTPUT_HARD_BYTES,
		.version = SLUICE_VERSION_FULL,
	};
	int err = resp_commands_init(&service->commands, service->engine, options.workers);

	if (err)
		return trouble_set(trouble, err, "out of memory");
	service->commands.reload = service->config ? service_reload : NULL;
	service->commands.data = service;
	options.commands = resp_commands_table(&options.command_count);
	return listen_resp(service, settings, &options, trouble);
}

static bool is_ready(void *context, struct trouble *why)
{
	struct service *service = context;

	return probes_is_ready(&service->probes, why);
}

static void add_metrics(void *context, struct exposition *out)
{
	struct service *service = context;

	probes_metrics(&service->probes, out);
	if (service->has_dataplane)
		watch_metrics(&service->watch, out);
}

static int start_http(struct service *service, const struct settings *settings,
		      struct trouble *trouble)
{
	const struct http_server_options options = {
		.engine = service->engine,
		.settings = settings,
		.endpoint = settings->listen.http,
		.listener = service->sockets.http,
		.workers = worker_count(settings),
		.version = SLUICE_VERSION_FULL,
		.context = service,
		.reload = service->config ? service_reload : NULL,
		.is_ready = is_ready,
		.metrics = add_metrics,
		.notice = notice,
	};
	char text[ENDPOINT_TEXT_MAX] = "an inherited socket";
	int err;

	if (!settings->listen.http.port && !service->sockets.http)
		return 0;
	err = http_server_start(&options, &service->http, trouble);
	if (err)
		return err;
	if (!service->sockets.http)
		endpoint_text(&settings->listen.http, text);
	log_line(LOG_LEVEL_INFO, "answers HTTP on %s", text);
	return 0;
}

struct starting {
	struct service *service;
	const struct settings *settings;
};

/* Last, so that who cannot listen has changed nothing in the kernel: it is taken back. */
static int start_servers(void *data, struct trouble *trouble)
{
	const struct starting *starting = data;
	struct service *service = starting->service;
	struct watched *watched;
	int err = start_resp(service, starting->settings, trouble);

	if (!err)
		err = start_http(service, starting->settings, trouble);
	if (!err && watch_copy(starting->settings, &watched))
		err = trouble_set(trouble, -ENOMEM, "out of memory");
	if (!err)
		watch_exchange(&service->watch, watched, starting->settings->interface_count);
	return err;
}

static struct service *new_service(const char *config, const struct settings *settings)
{
	struct service *service = calloc(1, sizeof(*service));

	if (!service)
		return NULL;
	service->state_fd = -1;
	service->watch.changes_fd = -1;
	service->started.listen = settings->listen;
	memcpy(service->started.state, settings->state, sizeof(service->started.state));
	service->started.workers = settings->workers;
	service->started.tenant_slots = settings->tenant_slots;
	service->config = config ? strdup(config) : NULL;
	if ((config && !service->config) || tokens_init(&service->tokens)) {
		free(service->config);
		free(service);
		return NULL;
	}
	(void)pthread_mutex_init(&service->reloading, NULL);
	return service;
}

int service_start(const struct service_options *options, struct service **out,
		  struct trouble *trouble)
{
	const struct settings *settings = options->settings;
	struct service *service = new_service(options->config, settings);
	struct starting starting = { service, settings };
	char database[PATH_MAX];
	int err;

	if (!service)
		return trouble_set(trouble, -ENOMEM, "out of memory");
	err = sockets_sort(options->inherited, options->inherited_count, &settings->listen,
			   &service->sockets, trouble);
	/* Before the first thing that others see, all that only one daemon may have is ours. */
	if (!err)
		err = open_state(service, settings->state, database, trouble);
	if (!err)
		err = plane_open(service, settings, trouble);
	if (!err)
		err = start_engine(service, settings, database, trouble);
	if (!err)
		err = start_probes(service, settings, trouble);
	if (!err && tokens_set(&service->tokens, settings->tokens, settings->token_count))
		err = trouble_set(trouble, -ENOMEM, "out of memory");
	if (!err)
		err = plane_apply(service, settings, start_servers, &starting, trouble);
	if (err)
		service_stop(service);
	else
		*out = service;
	return err;
}

void service_tick(struct service *service)
{
	engine_tick(service->engine);
	shedding_follow(service);
	plane_follow(service);
}

void service_stop(struct service *service)
{
	if (!service)
		return;
	if (service->http)
		http_server_stop(service->http, STOP_GRACE_MS);
	http_server_free(service->http);
	if (service->resp)
		resp_server_stop(service->resp, STOP_GRACE_MS);
	resp_server_free(service->resp);
	resp_commands_done(&service->commands);
	if (service->has_probes)
		probes_done(&service->probes);
	watch_done(&service->watch);
	engine_free(service->engine);
	shedding_end(service);
	tenant_map_close(&service->tenants);
	tokens_done(&service->tokens);
	if (service->state_fd >= 0)
		(void)close(service->state_fd);
	(void)pthread_mutex_destroy(&service->reloading);
	free(service->config);
	free(service);
}
