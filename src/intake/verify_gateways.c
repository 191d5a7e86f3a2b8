/* Signatures that are some gateway's own. The recipes are the gateways'; see docs/gateways.md. */
#include "account.h"
#include "crypto.h"
#include "verify_support.h"

static struct rcpt_text value_of(struct rcpt_text text)
{
    return text.at != NULL ? text : RCPT_TEXT("");
}

/* All names and values of a form in a row, each name behind `before` and each value behind
 * `between`. */
static struct rcpt_text join_form(const struct rcpt_form *form, struct rcpt_text before,
                                  struct rcpt_text between, struct rcpt_arena *arena)
{
    struct rcpt_text *texts =
        rcpt_arena_alloc(arena, (form->count * 4 + 1) * sizeof(struct rcpt_text));
    size_t used = 0;
    for (size_t index = 0; index < form->count; index++) {
        texts[used++] = before;
        texts[used++] = value_of(form->fields[index].name);
        texts[used++] = between;
        texts[used++] = value_of(form->fields[index].value);
    }
    texts[used] = (struct rcpt_text){NULL, 0};
    return rcpt_text_join(arena, texts);
}

/* ---- Twilio: base64 HMAC-SHA1 of URL and sorted form, or of a URL that has the body's hash ----
 */

static bool twilio_matches(const struct rcpt_reading *reading, struct rcpt_text given,
                           struct rcpt_text parameters)
{
    const struct rcpt_intake_account *account = reading->account;
    struct rcpt_text urls[RCPT_MAX_URLS];
    unsigned url_count = rcpt_signed_urls(reading, false, urls);
    bool same = false;
    for (unsigned url = 0; url < url_count; url++)
        for (size_t index = 0; index < account->secret_count; index++) {
            struct rcpt_text mac = RCPT_HMAC(RCPT_SHA1, account->secrets[index], reading->arena,
                                             urls[url], parameters);
            same |= rcpt_same(rcpt_base64(mac, reading->arena), given);
        }
    return same;
}

void rcpt_verify_twilio(struct rcpt_reading *reading)
{
    struct rcpt_arena *arena = reading->arena;
    struct rcpt_text given = rcpt_reading_header(reading, "x-twilio-signature");
    struct rcpt_text hash = rcpt_form_get(&reading->source.query, RCPT_TEXT("bodySHA256"));
    struct rcpt_text parameters = RCPT_TEXT("");
    bool body_is_whole = true;
    if (given.size == 0) {
        rcpt_verdict(reading, RCPT_INTAKE_MISSING, "no header X-Twilio-Signature");
        return;
    }
    if (hash.at != NULL) {
        struct rcpt_text body = RCPT_HASH(RCPT_SHA256, arena, rcpt_body_of(reading));
        body_is_whole = rcpt_same(rcpt_hex(body, arena), hash);
    } else {
        struct rcpt_form form = rcpt_sorted(&reading->source.form, true, arena);
        parameters = join_form(&form, RCPT_TEXT(""), RCPT_TEXT(""), arena);
    }
    /* A body that is JSON is covered by its hash only. */
    if (hash.at == NULL && rcpt_document_looks_like(rcpt_body_of(reading)))
        body_is_whole = false;
    rcpt_verdict_of(reading, twilio_matches(reading, given, parameters) && body_is_whole);
}

/* ---- Vonage SMS: hex digest of the sorted parameters, in one of five ways ---- */

static struct rcpt_form json_members(const struct rcpt_node *object, struct rcpt_arena *arena)
{
    struct rcpt_parameter *fields =
        rcpt_arena_alloc(arena, RCPT_FORM_MAX_FIELDS * sizeof(struct rcpt_parameter));
    size_t count = 0;
    if (object == NULL || object->type != RCPT_NODE_OBJECT)
        return (struct rcpt_form){NULL, 0};
    for (const struct rcpt_node *node = object->first; node != NULL && count < RCPT_FORM_MAX_FIELDS;
         node = node->next)
        fields[count++] = (struct rcpt_parameter){node->key, value_of(node->text)};
    return (struct rcpt_form){fields, count};
}

static struct rcpt_form vonage_parameters(const struct rcpt_reading *reading)
{
    const char *reason;
    struct rcpt_text body = rcpt_body_of(reading);
    if (rcpt_document_looks_like(body))
        return json_members(rcpt_document_parse(body, reading->arena, &reason), reading->arena);
    return reading->source.form.count > 0 ? reading->source.form : reading->source.query;
}

/* Without sig, and with _ for what would break a query apart. */
static struct rcpt_form vonage_signed(const struct rcpt_form *form, struct rcpt_arena *arena)
{
    struct rcpt_parameter *fields =
        rcpt_arena_alloc(arena, (form->count + 1) * sizeof(struct rcpt_parameter));
    size_t count = 0;
    for (size_t index = 0; index < form->count; index++) {
        if (rcpt_text_is(form->fields[index].name, "sig"))
            continue;
        char *value = rcpt_text_terminated(arena, form->fields[index].value);
        size_t size = form->fields[index].value.size;
        for (size_t at = 0; at < size; at++)
            value[at] = (char)(value[at] == '&' || value[at] == '=' ? '_' : value[at]);
        fields[count++] = (struct rcpt_parameter){form->fields[index].name, {value, size}};
    }
    return (struct rcpt_form){fields, count};
}

/* The gateway writes small or capital digits, never both. */
static bool same_hex(struct rcpt_text digest, struct rcpt_text given, struct rcpt_arena *arena)
{
    bool same = rcpt_same(rcpt_hex(digest, arena), given);
    same |= rcpt_same(rcpt_hex_upper(digest, arena), given);
    return same;
}

static bool vonage_matches(const struct rcpt_reading *reading, struct rcpt_text given,
                           struct rcpt_text text)
{
    static const enum rcpt_digest digests[] = {RCPT_MD5, RCPT_SHA1, RCPT_SHA256, RCPT_SHA512};
    const struct rcpt_intake_account *account = reading->account;
    bool same = false;
    for (size_t index = 0; index < account->secret_count; index++) {
        struct rcpt_text secret = account->secrets[index];
        for (size_t digest = 0; digest < RCPT_COUNT_OF(digests); digest++)
            same |= same_hex(RCPT_HMAC(digests[digest], secret, reading->arena, text), given,
                             reading->arena);
        same |= same_hex(RCPT_HASH(RCPT_MD5, reading->arena, text, secret), given, reading->arena);
    }
    return same;
}

void rcpt_verify_vonage_sms(struct rcpt_reading *reading)
{
    struct rcpt_form form = vonage_parameters(reading);
    struct rcpt_text given = rcpt_form_get(&form, RCPT_TEXT("sig"));
    if (given.size == 0) {
        rcpt_verdict(reading, RCPT_INTAKE_MISSING, "no parameter sig");
        return;
    }
    struct rcpt_form signed_form = vonage_signed(&form, reading->arena);
    signed_form = rcpt_sorted(&signed_form, false, reading->arena);
    struct rcpt_text text = join_form(&signed_form, RCPT_TEXT("&"), RCPT_TEXT("="), reading->arena);
    rcpt_verdict_of(reading, vonage_matches(reading, given, text));
    rcpt_verdict_once(reading, rcpt_form_get(&form, RCPT_TEXT("nonce")));
    rcpt_verdict_age(reading, rcpt_seconds_of(rcpt_form_get(&form, RCPT_TEXT("timestamp"))));
}

/* ---- JSON web tokens: HS256 and nothing else ---- */

static bool jwt_matches(const struct rcpt_reading *reading, struct rcpt_text token)
{
    const char *dot = token.size > 0 ? memrchr(token.at, '.', token.size) : NULL;
    if (dot == NULL)
        return false;
    struct rcpt_text text = {token.at, (size_t)(dot - token.at)};
    struct rcpt_text given = rcpt_text_part(token, text.size + 1, token.size);
    bool same = false;
    for (size_t index = 0; index < reading->account->secret_count; index++) {
        struct rcpt_text mac =
            RCPT_HMAC(RCPT_SHA256, reading->account->secrets[index], reading->arena, text);
        same |= rcpt_same(rcpt_base64url(mac, reading->arena), given);
    }
    return same;
}

static const struct rcpt_node *jwt_part(const struct rcpt_reading *reading, struct rcpt_text part)
{
    const char *reason;
    struct rcpt_text json = rcpt_base64url_decode(part, reading->arena);
    return json.at != NULL ? rcpt_document_parse(json, reading->arena, &reason) : NULL;
}

/* The claims of a token that some secret has signed; NULL after setting the verdict. */
static const struct rcpt_node *jwt_claims(struct rcpt_reading *reading, struct rcpt_text token)
{
    struct rcpt_text head = rcpt_text_part(token, 0, rcpt_text_find(token, "."));
    struct rcpt_text rest = rcpt_text_part(token, head.size + 1, token.size);
    struct rcpt_text body = rcpt_text_part(rest, 0, rcpt_text_find(rest, "."));
    const struct rcpt_node *header = jwt_part(reading, head), *claims = jwt_part(reading, body);
    bool good = rcpt_text_is(rcpt_node_text_of(header, "alg"), "HS256") && claims != NULL;
    rcpt_verdict_of(reading, jwt_matches(reading, token) && good);
    return reading->result->verdict == RCPT_INTAKE_VERIFIED ? claims : NULL;
}

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

/* A gateway that repeats a request signs it anew, so that `exp` and `nbf` hold as they stand. */
static void jwt_times(struct rcpt_reading *reading, const struct rcpt_node *claims)
{
    int64_t now = reading->source.request->received_us;
    int64_t expires = jwt_time(claims, "exp"), begins = jwt_time(claims, "nbf");
    int64_t issued = jwt_time(claims, "iat");
    rcpt_verdict_once(reading, rcpt_node_text_of(claims, "jti"));
    if (issued > 0 || begins > 0)
        rcpt_verdict_age(reading, issued > 0 ? issued : begins);
    if (reading->account->max_age_us == 0 || reading->result->verdict != RCPT_INTAKE_VERIFIED)
        return;
    if (rcpt_node_get(claims, "exp") != NULL && now - expires > RCPT_CLOCKS_DIFFER_US)
        rcpt_verdict(reading, RCPT_INTAKE_STALE, "the token has expired");
    else if (begins - now > RCPT_CLOCKS_DIFFER_US)
        rcpt_verdict(reading, RCPT_INTAKE_STALE, "the token is not valid yet");
}

void rcpt_verify_vonage_messages(struct rcpt_reading *reading)
{
    struct rcpt_text token = rcpt_reading_header(reading, "authorization");
    if (!rcpt_text_begins(token, "Bearer ")) {
        rcpt_verdict(reading, token.size == 0 ? RCPT_INTAKE_MISSING : RCPT_INTAKE_BAD,
                     "no bearer token");
        return;
    }
    const struct rcpt_node *claims = jwt_claims(reading, rcpt_text_part(token, 7, token.size));
    if (claims == NULL)
        return;
    if (!jwt_hash_is(reading, claims, "payload_hash", rcpt_body_of(reading)))
        rcpt_verdict(reading, RCPT_INTAKE_BAD, "payload_hash is not that of the body");
    else
        jwt_times(reading, claims);
}

void rcpt_verify_messagebird(struct rcpt_reading *reading)
{
    struct rcpt_text token = rcpt_reading_header(reading, "messagebird-signature-jwt");
    struct rcpt_text body = rcpt_body_of(reading), urls[RCPT_MAX_URLS];
    unsigned url_count = rcpt_signed_urls(reading, false, urls);
    bool same_url = false;
    if (token.size == 0) {
        rcpt_verdict(reading, RCPT_INTAKE_MISSING, "no header MessageBird-Signature-JWT");
        return;
    }
    const struct rcpt_node *claims = jwt_claims(reading, token);
    if (claims == NULL)
        return;
    for (unsigned url = 0; url < url_count; url++)
        same_url |= jwt_hash_is(reading, claims, "url_hash", urls[url]);
    if (!same_url)
        rcpt_verdict(reading, RCPT_INTAKE_BAD, "url_hash is not that of public_url");
    else if (body.size > 0 && !jwt_hash_is(reading, claims, "payload_hash", body))
        rcpt_verdict(reading, RCPT_INTAKE_BAD, "payload_hash is not that of the body");
    else
        jwt_times(reading, claims);
}

/* ---- Plivo: V3 covers the parameters, V2 only the path ---- */

static bool plivo_list_matches(const struct rcpt_reading *reading, struct rcpt_text given,
                               struct rcpt_text text)
{
    const struct rcpt_text texts[] = {text, {NULL, 0}};
    bool same = false;
    while (given.size > 0) {
        struct rcpt_text one = rcpt_text_part(given, 0, rcpt_text_find(given, ","));
        given = rcpt_text_part(given, one.size + 1, given.size);
        same |= rcpt_hmac_matches(reading, rcpt_text_trim(one), true, texts);
    }
    return same;
}

/* path?sorted query.sorted form.nonce, where the dot before the form stands behind a query only,
 * and the ? also without one when there is a form. */
static struct rcpt_text plivo_v3_text(const struct rcpt_reading *reading, struct rcpt_text path,
                                      struct rcpt_text nonce)
{
    struct rcpt_arena *arena = reading->arena;
    struct rcpt_form query = rcpt_sorted(&reading->source.query, false, arena);
    struct rcpt_form form = rcpt_sorted(&reading->source.form, false, arena);
    struct rcpt_text pairs = join_form(&query, RCPT_TEXT("&"), RCPT_TEXT("="), arena);
    pairs = rcpt_text_part(pairs, pairs.size > 0, pairs.size);
    bool both = query.count > 0 && form.count > 0;
    return RCPT_TEXT_JOIN(
        arena, path, query.count + form.count > 0 ? RCPT_TEXT("?") : RCPT_TEXT(""), pairs,
        both ? RCPT_TEXT(".") : RCPT_TEXT(""),
        join_form(&form, RCPT_TEXT(""), RCPT_TEXT(""), arena), RCPT_TEXT("."), nonce);
}

static bool plivo_matches(const struct rcpt_reading *reading, bool v3, struct rcpt_text given,
                          struct rcpt_text nonce)
{
    struct rcpt_text urls[RCPT_MAX_URLS];
    unsigned url_count = rcpt_signed_urls(reading, true, urls);
    bool same = false;
    for (unsigned url = 0; url < url_count; url++)
        same |= plivo_list_matches(reading, given,
                                   v3 ? plivo_v3_text(reading, urls[url], nonce)
                                      : RCPT_TEXT_JOIN(reading->arena, urls[url], nonce));
    return same;
}

void rcpt_verify_plivo(struct rcpt_reading *reading)
{
    static const struct {
        const char *signature, *nonce;
        bool v3;
    } headers[] = {{"x-plivo-signature-v3", "x-plivo-signature-v3-nonce", true},
                   {"x-plivo-signature-ma-v3", "x-plivo-signature-v3-nonce", true},
                   {"x-plivo-signature-v2", "x-plivo-signature-v2-nonce", false},
                   {"x-plivo-signature-ma-v2", "x-plivo-signature-v2-nonce", false}};
    bool given = false, same = false;
    struct rcpt_text nonce = {NULL, 0};
    for (size_t index = 0; index < RCPT_COUNT_OF(headers) && !same; index++) {
        struct rcpt_text signature = rcpt_reading_header(reading, headers[index].signature);
        nonce = rcpt_reading_header(reading, headers[index].nonce);
        if (signature.size == 0 || nonce.size == 0)
            continue;
        given = true;
        same = plivo_matches(reading, headers[index].v3, signature, nonce);
    }
    if (!given) {
        rcpt_verdict(reading, RCPT_INTAKE_MISSING, "no header X-Plivo-Signature-V3 or -V2");
        return;
    }
    rcpt_verdict_of(reading, same);
    rcpt_verdict_once(reading, nonce);
}

/* ---- SendGrid: ECDSA over timestamp and raw body ---- */

void rcpt_verify_sendgrid(struct rcpt_reading *reading)
{
    struct rcpt_text given = rcpt_reading_header(reading, "x-twilio-email-event-webhook-signature");
    struct rcpt_text time = rcpt_reading_header(reading, "x-twilio-email-event-webhook-timestamp");
    if (given.size == 0 || time.size == 0) {
        rcpt_verdict(reading, RCPT_INTAKE_MISSING,
                     "no header X-Twilio-Email-Event-Webhook-Signature or -Timestamp");
        return;
    }
    struct rcpt_text signature = rcpt_base64_decode(given, reading->arena);
    const struct rcpt_text texts[] = {time, rcpt_body_of(reading), {NULL, 0}};
    bool same = false;
    for (size_t index = 0; index < reading->account->secret_count && signature.at != NULL; index++)
        same |=
            rcpt_ecdsa_verify(reading->account->secrets[index], signature, texts, reading->arena);
    rcpt_verdict_of(reading, same);
    rcpt_verdict_age(reading, rcpt_seconds_of(time));
}

/* ---- Mailgun: hex HMAC-SHA256 of timestamp and token, all three inside the body ---- */

static void mailgun_decide(struct rcpt_reading *reading, struct rcpt_text time,
                           struct rcpt_text token, struct rcpt_text given, struct rcpt_text parent)
{
    const struct rcpt_text texts[] = {time, token, {NULL, 0}};
    if (time.size == 0 || token.size == 0 || given.size == 0) {
        rcpt_verdict(reading, RCPT_INTAKE_MISSING, "the body holds no signature");
        return;
    }
    bool same = rcpt_hmac_matches(reading, given, false, texts);
    same |= rcpt_hmac_matches(reading, parent, false, texts);
    rcpt_verdict_of(reading, same);
    rcpt_verdict_once(reading, token);
    rcpt_verdict_age(reading, rcpt_seconds_of(time));
}

void rcpt_verify_mailgun(struct rcpt_reading *reading)
{
    const char *reason;
    struct rcpt_text body = rcpt_body_of(reading), none = {NULL, 0};
    if (!rcpt_document_looks_like(body)) {
        mailgun_decide(reading, rcpt_form_get(&reading->source.form, RCPT_TEXT("timestamp")),
                       rcpt_form_get(&reading->source.form, RCPT_TEXT("token")),
                       rcpt_form_get(&reading->source.form, RCPT_TEXT("signature")), none);
        return;
    }
    const struct rcpt_node *root = rcpt_document_parse(body, reading->arena, &reason);
    const struct rcpt_node *signature = rcpt_node_get(root, "signature");
    const struct rcpt_node *parent = rcpt_node_get(signature, "parent-signature");
    mailgun_decide(reading, rcpt_node_text_of(signature, "timestamp"),
                   rcpt_node_text_of(signature, "token"), rcpt_node_text_of(signature, "signature"),
                   rcpt_node_text(parent));
}

/* ---- signatures of the raw body in a header ---- */

static void verify_header_of_body(struct rcpt_reading *reading, const char *header, bool base64,
                                  const char *prefix, const char *missing)
{
    struct rcpt_text given = rcpt_reading_header(reading, header);
    const struct rcpt_text texts[] = {rcpt_body_of(reading), {NULL, 0}};
    if (given.size == 0) {
        rcpt_verdict(reading, RCPT_INTAKE_MISSING, missing);
        return;
    }
    bool same = rcpt_text_begins(given, prefix);
    given = rcpt_text_part(given, strlen(prefix), given.size);
    rcpt_verdict_of(reading, rcpt_hmac_matches(reading, given, base64, texts) && same);
}

void rcpt_verify_meta(struct rcpt_reading *reading)
{
    verify_header_of_body(reading, "x-hub-signature-256", false,
                          "sha256=", "no header X-Hub-Signature-256");
}

void rcpt_verify_viber(struct rcpt_reading *reading)
{
    verify_header_of_body(reading, "x-viber-content-signature", false, "",
                          "no header X-Viber-Content-Signature");
}

void rcpt_verify_line(struct rcpt_reading *reading)
{
    verify_header_of_body(reading, "x-line-signature", true, "", "no header x-line-signature");
}
