/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Writes the frames of tests/vectors/packets.h and segments.h as the first inputs of fuzz_packet
 *into a folder. To be run again when rows are added:
 *
 *	cc -D_GNU_SOURCE -Iinclude -I. tests/fuzz/seeds_packet.c -o build/seeds_packet
 *	build/seeds_packet tests/fuzz/corpus/packet
 */
#include <stdio.h>

#include "tests/vectors/segments.h"

/* Before a frame: how much of it is not linear, the size of its segments, how many there are. */
struct control {
	unsigned char byte[7];
};

static struct control control_of(const struct segments_row *row)
{
	struct control control = { {
		(unsigned char)row->payload_bytes,
		(unsigned char)(row->payload_bytes >> 8),
		(unsigned char)(row->payload_bytes >> 16),
		(unsigned char)row->payload_each,
		(unsigned char)(row->payload_each >> 8),
		(unsigned char)row->segments,
		(unsigned char)(row->segments >> 8),
	} };

	return control;
}

static int write_seed(const char *folder, size_t number, const struct control *control,
		      const unsigned char *frame, size_t bytes)
{
	char path[4096];
	FILE *file;

	snprintf(path, sizeof(path), "%s/%03zu", folder, number);
	file = fopen(path, "w");
	if (file && fwrite(control, sizeof(*control), 1, file) == 1 &&
	    fwrite(frame, bytes, 1, file) == 1 && !fclose(file))
		return 0;
	perror(path);
	return 1;
}

int main(int argc, char **argv)
{
	const size_t packets = sizeof(packet_rows) / sizeof(*packet_rows);
	const size_t segments = sizeof(segments_rows) / sizeof(*segments_rows);
	int err = argc != 2;

	for (size_t i = 0; !err && i < packets; i++) {
		unsigned char frame[PACKET_ROW_BYTES_MAX];
		const struct control whole = { { 0 } };

		err = write_seed(argv[1], i, &whole, frame,
				 packet_row_bytes(&packet_rows[i], frame));
	}
	for (size_t i = 0; !err && i < segments; i++) {
		unsigned char frame[PACKET_ROW_BYTES_MAX];
		const struct control control = control_of(&segments_rows[i]);

		err = write_seed(argv[1], packets + i, &control, frame,
				 segments_row_headers(&segments_rows[i], frame));
	}
	return err;
}
