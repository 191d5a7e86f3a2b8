/* For ThreadSanitizer only: it knows POSIX threads but not C11's, which librdkafka uses; a thread
 * that it has not seen begin crashes it. glibc's C11 objects are its POSIX ones under another name.
 */
#include <errno.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <threads.h>

struct start {
    thrd_start_t function;
    void *argument;
};

static void *begin(void *argument)
{
    struct start start = *(struct start *)argument;
    free(argument);
    return (void *)(intptr_t)start.function(start.argument);
}

int thrd_create(thrd_t *thread, thrd_start_t function, void *argument)
{
    struct start *start = malloc(sizeof(*start));
    if (start == NULL)
        return thrd_nomem;
    *start = (struct start){function, argument};
    if (pthread_create(thread, NULL, begin, start) == 0)
        return thrd_success;
    free(start);
    return thrd_error;
}

int thrd_join(thrd_t thread, int *result)
{
    void *value;
    if (pthread_join(thread, &value) != 0)
        return thrd_error;
    if (result != NULL)
        *result = (int)(intptr_t)value;
    return thrd_success;
}

int mtx_init(mtx_t *mutex, int type)
{
    pthread_mutexattr_t attributes;
    pthread_mutexattr_init(&attributes);
    if ((type & mtx_recursive) != 0)
        pthread_mutexattr_settype(&attributes, PTHREAD_MUTEX_RECURSIVE);
    int status = pthread_mutex_init((pthread_mutex_t *)mutex, &attributes);
    pthread_mutexattr_destroy(&attributes);
    return status == 0 ? thrd_success : thrd_error;
}

int mtx_lock(mtx_t *mutex)
{
    return pthread_mutex_lock((pthread_mutex_t *)mutex) == 0 ? thrd_success : thrd_error;
}

int mtx_trylock(mtx_t *mutex)
{
    return pthread_mutex_trylock((pthread_mutex_t *)mutex) == 0 ? thrd_success : thrd_busy;
}

int mtx_unlock(mtx_t *mutex)
{
    return pthread_mutex_unlock((pthread_mutex_t *)mutex) == 0 ? thrd_success : thrd_error;
}

void mtx_destroy(mtx_t *mutex)
{
    pthread_mutex_destroy((pthread_mutex_t *)mutex);
}

int cnd_init(cnd_t *condition)
{
    return pthread_cond_init((pthread_cond_t *)condition, NULL) == 0 ? thrd_success : thrd_error;
}

int cnd_signal(cnd_t *condition)
{
    return pthread_cond_signal((pthread_cond_t *)condition) == 0 ? thrd_success : thrd_error;
}

int cnd_broadcast(cnd_t *condition)
{
    return pthread_cond_broadcast((pthread_cond_t *)condition) == 0 ? thrd_success : thrd_error;
}

int cnd_wait(cnd_t *condition, mtx_t *mutex)
{
    return pthread_cond_wait((pthread_cond_t *)condition, (pthread_mutex_t *)mutex) == 0
               ? thrd_success
               : thrd_error;
}

int cnd_timedwait(cnd_t *condition, mtx_t *mutex, const struct timespec *until)
{
    int status =
        pthread_cond_timedwait((pthread_cond_t *)condition, (pthread_mutex_t *)mutex, until);
    return status == 0 ? thrd_success : status == ETIMEDOUT ? thrd_timedout : thrd_error;
}

void cnd_destroy(cnd_t *condition)
{
    pthread_cond_destroy((pthread_cond_t *)condition);
}
