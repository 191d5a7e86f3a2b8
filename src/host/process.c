/* What the two processes, `run` and `intake`, have in common before anything starts. */
#include <malloc.h>
#include <stdio.h>
#include <unistd.h>

#include "context.h"

void app_limit_memory(void)
{
    mallopt(M_ARENA_MAX, 2);
    mallopt(M_MMAP_THRESHOLD, 1024 * 1024);
    mallopt(M_TRIM_THRESHOLD, 8 * 1024 * 1024);
}

void app_name_instance(char name[APP_INSTANCE_BYTES])
{
    char host[48] = "localhost";
    gethostname(host, sizeof(host) - 1);
    snprintf(name, APP_INSTANCE_BYTES, "%s-%d", host, (int)getpid());
}
