/* The functions of OpenSSL's libcrypto for the verifiers; only this module includes it. Private. */
#ifndef RECEIPTD_GATEWAYS_CRYPTO_H
#define RECEIPTD_GATEWAYS_CRYPTO_H

#include "receiptd/base/error.h"
#include "receiptd/base/text.h"

enum rcpt_digest { RCPT_MD5, RCPT_SHA1, RCPT_SHA256, RCPT_SHA512 };

/* Digests of all texts in a row (the list ends with a text whose `at` is NULL), raw, from the
 * arena. */
struct rcpt_text rcpt_hash(enum rcpt_digest digest, const struct rcpt_text *texts,
                           struct rcpt_arena *arena);
struct rcpt_text rcpt_hmac(enum rcpt_digest digest, struct rcpt_text key,
                           const struct rcpt_text *texts, struct rcpt_arena *arena);
#define RCPT_HASH(digest, arena, ...)                                                              \
    rcpt_hash((digest), (const struct rcpt_text[]){__VA_ARGS__, {NULL, 0}}, (arena))
#define RCPT_HMAC(digest, key, arena, ...)                                                         \
    rcpt_hmac((digest), (key), (const struct rcpt_text[]){__VA_ARGS__, {NULL, 0}}, (arena))

struct rcpt_text rcpt_hex(struct rcpt_text bytes, struct rcpt_arena *arena); /* lower case */
struct rcpt_text rcpt_hex_upper(struct rcpt_text bytes, struct rcpt_arena *arena);
struct rcpt_text rcpt_base64(struct rcpt_text bytes, struct rcpt_arena *arena);
struct rcpt_text rcpt_base64url(struct rcpt_text bytes, struct rcpt_arena *arena); /* no padding */
/* Canonical text only, so that no two texts mean the same bytes; at == NULL: it is none. */
struct rcpt_text rcpt_base64_decode(struct rcpt_text text, struct rcpt_arena *arena);
struct rcpt_text rcpt_base64url_decode(struct rcpt_text text, struct rcpt_arena *arena);

/* In a time that does not depend on where they differ. */
bool rcpt_same(struct rcpt_text left, struct rcpt_text right);

/* ECDSA over P-256 with SHA-256; key: base64 of the DER (SubjectPublicKeyInfo). */
bool rcpt_ecdsa_verify(struct rcpt_text key, struct rcpt_text signature,
                       const struct rcpt_text *texts, struct rcpt_arena *arena);
/* Ed25519; key: base64 of its 32 bytes. */
bool rcpt_ed25519_verify(struct rcpt_text key, struct rcpt_text signature, struct rcpt_text text,
                         struct rcpt_arena *arena);
/* RSA, PKCS#1 v1.5, with the key of a certificate in PEM that is valid at that time. */
bool rcpt_rsa_verify(const char *certificate, int64_t at_us, enum rcpt_digest digest,
                     struct rcpt_text signature, struct rcpt_text text, struct rcpt_arena *arena);
bool rcpt_is_certificate(struct rcpt_text pem);

/* The work that this thread has done so far. Only tests read it: they bound the cost of a request
 * before its verdict. */
struct rcpt_crypto_work {
    uint64_t digests, keys; /* digests and HMACs; public-key operations */
    uint64_t bytes;         /* that went through either */
};
struct rcpt_crypto_work rcpt_crypto_work(void);

#endif
