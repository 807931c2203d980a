/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The configuration file, read and checked: what an operator wants, in the terms of the file and
 * with nothing of BPF in it. dataplane/ turns it into what the programs read, engine/ and daemon/
 * into what the daemon does; neither looks at what is the other's.
 */
#ifndef SLUICE_LIMIT_SETTINGS_H
#define SLUICE_LIMIT_SETTINGS_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <sluice/abi.h>

#include "base/client_address.h"
#include "limit/build.h"
#include "limit/limits.h"

enum attach_mode {
	MODE_AUTO, /* the first of the others that the interface can do */
	MODE_NATIVE,
	MODE_TC, /* tcx where the kernel has it, else clsact */
	MODE_GENERIC,
	MODE_CLSACT, /* of TC only this */
};

/* Which generation of RateLimit header fields the HTTP answers carry. */
enum ratelimit_headers {
	HEADERS_OFF,
	HEADERS_LEGACY, /* X-RateLimit-Limit, -Remaining, -Reset */
	HEADERS_DRAFT6, /* RateLimit-Limit, -Remaining, -Reset, -Policy */
	HEADERS_DRAFT7, /* RateLimit: limit=…, remaining=…, reset=… */
	HEADERS_DRAFT8, /* RateLimit: "name";r=…;t=… and RateLimit-Policy */
};

/* What the holder of a token may do, as bits. */
enum admin_scope {
	SCOPE_RATE_LIMITS_READ = 1 << 0,
	SCOPE_RATE_LIMITS_WRITE = 1 << 1,
};

enum {
	INTERFACE_NAME_MAX = 16, /* with its final zero */
	INTERFACES_MAX = 64,
	SETTINGS_BYTES_MAX = 16 << 20,
	IPV6_PREFIX_MIN = 48,
	IPV6_PREFIX_MAX = 128,
	IPV6_PREFIX_DEFAULT = 64,
	BURST_BYTES_MIN = 1500, /* below it a packet of the usual size could never pass */
	TRUSTED_PROXIES_MAX = 1024,
	LISTEN_PATH_MAX = 108, /* of sun_path, with its final zero */
	WORKERS_MAX = 64,
	ADMIN_TOKENS_MAX = 64,
	ADMIN_NAME_MAX = 64,
	SHA256_BYTES = 32,
	TENANT_SLOTS_MIN = 1024,
	TENANT_SLOTS_MAX = 1 << 24,
	TENANT_SLOTS_DEFAULT = 131072,
	SOURCE_BYTES_DEFAULT = 100000000, /* per second */
	HTTP_PORT_DEFAULT = 4002,
};

#define STATE_DEFAULT "/var/lib/sluice"
#define LISTEN_PATH_DEFAULT "/run/sluice/sluice.sock"

struct setting_interface {
	char name[INTERFACE_NAME_MAX];
	enum attach_mode mode;
	enum attach_mode require; /* the least that will do: native, tc, or auto for any */
};

struct setting_prefix {
	union address address; /* bits beyond the length are zero */
	uint32_t bits;         /* of the sixteen bytes: an IPv4 /24 has 120 */
	enum prefix_action action;
	struct rate_limit limit[METERS]; /* with PREFIX_LIMIT */
	unsigned dry;                    /* as dry_ip below */
};

struct setting_protect {
	bool all;
	bool icmp;
	uint64_t tcp[PROTECT_WORDS]; /* one bit a port */
	uint64_t udp[PROTECT_WORDS];
};

/* Where to listen for TCP. port 0: nowhere. */
struct setting_endpoint {
	union address address; /* :: and 0.0.0.0 as they were written */
	uint16_t port;
};

struct setting_listen {
	char unix_path[LISTEN_PATH_MAX]; /* "": none */
	struct setting_endpoint tcp;
	struct setting_endpoint http;
};

struct setting_token {
	char name[ADMIN_NAME_MAX + 1]; /* [A-Za-z0-9_.-], each once */
	uint8_t sha256[SHA256_BYTES];  /* of the token; each once */
	unsigned scopes;               /* enum admin_scope */
};

struct settings {
	struct setting_interface *interfaces;
	size_t interface_count;
	struct setting_prefix
		*prefixes; /* exempt, deny and prefixes of the file, no two the same */
	size_t prefix_count;
	struct setting_protect protect;
	bool dry_run;
	bool shed;
	enum when_full when_full;
	uint32_t ipv6_prefix;
	char *bpffs; /* NULL: the default */
	struct rate_limit ip[METERS];
	struct rate_limit node[METERS];
	struct rate_limit ip_hooks;   /* BUCKET_WORD; burst 0: none. Charged by the daemon */
	struct rate_limit node_hooks; /* BUCKET_WHOLE */
	unsigned dry_ip;              /* bits 1 << enum meter: those that only count */
	unsigned dry_node;

	/* The rest is the daemon's. */
	struct rate_limit source_bytes; /* BUCKET_WHOLE_BYTES; always set */
	bool sources_given;             /* source_bytes stands in the file */
	bool has_fallback;              /* rate_limits.default is given */
	struct tenant_limit fallback;   /* built */
	struct limits_entry *tenants;   /* built, no id twice, in the order of the file */
	size_t tenant_count;
	struct address_prefix *trusted_proxies;
	size_t trusted_proxy_count;
	struct setting_listen listen;
	char state[PATH_MAX]; /* folder of what must outlive the daemon */
	bool no_dataplane;    /* dataplane: off */
	unsigned workers;     /* 0: as many as suit the machine */
	struct setting_token *tokens;
	size_t token_count;
	uint32_t tenant_slots; /* a power of two */
	enum ratelimit_headers ratelimit_headers;
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

/* The settings of an empty but valid configuration: every default, no limits, no lists. */
struct settings *settings_new(void);

/* The words of the file and of the command line for meters, modes and the like. */
const char *meter_name(enum meter meter);
const char *attach_mode_name(enum attach_mode mode);
const char *when_full_name(enum when_full when_full);
const char *ratelimit_headers_name(enum ratelimit_headers headers);
const char *admin_scope_name(enum admin_scope scope);
/* -EINVAL if the word is none of them. */
int attach_mode_parse(const char *word, enum attach_mode *out);
int attach_require_parse(const char *word, enum attach_mode *out);
int when_full_parse(const char *word, enum when_full *out);
int ratelimit_headers_parse(const char *word, enum ratelimit_headers *out);
int admin_scope_parse(const char *word, enum admin_scope *out);

/* Whether what is required can come of a mode. */
bool attach_mode_can_be(enum attach_mode mode, enum attach_mode require);

#endif
