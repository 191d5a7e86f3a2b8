# receiptd: all test check bench demo install clean help
BUILD ?= build
CC ?= gcc
PKGS := rdkafka libpq libcyaml libuv yajl zlib
WARNINGS := -Wall -Wextra -Wconversion -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wpointer-arith -Wcast-qual \
	-Wwrite-strings -Wformat=2 -Wundef -Wvla -Wdouble-promotion -Wnull-dereference
CFLAGS ?= -O2 -g
override CFLAGS += -std=c11 -D_GNU_SOURCE -fno-omit-frame-pointer $(WARNINGS) $(WERROR) -Iinclude -I$(BUILD)/generated \
	$(shell pkg-config --cflags $(PKGS))
LDLIBS := $(shell pkg-config --libs $(PKGS)) -lm -lpthread
SQL := $(wildcard sql/*.sql sql/*/*.sql)
SOURCES := $(filter-out src/main.c,$(wildcard src/*/*.c))
OBJECTS := $(SOURCES:src/%.c=$(BUILD)/obj/%.o) $(BUILD)/obj/generated/sql.o
UNIT := $(patsubst tests/unit/%.c,$(BUILD)/tests/%,$(wildcard tests/unit/test_*.c))

.PHONY: all unit clean
all: $(BUILD)/receiptd

$(BUILD)/receiptd: $(BUILD)/obj/main.o $(OBJECTS)
	$(CC) $(CFLAGS) $(LDFLAGS) -o $@ $^ $(LDLIBS)

$(BUILD)/generated/sql.c: scripts/embed-sql $(SQL)
	@mkdir -p $(@D)
	scripts/embed-sql $(SQL) > $@.tmp && mv $@.tmp $@

$(BUILD)/obj/generated/sql.o: $(BUILD)/generated/sql.c
	@mkdir -p $(@D)
	$(CC) $(CFLAGS) -c -o $@ $<

$(BUILD)/obj/%.o: src/%.c
	@mkdir -p $(@D)
	$(CC) $(CFLAGS) -MMD -MP -c -o $@ $<

$(BUILD)/tests/%: tests/unit/%.c $(OBJECTS)
	@mkdir -p $(@D)
	$(CC) $(CFLAGS) -MMD -MP -MF $@.d $(LDFLAGS) -o $@ $< $(OBJECTS) -lcmocka $(LDLIBS)

unit: $(UNIT)
	@set -e; for t in $(UNIT); do echo "== $$t"; $$t; done

clean:
	rm -rf $(BUILD)

-include $(shell find $(BUILD) -name '*.d' 2>/dev/null)
