/* Parts that several commands share: errors, protection of memory, sessions, the end of the
 * output. */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sysexits.h>

#include "command.h"
#include "receiptd/config/value.h"
#include "receiptd/postgres/sql.h"

/* LeakSanitizer attaches to its own process as a debugger does, which command_protect() forbids. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define IS_SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define IS_SANITIZED 1
#endif
#endif
#ifndef IS_SANITIZED
#define IS_SANITIZED 0
#endif

/* Other processes could read secrets from a core file, or by ptrace under the same user.
 * PR_SET_DUMPABLE forbids both. The limit also holds for child processes. */
void command_protect(const struct command_call *call)
{
    const struct rlimit none = {0, 0};
    for (size_t index = 0; index < COMMAND_MAX_OPTIONS; index++) {
        const char *name = call->command->options[index].name;
        if (name == NULL)
            break;
        if (strcmp(name, "core-dumps") == 0 && call->values[index] != NULL)
            return;
    }
    if (!IS_SANITIZED) {
        (void)prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
        (void)setrlimit(RLIMIT_CORE, &none);
    }
}

/* An error without an exit code is a bug or a lost server: 70. */
int command_fail(const struct rcpt_error *error)
{
    fflush(stdout); /* so that a terminal shows earlier output above the error */
    fprintf(stderr, "receiptd: %s\n", error->text);
    if (error->hint[0] != '\0')
        fprintf(stderr, "HINT: %s\n", error->hint);
    return error->exit_code != 0 ? error->exit_code : EX_SOFTWARE;
}

/* Inside migrate, the hint "the role lacks a grant: run receiptd migrate …" ends behind its first
 * clause. */
int command_fail_in(const struct command_call *call, struct rcpt_error *error)
{
    char own[64];
    snprintf(own, sizeof(own), "receiptd %s", call->command->name);
    char *found = strstr(error->hint, own);
    if (found != NULL) {
        while (found > error->hint && strchr(":;,", *found) == NULL)
            found--;
        *found = '\0';
    }
    return command_fail(error);
}

/* The hint leads to the command's help, which lists what is allowed. */
int command_usage(const struct command_call *call, const char *format, ...)
{
    va_list arguments;
    fputs("receiptd: ", stderr);
    va_start(arguments, format);
    vfprintf(stderr, format, arguments);
    va_end(arguments);
    fprintf(stderr, "\nHINT: receiptd %s --help\n", call->command->name);
    return EX_USAGE;
}

/* Returns the connection string of a text or of file:PATH, which keeps the password out of the list
 * of processes. The caller frees it; NULL on error. */
static char *read_dsn(const char *given, struct rcpt_error *error)
{
    char problem[160];
    bool is_open;
    if (strncmp(given, "file:", 5) != 0)
        return rcpt_strdup(given);
    char *dsn = rcpt_config_read_secret(given + 5, "", &is_open, problem);
    if (dsn == NULL)
        rcpt_error_fatal(error, EX_NOINPUT, "--dsn: %s", problem);
    return dsn;
}

static bool connect_by(struct command_context *context, const struct command_call *call,
                       const char *given, bool read_only)
{
    char *dsn = read_dsn(given != NULL ? given : context->config->postgres.dsn, &context->error);
    const struct rcpt_session_settings settings = {
        .dsn = dsn,
        .schema = context->config->postgres.schema,
        .command = call->command->name,
        .connect_timeout_ms = context->config->postgres.connect_timeout_ms,
        .read_only = read_only,
    };
    if (dsn != NULL)
        context->session = rcpt_session_open(&settings, &context->error);
    free(context->dsn);
    context->dsn = dsn;
    context->command = call->command->name;
    return context->session != NULL;
}

struct rcpt_session *command_open_beside(const struct command_context *context,
                                         struct rcpt_error *error)
{
    const struct rcpt_session_settings settings = {
        .dsn = context->dsn,
        .schema = context->config->postgres.schema,
        .command = context->command,
        .connect_timeout_ms = context->config->postgres.connect_timeout_ms,
        .read_only = true,
    };
    return rcpt_session_open(&settings, error);
}

bool command_connect(struct command_context *context, const struct command_call *call,
                     bool read_only)
{
    return connect_by(context, call, NULL, read_only);
}

/* With it the inbox's trigger writes a tombstone for each message that goes
 * (sql/functions/install_retired_trigger.sql). */
static bool stream_deletions(struct command_context *context)
{
    return context->config->stream.topic == NULL ||
           rcpt_session_execute(context->session, "SET receiptd.stream = 'on'", &context->error);
}

/* A failure is printed here; the caller only returns the code. */
bool command_open_as(struct command_context *context, const struct command_call *call,
                     const char *dsn, bool read_only, int *exit_code)
{
    memset(context, 0, sizeof(*context));
    context->config = rcpt_config_load(call->config_path, &context->error);
    if (context->config != NULL && connect_by(context, call, dsn, read_only) &&
        (read_only || stream_deletions(context)))
        return true;
    *exit_code = command_fail(&context->error);
    command_close(context);
    return false;
}

bool command_open(struct command_context *context, const struct command_call *call, bool read_only,
                  int *exit_code)
{
    return command_open_as(context, call, NULL, read_only, exit_code);
}

void command_close(struct command_context *context)
{
    rcpt_session_close(context->session);
    rcpt_session_close(context->holder);
    free(context->dsn);
    rcpt_config_free(context->config);
}

bool command_print_held(struct command_context *context, const char *what, size_t shown)
{
    struct rcpt_session_rows *rows = rcpt_session_query(
        context->session, rcpt_sql("command/held_count"), 1, &what, &context->error);
    if (rows == NULL)
        return false;
    bool is_estimate = rcpt_session_rows_bool(rows, 0, "is_estimate");
    int64_t count = rcpt_session_rows_int(rows, 0, "rows");
    if (count > (int64_t)shown)
        printf("\n%zu of %s%" PRId64 "%s: --limit shows more\n", shown, is_estimate ? "about " : "",
               count, is_estimate ? " (an estimate)" : "");
    rcpt_session_rows_free(rows);
    return true;
}

/* A full disk or a closed pipe shows only at the flush. */
int command_printed(int exit_code)
{
    if (fflush(stdout) == 0 && !ferror(stdout))
        return exit_code;
    fputs("receiptd: cannot write to standard output\n", stderr);
    return EX_IOERR;
}

int command_end_as_owner(const struct command_call *call, struct command_context *context,
                         bool good, const char *grants)
{
    struct rcpt_error *error = &context->error;
    if (!good && error->exit_code == EX_NOPERM && grants != NULL)
        rcpt_error_hint(error,
                        "run it with --dsn, as the owner of the schema; where inbox.table is "
                        "another role's, that role has to GRANT %s on it to the owner",
                        grants);
    else if (!good && error->exit_code == EX_NOPERM)
        rcpt_error_hint(error, "run it with --dsn, as the owner of the schema");
    int exit_code = good ? command_printed(EX_OK) : command_fail_in(call, error);
    command_close(context);
    return exit_code;
}
