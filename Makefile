# receiptd. `make help` says what there is.
#
# Variables: CC (gcc, clang-14 …), CFLAGS, LDFLAGS, WERROR=-Werror, DEBUG=1, SANITIZE=address|thread|fuzzer|fuzzer-fast, BUILD (each
# variant has a directory of its own), HARDENING= to go without, DESTDIR, PREFIX, SYSCONFDIR, UNITDIR, ZSHDIR, V=1 to see the commands.

ifneq ($(SANITIZE),)
BUILD ?= build/$(patsubst address,asan,$(patsubst thread,tsan,$(patsubst fuzzer%,fuzz%,$(SANITIZE))))
else ifneq ($(DEBUG),)
BUILD ?= build/debug
else
BUILD ?= build
endif
comma := ,
# clang of the release that the code is checked with, or else the one that this system has.
CLANG := $(if $(shell command -v clang-14),clang-14,clang)
CLANG_TIDY := $(if $(shell command -v clang-tidy-14),clang-tidy-14,clang-tidy)
ifeq ($(origin CC),default)
CC := $(if $(filter fuzzer% address,$(SANITIZE)),$(CLANG),gcc)
endif
PREFIX ?= /usr/local
SYSCONFDIR ?= /etc
UNITDIR ?= $(PREFIX)/lib/systemd/system
ZSHDIR ?= $(PREFIX)/share/zsh/site-functions

PKGS := rdkafka libpq libcyaml yaml-0.1 libuv zlib libssl libcrypto libcurl
WARNINGS := -Wall -Wextra -Wconversion -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wpointer-arith -Wcast-qual \
	-Wwrite-strings -Wformat=2 -Wundef -Wvla -Wdouble-promotion -Wnull-dereference
SANITIZE_address := -fsanitize=address,undefined -fno-sanitize-recover=all
SANITIZE_thread := -fsanitize=thread
SANITIZE_fuzzer := -fsanitize=fuzzer-no-link,address,undefined -fno-sanitize-recover=all
# Several times as many executions: a crash, an assertion and undefined behaviour end them, a byte read too far does not.
SANITIZE_fuzzer-fast := -fsanitize-coverage=inline-8bit-counters,pc-table -fsanitize=undefined -fsanitize-trap=undefined \
	-ffunction-sections
ifneq ($(filter-out fuzzer-fast,$(SANITIZE)$(DEBUG)),)
CFLAGS ?= -O1 -g
else
CFLAGS ?= -O2 -g
endif

# Stack protector, checked libc calls (they need an optimizer), control-flow enforcement where the processor's family has it, addresses
# at random, everything that the loader resolves read-only. Sanitizers check more, and do not go together with it.
ifeq ($(SANITIZE),)
HARDENING ?= -fstack-protector-strong -fstack-clash-protection -fPIE $(if $(filter -O0,$(CFLAGS)),,-U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=2) \
	$(shell $(CC) -fcf-protection -x c -c -o /dev/null /dev/null 2> /dev/null && echo -fcf-protection)
HARDENING_LINK := $(if $(strip $(HARDENING)),-pie -Wl$(comma)-z$(comma)relro -Wl$(comma)-z$(comma)now)
endif

# llhttp, the parser of HTTP, is a library from Debian 13 on. Debian 12 has its C sources (node-llhttp): they are compiled here, with their
# own warnings. Its default mode, that Node runs, takes bytes above 0x7f in targets; src/http/parse.c refuses what else it takes.
ifeq ($(shell pkg-config --exists libllhttp && echo yes),yes)
PKGS += libllhttp
else
LLHTTP ?= /usr/share
LLHTTP_OBJECTS := $(patsubst %,$(BUILD)/obj/llhttp/%.o,api http llhttp)
endif
# Each folder sees what others give (include/receiptd) and its own. Tests look inside.
INSIDE := -Isrc -Itests
INCLUDES := -Iinclude -I$(BUILD)/generated $(if $(LLHTTP),-idirafter $(LLHTTP)/include/llhttp)
CPPFLAGS_ALL := -D_GNU_SOURCE $(INCLUDES) $(shell pkg-config --cflags $(PKGS)) $(CPPFLAGS)
CFLAGS_ALL := -std=c11 -fno-omit-frame-pointer $(WARNINGS) $(WERROR) $(HARDENING) $(CFLAGS) $(SANITIZE_$(SANITIZE))
LDFLAGS_ALL := $(HARDENING_LINK) $(SANITIZE_$(SANITIZE)) $(LDFLAGS)
LDLIBS_ALL := $(shell pkg-config --libs $(PKGS)) -lm -lpthread $(LDLIBS)
SAY = $(if $(V),,@echo "  $(1)  $@";)
COMPILE = $(call SAY,CC  ) $(CC) $(CPPFLAGS_ALL) $(CFLAGS_ALL) -MMD -MP
LINK = $(call SAY,LINK) $(CC) $(CFLAGS_ALL) $(LDFLAGS_ALL)

SQL := $(sort $(wildcard sql/*/*.sql sql/*/*/*.sql))
PAGE := $(sort $(wildcard src/serve/page/*)) src/serve/openapi.json
SOURCES := $(sort $(filter-out src/main.c,$(wildcard src/*/*.c src/*/*/*.c)))
OBJECTS := $(SOURCES:src/%.c=$(BUILD)/obj/%.o) $(BUILD)/obj/generated/sql.o $(BUILD)/obj/generated/page.o $(LLHTTP_OBJECTS)
# librdkafka calls this file: no symbol of ours asks for it.
LINKED := $(BUILD)/obj/kafka/inflate.o
ifeq ($(SANITIZE),thread)
LINKED += $(patsubst tests/%.c,$(BUILD)/obj/tests/%.o,$(wildcard tests/sanitizers/*.c))
endif
UNIT := $(patsubst tests/%.c,$(BUILD)/tests/%,$(sort $(wildcard tests/unit/test_*.c)))
SIMULATION := $(patsubst tests/%.c,$(BUILD)/tests/%,$(sort $(wildcard tests/simulation/test_*.c)))
SIMULATOR := $(patsubst tests/%.c,$(BUILD)/obj/tests/%.o,$(sort $(filter-out tests/simulation/test_%,$(wildcard tests/simulation/*.c))))
HARNESS := $(BUILD)/obj/tests/integration/kafka_harness.o
INTEGRATION := $(patsubst tests/%.c,$(BUILD)/tests/%,$(sort $(wildcard tests/integration/test_*.c)))
DRIVER := $(BUILD)/tests/integration/heart_driver
FUZZ := $(patsubst tests/%.c,$(BUILD)/tests/%,$(sort $(wildcard tests/fuzz/*.c)))
BENCH := $(patsubst tests/%.c,$(BUILD)/tests/%,$(sort $(wildcard tests/bench/*.c)))

# As many jobs as processors unless the caller says otherwise.
ifeq ($(MAKELEVEL)$(filter -j% --jobs%,$(MAKEFLAGS)),0)
MAKEFLAGS += -j$(shell nproc)
endif
MAKEFLAGS += --output-sync=target --no-builtin-rules
.DELETE_ON_ERROR:
.SUFFIXES:
.SECONDARY:
.PHONY: all test check bench demo install clean help docs unit integration simulation fuzz fuzz-fast \
	unit-programs simulation-programs integration-programs bench-programs \
	check-format check-tidy check-cppcheck check-gcc check-clang check-scripts check-docs check-structure objects FORCE

all: $(BUILD)/receiptd ## the daemon: build/receiptd

# ---- building

# Written only when its content changes: what depends on it is built again when flags or the list of files change.
define on_change
@mkdir -p $(@D)
@printf '%s\n' '$(subst ','\'',$(1))' | cmp -s - $@ || printf '%s\n' '$(subst ','\'',$(1))' > $@
endef

$(BUILD)/stamp/compile: FORCE
	$(call on_change,$(CC) $(CPPFLAGS_ALL) $(filter-out $(WERROR),$(CFLAGS_ALL)))
$(BUILD)/stamp/link: FORCE
	$(call on_change,$(CC) $(filter-out $(WERROR),$(CFLAGS_ALL)) $(LDFLAGS_ALL) $(LDLIBS_ALL) $(OBJECTS))
$(BUILD)/stamp/sql: FORCE
	$(call on_change,$(SQL))

$(BUILD)/receiptd: $(BUILD)/obj/main.o $(OBJECTS) $(LINKED) $(BUILD)/stamp/link
	$(LINK) -o $@ $(filter %.o,$^) $(LDLIBS_ALL)

$(BUILD)/generated/sql.c: scripts/embed-sql $(SQL) $(BUILD)/stamp/sql
	@mkdir -p $(@D)
	@scripts/embed-sql $(SQL) > $@.tmp && mv $@.tmp $@

$(BUILD)/generated/page.c: scripts/embed-page $(PAGE)
	@mkdir -p $(@D)
	@scripts/embed-page $(PAGE) > $@.tmp && mv $@.tmp $@

$(BUILD)/obj/generated/%.o: $(BUILD)/generated/%.c $(BUILD)/stamp/compile
	@mkdir -p $(@D)
	$(COMPILE) -Isrc/serve -c -o $@ $<

$(BUILD)/obj/llhttp/%.o: $(LLHTTP)/llhttp/%.c $(BUILD)/stamp/compile
	@mkdir -p $(@D)
	$(COMPILE) -w $(if $(filter address fuzzer%,$(SANITIZE)),-fno-sanitize=pointer-overflow) -I$(LLHTTP)/include/llhttp -c -o $@ $<

$(BUILD)/obj/%.o: src/%.c $(BUILD)/stamp/compile
	@mkdir -p $(@D)
	$(COMPILE) -c -o $@ $<

$(BUILD)/obj/tests/%.o: tests/%.c $(BUILD)/stamp/compile
	@mkdir -p $(@D)
	$(COMPILE) $(INSIDE) -c -o $@ $<

# Test programs take from an archive what they use: they link several times as fast.
$(BUILD)/receiptd.a: $(OBJECTS) $(BUILD)/stamp/link
	@rm -f $@
	$(call SAY,AR  ) ar crsT $@ $(filter %.o,$^)

$(BUILD)/tests/%: $(BUILD)/obj/tests/%.o $(LINKED) $(BUILD)/receiptd.a
	@mkdir -p $(@D)
	$(LINK) $(LINK_EXTRA) -o $@ $(filter %.o,$^) $(filter %.a,$^) -lcmocka $(LINK_LIBS) $(LDLIBS_ALL)

# scripts/test -k NAME
$(UNIT) $(SIMULATION) $(INTEGRATION): $(BUILD)/obj/tests/support/filter.o
$(SIMULATION): $(SIMULATOR)
$(INTEGRATION): $(HARNESS)
# It stops a batch between its flights.
$(DRIVER): LINK_EXTRA = -Wl,--wrap=rcpt_pg_submit
# libFuzzer brings main(). With SANITIZE=address the targets run a corpus, with code that is not instrumented for the search of new inputs.
$(FUZZ): LINK_EXTRA = $(if $(filter fuzzer% address,$(SANITIZE)),-fsanitize=fuzzer) \
	$(if $(filter fuzzer-fast,$(SANITIZE)),-Wl$(comma)--gc-sections$(comma)-z$(comma)start-stop-gc)
$(BUILD)/tests/fuzz/fuzz_json $(BUILD)/tests/unit/test_serve_openapi: LINK_LIBS = -ljansson # the other opinion about JSON

-include $(shell find $(BUILD)/obj -name '*.d' 2> /dev/null)

# ---- running

define run_each
@set -e; for program in $(1); do echo "== $$program"; $$program; done
endef

unit-programs: $(UNIT)
simulation-programs: $(SIMULATION)
integration-programs: $(INTEGRATION) $(DRIVER)

unit: $(UNIT) ## builds and runs the unit tests
	$(call run_each,$(UNIT))

simulation: $(SIMULATION) ## builds and runs the simulations
	$(call run_each,$(SIMULATION))

integration: $(INTEGRATION) ## the same for tests/integration/*.c (needs: eval "$(scripts/services env)")
	$(call run_each,$(INTEGRATION))

ifneq ($(filter fuzzer% address,$(SANITIZE)),)
fuzz: $(FUZZ)
else
fuzz: ## builds the fuzz targets into build/fuzz/tests/fuzz
	@$(MAKE) --no-print-directory SANITIZE=fuzzer fuzz

fuzz-fast: ## the same without AddressSanitizer, for many executions, into build/fuzz-fast
	@$(MAKE) --no-print-directory SANITIZE=fuzzer-fast fuzz
endif

bench-programs: $(BENCH)

test: ## everything that can be tested here, with its services
	scripts/test

demo: ## the demonstration
	scripts/demo

bench: all bench-programs ## the figures
	scripts/bench

# ---- checking

C_FILES := $(sort $(wildcard src/*.c src/*/*.c src/*/*/*.c tests/*/*.c))
H_FILES := $(sort $(wildcard include/*/*/*.h include/*/*/*/*.h src/*/*.h src/*/*/*.h tests/*/*.h))
SCRIPTS_SH := $(shell grep -lE '^\#!/bin/sh' scripts/* tests/*/* .ci/* 2> /dev/null) $(wildcard scripts/lib/*.sh)
SCRIPTS_PY := scripts/check-docs scripts/rights scripts/structure $(wildcard scripts/*.py tests/*.py tests/*/*.py tests/*/*/*.py)

check: check-format check-tidy check-cppcheck check-gcc check-clang check-scripts check-docs check-structure ## format, lints, warnings of both compilers

check-format: export PATH := $(PATH):$(CURDIR)/build/tools
check-format:
	clang-format-14 --dry-run -Werror $(C_FILES) $(H_FILES)

check-tidy: $(C_FILES:%.c=$(BUILD)/tidy/%.ok)

$(BUILD)/tidy/%.ok: %.c .clang-tidy tests/.clang-tidy | $(BUILD)/generated/sql.c
	@mkdir -p $(@D)
	@$(CC) $(CPPFLAGS_ALL) $(if $(filter tests/%,$<),$(INSIDE)) -std=c11 -MM -MP -MT $@ -MF $(@:.ok=.d) $<
	$(call SAY,TIDY) $(CLANG_TIDY) --quiet --warnings-as-errors='*' $< -- $(CPPFLAGS_ALL) $(if $(filter tests/%,$<),$(INSIDE)) -std=c11 2> $(@:.ok=.log) || { cat $(@:.ok=.log); exit 1; }
	@touch $@

-include $(shell find $(BUILD)/tidy -name '*.d' 2> /dev/null)

check-cppcheck:
	@mkdir -p $(BUILD)/cppcheck
	cppcheck --quiet --std=c11 --language=c --enable=warning,performance,portability --inline-suppr --error-exitcode=1 \
		--suppress=missingIncludeSystem --cppcheck-build-dir=$(BUILD)/cppcheck -D_GNU_SOURCE -Iinclude src

# Warnings of gcc need its optimizer. scripts/test compiles all with -Werror, so there it says BUILD_GCC=build. clang's do not.
BUILD_GCC ?= build/check-gcc
check-gcc:
	@$(MAKE) --silent --no-print-directory BUILD=$(BUILD_GCC) CC=gcc WERROR=-Werror objects

check-clang:
	@$(MAKE) --silent --no-print-directory BUILD=build/check-clang CC=$(CLANG) WERROR='-Werror -fsyntax-only' objects

objects: $(BUILD)/obj/main.o $(OBJECTS) $(patsubst tests/%.c,$(BUILD)/obj/tests/%.o,$(wildcard tests/*/*.c))

check-scripts:
	@set -e; for script in $(SCRIPTS_SH); do sh -n "$$script"; done
	@/usr/bin/python3 -c 'import ast, sys; [ast.parse(open(f).read(), f) for f in sys.argv[1:]]' $(SCRIPTS_PY)
	@if command -v shellcheck > /dev/null; then shellcheck -x -P scripts $(SCRIPTS_SH); fi

check-docs:
	scripts/check-docs

check-structure: ## cycles, arrows, sizes and comments of the source, against their bars
	scripts/structure --check

# ---- the rest

docs: all ## docs/configuration.md and config/receiptd.yaml from the table of keys
	@mkdir -p docs config
	$(BUILD)/receiptd check-config --reference > docs/configuration.md
	$(BUILD)/receiptd check-config --example > config/receiptd.yaml

SHARE = $(DESTDIR)$(PREFIX)/share
UNITS := receiptd.service receiptd-intake.service receiptd-serve.service receiptd-maintain.service receiptd-maintain.timer

$(BUILD)/receiptd.1: WHAT = man
$(BUILD)/receiptd.yaml.5: WHAT = config-man
$(BUILD)/receiptd.bash: WHAT = bash
$(BUILD)/receiptd.zsh: WHAT = zsh
GENERATED := $(BUILD)/receiptd.1 $(BUILD)/receiptd.yaml.5 $(BUILD)/receiptd.bash $(BUILD)/receiptd.zsh
$(GENERATED): $(BUILD)/receiptd
	$(BUILD)/receiptd generate $(WHAT) > $@

# The configuration is for every user to read, that of the unit has no name beforehand; secrets have folders of their own, one for each unit.
install: all $(GENERATED) ## DESTDIR=, PREFIX=/usr/local, SYSCONFDIR=/etc; an existing configuration stays
	install -D -m 755 $(BUILD)/receiptd $(DESTDIR)$(PREFIX)/bin/receiptd
	install -d $(SHARE)/doc/receiptd/examples $(SHARE)/man/man1 $(SHARE)/man/man5 $(DESTDIR)$(UNITDIR) $(DESTDIR)$(SYSCONFDIR)/receiptd
	install -d -m 700 $(DESTDIR)$(SYSCONFDIR)/receiptd/secrets $(DESTDIR)$(SYSCONFDIR)/receiptd/intake-secrets \
		$(DESTDIR)$(SYSCONFDIR)/receiptd/serve-secrets $(DESTDIR)$(SYSCONFDIR)/receiptd/owner-secrets
	install -m 644 README.md $(wildcard docs/*.md) $(SHARE)/doc/receiptd
	install -m 644 config/receiptd.yaml config/prometheus/rules.yaml config/grafana/receiptd.json $(SHARE)/doc/receiptd/examples
	gzip -9nc $(BUILD)/receiptd.1 > $(SHARE)/man/man1/receiptd.1.gz
	gzip -9nc $(BUILD)/receiptd.yaml.5 > $(SHARE)/man/man5/receiptd.yaml.5.gz
	install -D -m 644 $(BUILD)/receiptd.bash $(SHARE)/bash-completion/completions/receiptd
	install -D -m 644 $(BUILD)/receiptd.zsh $(DESTDIR)$(ZSHDIR)/_receiptd
	for unit in $(UNITS); do sed 's|/usr/bin/receiptd|$(PREFIX)/bin/receiptd|; s|/etc/receiptd|$(SYSCONFDIR)/receiptd|' \
		config/$$unit > $(DESTDIR)$(UNITDIR)/$$unit; done
	test -e $(DESTDIR)$(SYSCONFDIR)/receiptd/receiptd.yaml || \
		sed 's|/etc/receiptd|$(SYSCONFDIR)/receiptd|' config/minimal.yaml > $(DESTDIR)$(SYSCONFDIR)/receiptd/receiptd.yaml

clean: ## removes build/ and ends services that were left running there
	scripts/services stop-all
	rm -rf build

help: ## this
	@sed -nE 's/^([a-z-]+):.*## (.*)/\1\t\2/p' $(firstword $(MAKEFILE_LIST)) | while IFS="$$(printf '\t')" read -r name text; do \
		printf '%-14s %s\n' "$$name" "$$text"; done
