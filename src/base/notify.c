/* Messages to the service manager (sd_notify's protocol): one datagram to $NOTIFY_SOCKET, and the
 * watchdog's interval. Never waits. Called by operate/supervisor.c. */
#include "receiptd/base/notify.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* $NOTIFY_SOCKET is a path, or a name in the abstract namespace with an @ in place of the NUL. */
static bool set_address(struct rcpt_notify *notify, const char *name)
{
    size_t size = name != NULL ? strlen(name) : 0;
    if (size < 2 || size >= sizeof(notify->address.sun_path) || (name[0] != '/' && name[0] != '@'))
        return false;
    memset(&notify->address, 0, sizeof(notify->address));
    notify->address.sun_family = AF_UNIX;
    memcpy(notify->address.sun_path, name, size);
    if (name[0] == '@')
        notify->address.sun_path[0] = '\0';
    notify->address_size = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + size);
    return true;
}

bool rcpt_notify_open(struct rcpt_notify *notify)
{
    notify->fd = -1;
    if (!set_address(notify, getenv("NOTIFY_SOCKET")))
        return false;
    notify->fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    return notify->fd >= 0;
}

/* A datagram that the manager does not take is lost: the next status line comes soon. */
bool rcpt_notify_send(const struct rcpt_notify *notify, const char *assignments)
{
    size_t size = strlen(assignments);
    ssize_t sent;
    if (notify->fd < 0)
        return false;
    do
        sent = sendto(notify->fd, assignments, size, MSG_NOSIGNAL,
                      (const struct sockaddr *)&notify->address, notify->address_size);
    while (sent < 0 && errno == EINTR);
    return sent == (ssize_t)size;
}

void rcpt_notify_close(struct rcpt_notify *notify)
{
    if (notify->fd >= 0)
        close(notify->fd);
    notify->fd = -1;
}

/* The whole text as a positive number, 0 for anything else. */
static long long positive(const char *text)
{
    char *end = NULL;
    if (text == NULL)
        return 0;
    errno = 0;
    long long value = strtoll(text, &end, 10);
    return errno == 0 && end != text && *end == '\0' && value > 0 ? value : 0;
}

/* systemd gives microseconds. 0: no watchdog. A fraction of a millisecond counts as one. */
int64_t rcpt_notify_watchdog_ms(void)
{
    const char *process = getenv("WATCHDOG_PID");
    long long interval_us = positive(getenv("WATCHDOG_USEC"));
    if (process != NULL && positive(process) != getpid())
        return 0; /* meant for the process that started us */
    return interval_us > 0 && interval_us < 1000 ? 1 : interval_us / 1000;
}
