/* Moves the wall clock of the process it is preloaded into by the seconds written in the file that
 * FAULTS_CLOCK_OFFSET names; the monotonic clock goes on as it is. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static long offset(void)
{
    char text[32] = "";
    const char *path = getenv("FAULTS_CLOCK_OFFSET");
    int file = path != NULL ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    if (file < 0)
        return 0;
    ssize_t size = read(file, text, sizeof(text) - 1);
    close(file);
    return size > 0 ? strtol(text, NULL, 10) : 0;
}

static int real_clock(clockid_t clock, struct timespec *now)
{
    static int (*next)(clockid_t, struct timespec *);
    if (next == NULL)
        *(void **)&next = dlsym(RTLD_NEXT, "clock_gettime");
    return next(clock, now);
}

int clock_gettime(clockid_t clock, struct timespec *now)
{
    int result = real_clock(clock, now);
    if (result == 0 && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE))
        now->tv_sec += offset();
    return result;
}

int gettimeofday(struct timeval *restrict now, void *restrict zone)
{
    struct timespec exact;
    (void)zone;
    clock_gettime(CLOCK_REALTIME, &exact);
    now->tv_sec = exact.tv_sec;
    now->tv_usec = exact.tv_nsec / 1000;
    return 0;
}

time_t time(time_t *out)
{
    struct timespec exact;
    clock_gettime(CLOCK_REALTIME, &exact);
    if (out != NULL)
        *out = exact.tv_sec;
    return exact.tv_sec;
}
