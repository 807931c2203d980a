/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Finds sets of other versions, adopts what outlives a version, and moves links; see takeover.h. */
#include "dataplane/takeover.h"

#include <errno.h>
#include <net/if.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "base/clock.h"
#include "base/parse.h"
#include "dataplane/trie.h"

/* What stands at the beginning of every version's config. */
struct config_head {
	uint32_t abi_version;
	uint32_t active;
	uint64_t coarse_lag_ns;
	struct siphash_key secret;
	uint32_t bucket_format; /* since version 2 */
	uint32_t reserved;
};

enum {
	FORMAT_OF_VERSION_1 = 1,
	CONFIG_VALUE_MAX = 65536,
};

static int note_version(uint32_t version, void *data)
{
	struct takeover *takeover = data;

	if (takeover->count == OTHER_VERSIONS_MAX)
		return -E2BIG;
	takeover->versions[takeover->count++] = version;
	if (version > takeover->from)
		takeover->from = version;
	return 0;
}

static int open_other(const struct takeover *takeover, const struct pins *pins, const char *name)
{
	char folder[PATH_MAX], path[PATH_MAX];
	int fd =
		bpf_obj_get(pins_path(pins_version_path(pins, takeover->from, folder), name, path));

	return fd < 0 ? -errno : fd;
}

static int read_head(int fd, struct config_head *head)
{
	struct bpf_map_info info = {};
	uint32_t length = sizeof(info), only = 0;
	char value[CONFIG_VALUE_MAX];

	if (bpf_obj_get_info_by_fd(fd, &info, &length))
		return -errno;
	if (info.type != BPF_MAP_TYPE_ARRAY || info.key_size != sizeof(only) ||
	    info.value_size < sizeof(*head) || info.value_size > sizeof(value))
		return -EPROTO;
	if (bpf_map_lookup_elem(fd, &only, value))
		return -errno;
	memcpy(head, value, sizeof(*head));
	if (head->abi_version == 1)
		head->bucket_format = FORMAT_OF_VERSION_1;
	return 0;
}

/* Take a map, if it is as ours would be. */
static bool adopt(struct takeover *takeover, const struct pins *pins, enum map_id id)
{
	int fd = open_other(takeover, pins, map_name(id));

	if (fd >= 0 && !map_check(fd, id)) {
		takeover->fd[id] = fd;
		return true;
	}
	if (fd >= 0)
		(void)close(fd);
	return false;
}

static void let_go(struct takeover *takeover, enum map_id id)
{
	if (takeover->fd[id] >= 0)
		(void)close(takeover->fd[id]);
	takeover->fd[id] = -1;
}

/* The buckets, if they are in our format; all of a kind, or none. */
static void adopt_buckets(struct takeover *takeover, const struct pins *pins)
{
	struct config_head head;
	int fd = open_other(takeover, pins, map_name(MAP_CONFIG));
	int err = fd < 0 ? fd : read_head(fd, &head);

	if (fd >= 0)
		(void)close(fd);
	if (err || head.abi_version != takeover->from)
		return;
	takeover->active = head.active & 1;
	if (head.bucket_format != SLUICE_BUCKET_FORMAT)
		return;
	takeover->secret = head.secret;
	takeover->keeps_debts =
		adopt(takeover, pins, MAP_IP_BUCKETS) && adopt(takeover, pins, MAP_NODE_BUCKETS);
	if (!takeover->keeps_debts) {
		let_go(takeover, MAP_IP_BUCKETS);
		return;
	}
	/* The daemon's. Version 1 had none. */
	if (!adopt(takeover, pins, MAP_HOOK_BUCKETS) || !adopt(takeover, pins, MAP_HOOKS))
		let_go(takeover, MAP_HOOK_BUCKETS);
}

static uint32_t id_of(int fd)
{
	struct bpf_map_info info = {};
	uint32_t length = sizeof(info);

	return bpf_obj_get_info_by_fd(fd, &info, &length) ? 0 : info.id;
}

/* Whether our set has these buckets already, from a take-over that was killed on its way. */
static bool is_the_same(const struct takeover *takeover, const struct pins *pins)
{
	char path[PATH_MAX];
	int ours = bpf_obj_get(pins_path(pins->set, map_name(MAP_IP_BUCKETS), path));
	bool same;

	if (ours < 0)
		return false;
	same = id_of(ours) == id_of(takeover->fd[MAP_IP_BUCKETS]);
	(void)close(ours);
	return same;
}

int takeover_open(struct takeover *takeover, const struct pins *pins, bool fresh,
		  struct trouble *trouble)
{
	int err;

	*takeover = (struct takeover){};
	memset(takeover->fd, -1, sizeof(takeover->fd));
	err = pins_each_version(pins, note_version, takeover);
	if (err)
		return trouble_set(trouble, err, "cannot look through %s: %s", pins->root,
				   strerror(-err));
	takeover->fresh = fresh;
	if (!takeover->from)
		return 0;
	adopt_buckets(takeover, pins);
	if (!fresh && takeover->keeps_debts)
		takeover->keeps_debts = is_the_same(takeover, pins);
	if (!fresh || takeover->keeps_debts || takeover->from < SLUICE_ABI_VERSION)
		return 0;
	trouble_set(trouble, 0,
		    "a later sluice is attached (version %u of the maps, this one has %d), "
		    "and what addresses owe there cannot be read",
		    takeover->from, SLUICE_ABI_VERSION);
	trouble_advise(trouble, "attach with that one; or give up its limits and debts first: "
				"sluice detach --all");
	return -EPROTO;
}

void takeover_close(struct takeover *takeover)
{
	for (int id = 0; id < MAPS; id++)
		let_go(takeover, id);
}

/* ---- the interfaces of other sets */

struct held {
	struct attach_result *result;
	int err;
};

static int append_interface(uint32_t ifindex, const char *path, void *data)
{
	struct held *held = data;
	struct attach_result *result = held->result;
	struct attached *one;
	enum attach_mode mode;
	uint32_t program_id;

	for (size_t at = 0; at < result->count; at++)
		if (result->interfaces[at].ifindex == ifindex)
			return 0;
	if (link_examine(path, ifindex, &mode, &program_id) == -ENODEV)
		return 0;
	if (result->count == ATTACH_INTERFACES_MAX)
		return -E2BIG;
	one = &result->interfaces[result->count++];
	*one = (struct attached){ .ifindex = ifindex };
	if (!if_indextoname(ifindex, one->name))
		(void)snprintf(one->name, sizeof(one->name), "?");
	return 0;
}

int takeover_interfaces(const struct takeover *takeover, const struct pins *pins,
			struct attach_result *result, struct trouble *trouble)
{
	struct held held = { .result = result };
	char folder[PATH_MAX];
	int err = 0;

	for (size_t at = 0; !err && at < takeover->count; at++)
		err = pins_each_link(pins_version_path(pins, takeover->versions[at], folder),
				     append_interface, &held);
	if (err)
		return trouble_set(trouble, err, "cannot take over what %s holds: %s", folder,
				   strerror(-err));
	return 0;
}

/* ---- what goes over */

struct carry {
	struct trie_writer writer;
	uint64_t now_ns;
	struct taken_over *taken_over;
};

static int carry_rule(const struct prefix_key *key, const struct prefix_entry *old, void *data)
{
	struct carry *carry = data;
	struct prefix_entry entry = { .by_hand = old->by_hand };

	if (old->by_hand.action == PREFIX_NONE ||
	    prefix_rule_has_ended(&old->by_hand, carry->now_ns))
		return 0;
	carry->taken_over->rules++;
	return trie_write(&carry->writer, key, &entry);
}

/* An entry of unknown layout. Of every version the rule by hand comes first, and its action first.
 */
static void name_lost(const struct prefix_key *key, const void *value,
		      struct taken_over *taken_over)
{
	size_t length = strlen(taken_over->lost);
	char text[PREFIX_TEXT_MAX];
	union address address = prefix_key_address(key);
	uint32_t action;

	memcpy(&action, value, sizeof(action));
	if (!action)
		return;
	taken_over->rules_lost++;
	format_prefix(&address, key->bits, text);
	if (length + strlen(text) + 2 < sizeof(taken_over->lost))
		(void)snprintf(taken_over->lost + length, sizeof(taken_over->lost) - length, "%s%s",
			       length ? ", " : "", text);
}

static void name_all_lost(int fd, const struct bpf_map_info *info, struct taken_over *taken_over)
{
	char value[CONFIG_VALUE_MAX];
	struct prefix_key key, next;
	bool first = true;

	if (info->key_size != sizeof(key) || info->value_size < sizeof(uint32_t) ||
	    info->value_size > sizeof(value))
		return;
	while (!bpf_map_get_next_key(fd, first ? NULL : &key, &next)) {
		first = false;
		key = next;
		if (!bpf_map_lookup_elem(fd, &key, value))
			name_lost(&key, value, taken_over);
	}
}

/* Rules by hand into the trie of the slot that is active, from which a configuration carries them.
 */
static int carry_rules(bool fresh, int old, struct maps *maps, struct taken_over *taken_over)
{
	bool slot = maps->config->active & 1;
	struct carry carry = { .now_ns = clock_monotonic_ns(), .taken_over = taken_over };
	struct bpf_map_info info = {};
	uint32_t length = sizeof(info);
	int err;

	if (bpf_obj_get_info_by_fd(old, &info, &length))
		return -errno;
	if (!fresh || info.type != BPF_MAP_TYPE_LPM_TRIE ||
	    info.key_size != sizeof(struct prefix_key) ||
	    info.value_size != sizeof(struct prefix_entry)) {
		name_all_lost(old, &info, taken_over);
		return 0;
	}
	err = trie_writer_open(&carry.writer, maps->fd[slot ? MAP_PREFIXES_1 : MAP_PREFIXES_0]);
	if (!err)
		err = trie_walk(old, carry_rule, &carry);
	if (!err)
		err = trie_writer_flush(&carry.writer);
	trie_writer_close(&carry.writer);
	return err;
}

int takeover_fill(const struct takeover *takeover, const struct pins *pins, struct maps *maps,
		  struct taken_over *taken_over, struct trouble *trouble)
{
	int err, old;

	*taken_over = (struct taken_over){ .version = takeover->from,
					   .keeps_debts = takeover->keeps_debts };
	if (takeover->fresh && takeover->keeps_debts)
		maps->config->secret = takeover->secret;
	if (!takeover->fresh && takeover->keeps_debts)
		return 0; /* and the rules have gone over as well */
	old = open_other(takeover, pins,
			 map_name(takeover->active ? MAP_PREFIXES_1 : MAP_PREFIXES_0));
	if (old < 0)
		return 0; /* a set that is half gone has no rules */
	err = carry_rules(takeover->fresh, old, maps, taken_over);
	(void)close(old);
	if (err)
		return trouble_set(trouble, err, "rules by hand cannot be carried over: %s",
				   strerror(-err));
	return 0;
}

void taken_over_text(const struct taken_over *taken_over, char text[TAKEN_OVER_TEXT_MAX])
{
	const char *debts =
		taken_over->keeps_debts
			? "debts of addresses and node are kept"
			: "its debts cannot be read: addresses and node begin without any";
	int length = snprintf(
		text, TAKEN_OVER_TEXT_MAX,
		"taken over from version %u of the maps: %s; rules by hand: %u carried over",
		taken_over->version, debts, taken_over->rules);

	if (taken_over->rules_lost)
		length += snprintf(text + length, TAKEN_OVER_TEXT_MAX - (size_t)length,
				   ", %u lost, to be said anew: %s", taken_over->rules_lost,
				   taken_over->lost);
	(void)snprintf(text + length, TAKEN_OVER_TEXT_MAX - (size_t)length,
		       "; counters and offenders begin anew");
}

/* ---- links */

static int move_link(const struct undo *undo, const struct undo_step *one, bool back)
{
	char folder[PATH_MAX], theirs[PATH_MAX], ours[PATH_MAX];

	if (one->what != UNDO_RENEWED || one->version == SLUICE_ABI_VERSION)
		return 0;
	(void)pins_version_path(&undo->pins, one->version, folder);
	(void)link_path(folder, one->kind, one->ifindex, theirs);
	(void)link_path(undo->pins.set, one->kind, one->ifindex, ours);
	return rename(back ? ours : theirs, back ? theirs : ours) ? -errno : 0;
}

int takeover_publish(const struct undo *undo, struct trouble *trouble)
{
	for (uint32_t at = 0; at < undo->step_count; at++) {
		const struct undo_step *one = &undo->steps[at];
		int err = move_link(undo, one, false);

		if (err)
			return trouble_set(
				trouble, err,
				"cannot move what holds interface %u from version %u to %s: %s",
				one->ifindex, one->version, undo->pins.set, strerror(-err));
	}
	return 0;
}

void takeover_withdraw(const struct undo *undo)
{
	for (uint32_t at = 0; at < undo->step_count; at++)
		(void)move_link(undo, &undo->steps[at], true);
}

/* Under another name first, so that nobody meets a set that is half gone: staging/ is always
 * cleared. */
void takeover_finish(const struct undo *undo)
{
	char folder[PATH_MAX];

	for (uint32_t at = 0; at < undo->other_count; at++) {
		(void)pins_remove(undo->pins.staging);
		(void)rename(pins_version_path(&undo->pins, undo->others[at], folder),
			     undo->pins.staging);
		(void)pins_remove(undo->pins.staging);
	}
}
