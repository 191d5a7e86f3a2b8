/* Log lines: level and component, format, limits by kind, and the last warnings for the status
 * page. Called from every thread; one lock keeps lines whole. log_output.c writes them and never
 * waits. */
#include "receiptd/base/log.h"
#include "receiptd/base/clock.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "log_internal.h"
#include "receiptd/base/text.h"

/* A pipe takes up to PIPE_BUF (4096) bytes as a whole or not at all, so lines of several processes
 * do not mix. */
#define LINE_BYTES   4000u /* below PIPE_BUF */
#define QUOTED_BYTES (RCPT_LOG_TEXT_BYTES + 1024u)
#define STAMP_BYTES  32u
#define FIELD_BYTES  700u
#define KINDS        256u /* more than there are format texts in the program */

struct kind { /* lines of one format text, within the window that is open */
    const char *format, *component;
    enum rcpt_log_level level;
    int64_t begun_ms;
    unsigned lines, suppressed;
    char sample[160]; /* the first that was suppressed */
};

struct component {
    char name[16];
    enum rcpt_log_level level;
};

/* stderr belongs to the process, so the log's state is the one global state of the program. */
static atomic_int most_verbose = RCPT_LOG_INFO; /* over all components: decides without the lock */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct {
    enum rcpt_log_level level;
    enum rcpt_log_format format;
    struct component components[RCPT_LOG_MAX_COMPONENTS];
    unsigned component_count, burst;
    bool plain_ids, journal;
    struct kind kinds[KINDS];
    struct rcpt_log_counts counts;
    uint64_t said_dropped;
    struct rcpt_log_entry recent[RCPT_LOG_RECENT];
    size_t recent_count;
} state = {.level = RCPT_LOG_INFO};

/* The name in the configuration and the log, and the priority that the journal takes from "<N>". */
static const struct {
    const char *name;
    int priority; /* of syslog */
} levels[RCPT_LOG_LEVEL__COUNT] = {
    [RCPT_LOG_ERROR] = {"error", 3},
    [RCPT_LOG_WARN] = {"warn", 4},
    [RCPT_LOG_INFO] = {"info", 6},
    [RCPT_LOG_DEBUG] = {"debug", 7},
};

/* ---- settings ---- */

const char *rcpt_log_level_name(enum rcpt_log_level level)
{
    return levels[level].name;
}

/* RCPT_LOG_LEVEL__COUNT if there is no such level. */
enum rcpt_log_level rcpt_log_find_level(const char *name)
{
    int level = 0;
    while (level < RCPT_LOG_LEVEL__COUNT && strcmp(levels[level].name, name) != 0)
        level++;
    return (enum rcpt_log_level)level;
}

/* One atomic number answers most calls for levels that are off everywhere, without the lock. */
static void find_most_verbose(void)
{
    int most = (int)state.level;
    for (unsigned index = 0; index < state.component_count; index++) {
        int level = (int)state.components[index].level;
        if (level != RCPT_LOG_LEVEL__COUNT && level > most)
            most = level;
    }
    atomic_store(&most_verbose, most);
}

/* At the start and at each reload; lines of other threads see the old or the new settings, never
 * half. */
void rcpt_log_configure(enum rcpt_log_level level, enum rcpt_log_format format)
{
    pthread_mutex_lock(&lock);
    state.level = level;
    state.format = format;
    find_most_verbose();
    pthread_mutex_unlock(&lock);
}

/* Names stay when their level is taken back: there are as many as components. */
bool rcpt_log_set_component(const char *component, enum rcpt_log_level level)
{
    pthread_mutex_lock(&lock);
    unsigned index = 0;
    while (index < state.component_count && strcmp(state.components[index].name, component) != 0)
        index++;
    bool fits =
        index < RCPT_LOG_MAX_COMPONENTS && strlen(component) < sizeof(state.components[index].name);
    if (fits) {
        memcpy(state.components[index].name, component, strlen(component) + 1);
        state.components[index].level = level;
        state.component_count += index == state.component_count;
        find_most_verbose();
    }
    pthread_mutex_unlock(&lock);
    return fits;
}

/* Also changed by a reload; windows that are open keep their counts. */
void rcpt_log_set_limits(unsigned burst, bool plain_message_ids)
{
    pthread_mutex_lock(&lock);
    state.burst = burst;
    state.plain_ids = plain_message_ids;
    pthread_mutex_unlock(&lock);
}

void rcpt_log_open(void)
{
    pthread_mutex_lock(&lock);
    state.journal = log_output_open();
    pthread_mutex_unlock(&lock);
}

bool rcpt_log_enabled(enum rcpt_log_level level)
{
    return (int)level <= atomic_load(&most_verbose);
}

/* A component's own level wins over the common one, in both directions. */
static bool is_enabled_in(enum rcpt_log_level level, const char *component)
{
    for (unsigned index = 0; index < state.component_count; index++) {
        if (strcmp(state.components[index].name, component) == 0 &&
            state.components[index].level != RCPT_LOG_LEVEL__COUNT)
            return level <= state.components[index].level;
    }
    return level <= state.level;
}

/* ---- making a line ---- */

static void format_time(char text[STAMP_BYTES], const struct timespec *now)
{
    struct tm parts;
    char seconds[24];
    gmtime_r(&now->tv_sec, &parts);
    strftime(seconds, sizeof(seconds), "%Y-%m-%dT%H:%M:%S", &parts);
    snprintf(text, STAMP_BYTES, "%s.%03dZ", seconds, (int)(now->tv_nsec / 1000000));
}

/* Both formats quote alike: a backslash before quotes and backslashes, control bytes as \u00XX. */
static void quote(char *out, size_t capacity, const char *text)
{
    size_t used = 0;
    for (const unsigned char *byte = (const unsigned char *)text; *byte != 0 && used + 8 < capacity;
         byte++) {
        if (*byte == '"' || *byte == '\\') {
            out[used++] = '\\';
            out[used++] = (char)*byte;
        } else if (*byte < 0x20) {
            used += (size_t)snprintf(out + used, capacity - used, "\\u%04x", *byte);
        } else {
            out[used++] = (char)*byte;
        }
    }
    out[used] = '\0';
}

/* Message ids are hashed unless log.message_ids says plain: the same id gives the same hash, so
 * lines can still be matched. It hides ids from readers of the log; it is no protection against
 * guessing. */
const char *rcpt_log_message_id(const char *id, size_t size, char out[RCPT_LOG_ID_BYTES])
{
    if (state.plain_ids) {
        snprintf(out, RCPT_LOG_ID_BYTES, "%.*s", (int)size, id);
        return out;
    }
    uint64_t hash = rcpt_text_hash((struct rcpt_text){id, size});
    hash ^= hash >> 32;
    hash *= UINT64_C(0xd6e8feb86659fd93);
    snprintf(out, RCPT_LOG_ID_BYTES, "#%016" PRIx64, hash);
    return out;
}

/* A field that does not fit is left out as a whole. */
static size_t add_field(char *out, size_t used, const char *name, const char *value, bool quoted)
{
    char text[2 * RCPT_LOG_ID_BYTES];
    quote(text, sizeof(text), value);
    bool json = state.format == RCPT_LOG_JSON;
    const char *mark = quoted ? "\"" : "";
    int size = snprintf(out + used, FIELD_BYTES - used, json ? ",\"%s\":%s%s%s" : " %s=%s%s%s",
                        name, mark, text, mark);
    return size > 0 && used + (size_t)size < FIELD_BYTES ? used + (size_t)size : used;
}

static void format_fields(char out[FIELD_BYTES], const struct rcpt_log_fields *fields)
{
    char text[RCPT_LOG_ID_BYTES];
    size_t used = 0;
    out[0] = '\0';
    if (fields == NULL)
        return;
    if (fields->batch > 0) {
        snprintf(text, sizeof(text), "%llu", (unsigned long long)fields->batch);
        used = add_field(out, used, "batch", text, false);
    }
    /* A traceparent is "00-<32 digits>-<16 digits>-01"; only the trace's id is shown. */
    if (fields->trace != NULL && strlen(fields->trace) > 35) {
        snprintf(text, sizeof(text), "%.32s", fields->trace + 3);
        used = add_field(out, used, "trace", text, true);
    }
    if (fields->message_id != NULL)
        (void)add_field(out, used, "message",
                        rcpt_log_message_id(fields->message_id, fields->message_id_size, text),
                        true);
}

/* A ring of the last warnings and errors, for the status page. */
static void remember(enum rcpt_log_level level, const char *component, const char *text,
                     const struct timespec *now)
{
    struct rcpt_log_entry *entry = &state.recent[state.recent_count++ % RCPT_LOG_RECENT];
    entry->time_ms = (int64_t)now->tv_sec * 1000 + now->tv_nsec / 1000000;
    entry->level = level;
    snprintf(entry->component, sizeof(entry->component), "%s", component);
    snprintf(entry->text, sizeof(entry->text), "%s", text);
}

/* The caller holds the lock. A line is at most PIPE_BUF bytes, so pipes take it as a whole. */
static void emit(enum rcpt_log_level level, const char *component,
                 const struct rcpt_log_fields *fields, const char *text)
{
    char quoted[QUOTED_BYTES], stamp[STAMP_BYTES], line[LINE_BYTES], more[FIELD_BYTES];
    char priority[8] = "";
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    if (level <= RCPT_LOG_WARN)
        remember(level, component, text, &now);
    quote(quoted, sizeof(quoted), text);
    format_time(stamp, &now);
    format_fields(more, fields);
    if (state.journal)
        snprintf(priority, sizeof(priority), "<%d>", levels[level].priority);
    int size = snprintf(
        line, sizeof(line),
        state.format == RCPT_LOG_JSON
            ? "%s{\"time\":\"%s\",\"level\":\"%s\",\"component\":\"%s\",\"msg\":\"%s\"%s}\n"
            : "%stime=%s level=%s component=%s msg=\"%s\"%s\n",
        priority, stamp, levels[level].name, component, quoted, more);
    RCPT_ASSERT(size > 0 && (size_t)size < sizeof(line));
    if (log_output_write(line, (size_t)size))
        state.counts.lines[level]++;
    else
        state.counts.dropped++; /* reported when lines get through again */
}

/* ---- how many ---- */

static int64_t monotonic_ms(void)
{
    return rcpt_monotonic_ns() / RCPT_NS_PER_MS;
}

/* At the end of a window one line says how many were suppressed, with a sample. */
static void close_window(struct kind *kind)
{
    char text[RCPT_LOG_TEXT_BYTES];
    if (kind->suppressed > 0) {
        snprintf(text, sizeof(text), "%u more lines like this were suppressed: %s",
                 kind->suppressed, kind->sample);
        emit(kind->level, kind->component, NULL, text);
    }
    kind->lines = kind->suppressed = 0;
}

/* Format texts are constants, so their addresses tell kinds apart. If there were too many, some
 * would share a limit. */
static struct kind *kind_of(const char *format)
{
    unsigned place = (unsigned)((uintptr_t)format >> 3);
    for (unsigned tried = 0; tried < KINDS; tried++) {
        struct kind *kind = &state.kinds[(place + tried) % KINDS];
        if (kind->format == NULL)
            kind->format = format;
        if (kind->format == format)
            return kind;
    }
    return &state.kinds[place % KINDS];
}

/* The first `burst` lines of a kind in each window pass. Debug lines always do: they were asked
 * for. */
static bool is_too_many(enum rcpt_log_level level, const char *component, const char *format,
                        const char *text)
{
    if (state.burst == 0 || level == RCPT_LOG_DEBUG)
        return false;
    int64_t now = monotonic_ms();
    struct kind *kind = kind_of(format);
    /* A kind without lines has no window: its first line opens one. */
    if (now - kind->begun_ms >= RCPT_LOG_WINDOW_MS || kind->lines == 0) {
        close_window(kind);
        kind->begun_ms = now;
    }
    if (kind->lines++ < state.burst)
        return false;
    if (kind->suppressed++ == 0) {
        kind->component = component;
        kind->level = level;
        snprintf(kind->sample, sizeof(kind->sample), "%.*s", (int)sizeof(kind->sample) - 1, text);
    }
    state.counts.suppressed++;
    return true;
}

/* The line about lost lines must not count as lost itself. */
static void say_dropped(void)
{
    char text[128];
    uint64_t dropped = state.counts.dropped - state.said_dropped;
    if (dropped == 0)
        return;
    snprintf(text, sizeof(text), "%llu lines were lost: the error output was not read",
             (unsigned long long)dropped);
    uint64_t before = state.counts.dropped;
    emit(RCPT_LOG_WARN, "base", NULL, text);
    if (state.counts.dropped == before)
        state.said_dropped = before;
    else
        state.counts.dropped = before; /* a lost report of losses is no loss of its own */
}

/* The form of all failures: text, SQLSTATE or Kafka code, hint. */
static void put_failure(char *text, size_t size, const struct rcpt_error *error)
{
    size_t used = strlen(text);
    bool has_code = error->code[0] != '\0', has_hint = error->hint[0] != '\0';
    snprintf(text + used, size - used, ": %s%s%s%s%s%s", error->text, has_code ? " (" : "",
             error->code, has_code ? ")" : "", has_hint ? "; HINT: " : "", error->hint);
}

/* All lines come through here. `fields` and `error` may be NULL. The level is checked before the
 * text is formatted, and the limit before anything is written. */
__attribute__((format(printf, 5, 0))) static void log_text(enum rcpt_log_level level,
                                                           const char *component,
                                                           const struct rcpt_log_fields *fields,
                                                           const struct rcpt_error *error,
                                                           const char *format, va_list arguments)
{
    char text[RCPT_LOG_TEXT_BYTES];
    pthread_mutex_lock(&lock);
    if (is_enabled_in(level, component)) {
        vsnprintf(text, sizeof(text), format, arguments);
        if (error != NULL)
            put_failure(text, sizeof(text), error);
        if (!is_too_many(level, component, format, text)) {
            say_dropped();
            emit(level, component, fields, text);
        }
    }
    pthread_mutex_unlock(&lock);
}

void rcpt_log(enum rcpt_log_level level, const char *component, const char *format, ...)
{
    va_list arguments;
    if (!rcpt_log_enabled(level))
        return;
    va_start(arguments, format);
    log_text(level, component, NULL, NULL, format, arguments);
    va_end(arguments);
}

void rcpt_log_with(enum rcpt_log_level level, const char *component,
                   const struct rcpt_log_fields *fields, const char *format, ...)
{
    va_list arguments;
    if (!rcpt_log_enabled(level))
        return;
    va_start(arguments, format);
    log_text(level, component, fields, NULL, format, arguments);
    va_end(arguments);
}

void rcpt_log_failure(enum rcpt_log_level level, const char *component,
                      const struct rcpt_error *error, const char *format, ...)
{
    va_list arguments;
    if (!rcpt_log_enabled(level))
        return;
    va_start(arguments, format);
    log_text(level, component, NULL, error, format, arguments);
    va_end(arguments);
}

/* Windows end by time also when no further line comes; called once a second. */
void rcpt_log_flush(void)
{
    int64_t now = monotonic_ms();
    pthread_mutex_lock(&lock);
    for (unsigned index = 0; index < KINDS; index++) {
        if (state.kinds[index].lines > 0 && now - state.kinds[index].begun_ms >= RCPT_LOG_WINDOW_MS)
            close_window(&state.kinds[index]);
    }
    say_dropped();
    pthread_mutex_unlock(&lock);
}

struct rcpt_log_counts rcpt_log_get_counts(void)
{
    pthread_mutex_lock(&lock);
    struct rcpt_log_counts counts = state.counts;
    pthread_mutex_unlock(&lock);
    return counts;
}

/* The newest entry comes first. */
size_t rcpt_log_recent(struct rcpt_log_entry entries[RCPT_LOG_RECENT])
{
    pthread_mutex_lock(&lock);
    size_t count = state.recent_count < RCPT_LOG_RECENT ? state.recent_count : RCPT_LOG_RECENT;
    for (size_t index = 0; index < count; index++)
        entries[index] = state.recent[(state.recent_count - 1 - index) % RCPT_LOG_RECENT];
    pthread_mutex_unlock(&lock);
    return count;
}
