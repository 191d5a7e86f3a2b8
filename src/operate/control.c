/* The control socket: each client sends a line, gets an answer and is closed. The states of a
 * client are enum client_state, set_state() is their only setter. Only the owner and root may
 * connect (the file's mode). Made by run.c; its tick ends drains, and closes clients that are
 * late. */
#include "receiptd/operate/control.h"
#include "receiptd/base/error.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sysexits.h>
#include <unistd.h>

#define MOST_CLIENTS   16u
#define CLIENT_WAIT_MS 5000 /* for its line */

/* A client awaits, in this order: */
enum client_state {
    CLIENT_READING,   /* its line; deadline_ms */
    CLIENT_DRAINING,  /* the end of the drain; deadline_ms */
    CLIENT_RELOADING, /* the worker that reads the configuration */
    CLIENT_ANSWERING, /* its answer to be written */
    CLIENT_CLOSING,
};

struct client {
    uv_pipe_t pipe;
    uv_write_t write;
    struct control *control;
    struct client *next;
    enum client_state state;
    bool gone; /* its pipe ended while RELOADING: it is closed when the worker is done */
    int64_t deadline_ms;
    char line[CONTROL_LINE_BYTES];
    size_t size;
    char *answer;
};

struct control {
    struct control_settings settings;
    struct host_ticker ticker;
    uv_pipe_t pipe;
    struct client *clients;
    unsigned client_count;
    char *path; /* NULL: no socket */
};

struct request {
    struct control *control;
    struct client *client;
    const char *words[CONTROL_MAX_WORDS]; /* the verb first */
    unsigned count;
    bool json;
};

/* ---- clients ---- */

/* A client only goes forward; a request that waits is either a drain or a reload. */
static void set_state(struct client *client, enum client_state state)
{
    RCPT_ASSERT(state > client->state);
    RCPT_ASSERT(state != CLIENT_RELOADING || client->state == CLIENT_READING);
    client->state = state;
}

/* The last callback of the pipe frees the client. */
static void on_client_closed(uv_handle_t *handle)
{
    struct client *client = handle->data;
    host_closed(client->control->settings.context);
    free(client->answer);
    free(client);
}

static void close_client(struct client *client)
{
    struct control *control = client->control;
    if (client->state == CLIENT_CLOSING)
        return;
    if (client->state == CLIENT_RELOADING) { /* on_reloaded closes it */
        client->gone = true;
        return;
    }
    set_state(client, CLIENT_CLOSING);
    for (struct client **at = &control->clients; *at != NULL; at = &(*at)->next) {
        if (*at == client) {
            *at = client->next;
            break;
        }
    }
    control->client_count--;
    uv_close((uv_handle_t *)&client->pipe, on_client_closed);
}

static void on_written(uv_write_t *write, int status)
{
    (void)status;
    close_client(write->data);
}

/* Frees `text`, which comes from malloc. The exit code comes first, so that ctl can end with it. */
static void answer_take(struct client *client, int exit_code, char *text)
{
    size_t size = strlen(text) + 16;
    client->answer = rcpt_malloc(size);
    set_state(client, CLIENT_ANSWERING);
    snprintf(client->answer, size, "%d\n%s", exit_code, text);
    free(text);
    uv_buf_t buffer = uv_buf_init(client->answer, (unsigned)strlen(client->answer));
    client->write.data = client;
    if (uv_write(&client->write, (uv_stream_t *)&client->pipe, &buffer, 1, on_written) != 0)
        close_client(client);
}

/* Answers with a message: as it is, or as JSON. */
static void answer(struct client *client, bool json, int exit_code, const char *message)
{
    char *text = NULL;
    size_t size = 0;
    FILE *out = rcpt_open_memory(&text, &size);
    if (json) {
        struct rcpt_json writer;
        rcpt_json_init(&writer, out);
        rcpt_json_begin_object(&writer);
        rcpt_json_key(&writer, exit_code == 0 ? "done" : "error");
        size_t length = strlen(message);
        rcpt_json_bytes(&writer, message, length - (length > 0 && message[length - 1] == '\n'));
        rcpt_json_end_object(&writer);
        fputc('\n', out);
    } else {
        fputs(message, out);
    }
    RCPT_ASSERT(fclose(out) == 0);
    answer_take(client, exit_code, text);
}

/* ---- verbs ---- */

/* A page of status.h, for people or as JSON. */
static void answer_page(const struct request *request, void (*print)(const struct status *, FILE *),
                        void (*write)(const struct status *, struct rcpt_json *))
{
    struct rcpt_json json;
    char *text = NULL;
    size_t size = 0;
    FILE *out = rcpt_open_memory(&text, &size);
    rcpt_json_init(&json, out);
    if (request->json) {
        write(request->control->settings.status, &json);
        fputc('\n', out);
    } else {
        print(request->control->settings.status, out);
    }
    RCPT_ASSERT(fclose(out) == 0);
    answer_take(request->client, EX_OK, text);
}

static void do_status(const struct request *request)
{
    answer_page(request, status_print, status_write);
}

static void do_lanes(const struct request *request)
{
    answer_page(request, status_print_lanes, status_write_lanes);
}

/* A hold would delay the end of the process. */
static bool refuses_while_stopping(const struct request *request)
{
    if (!host_is_stopping(request->control->settings.context))
        return false;
    answer(request->client, request->json, EX_TEMPFAIL, "the process is about to end\n");
    return true;
}

static void do_pause(const struct request *request)
{
    if (refuses_while_stopping(request))
        return;
    receipts_set_hold(request->control->settings.receipts, RECEIPTS_HOLD_PAUSED);
    answer(request->client, request->json, EX_OK,
           "paused: queued receipts are applied, no more are taken in\n");
}

static void do_resume(const struct request *request)
{
    if (refuses_while_stopping(request))
        return;
    receipts_set_hold(request->control->settings.receipts, RECEIPTS_HOLD_NONE);
    answer(request->client, request->json, EX_OK, "taking in again\n");
}

static void on_tick(void *context);

/* The answer comes when all queued receipts have been applied, or at the deadline. */
static void do_drain(const struct request *request)
{
    const struct host_context *context = request->control->settings.context;
    receipts_set_hold(request->control->settings.receipts, RECEIPTS_HOLD_DRAINING);
    set_state(request->client, CLIENT_DRAINING);
    request->client->deadline_ms = host_now(context) + context->config->shutdown.deadline_ms;
    on_tick(request->control);
}

/* The level holds until the next reload, which sets the configuration's level. */
static void do_log_level(const struct request *request)
{
    char text[128];
    const struct rcpt_config *config = request->control->settings.context->config;
    const char *component = request->count > 2 ? request->words[1] : NULL;
    const char *name = request->count > 1 ? request->words[request->count - 1] : "";
    enum rcpt_log_level level = rcpt_log_find_level(name);
    if (level == RCPT_LOG_LEVEL__COUNT) {
        snprintf(text, sizeof(text), "\"%.40s\" is no level: error, warn, info or debug\n", name);
        answer(request->client, request->json, EX_USAGE, text);
        return;
    }
    if (component == NULL)
        rcpt_log_configure(level, config->log.format);
    else if (!rcpt_config_is_component(component) || !rcpt_log_set_component(component, level)) {
        snprintf(text, sizeof(text), "there is no component \"%.40s\"\n", component);
        answer(request->client, request->json, EX_USAGE, text);
        return;
    }
    rcpt_log_info("operate", "%s%slog level is %s until the next reload",
                  component != NULL ? component : "", component != NULL ? "'s " : "", name);
    snprintf(text, sizeof(text), "log level %s%s%s until the next reload\n", name,
             component != NULL ? " in component " : "", component != NULL ? component : "");
    answer(request->client, request->json, EX_OK, text);
}

/* Compares positions now instead of after progress.verify_interval. */
static void do_resync(const struct request *request)
{
    const struct host_context *context = request->control->settings.context;
    struct rcpt_engine *engine = receipts_engine(request->control->settings.receipts);
    char *end = NULL;
    const char *word = request->count > 1 ? request->words[1] : "all";
    unsigned long lane = strtoul(word, &end, 10);
    bool all = strcmp(word, "all") == 0;
    if (!all && (end == word || *end != '\0' || lane >= context->config->lanes)) {
        char text[96];
        snprintf(text, sizeof(text), "\"%.40s\" is no lane: 0 to %u, or all\n", word,
                 context->config->lanes - 1);
        answer(request->client, request->json, EX_USAGE, text);
        return;
    }
    for (uint32_t index = 0; index < context->config->lanes; index++) {
        if (all || index == lane)
            rcpt_engine_resync(engine, index, host_now(context));
    }
    answer(request->client, request->json, EX_OK, "positions are compared with the database\n");
}

static void on_reloaded(void *context, bool good, const char *text)
{
    struct client *client = context;
    if (client->gone) {
        set_state(client, CLIENT_ANSWERING);
        close_client(client);
        return;
    }
    answer(client, client->line[0] == 'j', good ? EX_OK : EX_CONFIG, text);
}

/* Answers when the reload is over, or at once if it cannot begin. */
static void do_reload(const struct request *request)
{
    if (reload_begin(request->control->settings.reload, on_reloaded, request->client)) {
        set_state(request->client, CLIENT_RELOADING);
        return;
    }
    answer(request->client, request->json, EX_TEMPFAIL,
           request->control->settings.context->phase == HOST_CLOSING
               ? "the process is about to end\n"
               : "a reload is under way already\n");
}

static const struct {
    const char *name;
    void (*run)(const struct request *request);
} verbs[] = {
    {"status", do_status}, {"lanes", do_lanes},   {"pause", do_pause},
    {"resume", do_resume}, {"drain", do_drain},   {"log-level", do_log_level},
    {"resync", do_resync}, {"reload", do_reload},
};

/* ---- requests ---- */

static void run(struct client *client)
{
    struct request request = {.control = client->control, .client = client};
    char words[CONTROL_LINE_BYTES];
    char *rest = words;
    memcpy(words, client->line, client->size + 1);
    request.json = strcmp(strtok_r(rest, " ", &rest) != NULL ? words : "", "json") == 0;
    for (const char *word;
         request.count < CONTROL_MAX_WORDS && (word = strtok_r(NULL, " ", &rest)) != NULL;)
        request.words[request.count++] = word;
    for (size_t index = 0; request.count > 0 && index < RCPT_COUNT_OF(verbs); index++) {
        if (strcmp(verbs[index].name, request.words[0]) == 0) {
            verbs[index].run(&request);
            return;
        }
    }
    answer(client, request.json, EX_USAGE,
           "unknown verb: status, lanes, pause, resume, drain, log-level, resync or reload\n");
}

static void on_allocate(uv_handle_t *handle, size_t suggested, uv_buf_t *buffer)
{
    struct client *client = handle->data;
    (void)suggested;
    *buffer = uv_buf_init(client->line + client->size,
                          (unsigned)(sizeof(client->line) - 1 - client->size));
}

/* One request per connection: bytes after the first line are ignored. */
static void on_read(uv_stream_t *stream, ssize_t size, const uv_buf_t *buffer)
{
    struct client *client = stream->data;
    (void)buffer;
    if (size < 0) { /* also UV_ENOBUFS: a line that is too long */
        close_client(client);
        return;
    }
    client->size += (size_t)size;
    client->line[client->size] = '\0';
    char *end = memchr(client->line, '\n', client->size);
    if (end == NULL || client->state != CLIENT_READING)
        return;
    *end = '\0';
    client->size = (size_t)(end - client->line);
    run(client);
}

/* Clients above the limit are closed without an answer. */
static void on_connection(uv_stream_t *server, int status)
{
    struct control *control = server->data;
    struct host_context *context = control->settings.context;
    if (status != 0)
        return;
    struct client *client = rcpt_calloc(1, sizeof(*client));
    client->control = control;
    client->pipe.data = client;
    client->deadline_ms = host_now(context) + CLIENT_WAIT_MS;
    client->next = control->clients;
    control->clients = client;
    control->client_count++;
    host_open(context);
    uv_pipe_init(context->loop, &client->pipe, 0);
    if (uv_accept(server, (uv_stream_t *)&client->pipe) != 0 ||
        control->client_count > MOST_CLIENTS ||
        uv_read_start((uv_stream_t *)&client->pipe, on_allocate, on_read) != 0)
        close_client(client);
}

/* ---- drains and late clients ---- */

/* A drain ends by itself, by pause or resume of another client, or at the deadline. */
static void tick_client(struct client *client)
{
    const struct control *control = client->control;
    enum receipts_hold hold = receipts_hold(control->settings.receipts);
    bool late = host_now(control->settings.context) >= client->deadline_ms;
    bool json = client->line[0] == 'j';
    if (client->state == CLIENT_READING && late)
        close_client(client);
    else if (client->state == CLIENT_DRAINING && hold == RECEIPTS_HOLD_DRAINED)
        answer(client, json, EX_OK, "drained: nothing is queued, nothing more is taken in\n");
    else if (client->state == CLIENT_DRAINING && hold != RECEIPTS_HOLD_DRAINING)
        answer(client, json, EX_TEMPFAIL, "the drain was ended by another request\n");
    else if (client->state == CLIENT_DRAINING && late)
        answer(client, json, EX_TEMPFAIL,
               "not drained within shutdown.deadline; nothing more is taken in\n");
}

static void on_tick(void *context)
{
    const struct control *control = context;
    struct receipts *receipts = control->settings.receipts;
    if (receipts_hold(receipts) == RECEIPTS_HOLD_DRAINING &&
        rcpt_engine_is_drained(receipts_engine(receipts)))
        receipts_set_hold(receipts, RECEIPTS_HOLD_DRAINED);
    for (struct client *client = control->clients, *next; client != NULL; client = next) {
        next = client->next;
        tick_client(client);
    }
}

/* ---- the socket ---- */

/* Whether another instance answers at the path; a leftover socket may be replaced. */
static bool is_alive(const char *path)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return false;
    snprintf(address.sun_path, sizeof(address.sun_path), "%s", path);
    bool alive = connect(fd, (struct sockaddr *)&address, sizeof(address)) == 0 || errno == EAGAIN;
    close(fd);
    return alive;
}

/* A missing or read-only folder is usual in containers: no reason for a warning. */
static bool has_folder(const char *path)
{
    char folder[128];
    const char *slash = strrchr(path, '/');
    snprintf(folder, sizeof(folder), "%.*s", slash != NULL ? (int)(slash - path) : 1,
             slash != NULL ? path : ".");
    return access(folder[0] != '\0' ? folder : "/", W_OK) == 0;
}

/* The socket has another name until its mode is right, so that other users can never connect. */
static int bind_socket(struct control *control)
{
    char fresh[128];
    snprintf(fresh, sizeof(fresh), "%s.%d", control->path, (int)getpid());
    int status = uv_pipe_bind(&control->pipe, fresh);
    if (status == 0 && chmod(fresh, S_IRUSR | S_IWUSR) != 0)
        status = -errno;
    if (status == 0)
        status = uv_listen((uv_stream_t *)&control->pipe, MOST_CLIENTS, on_connection);
    if (status == 0 && rename(fresh, control->path) != 0)
        status = -errno;
    if (status != 0)
        unlink(fresh);
    return status;
}

/* A path in use belongs to another instance: its socket must not be replaced. */
static bool can_listen(const char *path)
{
    if (path[0] == '\0')
        return false;
    if (!has_folder(path)) {
        rcpt_log_info("operate", "no control socket: the folder of %s cannot be written", path);
        return false;
    }
    if (is_alive(path)) {
        rcpt_log_warn("operate", "no control socket: another instance answers at %s", path);
        return false;
    }
    return true;
}

static void start_socket(struct control *control, const char *path)
{
    control->path = rcpt_strdup(path);
    control->pipe.data = control;
    uv_pipe_init(control->settings.context->loop, &control->pipe, 0);
    int status = bind_socket(control);
    if (status == 0)
        return;
    rcpt_log_warn("operate", "no control socket at %s: %s", path, uv_strerror(status));
    control->path[0] = '\0';
    control_close(control);
}

/* The ticker runs without a socket as well: a drain may have begun before. */
struct control *control_new(const struct control_settings *settings)
{
    const char *path = settings->context->config->control.socket;
    struct control *control = rcpt_calloc(1, sizeof(*control));
    control->settings = *settings;
    control->ticker = (struct host_ticker){.tick = on_tick, .context = control};
    host_add_ticker(settings->context, &control->ticker);
    if (can_listen(path))
        start_socket(control, path);
    return control;
}

void control_close(struct control *control)
{
    if (control->path == NULL)
        return;
    while (control->clients != NULL) /* none is RELOADING: the drain waits for that */
        close_client(control->clients);
    if (control->path[0] != '\0')
        unlink(control->path);
    host_close_handle(control->settings.context, (uv_handle_t *)&control->pipe);
    free(control->path);
    control->path = NULL;
}

void control_free(struct control *control)
{
    free(control);
}
