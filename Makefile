# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# make                  build everything into build/
# sudo make run         install what is missing, build, and show it at work on interfaces of its own
#                       (IFACE=eth0: attach to that one instead, until confirmed)
# sudo make test        install what is missing, build, run every test
# make check            the fast part: unit tests, vectors, style (no root, under a minute)
# sudo make bench       measure against peers; prints, never passes or fails
# make fuzz             60 s of each fuzzer (FUZZ_SECONDS=n)
# sudo make deps        install the Debian packages that are missing
# sudo make install     into PREFIX (/usr/local), below DESTDIR; make uninstall takes it away, and all
#                       that is attached; make purge also the configuration and what the daemon kept
# make vmlinux          renew vmlinux/vmlinux.h from the running kernel
# make compile_commands.json      for editors
# make clean
#
# V=1 shows the commands. SAN=address,undefined or SAN=thread builds beside, into build/san-*.

CC           ?= cc
CLANG        ?= clang
BPFTOOL      ?= $(firstword $(wildcard /usr/sbin/bpftool /usr/local/sbin/bpftool) bpftool)
PREFIX       ?= /usr/local
FUZZ_SECONDS ?= 60

comma := ,
OUT   := build$(if $(SAN),/san-$(subst $(comma),-,$(SAN)))
GEN   := $(OUT)/gen
ARCH  := $(shell uname -m | sed 's/x86_64/x86/; s/aarch64/arm64/')

WARN       := -Wall -Wextra -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Werror
INCLUDES   := -Iinclude -Iuser -I. -isystem $(GEN)
CFLAGS     ?= -O2 -g
SANITIZE   := $(if $(SAN),-fsanitize=$(SAN) -fno-sanitize-recover=all -fno-omit-frame-pointer)
ALL_CFLAGS := -std=gnu11 -D_GNU_SOURCE $(WARN) $(INCLUDES) $(CFLAGS) -MD -MP $(SANITIZE)
LDLIBS     := -lbpf -lelf -lz -lyaml -ljansson -levent -levent_pthreads -lmicrohttpd -lsqlite3 \
	      -lhiredis -lcrypto -lm -lpthread $(SANITIZE)
# mcpu=v3: 32-bit jumps and compare-and-swap. The skeleton's order of includes needs no system path.
BPF_CFLAGS := -target bpf -mcpu=v3 -D__TARGET_ARCH_$(ARCH) -O2 -g -std=gnu11 -Wall -Wextra -Werror \
	      -Iinclude -Ibpf -isystem vmlinux -MD -MP

ifeq ($(V),1)
say =
else
say = @printf '  %-8s %s\n' '$(1)' '$(2:$(OUT)/%=%)';
endif

LIB_SRC := $(filter-out user/daemon/% user/cli/%,$(wildcard user/*/*.c))
LIB_OBJ := $(LIB_SRC:%.c=$(OUT)/%.o)
CLI_OBJ := $(patsubst %.c,$(OUT)/%.o,$(wildcard user/cli/*.c))
CLI     := $(OUT)/sluice
DAEMON_OBJ := $(patsubst %.c,$(OUT)/%.o,$(wildcard user/daemon/*.c))
DAEMON  := $(OUT)/sluiced
UNIT    := $(patsubst %.c,$(OUT)/%,$(wildcard tests/unit/test_*.c))
BPFTEST := $(patsubst %.c,$(OUT)/%,$(wildcard tests/bpf/test_*.c))
BPFTOOLS_OBJ := $(patsubst %.c,$(OUT)/%.o,$(filter-out tests/bpf/test_%.c,$(filter-out %.bpf.c,$(wildcard tests/bpf/*.c))))
BENCH   := $(patsubst %.c,$(OUT)/%,$(filter-out %.bpf.c,$(wildcard tests/bench/*.c)))
BENCH_OBJ := $(patsubst %.c,$(OUT)/%.o,$(wildcard tests/bench/lib/*.c))
FUZZ    := $(patsubst tests/fuzz/%.c,$(OUT)/tests/fuzz/%,$(wildcard tests/fuzz/fuzz_*.c))
PROBES  := $(patsubst tests/bpf/%.bpf.c,$(GEN)/%.skel.h,$(wildcard tests/bpf/*.bpf.c)) \
	   $(patsubst tests/bench/%.bpf.c,$(GEN)/%.skel.h,$(wildcard tests/bench/*.bpf.c))

.PHONY: all tests deps run test check check-tidy check-format bench fuzz install uninstall purge remove-files clean vmlinux
all: $(CLI) $(DAEMON)
tests: $(CLI) $(DAEMON) $(UNIT) $(BPFTEST) $(BENCH)

# ---- BPF objects and their skeletons

$(GEN)/%.bpf.o: bpf/%.bpf.c
	@mkdir -p $(@D)
	$(call say,BPF,$@)$(CLANG) $(BPF_CFLAGS) -c $< -o $@

# The tests' own build of the same programs: their clock is a variable.
$(GEN)/%_test.bpf.o: bpf/%.bpf.c
	@mkdir -p $(@D)
	$(call say,BPF,$@)$(CLANG) $(BPF_CFLAGS) -DFAKE_CLOCK -c $< -o $@

$(GEN)/%.bpf.o: tests/bpf/%.bpf.c
	@mkdir -p $(@D)
	$(call say,BPF,$@)$(CLANG) $(BPF_CFLAGS) -I. -c $< -o $@

$(GEN)/%.bpf.o: tests/bench/%.bpf.c
	@mkdir -p $(@D)
	$(call say,BPF,$@)$(CLANG) $(BPF_CFLAGS) -I. -c $< -o $@

$(GEN)/%.skel.h: $(GEN)/%.bpf.o
	$(call say,SKEL,$@)$(BPFTOOL) gen skeleton $< name $*_bpf > $@

# ---- user space

$(OUT)/%.o: %.c
	@mkdir -p $(@D)
	$(call say,CC,$@)$(CC) $(ALL_CFLAGS) -c $< -o $@

$(OUT)/libinternal.a: $(LIB_OBJ)
	$(call say,AR,$@)rm -f $@ && $(AR) rcs $@ $^

$(CLI): $(CLI_OBJ) $(OUT)/libinternal.a
	$(call say,LINK,$@)$(CC) $^ $(LDFLAGS) $(LDLIBS) -o $@

$(DAEMON): $(DAEMON_OBJ) $(OUT)/libinternal.a
	$(call say,LINK,$@)$(CC) $^ $(LDFLAGS) $(LDLIBS) -o $@

$(UNIT): $(OUT)/%: $(OUT)/%.o $(OUT)/libinternal.a
	$(call say,LINK,$@)$(CC) $^ $(LDFLAGS) -lcmocka $(LDLIBS) -o $@

$(BPFTEST): $(OUT)/%: $(OUT)/%.o $(BPFTOOLS_OBJ) $(OUT)/libinternal.a
	$(call say,LINK,$@)$(CC) $^ $(LDFLAGS) -lcmocka $(LDLIBS) -o $@

$(BENCH): $(OUT)/%: $(OUT)/%.o $(BENCH_OBJ) $(OUT)/libinternal.a
	$(call say,LINK,$@)$(CC) $^ $(LDFLAGS) $(LDLIBS) -o $@

# Generated headers are there before the first compilation; -MD tracks them from then on. (-MMD
# would leave them out, as found by -isystem, and the CLI would keep a stale program.)
$(LIB_OBJ) $(CLI_OBJ) $(DAEMON_OBJ): | $(GEN)/sluice.skel.h
$(BPFTEST:=.o) $(BPFTOOLS_OBJ) $(BENCH:=.o) $(BENCH_OBJ): | $(GEN)/sluice.skel.h $(GEN)/sluice_test.skel.h $(PROBES)

# ---- fuzzers: clang's libFuzzer; the sources are compiled once for all of them

FUZZ_FLAGS := -std=gnu11 -D_GNU_SOURCE -Wall $(INCLUDES) -O1 -g -MD -MP -fno-sanitize-recover=all
FUZZ_OBJ   := $(LIB_SRC:%.c=$(OUT)/fuzz/%.o)

$(OUT)/fuzz/%.o: %.c | $(GEN)/sluice.skel.h
	@mkdir -p $(@D)
	$(call say,FUZZCC,$@)$(CLANG) $(FUZZ_FLAGS) -fsanitize=fuzzer-no-link,address,undefined -c $< -o $@

$(OUT)/fuzz/libinternal.a: $(FUZZ_OBJ)
	$(call say,AR,$@)rm -f $@ && $(AR) rcs $@ $^

$(OUT)/tests/fuzz/%: tests/fuzz/%.c $(OUT)/fuzz/libinternal.a
	@mkdir -p $(@D)
	$(call say,FUZZ,$@)$(CLANG) $(FUZZ_FLAGS) -MF $@.d -fsanitize=fuzzer,address,undefined \
		$< $(OUT)/fuzz/libinternal.a $(LDLIBS) -o $@

fuzz: $(FUZZ)
	@tests/fuzz/run.sh $(FUZZ_SECONDS) $(FUZZ)

# ---- tests

deps:
	@tests/deps.sh test

check: $(UNIT) $(CLI)
	@tests/run.sh style unit

check-tidy:
	@tests/run.sh style

check-format:
	@clang-format --dry-run -Werror $$(git ls-files '*.c' '*.h' | grep -v '^vmlinux/')

test: deps
	@$(MAKE) --no-print-directory tests $(FUZZ)
	@tests/run.sh all

bench: deps
	@$(MAKE) --no-print-directory all $(BENCH)
	@tests/bench/run.sh

run:
	@tests/deps.sh run
	@$(MAKE) --no-print-directory all $(OUT)/tests/bench/flood
	@dist/run.sh

# ---- the rest

MANPAGES := $(wildcard docs/man/*.[1-8])

install: $(CLI) $(DAEMON)
	install -D -m 755 $(CLI) $(DESTDIR)$(PREFIX)/sbin/sluice
	install -D -m 755 $(DAEMON) $(DESTDIR)$(PREFIX)/sbin/sluiced
	@mkdir -p $(DESTDIR)$(PREFIX)/lib/systemd/system
	sed 's|/usr/local/sbin|$(PREFIX)/sbin|' dist/sluiced.service \
		> $(DESTDIR)$(PREFIX)/lib/systemd/system/sluiced.service
	install -m 644 dist/sluiced.socket $(DESTDIR)$(PREFIX)/lib/systemd/system/sluiced.socket
	install -D -m 644 dist/sluice.yaml $(DESTDIR)$(PREFIX)/share/doc/sluice/sluice.yaml
	install -D -m 644 dist/completion.bash $(DESTDIR)$(PREFIX)/share/bash-completion/completions/sluice
	for page in $(MANPAGES); do \
		install -D -m 644 $$page $(DESTDIR)$(PREFIX)/share/man/man$${page##*.}/$${page##*/}; done

# Leaves nothing behind: no process, no program, no pin, and of what was written by others the names.
uninstall:
	$(if $(DESTDIR),,dist/uninstall.sh $(PREFIX))
	@$(MAKE) --no-print-directory remove-files

purge:
	$(if $(DESTDIR),,dist/uninstall.sh --purge $(PREFIX))
	@$(MAKE) --no-print-directory remove-files

remove-files:
	rm -f $(DESTDIR)$(PREFIX)/sbin/sluiced $(DESTDIR)$(PREFIX)/sbin/sluice
	rm -f $(DESTDIR)$(PREFIX)/lib/systemd/system/sluiced.service
	rm -f $(DESTDIR)$(PREFIX)/lib/systemd/system/sluiced.socket
	rm -f $(DESTDIR)$(PREFIX)/share/bash-completion/completions/sluice
	rm -rf $(DESTDIR)$(PREFIX)/share/doc/sluice
	for page in $(MANPAGES); do \
		rm -f $(DESTDIR)$(PREFIX)/share/man/man$${page##*.}/$${page##*/}; done
	$(if $(DESTDIR),,-test ! -d /run/systemd/system || systemctl daemon-reload)

vmlinux:
	@BPFTOOL=$(BPFTOOL) vmlinux/renew.sh

compile_commands.json:
	bear -- $(MAKE) -B tests

clean:
	rm -rf build compile_commands.json

-include $(shell find $(OUT) -name '*.d' 2>/dev/null)
.DELETE_ON_ERROR:
.SECONDARY:
