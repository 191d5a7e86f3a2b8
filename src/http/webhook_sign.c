/* Signatures of webhooks as Standard Webhooks (standardwebhooks.com) defines them: HMAC-SHA256 over
 * "id.timestamp.body", one per secret, in base64 behind "v1,". Pure; called by webhook.c and by the
 * configuration's check. */
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "receiptd/http/webhook.h"

#define PREFIX          "whsec_"
#define LEAST_BYTES     24u
#define SIGNATURE_BYTES 32
#define SIGNATURE_TEXT  48 /* "v1," + 44 of base64, a NUL */

/* EVP_DecodeBlock skips blanks and accepts padding anywhere, so the form is checked first. */
static bool is_base64(const char *text, size_t size)
{
    size_t padding = 0;
    while (padding < 2 && padding < size && text[size - 1 - padding] == '=')
        padding++;
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    return size > 0 && size % 4 == 0 && strspn(text, digits) == size - padding;
}

/* The decoded bytes are wiped from the stack. */
bool rcpt_webhook_secret_parse(struct rcpt_webhook_secret *secret, const char *text)
{
    if (strncmp(text, PREFIX, sizeof(PREFIX) - 1) == 0)
        text += sizeof(PREFIX) - 1;
    size_t size = strlen(text);
    uint8_t bytes[sizeof(secret->bytes) + 3];
    if (size / 4 * 3 > sizeof(bytes) || !is_base64(text, size))
        return false;
    int decoded = EVP_DecodeBlock(bytes, (const uint8_t *)text, (int)size);
    size_t padding = (size_t)(text[size - 1] == '=') + (size_t)(text[size - 2] == '=');
    bool good = decoded >= 0 && (size_t)decoded - padding >= LEAST_BYTES &&
                (size_t)decoded - padding <= sizeof(secret->bytes);
    if (good) {
        secret->size = (size_t)decoded - padding;
        memcpy(secret->bytes, bytes, secret->size);
    }
    OPENSSL_cleanse(bytes, sizeof(bytes));
    return good;
}

/* From malloc: the signatures, separated by blanks. */
char *rcpt_webhook_sign(const struct rcpt_webhook_secret *secrets, size_t count, const char *id,
                        int64_t timestamp_s, const void *body, size_t size)
{
    char *content = rcpt_malloc(strlen(id) + 32 + size);
    int head = sprintf(content, "%s.%lld.", id, (long long)timestamp_s);
    memcpy(content + head, body, size);
    char *text = rcpt_calloc(count + 1, SIGNATURE_TEXT + 1), *end = text;
    for (size_t i = 0; i < count; i++) {
        uint8_t mac[EVP_MAX_MD_SIZE];
        unsigned mac_size = 0;
        RCPT_ASSERT(HMAC(EVP_sha256(), secrets[i].bytes, (int)secrets[i].size,
                         (const uint8_t *)content, (size_t)head + size, mac, &mac_size) != NULL &&
                    mac_size == SIGNATURE_BYTES);
        end += sprintf(end, "%sv1,", i > 0 ? " " : "");
        end += EVP_EncodeBlock((uint8_t *)end, mac, (int)mac_size);
    }
    free(content);
    return text;
}
