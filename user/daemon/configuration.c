/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Another configuration while the daemon runs, all of it or nothing: what can fail is done first,
 * for each part, beside what is in force. The kernel comes last of these, since only there does the
 * doing itself tell whether it can be done. While it can still be taken back there, the other
 * parts, which can no longer fail, are exchanged; see attach_all().
 */
#include "daemon/service.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/internal.h"
#include "daemon/log.h"

/* All that was made ready. */
struct pending {
	struct service *service;
	struct engine_prepared *engine;
	struct http_prepared *http;
	struct setting_token *tokens;
	size_t token_count;
	struct setting_interface *wanted;
	struct watched *watched;
	size_t wanted_count;
};

static int prepare(struct service *service, const struct settings *settings,
		   struct pending *pending, struct trouble *trouble)
{
	int err = engine_prepare(settings, &pending->engine, trouble);

	pending->service = service;
	if (!err && service->http)
		err = http_server_prepare(service->http, settings, &pending->http, trouble);
	if (err)
		return err;
	err = tokens_copy(settings->tokens, settings->token_count, &pending->tokens);
	if (!err)
		err = probes_copy(settings, &pending->wanted);
	if (!err)
		err = watch_copy(settings, &pending->watched);
	if (err)
		return trouble_set(trouble, err, "out of memory");
	pending->token_count = settings->token_count;
	pending->wanted_count = settings->interface_count;
	return 0;
}

/* Nothing of it can fail. */
static int commit(void *data, struct trouble *trouble)
{
	struct pending *pending = data;
	struct service *service = pending->service;

	(void)trouble;
	engine_commit(service->engine, pending->engine);
	if (service->http)
		http_server_commit(service->http, pending->http);
	tokens_exchange(&service->tokens, pending->tokens, pending->token_count);
	probes_exchange(&service->probes, pending->wanted, pending->wanted_count);
	watch_exchange(&service->watch, pending->watched, pending->wanted_count);
	*pending = (struct pending){ .service = service };
	return 0;
}

/* What was not committed. */
static void discard(struct pending *pending)
{
	engine_discard(pending->engine);
	http_server_discard(pending->http);
	free(pending->tokens);
	free(pending->wanted);
	free(pending->watched);
}

static bool is_same_endpoint(const struct setting_endpoint *one,
			     const struct setting_endpoint *other)
{
	return one->port == other->port &&
	       !memcmp(&one->address, &other->address, sizeof(one->address));
}

static bool is_same_listen(const struct setting_listen *one, const struct setting_listen *other)
{
	return !strcmp(one->unix_path, other->unix_path) &&
	       is_same_endpoint(&one->tcp, &other->tcp) &&
	       is_same_endpoint(&one->http, &other->http);
}

/* What the file says of these is not in force, and somebody may have meant it to be. */
static void tell_of_restart(const struct service *service, const struct settings *settings)
{
	const char *bpffs = settings->bpffs ? settings->bpffs : PINS_DEFAULT;
	const struct {
		const char *key;
		bool is_same;
	} keys[] = {
		{ "listen", is_same_listen(&service->started.listen, &settings->listen) },
		{ "state", !strcmp(service->started.state, settings->state) },
		{ "workers", service->started.workers == settings->workers },
		{ "tenant_slots", service->started.tenant_slots == settings->tenant_slots },
		{ "dataplane", service->has_dataplane == !settings->no_dataplane },
		{ "bpffs", !service->has_dataplane || !strcmp(service->pins.root, bpffs) },
	};

	for (size_t at = 0; at < sizeof(keys) / sizeof(keys[0]); at++)
		if (!keys[at].is_same)
			log_line(LOG_LEVEL_WARNING,
				 "%s: the file has another `%s` than at the start; it takes a "
				 "restart",
				 service->config, keys[at].key);
}

static int reload(struct service *service, struct trouble *trouble)
{
	struct settings_error error = { 0 };
	struct pending pending = { 0 };
	struct settings *settings;
	int err = settings_load(service->config, &settings, &error);

	if (err)
		return trouble_set(trouble, err, "%s:%u:%u: %s%s%s", service->config, error.line,
				   error.column, error.key, error.key[0] ? ": " : "",
				   error.message);
	err = prepare(service, settings, &pending, trouble);
	if (!err)
		err = plane_apply(service, settings, commit, &pending, trouble);
	if (!err)
		tell_of_restart(service, settings);
	discard(&pending);
	settings_free(settings);
	return err;
}

int service_reload(void *data, struct trouble *trouble)
{
	struct service *service = data;
	int err;

	(void)pthread_mutex_lock(&service->reloading);
	err = service_reload_locked(service, trouble);
	(void)pthread_mutex_unlock(&service->reloading);
	return err;
}

int service_reload_locked(struct service *service, struct trouble *trouble)
{
	int err = reload(service, trouble);

	if (err)
		log_line(LOG_LEVEL_ERROR, "the old configuration stays in force: %s%s%s",
			 trouble->cause, trouble->remedy[0] ? " -> " : "", trouble->remedy);
	else
		log_line(LOG_LEVEL_INFO, "%s is in force", service->config);
	return err;
}
