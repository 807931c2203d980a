/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The kernel's answers to loading and attaching, explained. The link interface carries no text, so
 * what the driver would have said is worked out from the interface itself.
 */
#include "dataplane/explain.h"

#include <errno.h>
#include <net/if.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include <linux/if_link.h>

/* A page less what the kernel keeps beside the frame: where drivers begin to refuse. */
enum { SINGLE_BUFFER_MTU = 3498 };

int explain_load(int err, struct trouble *trouble)
{
	switch (-err) {
	case EPERM:
	case EACCES:
		trouble_set(trouble, 0, "the kernel does not let us load a program");
		trouble_advise(trouble, "run as root, or with CAP_BPF, CAP_NET_ADMIN and CAP_PERFMON");
		break;
	case ENOMEM:
		trouble_set(trouble, 0, "there is no memory for the maps (about 12 MiB)");
		trouble_advise(trouble, "raise the memory limit of this control group (systemd: MemoryMax=)");
		break;
	case EINVAL:
	case E2BIG:
	case ENOTSUP:
		trouble_set(trouble, 0, "this kernel does not take the program: %s", strerror(-err));
		trouble_advise(trouble, "sluice needs Linux 5.15 or newer; --verbose shows what the kernel says");
		break;
	default:
		trouble_set(trouble, 0, "the program cannot be loaded: %s", strerror(-err));
		trouble_advise(trouble, "--verbose shows what the kernel says");
	}
	return err;
}

static int mtu_of(const char *name)
{
	struct ifreq request = {};
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	int mtu = 0;

	if (fd < 0)
		return 0;
	(void)snprintf(request.ifr_name, sizeof(request.ifr_name), "%s", name);
	if (!ioctl(fd, SIOCGIFMTU, &request))
		mtu = request.ifr_mtu;
	(void)close(fd);
	return mtu;
}

/* The program that is there already, by name and number. Returns what `ip link` calls its mode. */
static const char *describe_other(uint32_t ifindex, char *text, size_t size)
{
	LIBBPF_OPTS(bpf_xdp_query_opts, query);
	struct bpf_prog_info info = {};
	uint32_t length = sizeof(info);
	const char *mode = "native", *word = "xdpdrv";
	uint32_t id;
	int fd;

	(void)snprintf(text, size, "another XDP program");
	if (bpf_xdp_query((int)ifindex, 0, &query))
		return "xdp";
	id = query.drv_prog_id;
	if (query.skb_prog_id) {
		id = query.skb_prog_id;
		mode = "generic";
		word = "xdpgeneric";
	} else if (query.hw_prog_id) {
		id = query.hw_prog_id;
		mode = "offloaded";
		word = "xdpoffload";
	}
	if (!id)
		return "xdp";
	fd = bpf_prog_get_fd_by_id(id);
	if (fd >= 0 && !bpf_obj_get_info_by_fd(fd, &info, &length))
		(void)snprintf(text, size, "the XDP program %s (id %u, %s mode)", info.name, id, mode);
	else
		(void)snprintf(text, size, "the XDP program with id %u (%s mode)", id, mode);
	if (fd >= 0)
		(void)close(fd);
	return word;
}

static void explain_taken(const char *name, uint32_t ifindex, struct trouble *trouble)
{
	char other[96];
	const char *word = describe_other(ifindex, other, sizeof(other));

	trouble_set(trouble, 0, "%s is taken by %s; sluice never replaces a program of others", name,
		    other);
	trouble_advise(trouble,
		       "see whose it is (bpftool net show dev %s) and have its owner take it off "
		       "(ip link set dev %s %s off)",
		       name, name, word);
}

static void explain_mtu(int err, const char *name, bool frags, struct trouble *trouble)
{
	int mtu = mtu_of(name);

	if (mtu <= SINGLE_BUFFER_MTU && err == -EINVAL) {
		trouble_set(trouble, 0, "the driver of %s does not take the program as %s is set up",
			    name, name);
		trouble_advise(trouble,
			       "often it wants fewer queues (ethtool -l %s) or LRO off (ethtool -K %s "
			       "lro off); dmesg may say more; or use --mode generic",
			       name, name);
		return;
	}
	trouble_set(trouble, 0, "the MTU of %s or of its peer is too large for native XDP %s (it is %d)",
		    name, frags ? "with fragments" : "in one buffer", mtu);
	trouble_advise(trouble,
		       "lower it (ip link set dev %s mtu %d), or use --mode generic, which is slower",
		       name, SINGLE_BUFFER_MTU);
}

int explain_attach(int err, const char *name, uint32_t ifindex, enum attach_mode mode, bool frags,
		   struct trouble *trouble)
{
	switch (-err) {
	case EBUSY:
	case EEXIST:
		explain_taken(name, ifindex, trouble);
		break;
	case EOPNOTSUPP:
		trouble_set(trouble, 0, "the driver of %s has no native XDP", name);
		trouble_advise(trouble, "use --mode generic, which works everywhere and is slower");
		break;
	case ERANGE:
	case EINVAL:
		if (mode == MODE_GENERIC) {
			trouble_set(trouble, 0, "%s does not take the program: %s", name, strerror(-err));
			break;
		}
		explain_mtu(err, name, frags, trouble);
		break;
	case EPERM:
	case EACCES:
		trouble_set(trouble, 0, "the kernel does not let us attach to %s", name);
		trouble_advise(trouble, "run as root, or with CAP_BPF, CAP_NET_ADMIN and CAP_PERFMON");
		break;
	case ENODEV:
		trouble_set(trouble, 0, "the interface %s has just gone", name);
		break;
	default:
		trouble_set(trouble, 0, "cannot attach to %s: %s", name, strerror(-err));
		trouble_advise(trouble, "dmesg may say more");
	}
	return err;
}
