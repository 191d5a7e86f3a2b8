/* Digests, HMACs, encodings and public-key signatures, over OpenSSL. Decoders take the canonical
 * form only: a text with two readings would let one signature stand for two. Pure but for a counter
 * of the work done, which tests hold against bounds. Called by the verifiers. */
#include "crypto.h"

#include <openssl/crypto.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/pem.h>
#include <openssl/x509.h>

static const EVP_MD *digest_of(enum rcpt_digest digest)
{
    switch (digest) {
    case RCPT_MD5:
        return EVP_md5();
    case RCPT_SHA1:
        return EVP_sha1();
    case RCPT_SHA512:
        return EVP_sha512();
    default:
        return EVP_sha256();
    }
}

static const unsigned char *bytes_of(struct rcpt_text text)
{
    return (const unsigned char *)text.at;
}

/* Counted per thread, for the tests of what a request may cost. */
static _Thread_local struct rcpt_crypto_work work;

struct rcpt_crypto_work rcpt_crypto_work(void)
{
    return work;
}

static void count_digest(const struct rcpt_text *texts)
{
    work.digests++;
    for (; texts->at != NULL; texts++)
        work.bytes += texts->size;
}

/* `texts` ends with one whose `at` is NULL; they are hashed as if joined. */
struct rcpt_text rcpt_hash(enum rcpt_digest digest, const struct rcpt_text *texts,
                           struct rcpt_arena *arena)
{
    unsigned char *out = rcpt_arena_alloc(arena, EVP_MAX_MD_SIZE);
    unsigned size = 0;
    EVP_MD_CTX *context = EVP_MD_CTX_new();
    count_digest(texts);
    RCPT_ASSERT(context != NULL && EVP_DigestInit_ex(context, digest_of(digest), NULL) == 1);
    for (; texts->at != NULL; texts++)
        RCPT_ASSERT(EVP_DigestUpdate(context, texts->at, texts->size) == 1);
    RCPT_ASSERT(EVP_DigestFinal_ex(context, out, &size) == 1);
    EVP_MD_CTX_free(context);
    return (struct rcpt_text){(const char *)out, size};
}

/* Digest of the key's block, each byte changed by `with`, and of the texts (RFC 2104). */
static unsigned half_of_hmac(const EVP_MD *digest, struct rcpt_text key, unsigned char with,
                             const struct rcpt_text *texts, unsigned char *out)
{
    unsigned char block[128];
    unsigned size = 0;
    size_t block_size = (size_t)EVP_MD_get_block_size(digest);
    RCPT_ASSERT(block_size <= sizeof(block) && key.size <= block_size);
    memset(block, with, block_size);
    for (size_t index = 0; index < key.size; index++)
        block[index] = (unsigned char)(bytes_of(key)[index] ^ with);
    EVP_MD_CTX *context = EVP_MD_CTX_new();
    RCPT_ASSERT(context != NULL && EVP_DigestInit_ex(context, digest, NULL) == 1 &&
                EVP_DigestUpdate(context, block, block_size) == 1);
    for (; texts->at != NULL; texts++)
        RCPT_ASSERT(EVP_DigestUpdate(context, texts->at, texts->size) == 1);
    RCPT_ASSERT(EVP_DigestFinal_ex(context, out, &size) == 1);
    EVP_MD_CTX_free(context);
    OPENSSL_cleanse(block, sizeof(block));
    return size;
}

/* The HMAC of several texts in place: joining them would take as much memory again. */
static unsigned hmac_of_several(const EVP_MD *digest, struct rcpt_text key,
                                const struct rcpt_text *texts, unsigned char *out)
{
    unsigned char inner[EVP_MAX_MD_SIZE], short_key[EVP_MAX_MD_SIZE];
    unsigned size = 0;
    if (key.size > (size_t)EVP_MD_get_block_size(digest)) {
        RCPT_ASSERT(EVP_Digest(key.at, key.size, short_key, &size, digest, NULL) == 1);
        key = (struct rcpt_text){(const char *)short_key, size};
    }
    size = half_of_hmac(digest, key, 0x36, texts, inner);
    const struct rcpt_text outer[] = {{(const char *)inner, size}, {NULL, 0}};
    size = half_of_hmac(digest, key, 0x5c, outer, out);
    OPENSSL_cleanse(short_key, sizeof(short_key));
    return size;
}

/* One text, the common case, takes OpenSSL's own HMAC. */
struct rcpt_text rcpt_hmac(enum rcpt_digest digest, struct rcpt_text key,
                           const struct rcpt_text *texts, struct rcpt_arena *arena)
{
    unsigned char *out = rcpt_arena_alloc(arena, EVP_MAX_MD_SIZE);
    unsigned size = 0;
    count_digest(texts);
    if (texts[0].at != NULL && texts[1].at == NULL)
        RCPT_ASSERT(HMAC(digest_of(digest), key.at, (int)key.size, bytes_of(texts[0]),
                         texts[0].size, out, &size) != NULL);
    else
        size = hmac_of_several(digest_of(digest), key, texts, out);
    return (struct rcpt_text){(const char *)out, size};
}

/* ---- encodings ---- */

static struct rcpt_text hex(struct rcpt_text bytes, const char *digits, struct rcpt_arena *arena)
{
    char *out = rcpt_arena_alloc(arena, bytes.size * 2 + 1);
    for (size_t index = 0; index < bytes.size; index++) {
        out[2 * index] = digits[bytes_of(bytes)[index] >> 4];
        out[2 * index + 1] = digits[bytes_of(bytes)[index] & 15];
    }
    return (struct rcpt_text){out, bytes.size * 2};
}

struct rcpt_text rcpt_hex(struct rcpt_text bytes, struct rcpt_arena *arena)
{
    return hex(bytes, "0123456789abcdef", arena);
}

struct rcpt_text rcpt_hex_upper(struct rcpt_text bytes, struct rcpt_arena *arena)
{
    return hex(bytes, "0123456789ABCDEF", arena);
}

/* EVP_EncodeBlock adds a NUL, hence the byte more. */
static char *encode(struct rcpt_text bytes, struct rcpt_arena *arena, size_t *size)
{
    unsigned char *out = rcpt_arena_alloc(arena, (bytes.size + 2) / 3 * 4 + 1);
    *size = (size_t)EVP_EncodeBlock(out, bytes_of(bytes), (int)bytes.size);
    return (char *)out;
}

struct rcpt_text rcpt_base64(struct rcpt_text bytes, struct rcpt_arena *arena)
{
    size_t size;
    const char *text = encode(bytes, arena, &size);
    return (struct rcpt_text){text, size};
}

/* Without padding, as JSON web tokens have it. */
struct rcpt_text rcpt_base64url(struct rcpt_text bytes, struct rcpt_arena *arena)
{
    size_t size;
    char *text = encode(bytes, arena, &size);
    while (size > 0 && text[size - 1] == '=')
        size--;
    for (size_t index = 0; index < size; index++)
        text[index] = (char)(text[index] == '+' ? '-' : text[index] == '/' ? '_' : text[index]);
    return (struct rcpt_text){text, size};
}

/* EVP_DecodeBlock counts padding as bytes: two of them at most are taken off. */
static struct rcpt_text decode(struct rcpt_text text, struct rcpt_arena *arena)
{
    struct rcpt_text none = {NULL, 0};
    if (text.size == 0 || text.size % 4 != 0 || text.size > 65536)
        return none;
    unsigned char *out = rcpt_arena_alloc(arena, text.size);
    int size = EVP_DecodeBlock(out, bytes_of(text), (int)text.size);
    if (size < 0)
        return none;
    size -= text.at[text.size - 1] == '=';
    size -= text.at[text.size - 2] == '=';
    return (struct rcpt_text){(const char *)out, size > 0 ? (size_t)size : 0};
}

/* Encoding the result again must give the same text: blanks, stray bits and missing padding are
 * refused. */
struct rcpt_text rcpt_base64_decode(struct rcpt_text text, struct rcpt_arena *arena)
{
    struct rcpt_text bytes = decode(text, arena);
    if (bytes.at == NULL || !rcpt_text_equal(rcpt_base64(bytes, arena), text))
        return (struct rcpt_text){NULL, 0};
    return bytes;
}

/* As above, for the alphabet of URLs. */
struct rcpt_text rcpt_base64url_decode(struct rcpt_text text, struct rcpt_arena *arena)
{
    if (text.size > 65536)
        return (struct rcpt_text){NULL, 0};
    char *plain = rcpt_arena_alloc(arena, text.size + 4);
    size_t size = text.size;
    for (size_t index = 0; index < size; index++)
        plain[index] = (char)(text.at[index] == '-'   ? '+'
                              : text.at[index] == '_' ? '/'
                                                      : text.at[index]);
    while (size % 4 != 0)
        plain[size++] = '=';
    struct rcpt_text bytes = decode((struct rcpt_text){plain, size}, arena);
    if (bytes.at == NULL || !rcpt_text_equal(rcpt_base64url(bytes, arena), text))
        return (struct rcpt_text){NULL, 0};
    return bytes;
}

/* In constant time for equal lengths. Empty texts are never the same: an empty secret would admit
 * every request. */
bool rcpt_same(struct rcpt_text left, struct rcpt_text right)
{
    return left.size == right.size && left.size > 0 &&
           CRYPTO_memcmp(left.at, right.at, left.size) == 0;
}

/* ---- signatures ---- */

/* OpenSSL's queue of errors is emptied: a bad signature is an ordinary case. */
static bool verify(EVP_PKEY *key, const EVP_MD *digest, struct rcpt_text signature,
                   const struct rcpt_text *texts)
{
    EVP_MD_CTX *context = EVP_MD_CTX_new();
    work.keys++;
    count_digest(texts);
    RCPT_ASSERT(context != NULL);
    bool good = EVP_DigestVerifyInit(context, NULL, digest, NULL, key) == 1;
    for (; good && texts->at != NULL; texts++)
        good = EVP_DigestVerifyUpdate(context, texts->at, texts->size) == 1;
    good = good && EVP_DigestVerifyFinal(context, bytes_of(signature), signature.size) == 1;
    EVP_MD_CTX_free(context);
    ERR_clear_error();
    return good;
}

/* The bytes before the point of a P-256 key in its one canonical form: other parameters, or a
 * compressed or hybrid point, are refused. */
static bool is_p256_key(struct rcpt_text der)
{
    static const char prefix[] =
        "\x30\x59\x30\x13\x06\x07\x2a\x86\x48\xce\x3d\x02\x01\x06\x08\x2a\x86\x48\xce\x3d\x03"
        "\x01\x07\x03\x42\x00\x04";
    return der.size == sizeof(prefix) - 1 + 64 && memcmp(der.at, prefix, sizeof(prefix) - 1) == 0;
}

/* The key is a DER SubjectPublicKeyInfo in base64, as SendGrid shows it. */
bool rcpt_ecdsa_verify(struct rcpt_text key, struct rcpt_text signature,
                       const struct rcpt_text *texts, struct rcpt_arena *arena)
{
    struct rcpt_text der = rcpt_base64_decode(rcpt_text_trim(key), arena);
    if (der.at == NULL || !is_p256_key(der))
        return false;
    const unsigned char *at = bytes_of(der);
    EVP_PKEY *parsed = d2i_PUBKEY(NULL, &at, (long)der.size);
    bool good = parsed != NULL && verify(parsed, EVP_sha256(), signature, texts);
    EVP_PKEY_free(parsed);
    ERR_clear_error();
    return good;
}

/* The key is the raw point in base64, as Telnyx shows it. */
bool rcpt_ed25519_verify(struct rcpt_text key, struct rcpt_text signature, struct rcpt_text text,
                         struct rcpt_arena *arena)
{
    struct rcpt_text point = rcpt_base64_decode(rcpt_text_trim(key), arena);
    EVP_PKEY *parsed = NULL;
    work.keys++;
    work.bytes += text.size;
    if (point.at != NULL)
        parsed = EVP_PKEY_new_raw_public_key(EVP_PKEY_ED25519, NULL, bytes_of(point), point.size);
    EVP_MD_CTX *context = EVP_MD_CTX_new();
    RCPT_ASSERT(context != NULL);
    bool good = parsed != NULL && EVP_DigestVerifyInit(context, NULL, NULL, NULL, parsed) == 1 &&
                EVP_DigestVerify(context, bytes_of(signature), signature.size, bytes_of(text),
                                 text.size) == 1;
    EVP_MD_CTX_free(context);
    EVP_PKEY_free(parsed);
    ERR_clear_error();
    return good;
}

/* PEM may be wrapped differently. */
static struct rcpt_text without_blanks(struct rcpt_text text, struct rcpt_arena *arena)
{
    char *out = rcpt_arena_alloc(arena, text.size + 1);
    size_t used = 0;
    for (size_t index = 0; index < text.size; index++)
        if (strchr(" \t\r\n", text.at[index]) == NULL)
            out[used++] = text.at[index];
    return (struct rcpt_text){out, used};
}

/* A damaged text must not mean the same certificate, so OpenSSL's own text of it must equal the
 * given one. */
static bool is_as_given(X509 *certificate, struct rcpt_text given, struct rcpt_arena *arena)
{
    char *bytes = NULL;
    BIO *out = BIO_new(BIO_s_mem());
    RCPT_ASSERT(out != NULL && PEM_write_bio_X509(out, certificate) == 1);
    struct rcpt_text written = {NULL, (size_t)BIO_get_mem_data(out, &bytes)};
    written.at = bytes;
    bool same = rcpt_text_equal(without_blanks(written, arena), without_blanks(given, arena));
    BIO_free(out);
    return same;
}

/* Within its time; a self-signed certificate must also verify with its own key. */
static bool is_valid(X509 *certificate, int64_t at_us)
{
    time_t at = (time_t)(at_us / 1000000);
    EVP_PKEY *key = X509_get0_pubkey(certificate);
    if (key == NULL || X509_cmp_time(X509_get0_notBefore(certificate), &at) > 0 ||
        X509_cmp_time(X509_get0_notAfter(certificate), &at) < 0)
        return false;
    return X509_NAME_cmp(X509_get_subject_name(certificate), X509_get_issuer_name(certificate)) !=
               0 ||
           X509_verify(certificate, key) == 1;
}

static X509 *read_certificate(struct rcpt_text pem)
{
    BIO *in = BIO_new_mem_buf(pem.at, (int)pem.size);
    RCPT_ASSERT(in != NULL);
    X509 *parsed = PEM_read_bio_X509(in, NULL, NULL, NULL);
    BIO_free(in);
    ERR_clear_error();
    return parsed;
}

/* For the check of the configuration. */
bool rcpt_is_certificate(struct rcpt_text pem)
{
    X509 *parsed = read_certificate(pem);
    X509_free(parsed);
    return parsed != NULL;
}

/* The certificate comes from Amazon over HTTPS; which host may give it was checked before it was
 * fetched. */
bool rcpt_rsa_verify(const char *certificate, int64_t at_us, enum rcpt_digest digest,
                     struct rcpt_text signature, struct rcpt_text text, struct rcpt_arena *arena)
{
    struct rcpt_text pem = rcpt_text_trim(rcpt_text_of(certificate));
    const struct rcpt_text texts[] = {text, {NULL, 0}};
    X509 *parsed = read_certificate(pem);
    bool good = parsed != NULL && is_as_given(parsed, pem, arena) && is_valid(parsed, at_us) &&
                EVP_PKEY_get_base_id(X509_get0_pubkey(parsed)) == EVP_PKEY_RSA &&
                verify(X509_get0_pubkey(parsed), digest_of(digest), signature, texts);
    X509_free(parsed);
    ERR_clear_error();
    return good;
}
