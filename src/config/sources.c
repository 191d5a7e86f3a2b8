/* The files that secrets were read from, and those of TLS that librdkafka reads. A file that has
 * changed since then is not in effect, so an operator is warned of it. Noted while a configuration
 * is read, watched by reload.c and the intake.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "check.h"
#include "expand.h"

/* Kubernetes exchanges a link above the file, editors the file itself: both give another inode. A
 * file that is away for a moment looks as 0. */
static uint64_t mark_of(const char *path)
{
    struct stat status;
    if (stat(path, &status) != 0)
        return 0;
    uint64_t mark = (uint64_t)status.st_mtim.tv_sec * 1000000007u;
    mark = mark * 31 + (uint64_t)status.st_mtim.tv_nsec;
    mark = mark * 31 + (uint64_t)status.st_size;
    return mark * 31 + (uint64_t)status.st_ino;
}

bool rcpt_config_is_tls_file(const char *label)
{
    static const char prefix[] = "kafka.properties.ssl.", suffix[] = ".location";
    size_t size = strlen(label);
    return strncmp(label, prefix, sizeof(prefix) - 1) == 0 && size > sizeof(suffix) &&
           strcmp(label + size - (sizeof(suffix) - 1), suffix) == 0;
}

/* Before the file is read: a change in between is seen as one. */
void rcpt_config_note_source(struct rcpt_config_sources *sources, const char *key, const char *path,
                             const char *config_name)
{
    sources->at = rcpt_realloc(sources->at, (sources->count + 1) * sizeof(*sources->at));
    struct rcpt_config_source *source = &sources->at[sources->count++];
    snprintf(source->key, sizeof(source->key), "%s", key);
    source->path = rcpt_config_absolute_path(path, config_name);
    source->mark = source->warned_mark = mark_of(source->path);
    source->needs_restart = rcpt_config_is_tls_file(key);
}

void rcpt_config_free_sources(struct rcpt_config_sources *sources)
{
    for (size_t index = 0; index < sources->count; index++)
        free(sources->at[index].path);
    free(sources->at);
    *sources = (struct rcpt_config_sources){0};
}

void rcpt_config_warn_of_changed(const struct rcpt_config *config)
{
    for (size_t index = 0; index < config->sources.count; index++) {
        struct rcpt_config_source *source = &config->sources.at[index];
        uint64_t mark = mark_of(source->path);
        if (mark == 0 || mark == source->mark || mark == source->warned_mark)
            continue;
        source->warned_mark = mark;
        rcpt_log_warn("config",
                      "%s: file %s has changed, and what was read before is in effect; HINT: %s",
                      source->key, source->path,
                      source->needs_restart
                          ? "restart; a reload (SIGHUP or receiptd ctl reload) tries the new one"
                          : "reload (SIGHUP or receiptd ctl reload)");
    }
}
