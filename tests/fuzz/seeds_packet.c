/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Writes the frames of tests/vectors/packets.h as the first inputs of fuzz_packet into a folder. To
 *be run again when rows are added:
 *
 *	cc -D_GNU_SOURCE -Iinclude -I. tests/fuzz/seeds_packet.c -o build/seeds_packet
 *	build/seeds_packet tests/fuzz/corpus/packet
 */
#include <stdio.h>

#include "tests/vectors/packets.h"

/* The two bytes before a frame: all of it is linear. */
static const unsigned char whole[2];

int main(int argc, char **argv)
{
	if (argc != 2)
		return 2;
	for (size_t i = 0; i < sizeof(packet_rows) / sizeof(*packet_rows); i++) {
		unsigned char frame[PACKET_ROW_BYTES_MAX];
		size_t bytes = packet_row_bytes(&packet_rows[i], frame);
		char path[4096];
		FILE *file;

		snprintf(path, sizeof(path), "%s/%03zu", argv[1], i);
		file = fopen(path, "w");
		if (!file || fwrite(whole, sizeof(whole), 1, file) != 1 ||
		    fwrite(frame, bytes, 1, file) != 1 || fclose(file)) {
			perror(path);
			return 1;
		}
	}
	return 0;
}
