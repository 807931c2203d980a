/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Puts engine and servers together. */
#include "daemon/service.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/parse.h"
#include "daemon/log.h"
#include "dataplane/attach.h"
#include "dataplane/object.h"
#include "dataplane/tenants.h"
#include "engine/engine.h"
#include "server/http_server.h"
#include "server/resp_commands.h"
#include "server/resp_server.h"
#include "server/tokens.h"

enum {
	STOP_GRACE_MS = 5000,
	OUTPUT_SOFT_BYTES = 64 << 20,
	OUTPUT_HARD_BYTES = 128 << 20,
	ENDPOINT_TEXT_MAX = ADDRESS_TEXT_MAX + 10,
};

struct service {
	char *config;
	pthread_mutex_t reloading; /* one configuration at a time, whole, comes into force */
	int state_fd; /* the folder of what outlives the daemon, locked while this one runs; or -1 */
	struct tenant_map tenants; /* zero: memory of the engine's own */
	struct engine *engine;
	struct resp_commands commands;
	struct resp_server *resp;
	struct tokens tokens; /* for AUTH */
	struct http_server *http;
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
	int err;

	if (snprintf(database, PATH_MAX, "%s/sluice.db", state) >= PATH_MAX)
		return trouble_set(trouble, -ENAMETOOLONG, "%s is too long", state);
	if (mkdir(state, 0750) && errno != EEXIST) {
		err = -errno;
		trouble_set(trouble, 0, "cannot make %s: %s", state, strerror(-err));
		trouble_advise(trouble, "make it, or name another with `state` in the configuration");
		return err;
	}
	service->state_fd = open(state, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (service->state_fd >= 0 && !flock(service->state_fd, LOCK_EX | LOCK_NB))
		return 0;
	err = -errno;
	if (err == -EWOULDBLOCK) {
		trouble_set(trouble, 0, "%s is in use by another sluiced", database);
		trouble_advise(trouble, "stop that one, or name another folder with `state`");
	} else {
		trouble_set(trouble, 0, "cannot lock %s: %s", state, strerror(-err));
		trouble_advise(trouble, "let this user read it, or name another folder with `state`");
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

/* Put the data plane's part of the settings in force, on the interfaces they name. */
static int attach(const struct settings *settings, struct pins *pins, struct trouble *trouble)
{
	struct attach_result result = { 0 };
	int err = attach_all(pins, settings, NULL, NULL, &result, trouble);

	for (size_t at = 0; !err && at < result.count; at++)
		log_line(LOG_LEVEL_INFO, "%s: %s in %s mode%s%s", result.interfaces[at].name,
			 result.interfaces[at].renewed ? "renewed" : "attached",
			 attach_mode_name(result.interfaces[at].mode),
			 result.interfaces[at].passed_over[0] ? ", passed over " : "",
			 result.interfaces[at].passed_over);
	return err;
}

static int lock_pins(const struct settings *settings, struct pins *pins, struct trouble *trouble)
{
	int err = pins_init(pins, settings->bpffs, trouble);

	if (!err)
		err = pins_lock(pins, true, trouble);
	return err;
}

/* For who has not the permission there is another way than to get it. */
static int advise_without(int err, struct trouble *trouble)
{
	if (err == -EPERM || err == -EACCES)
		trouble_advise(trouble,
			       "run as root, with CAP_BPF, CAP_NET_ADMIN and CAP_PERFMON; or set "
			       "`dataplane: off` to hold tenants alone, with debts in memory");
	return err;
}

/* The map that debts outlive us in. */
static int open_tenants(struct service *service, const struct settings *settings,
			struct trouble *trouble)
{
	struct pins pins;
	int err;

	if (settings->no_dataplane)
		return 0;
	object_set_verbose(false);
	err = lock_pins(settings, &pins, trouble);
	if (err)
		return advise_without(err, trouble);
	err = tenant_map_open(&service->tenants, &pins, settings->tenant_slots, trouble);
	pins_unlock(&pins);
	if (!err && service->tenants.adopted)
		log_line(LOG_LEVEL_INFO, "debts of tenants in %s are kept", pins.daemon);
	if (!err && service->tenants.count != settings->tenant_slots)
		log_line(LOG_LEVEL_WARNING,
			 "%s keeps its %zu slots; to have tenant_slots: %u, stop and remove that folder",
			 pins.daemon, service->tenants.count, settings->tenant_slots);
	return advise_without(err, trouble);
}

static int apply_dataplane(const struct settings *settings, struct trouble *trouble)
{
	struct pins pins;
	int err;

	if (settings->no_dataplane || !settings->interface_count)
		return 0;
	err = lock_pins(settings, &pins, trouble);
	if (err)
		return advise_without(err, trouble);
	err = attach(settings, &pins, trouble);
	pins_unlock(&pins);
	return advise_without(err, trouble);
}

static int start_engine(struct service *service, const struct settings *settings,
			const char *database, struct trouble *trouble)
{
	const struct engine_options options = {
		.settings = settings,
		.tenant_memory = service->tenants.slots,
		.tenant_slots = service->tenants.count,
		.secret = service->tenants.secret,
		.database = database,
		.warn = warn,
	};

	return engine_new(&options, &service->engine, trouble);
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
		.version = "0.1.0",
	};
	char tcp[ENDPOINT_TEXT_MAX];
	int err = resp_commands_init(&service->commands, service->engine, options.workers);

	if (err)
		return trouble_set(trouble, err, "out of memory");
	service->commands.reload = service->config ? service_reload : NULL;
	service->commands.data = service;
	options.commands = resp_commands_table(&options.command_count);
	if (settings->listen.unix_path[0])
		options.unix_path = settings->listen.unix_path;
	if (settings->listen.tcp.port) {
		endpoint_text(&settings->listen.tcp, tcp);
		options.tcp = tcp;
	}
	if (!options.unix_path && !options.tcp)
		return 0;
	err = resp_server_start(&options, &service->resp, trouble);
	if (!err)
		log_line(LOG_LEVEL_INFO, "answers on %s%s%s with %u workers",
			 options.unix_path ? options.unix_path : "",
			 options.unix_path && options.tcp ? " and " : "",
			 options.tcp ? options.tcp : "", options.workers);
	return err;
}

static int start_http(struct service *service, const struct settings *settings,
		      struct trouble *trouble)
{
	const struct http_server_options options = {
		.engine = service->engine,
		.settings = settings,
		.endpoint = settings->listen.http,
		.workers = worker_count(settings),
		.version = "0.1.0",
		.context = service,
		.reload = service->config ? service_reload : NULL,
		.notice = notice,
	};
	char text[ENDPOINT_TEXT_MAX];
	int err;

	if (!settings->listen.http.port)
		return 0;
	err = http_server_start(&options, &service->http, trouble);
	if (err)
		return err;
	endpoint_text(&settings->listen.http, text);
	log_line(LOG_LEVEL_INFO, "answers HTTP on %s", text);
	return 0;
}

int service_start(const char *config, struct settings *settings, struct service **out,
		  struct trouble *trouble)
{
	struct service *service = calloc(1, sizeof(*service));
	char database[PATH_MAX];
	int err;

	if (!service)
		return trouble_set(trouble, -ENOMEM, "out of memory");
	service->state_fd = -1;
	(void)pthread_mutex_init(&service->reloading, NULL);
	err = tokens_init(&service->tokens);
	if (err) {
		free(service);
		return trouble_set(trouble, err, "a lock cannot be made: %s", strerror(-err));
	}
	if (config) {
		service->config = strdup(config);
		if (!service->config) {
			err = trouble_set(trouble, -ENOMEM, "out of memory");
			goto fail;
		}
	}
	/* Before the first thing that others see, all that only one daemon may have is ours. */
	err = open_state(service, settings->state, database, trouble);
	if (!err)
		err = open_tenants(service, settings, trouble);
	if (!err)
		err = start_engine(service, settings, database, trouble);
	if (!err)
		err = apply_dataplane(settings, trouble);
	if (!err)
		err = tokens_set(&service->tokens, settings->tokens, settings->token_count);
	if (!err)
		err = start_resp(service, settings, trouble);
	if (!err)
		err = start_http(service, settings, trouble);
	if (err)
		goto fail;
	*out = service;
	return 0;

fail:
	service_stop(service);
	return err;
}

void service_tick(struct service *service)
{
	engine_tick(service->engine);
}

static int reload(struct service *service, struct trouble *trouble)
{
	struct settings_error error = { 0 };
	struct settings *settings;
	int err = settings_load(service->config, &settings, &error);

	if (err) {
		trouble_set(trouble, 0, "%s:%u:%u: %s%s%s", service->config, error.line, error.column,
			    error.key, error.key[0] ? ": " : "", error.message);
		log_line(LOG_LEVEL_ERROR, "the old configuration stays in force: %s", trouble->cause);
		return err;
	}
	err = apply_dataplane(settings, trouble);
	if (!err)
		err = engine_reload(service->engine, settings, trouble);
	if (!err && service->http)
		err = http_server_configure(service->http, settings, trouble);
	if (!err)
		err = tokens_set(&service->tokens, settings->tokens, settings->token_count);
	settings_free(settings);
	if (err)
		log_line(LOG_LEVEL_ERROR, "the old configuration stays in force: %s", trouble->cause);
	else
		log_line(LOG_LEVEL_INFO, "%s is in force", service->config);
	return err;
}

int service_reload(void *data, struct trouble *trouble)
{
	struct service *service = data;
	int err;

	(void)pthread_mutex_lock(&service->reloading);
	err = reload(service, trouble);
	(void)pthread_mutex_unlock(&service->reloading);
	return err;
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
	engine_free(service->engine);
	tenant_map_close(&service->tenants);
	tokens_done(&service->tokens);
	if (service->state_fd >= 0)
		(void)close(service->state_fd);
	(void)pthread_mutex_destroy(&service->reloading);
	free(service->config);
	free(service);
}
