/* A bound on the size to which librdkafka inflates batches. It calls the functions below instead of
 * zlib's, lz4's and zstd's own, because the dynamic linker looks for a name in the executable
 * first.
 *
 * librdkafka inflates a whole batch at once and puts no bound on gzip and lz4 (zstd:
 * receive.message.max.bytes). So a batch of 1 MB could become 1 GB before its first record is read.
 * Here the output ends at the limit, as an error of the codec. The batch comes to messages.c as
 * _BAD_COMPRESSION, which asks rcpt_inflate_verdict() why. snappy is part of librdkafka and out of
 * reach: its format does not expand more than 22 times.
 *
 * The functions run in librdkafka's threads, others' calls of zlib pass through. The state is
 * static because these functions are given none.
 */
#include <dlfcn.h>
#include <malloc.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <zlib.h>

#include "internal.h"

#define LIMIT_AT_FIRST     (32u * 1024 * 1024)
#define BURST_LIMITS       2u /* what the batches of one fetch may inflate to, in limits … */
#define HEAP_LIMITS        3u /* … where the process holds more than this */
#define FETCH_GAP_BYTES    (1024u * 1024) /* between two compressed batches of one fetch */
#define REFUSALS           64u
#define ZSTD_DST_TOO_SMALL ((size_t)-70) /* zstd_errors.h */
#define ZSTD_SIZE_ERROR    (0ull - 2)    /* zstd.h; one more: it does not say */
#define CODEC_ERROR        ((size_t)-1)  /* GENERIC, of lz4frame and of zstd */

/* One batch and those before it in the same fetch, by thread: librdkafka has one for each broker,
 * and reads the batches of a fetch in a row, from one buffer. */
static _Thread_local struct {
    const void *stream; /* of the batch that is being inflated; NULL: none */
    const void *in;     /* its compressed bytes; zlib goes through them twice */
    size_t in_size;
    size_t out;
    size_t burst; /* of the batches before */
} batch;

static atomic_size_t limit = LIMIT_AT_FIRST;

static struct {
    pthread_mutex_t mutex;
    struct refusal {
        size_t in_size;
        enum rcpt_inflate_verdict verdict;
    } list[REFUSALS];
    unsigned next;
} refusals = {.mutex = PTHREAD_MUTEX_INITIALIZER};

void rcpt_kafka_set_batch_limit(size_t bytes)
{
    atomic_store(&limit, bytes);
}

size_t rcpt_inflate_get_limit(void)
{
    return atomic_load(&limit);
}

enum rcpt_inflate_verdict rcpt_inflate_verdict(size_t compressed_size)
{
    struct refusal none = {0}, *found = &none;
    pthread_mutex_lock(&refusals.mutex);
    for (unsigned i = 0; i < REFUSALS; i++) {
        struct refusal *refusal = &refusals.list[i];
        if (refusal->in_size == compressed_size && refusal->verdict > found->verdict)
            found = refusal;
    }
    enum rcpt_inflate_verdict verdict = found->verdict;
    found->verdict = RCPT_INFLATE_NOT_REFUSED;
    pthread_mutex_unlock(&refusals.mutex);
    return verdict;
}

static pthread_once_t once = PTHREAD_ONCE_INIT;

static struct { /* the libraries' own; of lz4 and zstd NULL where librdkafka brings its own */
    int (*inflate_init)(z_streamp, int, const char *, int);
    int (*inflate)(z_streamp, int);
    int (*inflate_end)(z_streamp);
    size_t (*lz4_info)(void *, void *, const void *, size_t *);
    size_t (*lz4_decompress)(void *, void *, size_t *, const void *, size_t *, const void *);
    unsigned long long (*zstd_size)(const void *, size_t);
    size_t (*zstd_decompress)(void *, size_t, const void *, size_t);
} next;

/* The next definition of each name after ours: the library's own. */
static void find_next(void)
{
    *(void **)&next.inflate_init = dlsym(RTLD_NEXT, "inflateInit2_");
    *(void **)&next.inflate = dlsym(RTLD_NEXT, "inflate");
    *(void **)&next.inflate_end = dlsym(RTLD_NEXT, "inflateEnd");
    *(void **)&next.lz4_info = dlsym(RTLD_NEXT, "LZ4F_getFrameInfo");
    *(void **)&next.lz4_decompress = dlsym(RTLD_NEXT, "LZ4F_decompress");
    *(void **)&next.zstd_size = dlsym(RTLD_NEXT, "ZSTD_getFrameContentSize");
    *(void **)&next.zstd_decompress = dlsym(RTLD_NEXT, "ZSTD_decompress");
    RCPT_ASSERT(next.inflate_init != NULL && next.inflate != NULL && next.inflate_end != NULL);
}

/* ---- accounting ---- */

/* A batch begins at `in`, unless it is the same one again. */
static void begin(const void *in, size_t in_size)
{
    uintptr_t before = (uintptr_t)batch.in, here = (uintptr_t)in;
    bool same_fetch =
        before != 0 && here >= before && here - before < batch.in_size + FETCH_GAP_BYTES;
    if (!same_fetch)
        batch.burst = 0;
    else if (in != batch.in)
        batch.burst += batch.out;
    batch.in = in;
    batch.in_size = in_size;
    batch.out = 0;
}

/* The first batch of a fetch has its whole limit: a batch that does not fit comes first next time.
 */
static size_t allowed(void)
{
    size_t most = atomic_load(&limit), burst = BURST_LIMITS * most;
    size_t left = batch.burst < burst ? burst - batch.burst : 0;
    return batch.burst == 0 || left > most ? most : left;
}

/* Two fetches may be taken for one: then the heap shows that there is capacity. */
static bool is_full(void)
{
    struct mallinfo2 heap = mallinfo2();
    return heap.uordblks + heap.hblkhd > HEAP_LIMITS * atomic_load(&limit);
}

/* False: there is capacity after all. */
static bool refuse(size_t most)
{
    bool too_large = most == atomic_load(&limit);
    if (!too_large && !is_full()) {
        batch.burst = 0;
        return false;
    }
    pthread_mutex_lock(&refusals.mutex);
    refusals.list[refusals.next] = (struct refusal){
        batch.in_size, too_large ? RCPT_INFLATE_TOO_LARGE : RCPT_INFLATE_NO_CAPACITY};
    refusals.next = (refusals.next + 1) % REFUSALS;
    pthread_mutex_unlock(&refusals.mutex);
    batch.in = NULL; /* the next one begins a burst */
    batch.burst = batch.out = 0;
    return true;
}

bool rcpt_inflate_is_bounded(void)
{
    pthread_once(&once, find_next);
    return next.lz4_decompress != NULL && next.zstd_decompress != NULL &&
           dlsym(RTLD_DEFAULT, "inflate") != dlsym(RTLD_NEXT, "inflate");
}

/* ---- gzip ---- */

#define SEEN_BY_OTHERS __attribute__((visibility("default")))

/* By the shared object of the caller's address: HTTP clients in the process use zlib, too. */
static bool is_librdkafka(const void *caller)
{
    Dl_info here, there;
    void *known = dlsym(RTLD_DEFAULT, "rd_kafka_version");
    return known != NULL && dladdr(known, &here) != 0 && dladdr(caller, &there) != 0 &&
           here.dli_fbase == there.dli_fbase;
}

SEEN_BY_OTHERS int inflateInit2_(z_streamp stream, int window, const char *version, int size)
{
    pthread_once(&once, find_next);
    if (is_librdkafka(__builtin_return_address(0)))
        batch.stream = stream;
    return next.inflate_init(stream, window, version, size);
}

/* librdkafka inflates twice: first to count, then into a buffer of that size. */
SEEN_BY_OTHERS int inflate(z_streamp stream, int flush)
{
    pthread_once(&once, find_next);
    if (batch.stream != stream)
        return next.inflate(stream, flush);
    if (stream->total_in == 0 && stream->total_out == 0)
        begin(stream->next_in, stream->avail_in);
    int status = next.inflate(stream, flush);
    size_t most = allowed();
    batch.out = stream->total_out;
    return batch.out > most && refuse(most) ? Z_DATA_ERROR : status;
}

SEEN_BY_OTHERS int inflateEnd(z_streamp stream)
{
    pthread_once(&once, find_next);
    if (batch.stream == stream)
        batch.stream = NULL;
    return next.inflate_end(stream);
}

/* ---- lz4: only librdkafka uses it ---- */

SEEN_BY_OTHERS size_t LZ4F_getFrameInfo(void *context, void *info, const void *in, size_t *in_size);
SEEN_BY_OTHERS size_t LZ4F_decompress(void *context, void *out, size_t *out_size, const void *in,
                                      size_t *in_size, const void *options);
SEEN_BY_OTHERS unsigned long long ZSTD_getFrameContentSize(const void *in, size_t in_size);
SEEN_BY_OTHERS size_t ZSTD_decompress(void *out, size_t capacity, const void *in, size_t in_size);

size_t LZ4F_getFrameInfo(void *context, void *info, const void *in, size_t *in_size)
{
    pthread_once(&once, find_next);
    begin(in, *in_size);
    return next.lz4_info(context, info, in, in_size);
}

size_t LZ4F_decompress(void *context, void *out, size_t *out_size, const void *in, size_t *in_size,
                       const void *options)
{
    pthread_once(&once, find_next);
    size_t most = allowed(), left = most + 1 - batch.out;
    if (*out_size > left)
        *out_size = left;
    size_t result = next.lz4_decompress(context, out, out_size, in, in_size, options);
    batch.out += *out_size;
    return batch.out > most && refuse(most) ? CODEC_ERROR : result;
}

/* ---- zstd: librdkafka alone uses the simple form ---- */

/* A frame may declare its size: if that is too large, nothing is inflated, and no memory is taken.
 */
unsigned long long ZSTD_getFrameContentSize(const void *in, size_t in_size)
{
    pthread_once(&once, find_next);
    begin(in, in_size);
    size_t most = atomic_load(&limit);
    unsigned long long size = next.zstd_size(in, in_size);
    return size > most && size < ZSTD_SIZE_ERROR && refuse(most) ? ZSTD_SIZE_ERROR : size;
}

size_t ZSTD_decompress(void *out, size_t capacity, const void *in, size_t in_size)
{
    pthread_once(&once, find_next);
    begin(in, in_size);
    size_t most = allowed();
    size_t result = next.zstd_decompress(out, capacity < most ? capacity : most, in, in_size);
    if (result == ZSTD_DST_TOO_SMALL && capacity > most) {
        if (refuse(most))
            return CODEC_ERROR;
        most = allowed();
        result = next.zstd_decompress(out, capacity < most ? capacity : most, in, in_size);
        if (result == ZSTD_DST_TOO_SMALL && capacity > most && refuse(most))
            return CODEC_ERROR;
    }
    batch.out = result <= most ? result : 0;
    return result;
}
