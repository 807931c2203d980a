/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Looks into the folders of other versions for links, which are pinned alike in all of them. */
#include "dataplane/others.h"

#include <errno.h>
#include <net/if.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "dataplane/link.h"

struct listing {
	const struct pins *pins;
	struct other_set *sets;
	size_t count;
};

static int name_link(uint32_t ifindex, const char *path, void *data)
{
	struct other_set *set = data;
	size_t length = strlen(set->names);
	char name[IF_NAMESIZE];

	(void)path;
	set->held++;
	if (!if_indextoname(ifindex, name))
		(void)snprintf(name, sizeof(name), "ifindex %u", ifindex);
	if (length + strlen(name) + 2 < sizeof(set->names))
		(void)snprintf(set->names + length, sizeof(set->names) - length, "%s%s",
			       length ? ", " : "", name);
	return 0;
}

static int list_set(uint32_t version, void *data)
{
	struct listing *listing = data;
	struct other_set *set = &listing->sets[listing->count];
	char folder[PATH_MAX];

	if (listing->count == OTHER_VERSIONS_MAX)
		return 0;
	*set = (struct other_set){ .version = version };
	listing->count++;
	return pins_each_link(pins_version_path(listing->pins, version, folder), name_link, set);
}

int others_list(const struct pins *pins, struct other_set sets[OTHER_VERSIONS_MAX], size_t *count)
{
	struct listing listing = { .pins = pins, .sets = sets };
	int err = pins_each_version(pins, list_set, &listing);

	*count = listing.count;
	return err;
}

struct search {
	const struct pins *pins;
	uint32_t ifindex;
	unsigned found;
	int err;
};

static int count_link(uint32_t ifindex, const char *path, void *data)
{
	(void)ifindex;
	(void)path;
	(*(unsigned *)data)++;
	return 0;
}

static int detach_link(uint32_t ifindex, const char *path, void *data)
{
	struct search *search = data;
	int err = ifindex == search->ifindex ? link_remove(path) : 0;

	if (err)
		search->err = err;
	else if (ifindex == search->ifindex)
		search->found++;
	return 0;
}

static int detach_from(uint32_t version, void *data)
{
	struct search *search = data;
	unsigned found = search->found, left = 0;
	char folder[PATH_MAX];

	(void)pins_version_path(search->pins, version, folder);
	if (!pins_each_link(folder, detach_link, search) && search->found > found &&
	    !pins_each_link(folder, count_link, &left) && !left)
		(void)pins_remove(folder);
	return 0;
}

int others_detach(const struct pins *pins, uint32_t ifindex)
{
	struct search search = { .pins = pins, .ifindex = ifindex };
	int err = pins_each_version(pins, detach_from, &search);

	if (!err)
		err = search.err;
	return err ? err : search.found ? 0 : -ENOENT;
}
