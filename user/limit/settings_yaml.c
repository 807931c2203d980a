/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The configuration file from its top level down: which keys there are and what each may be.
 * Limits are read in settings_limits.c, prefixes in settings_prefixes.c, tenants in
 * settings_tenants.c, and what only the daemon wants to know in settings_daemon.c.
 */
#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/parse.h"
#include "limit/settings_draft.h"

static int read_name(struct yaml_reader *reader, void *target)
{
	static const char must[] = "must be the name of a network interface, such as eth0";
	struct setting_interface *interface = target;
	const char *word;
	size_t i;
	int err = yaml_read_word(reader, must, &word);

	if (err)
		return err;
	/* What the kernel's dev_valid_name() allows. */
	if (!word[0] || strlen(word) >= sizeof(interface->name) || strcmp(word, ".") == 0 ||
	    strcmp(word, "..") == 0)
		return yaml_fail_got(reader, must);
	for (i = 0; word[i]; i++)
		if (word[i] == '/' || word[i] == ':' || isspace((unsigned char)word[i]))
			return yaml_fail_got(reader, must);
	strcpy(interface->name, word);
	return 0;
}

static int read_mode(struct yaml_reader *reader, void *target)
{
	static const char must[] = "must be auto, native, tc, clsact or generic";
	struct setting_interface *interface = target;
	const char *word;
	int err = yaml_read_word(reader, must, &word);

	if (err)
		return err;
	return attach_mode_parse(word, &interface->mode) ? yaml_fail_got(reader, must) : 0;
}

static int read_require(struct yaml_reader *reader, void *target)
{
	static const char must[] = "must be native or tc";
	struct setting_interface *interface = target;
	const char *word;
	int err = yaml_read_word(reader, must, &word);

	if (err)
		return err;
	return attach_require_parse(word, &interface->require) ? yaml_fail_got(reader, must) : 0;
}

static int add_interface(struct yaml_reader *reader, struct settings_draft *draft,
			 const struct setting_interface *interface, struct yaml_place place)
{
	struct settings *settings = draft->settings;
	struct setting_interface *grown;
	size_t i;

	for (i = 0; i < settings->interface_count; i++)
		if (strcmp(settings->interfaces[i].name, interface->name) == 0)
			return yaml_fail_at(reader, place, "name",
					    "%s is given twice; the first is on line %u",
					    interface->name, draft->interface_lines[i]);
	if (settings->interface_count == INTERFACES_MAX)
		return yaml_fail_at(reader, place, NULL, "there can be at most %d interfaces",
				    INTERFACES_MAX);
	grown = reallocarray(settings->interfaces, settings->interface_count + 1, sizeof(*grown));
	if (!grown)
		return -ENOMEM;
	draft->interface_lines[settings->interface_count] = place.line;
	grown[settings->interface_count++] = *interface;
	settings->interfaces = grown;
	return 0;
}

static int read_interface(struct yaml_reader *reader, void *target)
{
	static const struct yaml_key keys[] = {
		{ "name", read_name },
		{ "mode", read_mode },
		{ "require", read_require },
		{ NULL, NULL },
	};
	struct setting_interface interface = { .mode = MODE_AUTO };
	struct yaml_place place = yaml_place(reader);
	int err = yaml_read_map(reader, keys, &interface);

	if (err)
		return err;
	if (!interface.name[0])
		return yaml_fail_at(reader, place, NULL, "name is missing, as in {name: eth0}");
	if (!attach_mode_can_be(interface.mode, interface.require))
		return yaml_fail_at(reader, place, "require", "mode: %s is never %s",
				    attach_mode_name(interface.mode),
				    attach_mode_name(interface.require));
	return add_interface(reader, target, &interface, place);
}

static int read_interfaces(struct yaml_reader *reader, void *target)
{
	return yaml_read_list(reader, "must be a list such as [{name: eth0, mode: auto}]",
			      read_interface, target);
}

/* By whole words: a file may name all ports a million times. */
static void mark_ports(uint64_t ports[PROTECT_WORDS], const struct port_range *range)
{
	uint64_t from_first = ~0ULL << (range->first % 64);
	uint64_t to_last = ~0ULL >> (63 - range->last % 64);
	uint32_t first = range->first / 64, last = range->last / 64, word;

	if (first == last) {
		ports[first] |= from_first & to_last;
		return;
	}
	ports[first] |= from_first;
	for (word = first + 1; word < last; word++)
		ports[word] = ~0ULL;
	ports[last] |= to_last;
}

static int read_protected(struct yaml_reader *reader, void *target)
{
	static const char must[] =
		"must be tcp/PORT, udp/PORT, a range as udp/4433-4440, icmp or all";
	struct settings_draft *draft = target;
	struct setting_protect *protect = &draft->settings->protect;
	struct port_range range;
	const char *word;
	int err = yaml_read_word(reader, must, &word);

	if (err)
		return err;
	err = parse_ports(word, &range);
	if (err == -ERANGE)
		return yaml_fail_got(reader, "ports go from 1 to 65535, the lower one first");
	if (err)
		return yaml_fail_got(reader, must);
	protect->all |= range.kind == PORTS_ALL;
	protect->icmp |= range.kind == PORTS_ICMP;
	if (range.kind == PORTS_TCP)
		mark_ports(protect->tcp, &range);
	if (range.kind == PORTS_UDP)
		mark_ports(protect->udp, &range);
	return 0;
}

static int read_protect(struct yaml_reader *reader, void *target)
{
	return yaml_read_list(reader, "must be a list such as [tcp/443, udp/443]", read_protected,
			      target);
}

static int read_dry_run(struct yaml_reader *reader, void *target)
{
	struct settings_draft *draft = target;

	return read_bool(reader, &draft->settings->dry_run);
}

static int read_shed(struct yaml_reader *reader, void *target)
{
	struct settings_draft *draft = target;

	return read_bool(reader, &draft->settings->shed);
}

static int read_when_full(struct yaml_reader *reader, void *target)
{
	static const char must[] = "must be share, refuse or admit";
	struct settings_draft *draft = target;
	const char *word;
	int err = yaml_read_word(reader, must, &word);

	if (err)
		return err;
	return when_full_parse(word, &draft->settings->when_full) ? yaml_fail_got(reader, must) : 0;
}

static int read_bpffs(struct yaml_reader *reader, void *target)
{
	static const char must[] = "must be an absolute path, such as /sys/fs/bpf/sluice";
	struct settings_draft *draft = target;
	const char *word;
	int err = yaml_read_word(reader, must, &word);

	if (err)
		return err;
	if (word[0] != '/' || strlen(word) >= PATH_MAX)
		return yaml_fail_got(reader, must);
	draft->settings->bpffs = strdup(word);
	return draft->settings->bpffs ? 0 : -ENOMEM;
}

static int read_ipv6_prefix(struct yaml_reader *reader, void *target)
{
	static const char must[] = "must be a whole number from 48 to 128";
	struct settings_draft *draft = target;
	const char *word;
	uint64_t bits;
	int err = yaml_read_word(reader, must, &word);

	if (err)
		return err;
	if (parse_uint(word, IPV6_PREFIX_MIN, IPV6_PREFIX_MAX, &bits) != 0)
		return yaml_fail_got(reader, must);
	draft->settings->ipv6_prefix = (uint32_t)bits;
	return 0;
}

static int read_per_ip(struct yaml_reader *reader, void *target)
{
	struct settings_draft *draft = target;
	struct limit_scope scope = { .limit = draft->settings->ip,
				     .hooks = &draft->settings->ip_hooks,
				     .dry = &draft->settings->dry_ip };

	return read_scope(reader, &scope);
}

static int read_node(struct yaml_reader *reader, void *target)
{
	struct settings_draft *draft = target;
	struct limit_scope scope = { .limit = draft->settings->node,
				     .hooks = &draft->settings->node_hooks,
				     .dry = &draft->settings->dry_node,
				     .whole = true };

	return read_scope(reader, &scope);
}

static int read_rate_limits(struct yaml_reader *reader, void *target)
{
	static const struct yaml_key keys[] = {
		{ "per_ip", read_per_ip },      { "node", read_node },
		{ "prefixes", read_prefixes },  { "sources", read_sources },
		{ "default", read_default },    { "tenants", read_tenants },
		{ "scope", read_limits_scope }, { NULL, NULL },
	};
	struct settings_draft *draft = target;

	draft->limits_place = yaml_key_place(reader);
	return yaml_read_map(reader, keys, target);
}

static int read_top(struct yaml_reader *reader, void *target)
{
	static const struct yaml_key keys[] = {
		{ "interfaces", read_interfaces },
		{ "protect", read_protect },
		{ "exempt", read_exempt },
		{ "deny", read_deny },
		{ "dry_run", read_dry_run },
		{ "when_full", read_when_full },
		{ "shed", read_shed },
		{ "bpffs", read_bpffs },
		{ "ipv6_prefix", read_ipv6_prefix },
		{ "rate_limits", read_rate_limits },
		{ "routes", read_routes },
		{ "listen", read_listen },
		{ "state", read_state },
		{ "dataplane", read_dataplane },
		{ "workers", read_workers },
		{ "admin", read_admin },
		{ "tenant_slots", read_tenant_slots },
		{ "ratelimit_headers", read_ratelimit_headers },
		{ NULL, NULL },
	};

	return yaml_read_map(reader, keys, target);
}

/* Of what needs `protect`: hooks and tenants are the daemon's. */
static bool has_limits(const struct settings *settings)
{
	size_t i;

	for (i = 0; i < METERS; i++)
		if (settings->ip[i].burst || settings->node[i].burst)
			return true;
	for (i = 0; i < settings->prefix_count; i++)
		if (settings->prefixes[i].action == PREFIX_LIMIT)
			return true;
	return false;
}

static bool protects_something(const struct setting_protect *protect)
{
	size_t i;

	if (protect->all || protect->icmp)
		return true;
	for (i = 0; i < PROTECT_WORDS; i++)
		if (protect->tcp[i] || protect->udp[i])
			return true;
	return false;
}

/* What cannot be judged before everything has been read. */
static int check_whole(struct yaml_reader *reader, const struct settings_draft *draft)
{
	int err;

	if (has_limits(draft->settings) && !protects_something(&draft->settings->protect))
		return yaml_fail_at(reader, draft->limits_place, "rate_limits",
				    "limits nothing, because nothing is protected: add for example "
				    "`protect: [tcp/443]`, or `protect: [all]`");
	err = check_prefixes(reader, draft);
	if (!err)
		err = check_tenants(reader, draft);
	return err ? err : check_listen(reader, draft);
}

static int check_text(const char *text, size_t length, struct settings_error *error)
{
	size_t offset;
	const char *problem = yaml_text_problem(text, length, &offset);
	struct yaml_place place;

	if (!problem)
		return 0;
	place = yaml_text_place(text, offset);
	error->line = place.line;
	error->column = place.column;
	snprintf(error->message, sizeof(error->message), "%s", problem);
	return -EINVAL;
}

int settings_parse(const char *text, size_t length, struct settings **out,
		   struct settings_error *error)
{
	struct settings_draft draft = { .settings = NULL };
	struct yaml_reader *reader = NULL;
	int err;

	memset(error, 0, sizeof(*error));
	err = check_text(text, length, error);
	if (err)
		return err;
	draft.settings = settings_new();
	err = draft.settings ? yaml_reader_open(text, length, error, &reader) : -ENOMEM;
	if (!err)
		err = yaml_read_document(reader, read_top, &draft);
	if (!err)
		err = check_whole(reader, &draft);
	if (!err) {
		*out = draft.settings;
		draft.settings = NULL;
	} else if (err == -ENOMEM) {
		snprintf(error->message, sizeof(error->message), "not enough memory to read it");
	}
	yaml_reader_close(reader);
	free(draft.prefix_places);
	free(draft.tenant_places);
	settings_free(draft.settings);
	return err;
}
