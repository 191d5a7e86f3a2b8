/* Preloaded into receiptd: the N-th call of a kind fails.
 *
 * RECEIPTD_SHIM_MODULES: who makes the calls that count, by commas: receiptd, libpq, libuv (the
 * beginning of a file name). RECEIPTD_SHIM_CALLS: memory or system. RECEIPTD_SHIM_AT: which call
 * fails, from 1; 0: none. RECEIPTD_SHIM_REPORT: a file that gets the name of the call that failed,
 * or at the end the number of calls.
 *
 * A call belongs to the module that its return address lies in; what libc does for itself is not
 * counted. */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

/* NOLINTBEGIN(bugprone-reserved-identifier,cert-dcl37-c,cert-dcl51-cpp): glibc gives these names */
extern void *__libc_malloc(size_t size);
extern void *__libc_calloc(size_t count, size_t size);
extern void *__libc_realloc(void *block, size_t size);
/* NOLINTEND(bugprone-reserved-identifier,cert-dcl37-c,cert-dcl51-cpp) */

#define MAX_RANGES 32

static struct {
    uintptr_t start[MAX_RANGES], end[MAX_RANGES];
    const char *module[MAX_RANGES]; /* file name, without its folder */
    unsigned ranges;
    bool memory;
    uint64_t at;
    _Atomic uint64_t count;
    _Atomic bool rests;
    const char *report;
} shim;

/* ---- what counts ---- */

/* The program itself has no name here. */
static const char *name_of(const char *path)
{
    const char *slash = strrchr(path, '/');
    return path[0] == '\0' ? "receiptd" : slash != NULL ? slash + 1 : path;
}

static bool is_wanted(const char *name)
{
    const char *list = getenv("RECEIPTD_SHIM_MODULES");
    for (; list != NULL && *list != '\0'; list += strcspn(list, ","), list += *list == ',') {
        size_t size = strcspn(list, ",");
        if (strncmp(name, list, size) == 0)
            return true;
    }
    return false;
}

static int add_module(struct dl_phdr_info *info, size_t size, void *context)
{
    const char *name = name_of(info->dlpi_name);
    (void)size;
    (void)context;
    for (int index = 0; index < info->dlpi_phnum && is_wanted(name); index++) {
        const ElfW(Phdr) *part = &info->dlpi_phdr[index];
        if (part->p_type != PT_LOAD || (part->p_flags & PF_X) == 0 || shim.ranges == MAX_RANGES)
            continue;
        shim.start[shim.ranges] = info->dlpi_addr + part->p_vaddr;
        shim.end[shim.ranges] = info->dlpi_addr + part->p_vaddr + part->p_memsz;
        shim.module[shim.ranges++] = name;
    }
    return 0;
}

__attribute__((constructor)) static void set_up(void)
{
    const char *calls = getenv("RECEIPTD_SHIM_CALLS"), *at = getenv("RECEIPTD_SHIM_AT");
    shim.memory = calls != NULL && strcmp(calls, "memory") == 0;
    shim.report = getenv("RECEIPTD_SHIM_REPORT");
    shim.at = at != NULL ? strtoull(at, NULL, 10) : 0;
    dl_iterate_phdr(add_module, NULL);
}

/* From now on nothing fails and nothing is counted: called by what writes coverage. */
void receiptd_shim_rest(void);

static void report(const char *text)
{
    int fd = shim.report != NULL ? open(shim.report, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600)
                                 : -1;
    if (fd < 0)
        return;
    ssize_t written = write(fd, text, strlen(text));
    (void)written;
    close(fd);
}

/* At the end of a run in which no call failed; else the report names that call already. */
static void report_count(void)
{
    char text[32];
    if (shim.at > 0 && shim.count >= shim.at)
        return;
    snprintf(text, sizeof(text), "%llu", (unsigned long long)shim.count);
    report(text);
}

__attribute__((destructor)) static void tear_down(void)
{
    report_count();
}

/* receiptd leaves this way where threads of librdkafka are left: destructors do not run then. */
void _exit(int status)
{
    report_count();
    syscall(SYS_exit_group, status);
    __builtin_unreachable();
}

void receiptd_shim_rest(void)
{
    shim.rests = true;
}

static const char *module_of(uintptr_t address)
{
    for (unsigned index = 0; index < shim.ranges; index++) {
        if (address >= shim.start[index] && address < shim.end[index])
            return shim.module[index];
    }
    return NULL;
}

static bool fails(bool memory, const char *name, const void *caller)
{
    const char *module = memory == shim.memory && !shim.rests ? module_of((uintptr_t)caller) : NULL;
    char text[128];
    if (module == NULL || atomic_fetch_add(&shim.count, 1) + 1 != shim.at)
        return false;
    int before = errno;
    snprintf(text, sizeof(text), "%s of %s", name, module);
    report(text);
    errno = before;
    return true;
}

/* libc's names for the parameters are reserved to it; lists of parameters are no expressions.
 * NOLINTBEGIN(readability-inconsistent-declaration-parameter-name,bugprone-macro-parentheses) */

/* ---- memory ---- */

#define HERE __builtin_return_address(0)

void *malloc(size_t size)
{
    if (shim.ranges > 0 && fails(true, "malloc", HERE)) {
        errno = ENOMEM;
        return NULL;
    }
    return __libc_malloc(size);
}

void *calloc(size_t count, size_t size)
{
    if (shim.ranges > 0 && fails(true, "calloc", HERE)) {
        errno = ENOMEM;
        return NULL;
    }
    return __libc_calloc(count, size);
}

void *realloc(void *block, size_t size)
{
    if (shim.ranges > 0 && fails(true, "realloc", HERE)) {
        errno = ENOMEM;
        return NULL;
    }
    return __libc_realloc(block, size);
}

/* ---- the system ---- */

#define FAILS_WITH(name, code, value)                                                              \
    do {                                                                                           \
        if (fails(false, name, HERE)) {                                                            \
            errno = code;                                                                          \
            return value;                                                                          \
        }                                                                                          \
    } while (0)

/* A call that gives a number, -1 with errno when it fails. */
#define WRAP(type, name, code, parameters, arguments)                                              \
    type name parameters                                                                           \
    {                                                                                              \
        static type(*real) parameters;                                                             \
        if (real == NULL)                                                                          \
            *(void **)&real = dlsym(RTLD_NEXT, #name);                                             \
        FAILS_WITH(#name, code, -1);                                                               \
        return real arguments;                                                                     \
    }

WRAP(int, socket, EMFILE, (int domain, int type, int protocol), (domain, type, protocol))
WRAP(int, connect, ECONNREFUSED, (int fd, const struct sockaddr *to, socklen_t size),
     (fd, to, size))
/* A connection that fails is gone for both ends, else the other call on it would wait for ever. */
#define WRAP_STREAM(type, name, parameters, arguments)                                             \
    type name parameters                                                                           \
    {                                                                                              \
        static type(*real) parameters;                                                             \
        if (real == NULL)                                                                          \
            *(void **)&real = dlsym(RTLD_NEXT, #name);                                             \
        if (fails(false, #name, HERE)) {                                                           \
            shutdown(fd, SHUT_RDWR);                                                               \
            errno = ECONNRESET;                                                                    \
            return -1;                                                                             \
        }                                                                                          \
        return real arguments;                                                                     \
    }

WRAP_STREAM(ssize_t, send, (int fd, const void *data, size_t size, int flags),
            (fd, data, size, flags))
WRAP_STREAM(ssize_t, recv, (int fd, void *data, size_t size, int flags), (fd, data, size, flags))
WRAP_STREAM(ssize_t, sendmsg, (int fd, const struct msghdr *message, int flags),
            (fd, message, flags))
WRAP_STREAM(ssize_t, recvmsg, (int fd, struct msghdr *message, int flags), (fd, message, flags))
WRAP(int, getsockopt, ENOBUFS, (int fd, int level, int name, void *value, socklen_t *size),
     (fd, level, name, value, size))
WRAP(int, setsockopt, ENOBUFS, (int fd, int level, int name, const void *value, socklen_t size),
     (fd, level, name, value, size))
WRAP(ssize_t, read, EIO, (int fd, void *data, size_t size), (fd, data, size))

/* One byte always goes through: libuv's lock of signals is a byte in a pipe, and its handler does
 * not look whether it was put back. A pipe that refuses a byte that it has room for does not exist.
 */
ssize_t write(int fd, const void *data, size_t size)
{
    static ssize_t (*real)(int fd, const void *data, size_t size);
    if (real == NULL)
        *(void **)&real = dlsym(RTLD_NEXT, "write");
    if (size != 1)
        FAILS_WITH("write", EIO, -1);
    return real(fd, data, size);
}

WRAP(int, eventfd, EMFILE, (unsigned value, int flags), (value, flags))
WRAP(int, signalfd, EMFILE, (int fd, const sigset_t *set, int flags), (fd, set, flags))
WRAP(int, epoll_create1, EMFILE, (int flags), (flags))
WRAP(int, pipe2, EMFILE, (int pair[2], int flags), (pair, flags))

/* Taking a descriptor off cannot fail for want of anything. */
int epoll_ctl(int epoll, int operation, int fd, struct epoll_event *event)
{
    static int (*real)(int, int, int, struct epoll_event *);
    if (real == NULL)
        *(void **)&real = dlsym(RTLD_NEXT, "epoll_ctl");
    if (operation != EPOLL_CTL_DEL)
        FAILS_WITH("epoll_ctl", ENOSPC, -1);
    return real(epoll, operation, fd, event);
}

int open(const char *path, int flags, ...)
{
    static int (*real)(const char *, int, ...);
    va_list rest;
    va_start(rest, flags);
    int mode = (flags & O_CREAT) != 0 ? va_arg(rest, int) : 0;
    va_end(rest);
    if (real == NULL)
        *(void **)&real = dlsym(RTLD_NEXT, "open");
    FAILS_WITH("open", EMFILE, -1);
    return real(path, flags, mode);
}

FILE *fopen(const char *path, const char *mode)
{
    static FILE *(*real)(const char *, const char *);
    if (real == NULL)
        *(void **)&real = dlsym(RTLD_NEXT, "fopen");
    FAILS_WITH("fopen", EMFILE, NULL);
    return real(path, mode);
}

FILE *open_memstream(char **text, size_t *size)
{
    static FILE *(*real)(char **, size_t *);
    if (real == NULL)
        *(void **)&real = dlsym(RTLD_NEXT, "open_memstream");
    FAILS_WITH("open_memstream", ENOMEM, NULL);
    return real(text, size);
}
/* NOLINTEND(readability-inconsistent-declaration-parameter-name,bugprone-macro-parentheses) */
