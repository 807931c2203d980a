/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* See veth.h. The generator is a process of its own: it is measured as it is used. */
#include "tests/bench/lib/veth.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/ethtool.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <jansson.h>

#include "tests/bench/counters.h"

static const char *const commands[] = {
	"ip link add " VETH_SENDER " type veth peer name " VETH_RECEIVER,
	/* Their own packets would be counted with the generator's. */
	"ip link set " VETH_SENDER " addrgenmode none",
	"ip link set " VETH_RECEIVER " addrgenmode none",
	"ip link set " VETH_SENDER " up",
	"ip link set " VETH_RECEIVER " up",
};

int veth_open(struct veth *veth)
{
	if (unshare(CLONE_NEWNET))
		return -errno;
	for (size_t at = 0; at < sizeof(commands) / sizeof(commands[0]); at++)
		if (system(commands[at]))
			return -EIO;
	veth->receiver = if_nametoindex(VETH_RECEIVER);
	if (!veth->receiver)
		return -errno;
	veth->counters = counters_open();
	return veth->counters < 0 ? veth->counters : 0;
}

void veth_close(struct veth *veth)
{
	if (veth->counters > 0)
		close(veth->counters);
	veth->counters = 0;
}

int veth_set_gro(const struct veth *veth, bool on)
{
	struct ethtool_value value = { .cmd = ETHTOOL_SGRO, .data = on };
	struct ifreq request = { .ifr_data = (void *)&value };
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	int err = 0;

	if (fd < 0)
		return -errno;
	if (!if_indextoname(veth->receiver, request.ifr_name) || ioctl(fd, SIOCETHTOOL, &request))
		err = -errno;
	close(fd);
	return err;
}

/* The generator lies beside the running program. */
static int generator_path(char path[PATH_MAX])
{
	ssize_t length = readlink("/proc/self/exe", path, PATH_MAX - sizeof("/flood"));
	char *slash;

	if (length < 0)
		return -errno;
	path[length] = '\0';
	slash = strrchr(path, '/');
	strcpy(slash, "/flood");
	return access(path, X_OK) ? -errno : 0;
}

static int parse_figures(FILE *output, uint64_t *made, double *cpu_seconds)
{
	json_t *root = json_loadf(output, 0, NULL);
	json_int_t count;
	int err = json_unpack(root, "{s:I, s:F}", "made", &count, "cpu_seconds", cpu_seconds)
			  ? -EPROTO
			  : 0;

	if (!err)
		*made = (uint64_t)count;
	json_decref(root);
	return err;
}

int veth_flood(const struct veth *veth, const char *sources, double seconds, struct veth_flood *out)
{
	struct rtnl_link_stats64 before, after;
	char path[PATH_MAX], command[PATH_MAX + 128];
	double cpu_seconds = 0;
	FILE *output;
	int err = generator_path(path);

	if (!err)
		err = counters_get(veth->counters, veth->receiver, &before);
	if (err)
		return err;
	snprintf(command, sizeof(command), "%s --dev %s --seconds %g --sources %s --json", path,
		 VETH_SENDER, seconds, sources);
	output = popen(command, "r");
	if (!output)
		return -errno;
	err = parse_figures(output, &out->made, &cpu_seconds);
	if (pclose(output))
		return -EIO;
	if (!err)
		err = counters_get(veth->counters, veth->receiver, &after);
	if (err)
		return err;
	out->arrived = after.rx_packets - before.rx_packets;
	out->rate = cpu_seconds > 0 ? (double)out->arrived / cpu_seconds : 0;
	return 0;
}
