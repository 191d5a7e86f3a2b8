/* What the tests sign requests with: keys made anew in each run, and requests that are built bit by
 * bit. */
#ifndef RECEIPTD_TESTS_UNIT_INTAKE_SIGNER_H
#define RECEIPTD_TESTS_UNIT_INTAKE_SIGNER_H

#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/rsa.h>
#include <openssl/x509.h>

#include "gateways/crypto.h"
#include "intake_fixture.h"

#define SECRET   "s3cret-of-the-account"
#define BASE_URL "https://h.example/dlr/acme"
#define TOPIC    "arn:aws:sns:eu-west-1:123456789012:t"
#define CERTIFICATE_URL                                                                            \
    "https://sns.eu-west-1.amazonaws.com/SimpleNotificationService-"                               \
    "0123456789abcdef0123456789abcdef.pem"
#define SIGNED_AT "1760789441"

struct signer {
    struct rcpt_arena arena;
    EVP_PKEY *rsa, *p256, *ed25519;
    char *certificate; /* PEM */
};

static inline char *signer_certificate(EVP_PKEY *key)
{
    X509 *made = X509_new();
    BIO *out = BIO_new(BIO_s_mem());
    char *bytes = NULL;
    X509_set_version(made, 2);
    ASN1_INTEGER_set(X509_get_serialNumber(made), 1);
    ASN1_TIME_set(X509_getm_notBefore(made), (time_t)(NOW_US / 1000000 - 86400));
    ASN1_TIME_set(X509_getm_notAfter(made), (time_t)(NOW_US / 1000000 + 86400));
    X509_NAME_add_entry_by_txt(X509_get_subject_name(made), "CN", MBSTRING_ASC,
                               (const unsigned char *)"sns.amazonaws.com", -1, -1, 0);
    X509_set_issuer_name(made, X509_get_subject_name(made));
    X509_set_pubkey(made, key);
    assert_true(X509_sign(made, key, EVP_sha256()) > 0);
    assert_int_equal(PEM_write_bio_X509(out, made), 1);
    size_t size = (size_t)BIO_get_mem_data(out, &bytes);
    char *pem = rcpt_calloc(1, size + 1);
    memcpy(pem, bytes, size);
    BIO_free(out);
    X509_free(made);
    return pem;
}

/* All tests of a program have the same keys: to make one of RSA takes longer than most tests. */
static inline void signer_init(struct signer *signer)
{
    static struct signer made;
    if (made.rsa == NULL) {
        made.rsa = EVP_RSA_gen(2048);
        made.p256 = EVP_EC_gen("P-256");
        made.ed25519 = EVP_PKEY_Q_keygen(NULL, NULL, "ED25519");
        assert_true(made.rsa != NULL && made.p256 != NULL && made.ed25519 != NULL);
        made.certificate = signer_certificate(made.rsa);
    }
    *signer = made;
    rcpt_arena_init(&signer->arena, 1u << 16);
}

static inline void signer_fini(struct signer *signer)
{
    rcpt_arena_fini(&signer->arena);
}

/* Base64 of the signature of the text. Ed25519 takes no digest. */
static inline struct rcpt_text sign_with(struct signer *signer, EVP_PKEY *key,
                                         struct rcpt_text text)
{
    unsigned char *out = rcpt_arena_alloc(&signer->arena, 1024);
    size_t size = 1024;
    EVP_MD_CTX *context = EVP_MD_CTX_new();
    const EVP_MD *digest = key == signer->ed25519 ? NULL : EVP_sha256();
    assert_int_equal(EVP_DigestSignInit(context, NULL, digest, NULL, key), 1);
    assert_int_equal(EVP_DigestSign(context, out, &size, (const unsigned char *)text.at, text.size),
                     1);
    EVP_MD_CTX_free(context);
    return rcpt_base64((struct rcpt_text){(const char *)out, size}, &signer->arena);
}

/* Base64 of the public key as the gateways give it: P-256 as DER, Ed25519 as its 32 bytes. */
static inline char *public_key_of(struct signer *signer, EVP_PKEY *key)
{
    unsigned char *out = rcpt_arena_alloc(&signer->arena, 256), *end = out;
    size_t size = 256;
    if (key == signer->ed25519)
        assert_int_equal(EVP_PKEY_get_raw_public_key(key, out, &size), 1);
    else
        size = (size_t)i2d_PUBKEY(key, &end);
    struct rcpt_text text =
        rcpt_base64((struct rcpt_text){(const char *)out, size}, &signer->arena);
    return rcpt_text_terminated(&signer->arena, text);
}

static inline char *hmac_hex(struct signer *signer, const char *text)
{
    struct rcpt_text mac =
        RCPT_HMAC(RCPT_SHA256, RCPT_TEXT(SECRET), &signer->arena, rcpt_text_of(text));
    return rcpt_text_terminated(&signer->arena, rcpt_hex(mac, &signer->arena));
}

static inline char *hmac_base64(struct signer *signer, enum rcpt_digest digest, const char *text)
{
    struct rcpt_text mac = RCPT_HMAC(digest, RCPT_TEXT(SECRET), &signer->arena, rcpt_text_of(text));
    return rcpt_text_terminated(&signer->arena, rcpt_base64(mac, &signer->arena));
}

__attribute__((format(printf, 2, 3))) static inline char *print(struct signer *signer,
                                                                const char *format, ...)
{
    char *out = rcpt_arena_alloc(&signer->arena, 4096);
    va_list arguments;
    va_start(arguments, format);
    int size = vsnprintf(out, 4096, format, arguments);
    va_end(arguments);
    assert_true(size >= 0 && size < 4096);
    return out;
}

/* HS256 over the claims, which hold hashes of URL and body. */
static inline char *token_of(struct signer *signer, const char *url, const char *body)
{
    struct rcpt_arena *arena = &signer->arena;
    struct rcpt_text url_hash = rcpt_hex(RCPT_HASH(RCPT_SHA256, arena, rcpt_text_of(url)), arena);
    struct rcpt_text hash = rcpt_hex(RCPT_HASH(RCPT_SHA256, arena, rcpt_text_of(body)), arena);
    char *claims = print(signer,
                         "{\"iat\":" SIGNED_AT ",\"jti\":\"j\",\"url_hash\":\"%.*s\","
                         "\"payload_hash\":\"%.*s\"}",
                         (int)url_hash.size, url_hash.at, (int)hash.size, hash.at);
    struct rcpt_text text =
        RCPT_TEXT_JOIN(arena, rcpt_base64url(RCPT_TEXT("{\"alg\":\"HS256\"}"), arena),
                       RCPT_TEXT("."), rcpt_base64url(rcpt_text_of(claims), arena));
    struct rcpt_text mac = RCPT_HMAC(RCPT_SHA256, RCPT_TEXT(SECRET), arena, text);
    return rcpt_text_terminated(
        arena, RCPT_TEXT_JOIN(arena, text, RCPT_TEXT("."), rcpt_base64url(mac, arena)));
}

static inline char *escape_json(struct signer *signer, const char *text)
{
    char *out = rcpt_arena_alloc(&signer->arena, 2 * strlen(text) + 1), *end = out;
    for (; *text != '\0'; text++) {
        if (*text == '"' || *text == '\\')
            *end++ = '\\';
        *end++ = *text;
    }
    *end = '\0';
    return out;
}

/* A notification of SNS with the message; `more` are members that Amazon does not sign. */
static inline char *envelope_of(struct signer *signer, const char *message, const char *more)
{
    char *text = print(signer,
                       "Message\n%s\nMessageId\nn-1\nTimestamp\n2025-10-18T12:10:35.000Z\n"
                       "TopicArn\n" TOPIC "\nType\nNotification\n",
                       message);
    struct rcpt_text signature = sign_with(signer, signer->rsa, rcpt_text_of(text));
    return print(signer,
                 "{%s\"Type\":\"Notification\",\"MessageId\":\"n-1\",\"TopicArn\":\"" TOPIC "\","
                 "\"Message\":\"%s\",\"Timestamp\":\"2025-10-18T12:10:35.000Z\","
                 "\"SignatureVersion\":\"2\",\"SigningCertURL\":\"" CERTIFICATE_URL "\","
                 "\"Signature\":\"%.*s\"}",
                 more, escape_json(signer, message), (int)signature.size, signature.at);
}

static inline const char *signer_find_certificate(void *context, const char *url)
{
    const struct signer *signer = context;
    return strcmp(url, CERTIFICATE_URL) == 0 ? signer->certificate : NULL;
}

/* ---- a request in parts ---- */

struct parts {
    struct rcpt_gateway_account_config config;
    char *secret;
    const char *method, *tail, *query, *body; /* query NULL: none */
    const char *names[12], *values[12];
    size_t header_count;
};

static inline void add_header(struct parts *parts, const char *name, const char *value)
{
    assert_true(parts->header_count < COUNT(parts->names));
    parts->names[parts->header_count] = name;
    parts->values[parts->header_count++] = value;
}

static inline struct parts parts_of(char *gateway, const char *method)
{
    static char secret[] = SECRET, url[] = BASE_URL, topic[] = TOPIC;
    struct parts parts = {.config = account_config(gateway),
                          .secret = secret,
                          .method = method,
                          .tail = "",
                          .body = ""};
    parts.config.verify = RCPT_GATEWAY_VERIFY_REQUIRED;
    parts.config.public_url = url;
    parts.config.topic_arn = topic;
    return parts;
}

/* False: there is no such account. Else the request has been adapted. */
static inline bool send_parts(struct fixture *fixture, struct signer *signer,
                              const struct parts *parts)
{
    struct rcpt_gateway_account_config config = parts->config;
    char *secret = parts->secret;
    struct rcpt_error error;
    config.secrets = &secret;
    config.secrets_count = secret != NULL;
    rcpt_gateway_account_free(fixture->account);
    fixture->account = rcpt_gateway_account_new(&config, fixture->ladder, &error);
    memset(&fixture->result, 0, sizeof(fixture->result));
    if (fixture->account == NULL)
        return false;
    rcpt_arena_reset(&fixture->arena, 1u << 16);
    fixture_request(fixture, parts->method, rcpt_text_of(parts->tail), rcpt_text_of(parts->body));
    fixture->request.query = rcpt_text_of(parts->query);
    for (size_t index = 0; index < parts->header_count; index++)
        fixture_header(fixture, rcpt_text_of(parts->names[index]),
                       rcpt_text_of(parts->values[index]));
    fixture->request.find_certificate = signer_find_certificate;
    fixture->request.context = signer;
    fixture_adapt(fixture);
    return true;
}

/* An event that names what the forger wants. */
static inline bool names(const struct fixture *fixture, const char *victim)
{
    for (size_t index = 0; index < fixture->result.event_count; index++) {
        const struct rcpt_gateway_event *event = &fixture->result.events[index];
        const struct rcpt_text texts[] = {event->message_id,  event->gateway_message_id,
                                          event->campaign_id, event->event_id,
                                          event->client_ref,  event->channel,
                                          event->link,        event->cost};
        for (size_t text = 0; text < COUNT(texts); text++)
            if (rcpt_text_find(texts[text], victim) < texts[text].size)
                return true;
    }
    return false;
}

#endif
