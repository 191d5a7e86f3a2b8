/* Signed links to one campaign, and the hash by which a token is stored. Pure. A link is
 * CAMPAIGN.EXPIRES.MAC: the id in hexadecimal digits, seconds since 1970, HMAC-SHA256 of both. */
#include <inttypes.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <stdio.h>
#include <stdlib.h>

#include "internal.h"

#define MAC_BYTES 32u

/* Lower case, as read_hex() takes it back. */
static void write_hex(const unsigned char *bytes, size_t size, char *text)
{
    static const char digits[] = "0123456789abcdef";
    for (size_t at = 0; at < size; at++) {
        text[2 * at] = digits[bytes[at] >> 4];
        text[2 * at + 1] = digits[bytes[at] & 15];
    }
    text[2 * size] = '\0';
}

/* False: an odd number of digits, or none. */
static bool read_hex(struct rcpt_text text, unsigned char *bytes)
{
    for (size_t at = 0; at + 1 < text.size; at += 2) {
        int high = rcpt_text_hex_digit((unsigned char)text.at[at]);
        int low = rcpt_text_hex_digit((unsigned char)text.at[at + 1]);
        if (high < 0 || low < 0)
            return false;
        bytes[at / 2] = (unsigned char)(high * 16 + low);
    }
    return text.size > 0 && text.size % 2 == 0;
}

void rcpt_serve_hash(const char *bytes, size_t size, char text[RCPT_SERVE_HASH_TEXT])
{
    unsigned char hash[EVP_MAX_MD_SIZE];
    unsigned hash_size = 0;
    RCPT_ASSERT(EVP_Digest(bytes, size, hash, &hash_size, EVP_sha256(), NULL) == 1);
    write_hex(hash, hash_size, text);
}

/* The words in front keep a signature for another purpose from being one of these. */
static void sign(const char *secret, struct rcpt_text campaign, int64_t expires_s,
                 unsigned char mac[MAC_BYTES])
{
    char *text = NULL;
    size_t size = 0;
    unsigned mac_size = 0;
    FILE *out = rcpt_open_memory(&text, &size);
    fprintf(out, "receiptd link 1\n%" PRId64 "\n", expires_s);
    fwrite(campaign.at, 1, campaign.size, out);
    RCPT_ASSERT(fclose(out) == 0);
    RCPT_ASSERT(HMAC(EVP_sha256(), secret, (int)strlen(secret), (const unsigned char *)text, size,
                     mac, &mac_size) != NULL &&
                mac_size == MAC_BYTES);
    free(text);
}

char *rcpt_serve_link(const char *secret, const char *campaign, int64_t expires_s)
{
    unsigned char mac[MAC_BYTES];
    size_t size = strlen(campaign);
    char *link = rcpt_malloc(2 * size + 2 * MAC_BYTES + 32);
    sign(secret, rcpt_text_of(campaign), expires_s, mac);
    write_hex((const unsigned char *)campaign, size, link);
    int used = sprintf(link + 2 * size, ".%" PRId64 ".", expires_s);
    write_hex(mac, MAC_BYTES, link + 2 * size + used);
    return link;
}

/* The comparison takes the same time whatever the difference is. */
char *rcpt_serve_link_campaign(const char *secret, const char *link, int64_t now_s,
                               int64_t *expires_s)
{
    size_t id_size = strcspn(link, "."), time_size = 0;
    if (link[id_size] == '.')
        time_size = strcspn(link + id_size + 1, ".");
    const char *time_text = link + id_size + 1;
    if (time_size == 0 || time_size > 15 || time_text[time_size] != '.' ||
        !rcpt_text_is_digits((struct rcpt_text){time_text, time_size}))
        return NULL;
    struct rcpt_text given = rcpt_text_of(time_text + time_size + 1);
    unsigned char mac[MAC_BYTES], own[MAC_BYTES];
    char *campaign = rcpt_calloc(id_size / 2 + 1, 1);
    int64_t expires = strtoll(time_text, NULL, 10);
    bool good = given.size == 2 * sizeof(mac) && read_hex(given, mac) &&
                read_hex((struct rcpt_text){link, id_size}, (unsigned char *)campaign);
    if (good) {
        sign(secret, (struct rcpt_text){campaign, id_size / 2}, expires, own);
        good = CRYPTO_memcmp(mac, own, sizeof(mac)) == 0 && expires > now_s;
    }
    if (!good) {
        free(campaign);
        return NULL;
    }
    *expires_s = expires;
    return campaign;
}
