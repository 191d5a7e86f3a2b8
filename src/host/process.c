/* The start that the two processes, `run` and `intake`, have in common: bounds of glibc's heap, and
 * the name of the instance. */
#include <malloc.h>
#include <stdio.h>
#include <unistd.h>

#include "context.h"

void app_limit_memory(void)
{
    /* Large batches come and go: few arenas, and thresholds at which memory returns to the system,
     * keep the resident set near what is used. */
    mallopt(M_ARENA_MAX, 2);
    mallopt(M_MMAP_THRESHOLD, 1024 * 1024);
    mallopt(M_TRIM_THRESHOLD, 8 * 1024 * 1024);
}

void app_name_instance(char name[APP_INSTANCE_BYTES])
{
    char host[48] = "localhost";
    /* The name is for readers. Where it must be unique over restarts, its user adds a random part
     * (actions.c). */
    gethostname(host, sizeof(host) - 1);
    snprintf(name, APP_INSTANCE_BYTES, "%s-%d", host, (int)getpid());
}
