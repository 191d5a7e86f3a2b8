/* Content-Encoding as clients write it: codings that we undo, codings that we cannot undo, and
 * words that are no coding. Called for the server's requests (request.c) and for samples
 * (message.c). */
#include <string.h>
#include <strings.h>

#include "internal.h"

#include "receiptd/base/error.h"

/* The register of HTTP content codings, and what servers offer beside it; gzip and deflate are
 * undone. */
static const struct {
    const char *name;
    enum http_coding coding;
} codings[] = {
    {"identity", HTTP_CODING_NONE},    {"gzip", HTTP_CODING_GZIP},
    {"x-gzip", HTTP_CODING_GZIP},      {"deflate", HTTP_CODING_DEFLATE},
    {"br", HTTP_CODING_UNKNOWN},       {"zstd", HTTP_CODING_UNKNOWN},
    {"compress", HTTP_CODING_UNKNOWN}, {"x-compress", HTTP_CODING_UNKNOWN},
    {"dcb", HTTP_CODING_UNKNOWN},      {"dcz", HTTP_CODING_UNKNOWN},
    {"exi", HTTP_CODING_UNKNOWN},      {"aes128gcm", HTTP_CODING_UNKNOWN},
    {"aesgcm", HTTP_CODING_UNKNOWN},   {"pack200-gzip", HTTP_CODING_UNKNOWN},
    {"bzip2", HTTP_CODING_UNKNOWN},    {"x-bzip2", HTTP_CODING_UNKNOWN},
    {"xz", HTTP_CODING_UNKNOWN},       {"lzma", HTTP_CODING_UNKNOWN},
    {"lz4", HTTP_CODING_UNKNOWN},      {"x-lz4", HTTP_CODING_UNKNOWN},
    {"snappy", HTTP_CODING_UNKNOWN},   {"brotli", HTTP_CODING_UNKNOWN},
};

/* A charset such as "UTF-8", or any other word that is not a coding, leaves the body unchanged. */
static enum http_coding coding_of(const char *word, size_t size)
{
    for (size_t index = 0; index < RCPT_COUNT_OF(codings); index++)
        if (strlen(codings[index].name) == size &&
            strncasecmp(codings[index].name, word, size) == 0)
            return codings[index].coding;
    return HTTP_CODING_NONE;
}

/* If there are several in a row, at most one may be a coding. */
enum http_coding http_coding_add(enum http_coding before, const char *value, size_t size)
{
    while (size > 0) {
        size_t length = 0;
        while (length < size && strchr(", \t", value[length]) == NULL)
            length++;
        enum http_coding next = coding_of(value, length);
        if (next != HTTP_CODING_NONE)
            before = before == HTTP_CODING_NONE ? next : HTTP_CODING_UNKNOWN;
        length += length < size;
        value += length;
        size -= length;
    }
    return before;
}
