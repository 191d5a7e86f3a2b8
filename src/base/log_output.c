/* Writing to stderr without ever waiting for its reader: a full pipe loses lines, and the log
 * counts them. The function log_output_open finds out once whether stderr is a file, a pipe or the
 * journal's socket. Called by log.c, under its lock. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "log_internal.h"

enum output_kind {
    OUTPUT_PLAIN,  /* written as it is: a file, or a command's stderr */
    OUTPUT_PIPE,   /* not blocking by itself, on a description of our own */
    OUTPUT_SOCKET, /* not blocking by each call: what the journal gives cannot be opened again */
    OUTPUT_POLLED, /* could not be opened again: asked before each line */
};

/* State of the process, as stderr itself is; guarded by the log's lock. */
static struct {
    enum output_kind kind;
    int fd;
    char rest[4096]; /* of a line that a socket took in part */
    size_t rest_size;
} output = {.fd = STDERR_FILENO};

/* systemd tells which socket is the journal's. */
static bool is_journal(const struct stat *status)
{
    char *end = NULL;
    const char *text = getenv("JOURNAL_STREAM"); /* "device:inode" */
    if (text == NULL || strtoull(text, &end, 10) != status->st_dev || *end != ':')
        return false;
    return strtoull(end + 1, NULL, 10) == status->st_ino;
}

/* O_NONBLOCK belongs to the open file, which the parent and others share, so the pipe is opened
 * again as a file of our own. */
static void open_again(void)
{
    int fd = open("/proc/self/fd/2", O_WRONLY | O_APPEND | O_NONBLOCK | O_CLOEXEC | O_NOCTTY);
    output.kind = fd >= 0 ? OUTPUT_PIPE : OUTPUT_POLLED;
    output.fd = fd >= 0 ? fd : STDERR_FILENO;
}

bool log_output_open(void)
{
    struct stat status;
    if (output.kind != OUTPUT_PLAIN || fstat(STDERR_FILENO, &status) != 0)
        return false;
    if (S_ISSOCK(status.st_mode))
        output.kind = OUTPUT_SOCKET;
    else if (S_ISFIFO(status.st_mode) || S_ISCHR(status.st_mode))
        open_again();
    return is_journal(&status);
}

static ssize_t write_some(const char *bytes, size_t size)
{
    ssize_t written;
    do {
        written = output.kind == OUTPUT_SOCKET
                      ? send(output.fd, bytes, size, MSG_DONTWAIT | MSG_NOSIGNAL)
                      : write(output.fd, bytes, size);
    } while (written < 0 && errno == EINTR);
    return written;
}

/* The rest of a cut line comes before any other, so that lines stay whole. */
static bool flush_rest(void)
{
    if (output.rest_size == 0)
        return true;
    ssize_t written = write_some(output.rest, output.rest_size);
    if (written <= 0)
        return false;
    output.rest_size -= (size_t)written;
    memmove(output.rest, output.rest + written, output.rest_size);
    return output.rest_size == 0;
}

/* Asked before each line where the file cannot be made non-blocking. */
static bool is_writable(void)
{
    struct pollfd poll_fd = {.fd = output.fd, .events = POLLOUT};
    return poll(&poll_fd, 1, 0) == 1 && (poll_fd.revents & POLLOUT) != 0;
}

bool log_output_write(const char *line, size_t size)
{
    if (output.kind == OUTPUT_POLLED && !is_writable())
        return false;
    if (!flush_rest())
        return false;
    /* Only a socket can take a line in part: pipes are atomic up to PIPE_BUF. */
    ssize_t written = write_some(line, size);
    if (written < 0)
        return false;
    if ((size_t)written < size) { /* the rest comes first next time, so that lines stay whole */
        output.rest_size = size - (size_t)written;
        RCPT_ASSERT(output.rest_size <= sizeof(output.rest));
        memcpy(output.rest, line + written, output.rest_size);
    }
    return true;
}
