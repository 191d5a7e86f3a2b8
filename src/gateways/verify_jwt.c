/* Signatures by JSON web tokens: Vonage Messages and MessageBird. Only HS256 is accepted, whatever
 * the token's header asks for: a token that names "none" or another algorithm is refused. */
#include "account.h"
#include "crypto.h"
#include "verify_support.h"

#define BASE64URL_OF_SHA256 43u

/* The signature is computed before anything of the token is parsed. */
static bool jwt_matches(const struct rcpt_reading *reading, struct rcpt_text token)
{
    const char *dot = token.size > 0 ? memrchr(token.at, '.', token.size) : NULL;
    if (dot == NULL)
        return false;
    struct rcpt_text text = {token.at, (size_t)(dot - token.at)};
    struct rcpt_text given = rcpt_text_part(token, text.size + 1, token.size);
    bool same = false;
    if (given.size != BASE64URL_OF_SHA256)
        return false;
    for (size_t index = 0; index < reading->account->secret_count; index++) {
        struct rcpt_text mac =
            RCPT_HMAC(RCPT_SHA256, reading->account->secrets[index], reading->arena, text);
        same |= rcpt_same(rcpt_base64url(mac, reading->arena), given);
    }
    return same;
}

/* NULL: not base64url, or no JSON. */
static const struct rcpt_node *jwt_part(const struct rcpt_reading *reading, struct rcpt_text part)
{
    const char *reason;
    struct rcpt_text json = rcpt_base64url_decode(part, reading->arena);
    return json.at != NULL ? rcpt_document_parse(json, reading->arena, &reason) : NULL;
}

/* The claims of a token that some secret has signed; NULL after setting the verdict. Nothing is
 * parsed before. */
static const struct rcpt_node *jwt_claims(struct rcpt_reading *reading, struct rcpt_text token)
{
    struct rcpt_text head = rcpt_text_part(token, 0, rcpt_text_find(token, "."));
    struct rcpt_text rest = rcpt_text_part(token, head.size + 1, token.size);
    struct rcpt_text body = rcpt_text_part(rest, 0, rcpt_text_find(rest, "."));
    const struct rcpt_node *header = NULL, *claims = NULL;
    if (jwt_matches(reading, token)) {
        header = jwt_part(reading, head);
        claims = jwt_part(reading, body);
    }
    rcpt_verdict_of(reading,
                    claims != NULL && rcpt_text_is(rcpt_node_text_of(header, "alg"), "HS256"));
    return reading->result->verdict == RCPT_GATEWAY_VERIFIED ? claims : NULL;
}

/* Claims hold hashes in hex. */
static bool jwt_hash_is(const struct rcpt_reading *reading, const struct rcpt_node *claims,
                        const char *name, struct rcpt_text text)
{
    struct rcpt_text hash = RCPT_HASH(RCPT_SHA256, reading->arena, text);
    return rcpt_same(rcpt_hex(hash, reading->arena), rcpt_node_text_of(claims, name));
}

/* The whole seconds of a date in the claims, which may have a fraction; 0: none. */
static int64_t jwt_time(const struct rcpt_node *claims, const char *name)
{
    struct rcpt_text text = rcpt_node_text_of(claims, name);
    return rcpt_seconds_of(rcpt_text_part(text, 0, rcpt_text_find(text, ".")));
}

/* A gateway that repeats a request signs it again, so that `exp` and `nbf` are held as they stand.
 * The id of the token is the replay key. */
static void jwt_times(struct rcpt_reading *reading, const struct rcpt_node *claims)
{
    int64_t now = reading->source.request->received_us;
    int64_t expires = jwt_time(claims, "exp"), begins = jwt_time(claims, "nbf");
    int64_t issued = jwt_time(claims, "iat");
    rcpt_verdict_once(reading, rcpt_node_text_of(claims, "jti"));
    if (issued > 0 || begins > 0)
        rcpt_verdict_age(reading, issued > 0 ? issued : begins);
    if (reading->account->max_age_us == 0 || reading->result->verdict != RCPT_GATEWAY_VERIFIED)
        return;
    if (rcpt_node_get(claims, "exp") != NULL && now - expires > RCPT_CLOCKS_DIFFER_US)
        rcpt_verdict(reading, RCPT_GATEWAY_STALE, "the token has expired");
    else if (begins - now > RCPT_CLOCKS_DIFFER_US)
        rcpt_verdict(reading, RCPT_GATEWAY_STALE, "the token is not valid yet");
}

/* The token signs the hash of the body, and nothing of the URL. */
void rcpt_verify_vonage_messages(struct rcpt_reading *reading)
{
    struct rcpt_text token = rcpt_reading_header(reading, "authorization");
    if (!rcpt_text_begins(token, "Bearer ")) {
        rcpt_verdict(reading, token.size == 0 ? RCPT_GATEWAY_MISSING : RCPT_GATEWAY_BAD,
                     "no bearer token");
        return;
    }
    const struct rcpt_node *claims = jwt_claims(reading, rcpt_text_part(token, 7, token.size));
    if (claims == NULL)
        return;
    if (!jwt_hash_is(reading, claims, "payload_hash", rcpt_body_of(reading)))
        rcpt_verdict(reading, RCPT_GATEWAY_BAD, "payload_hash is not that of the body");
    else
        jwt_times(reading, claims);
}

/* The token signs hashes of URL and body; without a body there is no second hash. */
void rcpt_verify_messagebird(struct rcpt_reading *reading)
{
    struct rcpt_text token = rcpt_reading_header(reading, "messagebird-signature-jwt");
    struct rcpt_text body = rcpt_body_of(reading), urls[RCPT_MAX_URLS];
    unsigned url_count = rcpt_signed_urls(reading, false, urls);
    bool same_url = false;
    if (token.size == 0) {
        rcpt_verdict(reading, RCPT_GATEWAY_MISSING, "no header MessageBird-Signature-JWT");
        return;
    }
    const struct rcpt_node *claims = jwt_claims(reading, token);
    if (claims == NULL)
        return;
    for (unsigned url = 0; url < url_count; url++)
        same_url |= jwt_hash_is(reading, claims, "url_hash", urls[url]);
    if (!same_url)
        rcpt_verdict(reading, RCPT_GATEWAY_BAD, "url_hash is not that of public_url");
    else if (body.size > 0 && !jwt_hash_is(reading, claims, "payload_hash", body))
        rcpt_verdict(reading, RCPT_GATEWAY_BAD, "payload_hash is not that of the body");
    else
        jwt_times(reading, claims);
}
