/* Preloaded into a command: it is killed at its N-th send, by libpq to the server.
 *
 * RECEIPTD_SEND_AT: which one, from 1; 0: none. RECEIPTD_SEND_AFTER: the server still gets what is
 * sent. A kill at send N ends the command between two statements, so counting up reaches each step of
 * it, however short. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/socket.h>

typedef ssize_t send_function(int, const void *, size_t, int);

static atomic_long sends;

static long wanted(void)
{
    const char *text = getenv("RECEIPTD_SEND_AT");
    return text != NULL ? strtol(text, NULL, 10) : 0;
}

ssize_t send(int fd, const void *bytes, size_t size, int flags)
{
    static send_function *next;
    if (next == NULL)
        *(void **)&next = dlsym(RTLD_NEXT, "send");
    if (atomic_fetch_add(&sends, 1) + 1 != wanted())
        return next(fd, bytes, size, flags);
    if (getenv("RECEIPTD_SEND_AFTER") != NULL)
        next(fd, bytes, size, flags);
    raise(SIGKILL);
    return -1;
}
