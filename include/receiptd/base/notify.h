/* Messages to a service manager: datagrams to the socket that NOTIFY_SOCKET names, sd_notify(3).
 *
 * Spoken by hand and not through libsystemd: the protocol is one sendto(), promised to stay as it
 * is, and the daemon also runs where that library is not there. Never waits. Call from one thread.
 */
#ifndef RECEIPTD_BASE_NOTIFY_H
#define RECEIPTD_BASE_NOTIFY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/un.h>

struct rcpt_notify {
    int fd; /* -1: there is no service manager */
    struct sockaddr_un address;
    socklen_t address_size;
};

/* False: there is no manager (no NOTIFY_SOCKET, or one that is no address); messages are then
 * dropped. */
bool rcpt_notify_open(struct rcpt_notify *notify);
/* Assignments, a line each: "READY=1\nSTATUS=…". False: the message is lost, since the manager does
 * not listen or has too much to read; the caller sends what matters again. */
bool rcpt_notify_send(const struct rcpt_notify *notify, const char *assignments);
void rcpt_notify_close(struct rcpt_notify *notify);

/* How long the manager waits for a sign of life before it ends this process; 0: it does not. */
int64_t rcpt_notify_watchdog_ms(void);

#endif
