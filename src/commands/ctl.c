/* `receiptd ctl`: one line to the daemon's control socket, its answer to stdout. Verbs are the
 * daemon's (operate/control.c), except `org` and `pipeline`, which go to the database (limits.c).
 * The request is "json VERB ARGUMENT…" or "text …"; the daemon closes after its answer. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sysexits.h>
#include <unistd.h>

#include "command.h"
#include "receiptd/base/buffer.h"
#include "receiptd/operate/control.h"

#define ANSWER_TIMEOUT_S 3700 /* above the longest shutdown.deadline, which bounds a drain */

/* The time-out is above any drain's: a daemon that answers late is still draining. */
static int connect_to(const char *path, struct rcpt_error *error)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    const struct timeval timeout = {.tv_sec = ANSWER_TIMEOUT_S};
    if (strlen(path) >= sizeof(address.sun_path)) {
        rcpt_error_fatal(error, EX_USAGE, "the socket's path is too long: %.100s", path);
        return -1;
    }
    memcpy(address.sun_path, path, strlen(path) + 1);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd >= 0 && setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof(timeout)) == 0 &&
        connect(fd, (struct sockaddr *)&address, sizeof(address)) == 0)
        return fd;
    rcpt_error_fatal(error, errno == EACCES ? EX_NOPERM : EX_UNAVAILABLE,
                     "no daemon answers at %.100s: %s", path, strerror(errno));
    rcpt_error_hint(error,
                    "is it running, with this control.socket? Only its user and root may ask");
    if (fd >= 0)
        close(fd);
    return -1;
}

/* A request is one line of words, so a line feed inside would begin a second request. */
static bool send_request(int fd, const struct command_call *call, bool json,
                         struct rcpt_error *error)
{
    char line[CONTROL_LINE_BYTES];
    int used = snprintf(line, sizeof(line), "%s %s", json ? "json" : "text", call->argument);
    for (unsigned index = 0; index < COMMAND_MAX_MORE && call->more[index] != NULL; index++) {
        if (used > 0 && (size_t)used < sizeof(line))
            used += snprintf(line + used, sizeof(line) - (size_t)used, " %s", call->more[index]);
    }
    if (used <= 0 || (size_t)used + 2 > sizeof(line) || strchr(line, '\n') != NULL)
        return rcpt_error_fatal(error, EX_USAGE, "that is too long to ask");
    line[used++] = '\n';
    if (send(fd, line, (size_t)used, MSG_NOSIGNAL) == used)
        return true;
    return rcpt_error_fatal(error, EX_UNAVAILABLE, "the daemon does not listen: %s",
                            strerror(errno));
}

/* Reads the whole answer into a string. */
static char *receive(int fd, struct rcpt_error *error)
{
    struct rcpt_buffer text = {0};
    char part[4096];
    ssize_t got;
    while ((got = recv(fd, part, sizeof(part), 0)) > 0)
        rcpt_buffer_append(&text, part, (size_t)got);
    if (got == 0 && text.bytes != NULL && strchr(text.bytes, '\n') != NULL)
        return text.bytes;
    rcpt_buffer_free(&text);
    rcpt_error_fatal(error, EX_UNAVAILABLE, "the daemon went away before it answered");
    return NULL;
}

/* The first line of the answer is the exit code, the rest is for the reader. */
static int ask(const char *path, const struct command_call *call, bool json)
{
    struct rcpt_error error = {0};
    char *text = NULL;
    int fd = connect_to(path, &error);
    if (fd >= 0 && send_request(fd, call, json, &error))
        text = receive(fd, &error);
    if (fd >= 0)
        close(fd);
    if (text == NULL)
        return command_fail(&error);
    int exit_code = (int)strtol(text, NULL, 10);
    fputs(strchr(text, '\n') + 1, exit_code == EX_OK || json ? stdout : stderr);
    free(text);
    return command_printed(exit_code);
}

/* --socket needs no configuration: it works when the file is broken, or unreadable for this
 * user. */
int command_ctl(const struct command_call *call)
{
    enum command_format format;
    struct rcpt_error error = {0};
    const char *socket_path = command_option(call, "socket");
    if (!command_format(call, &format))
        return EX_USAGE;
    if (format == COMMAND_FORMAT_CSV)
        return command_usage(call, "there is no csv of this: table or json");
    if (call->argument == NULL)
        return command_usage(call, "which verb?");
    if (strcmp(call->argument, "org") == 0)
        return command_org(call, format);
    if (strcmp(call->argument, "pipeline") == 0)
        return command_pipeline(call, format);
    if (socket_path != NULL)
        return ask(socket_path, call, format == COMMAND_FORMAT_JSON);
    struct rcpt_config *config = rcpt_config_load(call->config_path, &error);
    if (config == NULL) {
        rcpt_error_hint(&error, "--socket PATH asks without reading the file");
        return command_fail(&error);
    }
    int exit_code = config->control.socket[0] != '\0'
                        ? ask(config->control.socket, call, format == COMMAND_FORMAT_JSON)
                        : command_usage(call, "control.socket is \"\": the daemon has none");
    rcpt_config_free(config);
    return exit_code;
}
