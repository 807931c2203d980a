#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# Write vmlinux.h anew from the running kernel's BTF: just the types that bpf/ reads, by name.
set -eu

btf=${1:-/sys/kernel/btf/vmlinux}
bpftool=${BPFTOOL:-bpftool}
here=$(dirname "$0")
types="xdp_md __sk_buff xdp_action bpf_map_type bpf_timer ethhdr iphdr ipv6hdr tcphdr udphdr in6_addr"

dump=$(mktemp)
trap 'rm -f "$dump"' EXIT
"$bpftool" btf dump file "$btf" format c > "$dump"

# A definition runs from its first line to the line that closes it in the first column.
definition() {
	awk -v name="$1" '
		$0 ~ "^(struct|union|enum) " name " \\{$" { on = 1 }
		on { print }
		on && /^}/ { exit }
	' "$dump"
}

{
	cat <<'HEAD'
/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The kernel types that bpf/ reads, and no others. All are UAPI, so nothing is relocated and no BTF
 * is needed at run time. Written by vmlinux/renew.sh (make vmlinux) from a kernel's BTF; not edited
 * by hand.
 */
#ifndef SLUICE_VMLINUX_H
#define SLUICE_VMLINUX_H

typedef signed char __s8;
typedef unsigned char __u8;
typedef short int __s16;
typedef unsigned short __u16;
typedef int __s32;
typedef unsigned int __u32;
typedef long long int __s64;
typedef unsigned long long __u64;
typedef __u8 u8;
typedef __u16 u16;
typedef __u32 u32;
typedef __u64 u64;
typedef _Bool bool;
typedef __u16 __be16;
typedef __u32 __be32;
typedef __u16 __sum16;
typedef __u32 __wsum;

enum { false = 0, true = 1 };

/* Map flags, which the kernel's BTF keeps in enums without a name. */
enum {
HEAD
	for flag in BPF_ANY BPF_NOEXIST BPF_EXIST BPF_F_NO_PREALLOC BPF_F_MMAPABLE; do
		value=$(sed -n "s/^[[:space:]]*$flag = \([0-9]*\),\$/\1/p" "$dump" | head -n 1)
		[ -n "$value" ] || { echo "$btf has no $flag" >&2; exit 1; }
		printf '\t%s = %s,\n' "$flag" "$value"
	done
	printf '};\n'
	for type in in6_addr $(printf '%s\n' $types | grep -v in6_addr); do
		text=$(definition "$type")
		[ -n "$text" ] || { echo "$btf has no $type" >&2; exit 1; }
		printf '\n%s\n' "$text"
	done
	printf '\n#endif\n'
} > "$here/vmlinux.h.new"
mv "$here/vmlinux.h.new" "$here/vmlinux.h"
