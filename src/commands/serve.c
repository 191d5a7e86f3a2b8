/* `receiptd serve`: the process of the interface for readers, and the commands that make tokens and
 * links for them. Starting → serving → stopping (requests in hand are answered) → closing. */
#include <inttypes.h>
#include <openssl/rand.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>
#include <time.h>
#include <unistd.h>

#include "command.h"
#include "process.h"
#include "receiptd/base/text.h"
#include "receiptd/host/context.h"
#include "receiptd/operate/endpoints.h"
#include "receiptd/postgres/sql.h"
#include "receiptd/serve/serve.h"
#include "report.h"

#define TOKEN_BYTES 32
#define LONGEST_S   (10 * 366 * 86400LL)

/* ---- the process ---- */

struct serve_process {
    struct rcpt_config *config;
    const char *config_path;
    struct command_process frame;
    struct serve_endpoints endpoints;
    struct rcpt_serve *serve; /* NULL: not started, or closed */
    bool ready;
};

static void on_ready(void *context, bool ready)
{
    struct serve_process *process = context;
    rcpt_log_info("commands", ready ? "ready" : "not ready: the database does not answer");
    process->ready = ready;
    pages_server_set_ready(&process->endpoints.server, ready, "the database does not answer");
    supervisor_set_ready(&process->frame.supervisor, ready);
}

static void describe(void *context, char text[SUPERVISOR_STATUS_BYTES])
{
    const struct serve_process *process = context;
    snprintf(text, SUPERVISOR_STATUS_BYTES, "%s",
             process->frame.stopping ? "stopping"
             : process->ready        ? "answers readers"
                                     : "not ready: the database does not answer");
}

/* All handles of the loop; afterwards uv_run() returns. */
static void close_handles(struct serve_process *process)
{
    process->endpoints.serve = process->serve = NULL;
    process->frame.deaf = true;
    pages_server_close(&process->endpoints.server);
    command_process_close(&process->frame);
}

static void on_closed(void *context)
{
    close_handles(context);
}

/* Redrives decode by it. */
static void take_ladder(const struct rcpt_config *config, const struct rcpt_config *fresh)
{
    struct rcpt_error error;
    if (rcpt_ladder_can_grow(config->ladder, fresh->ladder, &error))
        rcpt_ladder_grow(config->ladder, fresh->ladder);
    else
        rcpt_log_failure(RCPT_LOG_ERROR, "commands", &error, "the ladder stays as it was");
}

/* Runs in a worker. Readers need neither Kafka nor the daemon's connection, so it tries none. */
static struct rcpt_config *read_config(const char *path, const struct reload_dsns *before,
                                       struct rcpt_error *error)
{
    (void)before;
    return rcpt_config_load(path, error);
}

static void apply(void *context, struct rcpt_config *fresh, FILE *out)
{
    struct serve_process *process = context;
    struct rcpt_config_changes changes;
    if (process->serve == NULL)
        return;
    take_ladder(process->config, fresh);
    rcpt_config_take_over(process->config, fresh, &changes);
    rcpt_config_apply_log(process->config);
    rcpt_serve_apply_config(process->serve);
    reload_print_changes(&changes, out);
}

/* Certificates are read again even where the configuration is refused. */
static void on_hangup(void *context)
{
    struct serve_process *process = context;
    if (process->frame.stopping)
        return;
    rcpt_serve_reload_tls(process->serve);
    pages_server_reload(&process->endpoints.server);
    command_process_reload(&process->frame);
}

static void on_stop(void *context)
{
    const struct serve_process *process = context;
    rcpt_serve_drain(process->serve);
}

static void start(struct serve_process *process)
{
    struct rcpt_error error = {0};
    const struct command_process_settings framed = {.context = process,
                                                    .config = process->config,
                                                    .describe = describe,
                                                    .on_hangup = on_hangup,
                                                    .on_stop = on_stop,
                                                    .abandoned = "readers have to ask again",
                                                    .config_path = process->config_path,
                                                    .read = read_config,
                                                    .apply = apply};
    command_process_start(&process->frame, &framed);
    serve_endpoints_start(&process->endpoints, &process->frame.loop, process->config);
    const struct rcpt_serve_settings settings = {.loop = &process->frame.loop,
                                                 .config = process->config,
                                                 .instance = process->frame.instance,
                                                 .context = process,
                                                 .on_ready = on_ready,
                                                 .on_closed = on_closed};
    process->endpoints.serve = process->serve = rcpt_serve_start(&settings, &error);
    if (process->serve != NULL)
        return;
    process->frame.exit_code = command_fail(&error);
    close_handles(process);
}

static int run(struct rcpt_config *config, const char *config_path)
{
    struct serve_process *process = rcpt_calloc(1, sizeof(*process));
    process->config = config;
    process->config_path = config_path;
    start(process);
    int exit_code = command_process_loop(&process->frame, &process->endpoints.server);
    free(process);
    return exit_code;
}

/* ---- tokens ---- */

/* "30d", "12h": seconds; 0: it is neither. */
static int64_t duration_of(const char *text)
{
    char *end;
    long long number = strtoll(text, &end, 10);
    int64_t unit = *end == 'd' ? 86400 : *end == 'h' ? 3600 : *end == 'm' ? 60 : 0;
    if (end == text || unit == 0 || end[1] != '\0' || number < 1 || number > LONGEST_S / unit)
        return 0;
    return number * unit;
}

/* "read,support" as PostgreSQL's array. False: a word is none of the scopes. */
static bool scopes_of(const char *text, char array[64])
{
    size_t used = (size_t)snprintf(array, 64, "{");
    for (; *text != '\0'; text += strcspn(text, ",") + (text[strcspn(text, ",")] == ',')) {
        struct rcpt_text word = {text, strcspn(text, ",")};
        if ((!rcpt_text_is(word, "read") && !rcpt_text_is(word, "support") &&
             !rcpt_text_is(word, "operate") && !rcpt_text_is(word, "suppressions")) ||
            used + word.size + 3 > 64)
            return false;
        used += (size_t)snprintf(array + used, 64 - used, "%s%.*s", used > 1 ? "," : "",
                                 (int)word.size, word.at);
    }
    snprintf(array + used, 64 - used, "}");
    return used > 1;
}

/* A token is 256 random bits as hexadecimal digits. Scanners for leaked secrets find it by its
 * prefix. */
static void make_token(char token[80])
{
    unsigned char bytes[TOKEN_BYTES];
    RCPT_ASSERT(RAND_bytes(bytes, sizeof(bytes)) == 1);
    int used = sprintf(token, "rcpt_");
    for (size_t at = 0; at < sizeof(bytes); at++)
        used += sprintf(token + used, "%02x", bytes[at]);
}

/* Runs one statement as the owner; prints rows of one text column if there are any. */
static int as_owner(const struct command_call *call, const char *file, size_t count,
                    const char *const *values, const char *none)
{
    struct command_context context;
    int exit_code;
    if (!command_open_as(&context, call, command_option(call, "dsn"), false, &exit_code))
        return exit_code;
    struct rcpt_session_rows *rows =
        rcpt_session_query(context.session, rcpt_sql(file), count, values, &context.error);
    size_t found = rows != NULL ? rcpt_session_rows_count(rows) : 0;
    for (size_t row = 0; row < found; row++)
        puts(rcpt_session_rows_text(rows, row, "line"));
    exit_code = rows == NULL ? command_fail(&context.error) : EX_OK;
    if (rows != NULL && found == 0 && none != NULL) {
        fprintf(stderr, "receiptd: %s\n", none);
        exit_code = EX_NOINPUT;
    }
    rcpt_session_rows_free(rows);
    command_close(&context);
    return exit_code;
}

/* The token is printed once. Only its hash is stored. */
static int add_token(const struct command_call *call)
{
    const char *name = command_option(call, "name"), *scope = command_option(call, "scope");
    const char *expires = command_option(call, "expires");
    char token[80], hash[RCPT_SERVE_HASH_TEXT], scopes[64], seconds[32];
    int64_t lasts_s = expires != NULL ? duration_of(expires) : 0;
    if (name == NULL || name[0] == '\0')
        return command_usage(call, "serve token add: --name NAME says whose token it is");
    if (!scopes_of(scope != NULL ? scope : "read", scopes))
        return command_usage(call, "--scope %s: read, support, operate, suppressions, by commas",
                             scope);
    if (expires != NULL && lasts_s == 0)
        return command_usage(call, "--expires %s: a number and d, h or m, such as 30d", expires);
    make_token(token);
    rcpt_serve_hash(token, strlen(token), hash);
    snprintf(seconds, sizeof(seconds), "%" PRId64, lasts_s);
    const char *const values[] = {name, hash, scopes, command_option(call, "org"),
                                  expires != NULL ? seconds : NULL};
    int exit_code = as_owner(call, "command/serve_token_add", 5, values,
                             "there is a token of this name: receiptd serve token revoke --name");
    if (exit_code == EX_OK)
        puts(token);
    return exit_code == EX_OK ? command_printed(EX_OK) : exit_code;
}

static int token(const struct command_call *call)
{
    const char *verb = call->more[0], *name = command_option(call, "name");
    if (verb != NULL && strcmp(verb, "add") == 0)
        return add_token(call);
    if (verb != NULL && strcmp(verb, "list") == 0)
        return command_printed(as_owner(call, "command/serve_token_list", 0, NULL, NULL));
    if (verb == NULL || strcmp(verb, "revoke") != 0)
        return command_usage(call, "serve token add, list or revoke");
    if (name == NULL)
        return command_usage(call, "serve token revoke: --name NAME says which");
    return command_printed(as_owner(call, "command/serve_token_revoke", 1, &name,
                                    "there is no token of this name: receiptd serve token list"));
}

/* ---- links ---- */

/* Prints the link. Its host is the address that the process listens on, since no other is
 * configured. */
static int make_link(const struct command_call *call)
{
    struct rcpt_error error = {0};
    const char *campaign = call->more[0], *expires = command_option(call, "expires");
    int64_t lasts_s = duration_of(expires != NULL ? expires : "7d");
    if (campaign == NULL || campaign[0] == '\0')
        return command_usage(call, "serve link: which campaign?");
    if (lasts_s == 0)
        return command_usage(call, "--expires %s: a number and d, h or m, such as 7d", expires);
    struct rcpt_config *config = rcpt_config_load(call->config_path, &error);
    if (config == NULL)
        return command_fail(&error);
    if (config->serve.link_secret == NULL) {
        rcpt_config_free(config);
        rcpt_error_fatal(&error, EX_CONFIG, "serve.link_secret is not set: there are no links");
        rcpt_error_hint(&error, "set it to 16 bytes or more, made at random, and restart serve");
        return command_fail(&error);
    }
    char *link =
        rcpt_serve_link(config->serve.link_secret, campaign, (int64_t)time(NULL) + lasts_s);
    printf("http%s://%s/campaign/", config->http.tls_certificate != NULL ? "s" : "",
           config->serve.listen);
    for (const char *byte = campaign; *byte != '\0'; byte++)
        printf(strchr("-._~", *byte) != NULL || (*byte >= '0' && *byte <= '9') ||
                       ((*byte | 32) >= 'a' && (*byte | 32) <= 'z')
                   ? "%c"
                   : "%%%02X",
               (unsigned char)*byte);
    printf("?link=%s\n", link);
    free(link);
    rcpt_config_free(config);
    return command_printed(EX_OK);
}

int command_serve(const struct command_call *call)
{
    if (call->argument == NULL)
        return command_process_main(call, run);
    if (strcmp(call->argument, "token") == 0)
        return token(call);
    if (strcmp(call->argument, "link") == 0)
        return make_link(call);
    return command_usage(call, "serve %s: there are serve, serve token and serve link",
                         call->argument);
}
