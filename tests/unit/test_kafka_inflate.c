/* What the executable puts before zlib, lz4 and zstd: librdkafka's batches end at a limit. */
#include <dlfcn.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include <cmocka.h>

#include "kafka/internal.h"

#define MIB (1024u * 1024)

size_t ZSTD_decompress(void *out, size_t capacity, const void *in, size_t in_size);
unsigned long long ZSTD_getFrameContentSize(const void *in, size_t in_size);

struct packed {
    void *bytes;
    size_t size;
};

static struct packed pack(size_t size)
{
    size_t (*compress)(void *, size_t, const void *, size_t, int);
    *(void **)&compress = dlsym(RTLD_DEFAULT, "ZSTD_compress");
    assert_non_null(compress);
    void *blanks = calloc(1, size);
    struct packed packed = {malloc(size), 0};
    packed.size = compress(packed.bytes, size, blanks, size, 1);
    assert_true(packed.size < size);
    free(blanks);
    return packed;
}

static void librdkafka_uses_the_functions_here(void **state)
{
    (void)state;
    assert_non_null(
        rd_kafka_version_str()); /* the linker drops a library that no program asks for */
    assert_true(rcpt_inflate_is_bounded());
    const char *const names[] = {"inflate",
                                 "inflateInit2_",
                                 "inflateEnd",
                                 "LZ4F_decompress",
                                 "LZ4F_getFrameInfo",
                                 "ZSTD_decompress",
                                 "ZSTD_getFrameContentSize"};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        Dl_info here;
        assert_true(dladdr(dlsym(RTLD_DEFAULT, names[i]), &here) != 0);
        assert_null(strstr(here.dli_fname, ".so"));
    }
}

static void a_batch_beyond_the_limit_is_refused_and_told_once(void **state)
{
    (void)state;
    rcpt_kafka_set_batch_limit(8 * MIB);
    struct packed good = pack(8 * MIB), large = pack(8 * MIB + 1);
    char *out = malloc(16 * MIB);
    assert_int_equal(ZSTD_getFrameContentSize(good.bytes, good.size), 8 * MIB);
    assert_int_equal(ZSTD_decompress(out, 16 * MIB, good.bytes, good.size), 8 * MIB);
    assert_int_equal(rcpt_inflate_verdict(good.size), RCPT_INFLATE_NOT_REFUSED);
    assert_true(ZSTD_getFrameContentSize(large.bytes, large.size) == 0ull - 2);
    assert_int_equal(rcpt_inflate_verdict(large.size), RCPT_INFLATE_TOO_LARGE);
    assert_int_equal(rcpt_inflate_verdict(large.size), RCPT_INFLATE_NOT_REFUSED);
    assert_true(ZSTD_decompress(out, 16 * MIB, large.bytes, large.size) == (size_t)-1);
    assert_int_equal(rcpt_inflate_verdict(large.size), RCPT_INFLATE_TOO_LARGE);
    free(out);
    free(good.bytes);
    free(large.bytes);
}

/* The intake's bodies and answers of webhooks have limits of their own. */
static void other_users_of_zlib_are_left_alone(void **state)
{
    (void)state;
    rcpt_kafka_set_batch_limit(MIB);
    uLongf size = compressBound(4 * MIB), plain_size = 4 * MIB;
    Bytef *plain = calloc(1, 4 * MIB), *packed = malloc(size);
    assert_int_equal(compress(packed, &size, plain, 4 * MIB), Z_OK);
    assert_int_equal(uncompress(plain, &plain_size, packed, size), Z_OK);
    z_stream stream = {
        .next_in = packed, .avail_in = (uInt)size, .next_out = plain, .avail_out = 4 * MIB};
    assert_int_equal(inflateInit2(&stream, 15 + 32), Z_OK);
    assert_int_equal(inflate(&stream, Z_FINISH), Z_STREAM_END);
    assert_int_equal(stream.total_out, 4 * MIB);
    inflateEnd(&stream);
    free(plain);
    free(packed);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(librdkafka_uses_the_functions_here),
        cmocka_unit_test(a_batch_beyond_the_limit_is_refused_and_told_once),
        cmocka_unit_test(other_users_of_zlib_are_left_alone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
