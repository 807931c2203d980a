/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Opening and checking the pinned maps, and reading what is in them. */
#include "dataplane/maps.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include <sluice/word.h>

#include "dataplane/others.h"

/* What a map of this version has to look like. value_size 0: not looked at. */
struct map_shape {
	const char *name;
	uint32_t type;
	uint32_t key_size;
	uint32_t value_size;
	uint32_t max_entries;
};

static const struct map_shape shapes[MAPS] = {
	[MAP_IP_BUCKETS] = { "ip_buckets", BPF_MAP_TYPE_ARRAY, 4, sizeof(struct bucket_set),
			     IP_SETS },
	[MAP_IP_REFUSALS] = { "ip_refusals", BPF_MAP_TYPE_PERCPU_ARRAY, 4,
			      sizeof(struct ip_refusals), 1 },
	[MAP_NODE_BUCKETS] = { "node_buckets", BPF_MAP_TYPE_ARRAY, 4, sizeof(struct node_buckets),
			       1 },
	[MAP_NODE_SLICES] = { "node_slices", BPF_MAP_TYPE_PERCPU_ARRAY, 4,
			      sizeof(struct node_slices), 1 },
	[MAP_COUNTERS] = { "counters", BPF_MAP_TYPE_PERCPU_ARRAY, 4, sizeof(struct counter),
			   REASONS },
	[MAP_INTERFACE_COUNTERS] = { "interface_counters", BPF_MAP_TYPE_PERCPU_ARRAY, 4,
				     sizeof(struct interface_counter), INTERFACE_COUNTERS },
	[MAP_NOTES] = { "notes", BPF_MAP_TYPE_PERCPU_ARRAY, 4, 8, NOTES },
	[MAP_REPORT_STATE] = { "report_state", BPF_MAP_TYPE_PERCPU_ARRAY, 4,
			       sizeof(struct report_state), 1 },
	[MAP_OFFENDERS] = { "offenders", BPF_MAP_TYPE_LRU_HASH, sizeof(union address),
			    sizeof(struct offender), OFFENDERS_MAX },
	[MAP_EVENTS] = { "events", BPF_MAP_TYPE_RINGBUF, 0, 0, EVENTS_BYTES },
	[MAP_HOOK_BUCKETS] = { "hook_buckets", BPF_MAP_TYPE_ARRAY, 4, sizeof(struct bucket_set),
			       IP_SETS },
	[MAP_HOOKS] = { "hooks", BPF_MAP_TYPE_ARRAY, 4, sizeof(struct hooks), 1 },
	[MAP_INTERFACES] = { "interfaces", BPF_MAP_TYPE_HASH, 4, sizeof(struct interface_record),
			     INTERFACES_ATTACHED_MAX },
	[MAP_CONFIG] = { "config", BPF_MAP_TYPE_ARRAY, 4, sizeof(struct config), 1 },
	[MAP_PROTECT] = { "protect", BPF_MAP_TYPE_ARRAY, 4, sizeof(struct protected_ports),
			  PROTECT_WORDS },
	[MAP_PREFIX_HINTS] = { "prefix_hints", BPF_MAP_TYPE_ARRAY, 4, 8, 2 * PREFIX_HINT_WORDS },
	[MAP_PREFIXES_0] = { "prefixes_0", BPF_MAP_TYPE_LPM_TRIE, sizeof(struct prefix_key),
			     sizeof(struct prefix_entry), PREFIXES_MAX },
	[MAP_PREFIXES_1] = { "prefixes_1", BPF_MAP_TYPE_LPM_TRIE, sizeof(struct prefix_key),
			     sizeof(struct prefix_entry), PREFIXES_MAX },
	[MAP_SWEEPER] = { "sweeper", BPF_MAP_TYPE_ARRAY, 4, 0, 1 },
};

const char *map_name(enum map_id id)
{
	return shapes[id].name;
}

int map_check(int fd, enum map_id id)
{
	const struct map_shape *shape = &shapes[id];
	struct bpf_map_info info = {};
	uint32_t length = sizeof(info);

	if (bpf_obj_get_info_by_fd(fd, &info, &length))
		return -errno;
	if (info.type != shape->type || info.key_size != shape->key_size ||
	    info.max_entries != shape->max_entries ||
	    (shape->value_size && info.value_size != shape->value_size))
		return -EPROTO;
	return 0;
}

static void *map_memory(int fd, size_t bytes, bool write)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	void *memory = mmap(NULL, (bytes + page - 1) / page * page,
			    write ? PROT_READ | PROT_WRITE : PROT_READ, MAP_SHARED, fd, 0);

	return memory == MAP_FAILED ? NULL : memory;
}

static void unmap_memory(void *memory, size_t bytes)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);

	if (memory)
		(void)munmap(memory, (bytes + page - 1) / page * page);
}

static int map_all(struct maps *maps, bool write)
{
	maps->ip_buckets =
		map_memory(maps->fd[MAP_IP_BUCKETS], sizeof(struct bucket_set) * IP_SETS, write);
	maps->node_buckets =
		map_memory(maps->fd[MAP_NODE_BUCKETS], sizeof(struct node_buckets), write);
	maps->config = map_memory(maps->fd[MAP_CONFIG], sizeof(struct config), write);
	maps->protect = map_memory(maps->fd[MAP_PROTECT],
				   sizeof(struct protected_ports) * PROTECT_WORDS, write);
	maps->prefix_hints = map_memory(maps->fd[MAP_PREFIX_HINTS],
					2 * PREFIX_HINT_WORDS * sizeof(*maps->prefix_hints), write);
	if (!maps->ip_buckets || !maps->node_buckets || !maps->config || !maps->protect ||
	    !maps->prefix_hints)
		return -errno;
	return 0;
}

static void maps_clear(struct maps *maps)
{
	*maps = (struct maps){};
	for (int id = 0; id < MAPS; id++)
		maps->fd[id] = -1;
}

void maps_close(struct maps *maps)
{
	unmap_memory(maps->ip_buckets, sizeof(struct bucket_set) * IP_SETS);
	unmap_memory(maps->node_buckets, sizeof(struct node_buckets));
	unmap_memory(maps->config, sizeof(struct config));
	unmap_memory(maps->protect, sizeof(struct protected_ports) * PROTECT_WORDS);
	unmap_memory(maps->prefix_hints, 2 * PREFIX_HINT_WORDS * sizeof(*maps->prefix_hints));
	for (int id = 0; id < MAPS; id++)
		if (maps->fd[id] >= 0)
			(void)close(maps->fd[id]);
	maps_clear(maps);
}

static int open_map(struct maps *maps, const char *folder, enum map_id id, struct trouble *trouble)
{
	char path[PATH_MAX];
	int err;

	maps->fd[id] = bpf_obj_get(pins_path(folder, shapes[id].name, path));
	if (maps->fd[id] < 0) {
		err = -errno;
		trouble_set(trouble, 0, "cannot open %s: %s", path, strerror(-err));
		if (err == -EPERM || err == -EACCES)
			trouble_advise(
				trouble,
				"run as root, or with CAP_BPF, CAP_NET_ADMIN and CAP_PERFMON");
		else
			trouble_advise(
				trouble,
				"take off what is left (sluice detach --all) and attach again");
		return err == -ENOENT ? -EPROTO : err;
	}
	err = map_check(maps->fd[id], id);
	if (err) {
		trouble_set(trouble, 0, "%s is not a map of this version of sluice", path);
		trouble_advise(trouble,
			       "take off what is left (sluice detach --all) and attach again");
	}
	return err;
}

/* There is no set of our version: who has one, and what to do. */
static int explain_absent(int err, const struct pins *pins, struct trouble *trouble)
{
	struct other_set others[OTHER_VERSIONS_MAX];
	size_t count = 0;

	if (err == -EACCES) {
		trouble_set(trouble, 0, "%s: permission denied", pins->set);
		trouble_advise(trouble,
			       "run as root, or with CAP_BPF, CAP_NET_ADMIN and CAP_PERFMON");
		return err;
	}
	if (!others_list(pins, others, &count) && count) {
		trouble_set(trouble, 0,
			    "nothing is attached by this sluice (version %d of the maps), but "
			    "%s by version %u",
			    SLUICE_ABI_VERSION, others[0].held ? others[0].names : "maps are left",
			    others[0].version);
		trouble_advise(trouble,
			       "sluice attach takes over without a gap; until then the sluice "
			       "of that version shows it");
		return -ENOENT;
	}
	trouble_set(trouble, 0, "nothing is attached: there is no %s", pins->set);
	trouble_advise(trouble, "attach first: sluice attach IFACE --config FILE");
	return -ENOENT;
}

int maps_open(struct maps *maps, const struct pins *pins, bool write, struct trouble *trouble)
{
	int err = 0;

	maps_clear(maps);
	if (access(pins->set, F_OK))
		return explain_absent(errno == EACCES ? -EACCES : -ENOENT, pins, trouble);
	for (int id = 0; !err && id < MAPS; id++)
		err = open_map(maps, pins->set, id, trouble);
	if (err)
		goto fail;
	err = map_all(maps, write);
	if (err) {
		trouble_set(trouble, 0, "cannot map the maps in %s: %s", pins->set, strerror(-err));
		goto fail;
	}
	if (maps->config->abi_version == SLUICE_ABI_VERSION)
		return 0;
	trouble_set(trouble, 0, "%s was made for version %u of the maps, not %d", pins->set,
		    maps->config->abi_version, SLUICE_ABI_VERSION);
	trouble_advise(trouble, "take off what is left (sluice detach --all) and attach again");
	err = -EPROTO;
fail:
	maps_close(maps);
	return err;
}

int maps_adopt(struct maps *maps, const int fd[MAPS])
{
	int err = 0;

	maps_clear(maps);
	for (int id = 0; !err && id < MAPS; id++) {
		maps->fd[id] = dup(fd[id]);
		if (maps->fd[id] < 0)
			err = -errno;
	}
	if (!err)
		err = map_all(maps, true);
	if (err)
		maps_close(maps);
	return err;
}

const struct config_slot *maps_slot(const struct maps *maps)
{
	uint32_t active = __atomic_load_n(&maps->config->active, __ATOMIC_ACQUIRE);

	if (active > 1 || !maps->config->slot[active].generation)
		return NULL;
	return &maps->config->slot[active];
}

unsigned maps_cpus(void)
{
	int cpus = libbpf_num_possible_cpus();

	return cpus > 0 ? (unsigned)cpus : 1;
}

/* Add up the __u64 that a per-CPU value consists of. */
static int sum_cpus(int fd, uint32_t key, size_t words, uint64_t *sums)
{
	int cpus = libbpf_num_possible_cpus();
	uint64_t *values;
	int err = 0;

	if (cpus < 0)
		return cpus;
	values = calloc((size_t)cpus, words * sizeof(*values));
	if (!values)
		return -ENOMEM;
	if (bpf_map_lookup_elem(fd, &key, values))
		err = -errno;
	memset(sums, 0, words * sizeof(*sums));
	for (size_t at = 0; !err && at < words * (size_t)cpus; at++)
		sums[at % words] += values[at];
	free(values);
	return err;
}

int maps_counters(const struct maps *maps, struct counter counters[REASONS])
{
	int err = 0;

	for (uint32_t reason = 0; !err && reason < REASONS; reason++)
		err = sum_cpus(maps->fd[MAP_COUNTERS], reason, sizeof(struct counter) / 8,
			       (uint64_t *)&counters[reason]);
	return err;
}

int maps_notes(const struct maps *maps, uint64_t notes[NOTES])
{
	struct report_state sum;
	int err = 0;

	for (uint32_t note = 0; !err && note < NOTES; note++)
		err = sum_cpus(maps->fd[MAP_NOTES], note, 1, &notes[note]);
	if (!err)
		err = sum_cpus(maps->fd[MAP_REPORT_STATE], 0, sizeof(sum) / 8, (uint64_t *)&sum);
	if (!err)
		notes[NOTE_EVENT_SAMPLED_OUT] += sum.sampled_out;
	return err;
}

int maps_interface(const struct maps *maps, uint32_t ifindex, struct interface_counter *out)
{
	return sum_cpus(maps->fd[MAP_INTERFACE_COUNTERS], ifindex % INTERFACE_COUNTERS,
			sizeof(*out) / 8, (uint64_t *)out);
}

int maps_unspent(const struct maps *maps, uint64_t unspent[METERS])
{
	struct node_slices sum;
	int err = sum_cpus(maps->fd[MAP_NODE_SLICES], 0, sizeof(sum) / 8, (uint64_t *)&sum);

	for (int meter = 0; !err && meter < METERS; meter++)
		unspent[meter] = sum.meter[meter].unspent;
	return err;
}

void maps_occupancy(const struct maps *maps, uint64_t now_ns, struct occupancy *out)
{
	*out = (struct occupancy){};
	for (size_t set = 0; set < IP_SETS; set++) {
		unsigned in_debt = 0;

		for (int index = 0; index < SET_WORDS; index++) {
			uint64_t word = maps->ip_buckets[set].word[index];

			if (word == WORD_EMPTY)
				out->empty++;
			else if (word_has_passed(word, now_ns))
				out->passed++;
			else
				in_debt++;
		}
		out->in_debt += in_debt;
		out->sets_full += in_debt == SET_WORDS;
	}
}
