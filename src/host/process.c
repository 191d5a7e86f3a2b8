/* The start that the two processes, `run` and `intake`, have in common: bounds of glibc's heap, and
 * the name of the instance. */
#include <malloc.h>
#include <stdio.h>
#include <unistd.h>

#include "receiptd/host/context.h"

#define BURST_BYTES (1u << 20) /* held by us; what librdkafka holds beside it is not known here */
#define BURST_PART  4          /* it is over where this part of the most is held … */
#define OVER_MS     1000       /* … for this long */

void host_limit_memory(void)
{
    /* Large batches come and go: few arenas, and thresholds at which memory returns to the system,
     * keep the resident set near what is used. */
    mallopt(M_ARENA_MAX, 2);
    mallopt(M_MMAP_THRESHOLD, 1024 * 1024);
    mallopt(M_TRIM_THRESHOLD, 8 * 1024 * 1024);
}

/* glibc keeps freed memory, and librdkafka's freed messages lie between others that live. */
void host_trim_memory(struct host_burst *burst, uint64_t held_bytes, int64_t now_ms)
{
    if (held_bytes > burst->most_bytes)
        burst->most_bytes = held_bytes;
    if (burst->most_bytes < BURST_BYTES || held_bytes > burst->most_bytes / BURST_PART) {
        burst->over_at_ms = now_ms + OVER_MS;
    } else if (now_ms >= burst->over_at_ms) {
        burst->most_bytes = held_bytes;
        malloc_trim(0);
    }
}

void host_name_instance(char name[HOST_INSTANCE_BYTES])
{
    char host[48] = "localhost";
    /* The name is for readers. Where it must be unique over restarts, its user adds a random part
     * (actions.c). */
    gethostname(host, sizeof(host) - 1);
    snprintf(name, HOST_INSTANCE_BYTES, "%s-%d", host, (int)getpid());
}
