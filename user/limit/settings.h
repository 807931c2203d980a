/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The configuration file, read and checked: what an operator wants, in the terms of the file and
 * with nothing of BPF in it. dataplane/ turns it into what the programs read.
 */
#ifndef SLUICE_LIMIT_SETTINGS_H
#define SLUICE_LIMIT_SETTINGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <sluice/abi.h>

#include "limit/build.h"

enum attach_mode {
	MODE_AUTO, /* the first of the others that the interface can do */
	MODE_NATIVE,
	MODE_GENERIC,
};

enum {
	INTERFACE_NAME_MAX = 16, /* with its final zero */
	INTERFACES_MAX = 64,
	SETTINGS_BYTES_MAX = 16 << 20,
	IPV6_PREFIX_MIN = 48,
	IPV6_PREFIX_MAX = 128,
	IPV6_PREFIX_DEFAULT = 64,
	BURST_BYTES_MIN = 1500, /* below it a packet of the usual size could never pass */
};

struct setting_interface {
	char name[INTERFACE_NAME_MAX];
	enum attach_mode mode;
};

struct setting_prefix {
	union address address; /* bits beyond the length are zero */
	uint32_t bits;         /* of the sixteen bytes: an IPv4 /24 has 120 */
	enum prefix_action action;
	struct rate_limit limit[METERS]; /* with PREFIX_LIMIT */
};

struct setting_protect {
	bool all;
	bool icmp;
	uint64_t tcp[PROTECT_WORDS]; /* one bit a port */
	uint64_t udp[PROTECT_WORDS];
};

struct settings {
	struct setting_interface *interfaces;
	size_t interface_count;
	struct setting_prefix
		*prefixes; /* exempt, deny and prefixes of the file, no two the same */
	size_t prefix_count;
	struct setting_protect protect;
	bool dry_run;
	enum when_full when_full;
	uint32_t ipv6_prefix;
	char *bpffs; /* NULL: the default */
	struct rate_limit ip[METERS];
	struct rate_limit node[METERS];
};

/* Where the file is wrong, and what would be right. line and column count from 1; 0: no place. */
struct settings_error {
	unsigned line;
	unsigned column;
	char key[128];     /* dotted path, as rate_limits.per_ip.packets.rate; "" if none */
	char message[256]; /* what is wrong and what is allowed */
};

/*
 * Read and check a whole configuration file. On success *out is the caller's, to be freed with
 * settings_free(). On failure *out is untouched and *error is filled with the first problem:
 * -EINVAL for what the file says, another -errno if it cannot be read (then the place is 0:0).
 */
int settings_load(const char *path, struct settings **out, struct settings_error *error);

/* The same from memory. text need not end in a zero byte. */
int settings_parse(const char *text, size_t length, struct settings **out,
		   struct settings_error *error);

/* `sluice.yaml:7:12: rate_limits.per_ip.packets.rate: must be …` and a newline. */
void settings_error_print(const struct settings_error *error, const char *path, FILE *out);

/* NULL is fine. */
void settings_free(struct settings *settings);

/* What `protect`, no limits and no lists are: the settings of an empty but valid configuration. */
struct settings *settings_new(void);

/* The words of the file and of the command line for meters, modes and the like. */
const char *meter_name(enum meter meter);
const char *attach_mode_name(enum attach_mode mode);
const char *when_full_name(enum when_full when_full);
/* -EINVAL if the word is none of them. */
int attach_mode_parse(const char *word, enum attach_mode *out);
int when_full_parse(const char *word, enum when_full *out);

#endif
