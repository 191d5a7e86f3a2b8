/* Verification: the schemes that many gateways share (secrets, HMAC of the body, Standard Webhooks,
 * Telnyx, URLs that we sign), and the decision that follows from a verdict. Schemes of one gateway
 * are in verify_gateways.c, verify_jwt.c and verify_sns.c.
 *
 * A verifier sets a verdict; rcpt_verify() decides whether the request goes on, and hides the parts
 * that the signature does not cover. Every secret is compared, also after one
 * matched, so that the time does not reveal which. */
#include "account.h"
#include "crypto.h"
#include "verify_support.h"

/* A replay key belongs to a verified request only. */
void rcpt_verdict(struct rcpt_reading *reading, enum rcpt_gateway_verdict verdict,
                  const char *reason)
{
    reading->result->verdict = verdict;
    reading->result->verdict_reason = reason;
    if (verdict != RCPT_GATEWAY_VERIFIED)
        reading->result->replay_key = (struct rcpt_text){NULL, 0};
}

void rcpt_verdict_of(struct rcpt_reading *reading, bool same)
{
    rcpt_verdict(reading, same ? RCPT_GATEWAY_VERIFIED : RCPT_GATEWAY_BAD,
                 same ? "signature" : "the signature is not that of any secret");
}

/* max_age 0 means no limit; a time in the future is refused beyond what clocks may differ. */
void rcpt_verdict_age(struct rcpt_reading *reading, int64_t signed_us)
{
    int64_t limit = reading->account->max_age_us;
    int64_t age = reading->source.request->received_us - signed_us;
    if (reading->result->verdict != RCPT_GATEWAY_VERIFIED || limit == 0)
        return;
    if (age > limit)
        rcpt_verdict(reading, RCPT_GATEWAY_STALE, "the signature is older than max_age");
    else if (age < -RCPT_CLOCKS_DIFFER_US)
        rcpt_verdict(reading, RCPT_GATEWAY_STALE, "the signature is from the future");
}

void rcpt_verdict_once(struct rcpt_reading *reading, struct rcpt_text key)
{
    if (reading->result->verdict == RCPT_GATEWAY_VERIFIED)
        reading->result->replay_key = key;
}

/* ---- shared secrets ---- */

/* All secrets are compared. */
static bool is_secret(const struct rcpt_reading *reading, struct rcpt_text given)
{
    bool same = false;
    for (size_t index = 0; index < reading->account->secret_count; index++)
        same |= rcpt_same(reading->account->secrets[index], given);
    return same;
}

/* `scheme` includes its blank. */
static struct rcpt_text authorization(const struct rcpt_reading *reading, const char *scheme)
{
    struct rcpt_text value = rcpt_reading_header(reading, "authorization");
    if (!rcpt_text_begins_nocase(value, scheme))
        return (struct rcpt_text){NULL, 0};
    return rcpt_text_trim(rcpt_text_part(value, strlen(scheme), value.size));
}

/* The verdict of schemes that compare a secret. */
static void decide(struct rcpt_reading *reading, bool given, bool same, const char *missing)
{
    if (!given)
        rcpt_verdict(reading, RCPT_GATEWAY_MISSING, missing);
    else
        rcpt_verdict(reading, same ? RCPT_GATEWAY_VERIFIED : RCPT_GATEWAY_BAD,
                     same ? "shared secret" : "the credentials are not those of any secret");
}

/* A secret may be "user:password" or the password alone. */
static bool basic_matches(const struct rcpt_reading *reading, struct rcpt_text given)
{
    struct rcpt_text pair = rcpt_base64_decode(given, reading->arena);
    struct rcpt_text password = rcpt_text_part(pair, rcpt_text_find(pair, ":") + 1, pair.size);
    bool same = is_secret(reading, pair);
    same |= is_secret(reading, password);
    return pair.at != NULL && same;
}

/* The challenge makes browsers and some gateways send credentials. */
void rcpt_verify_basic(struct rcpt_reading *reading)
{
    struct rcpt_text given = authorization(reading, "Basic ");
    reading->result->answer.www_authenticate = "Basic realm=\"receiptd\"";
    decide(reading, given.size > 0, basic_matches(reading, given), "no basic credentials");
}

void rcpt_verify_bearer(struct rcpt_reading *reading)
{
    struct rcpt_text given = authorization(reading, "Bearer ");
    reading->result->answer.www_authenticate = "Bearer";
    decide(reading, given.size > 0, is_secret(reading, given), "no bearer token");
}

void rcpt_verify_header(struct rcpt_reading *reading)
{
    struct rcpt_text given = rcpt_reading_header(reading, reading->account->auth_name);
    decide(reading, given.size > 0, is_secret(reading, given), "the header is not there");
}

void rcpt_verify_query(struct rcpt_reading *reading)
{
    struct rcpt_text given =
        rcpt_form_get(&reading->source.query, rcpt_text_of(reading->account->auth_name));
    decide(reading, given.size > 0, is_secret(reading, given), "the parameter is not there");
}

/* For gateways that keep only the path of a URL. */
static struct rcpt_text last_segment(const struct rcpt_reading *reading)
{
    struct rcpt_text tail = reading->source.request->tail;
    const char *slash = tail.size > 0 ? memrchr(tail.at, '/', tail.size) : NULL;
    if (slash == NULL)
        return (struct rcpt_text){NULL, 0};
    return rcpt_form_decode_segment(rcpt_text_part(tail, (size_t)(slash - tail.at) + 1, tail.size),
                                    reading->arena);
}

/* Every place where a gateway that signs nothing lets its customers put a secret. */
void rcpt_verify_shared(struct rcpt_reading *reading)
{
    struct rcpt_text basic = authorization(reading, "Basic ");
    struct rcpt_text bearer = authorization(reading, "Bearer ");
    struct rcpt_text token = rcpt_form_get(&reading->source.query, RCPT_TEXT("token"));
    struct rcpt_text segment = last_segment(reading);
    struct rcpt_text key = rcpt_reading_header(reading, "x-amz-firehose-access-key");
    bool given = basic.size + bearer.size + token.size + segment.size + key.size > 0;
    bool same = basic_matches(reading, basic);
    same |= is_secret(reading, bearer);
    same |= is_secret(reading, token);
    same |= is_secret(reading, segment);
    same |= is_secret(reading, key);
    decide(reading, given, same, "no credentials, token or secret segment");
}

/* rcpt_verify_allows() has checked the address already. */
void rcpt_verify_address(struct rcpt_reading *reading)
{
    rcpt_verdict(reading, RCPT_GATEWAY_VERIFIED, "address");
}

/* ---- HMAC ---- */

/* A text of another length is no HMAC: nothing is computed for it. */
bool rcpt_hmac_matches(const struct rcpt_reading *reading, struct rcpt_text given, bool base64,
                       const struct rcpt_text *texts)
{
    bool same = false;
    if (given.size != (base64 ? RCPT_BASE64_OF_SHA256 : RCPT_HEX_OF_SHA256))
        return false;
    for (size_t index = 0; index < reading->account->secret_count; index++) {
        struct rcpt_text mac =
            rcpt_hmac(RCPT_SHA256, reading->account->secrets[index], texts, reading->arena);
        mac = base64 ? rcpt_base64(mac, reading->arena) : rcpt_hex(mac, reading->arena);
        same |= rcpt_same(mac, given);
    }
    return same;
}

struct rcpt_text rcpt_body_of(const struct rcpt_reading *reading)
{
    struct rcpt_text body = reading->source.request->body;
    return body.at != NULL ? body : RCPT_TEXT("");
}

/* Some gateways write "sha256=" in front. */
static void verify_body(struct rcpt_reading *reading, bool base64)
{
    struct rcpt_text given = rcpt_reading_header(reading, reading->account->auth_name);
    if (given.size == 0) {
        rcpt_verdict(reading, RCPT_GATEWAY_MISSING, "the header is not there");
        return;
    }
    if (rcpt_text_begins(given, "sha256="))
        given = rcpt_text_part(given, 7, given.size);
    const struct rcpt_text body[] = {rcpt_body_of(reading), {NULL, 0}};
    rcpt_verdict_of(reading, rcpt_hmac_matches(reading, given, base64, body));
}

void rcpt_verify_hmac_hex(struct rcpt_reading *reading)
{
    verify_body(reading, false);
}

void rcpt_verify_hmac_base64(struct rcpt_reading *reading)
{
    verify_body(reading, true);
}

/* ---- our own signature of our id in the callback's URL, for gateways that sign nothing ---- */

/* `exp` is signed with the id: it can be believed. */
static void url_expiry(struct rcpt_reading *reading, struct rcpt_text expires)
{
    int64_t at = rcpt_seconds_of(expires);
    if (expires.size > 0 && at == 0)
        rcpt_verdict(reading, RCPT_GATEWAY_BAD, "exp is no time");
    else if (expires.size > 0 && reading->source.request->received_us > at)
        rcpt_verdict(reading, RCPT_GATEWAY_STALE, "the URL has expired");
}

/* The URL signs its id. If it has campaign_id or exp, it signs id, line feed, campaign_id, line
 * feed and exp. A URL of the former recipe signs only its id beside a campaign, which then does not
 * count. No id has a line feed, so neither text is taken for the other. The verdict covers the
 * message's id: only `signed_id` counts from here on. */
void rcpt_verify_url_hmac(struct rcpt_reading *reading)
{
    const struct rcpt_form *query = &reading->source.query;
    struct rcpt_text given = rcpt_form_get(query, RCPT_TEXT("sig"));
    struct rcpt_text id = rcpt_form_get(query, rcpt_text_of(reading->account->auth_name));
    struct rcpt_text campaign = rcpt_form_get(query, RCPT_TEXT("campaign_id"));
    struct rcpt_text expires = rcpt_form_get(query, RCPT_TEXT("exp"));
    const struct rcpt_text line = RCPT_TEXT("\n"), end = {NULL, 0}, alone[] = {id, end};
    if (given.size == 0 || rcpt_text_trim(id).size == 0) {
        rcpt_verdict(reading, RCPT_GATEWAY_MISSING, "the URL has no sig, or no id that it signs");
        return;
    }
    if (rcpt_text_find(id, "\n") < id.size || rcpt_text_find(campaign, "\n") < campaign.size) {
        rcpt_verdict(reading, RCPT_GATEWAY_BAD, "the signed id or campaign has a line feed");
        return;
    }
    const struct rcpt_text all[] = {
        id, line, rcpt_text_or_empty(campaign), line, rcpt_text_or_empty(expires), end};
    reading->signed_id = rcpt_text_trim(id);
    if (campaign.size + expires.size > 0 && rcpt_hmac_matches(reading, given, false, all)) {
        reading->signed_campaign = rcpt_text_trim(campaign);
        rcpt_verdict_of(reading, true);
        url_expiry(reading, expires);
        return;
    }
    rcpt_verdict_of(reading, rcpt_hmac_matches(reading, given, false, alone));
}

/* ---- Standard Webhooks, Svix ---- */

/* Svix used its own names before the standard existed. */
static struct rcpt_text either_header(const struct rcpt_reading *reading, const char *one,
                                      const char *other)
{
    struct rcpt_text value = rcpt_reading_header(reading, one);
    return value.size > 0 ? value : rcpt_reading_header(reading, other);
}

/* The list is cut at RCPT_MAX_SIGNATURES entries, so that a request cannot ask for endless
 * comparisons. */
size_t rcpt_split_signatures(struct rcpt_text list, const char *separator, const char *prefix,
                             struct rcpt_text found[RCPT_MAX_SIGNATURES])
{
    size_t count = 0, skip = strlen(prefix);
    for (size_t entry = 0; entry < RCPT_MAX_SIGNATURES && list.size > 0; entry++) {
        struct rcpt_text one = rcpt_text_part(list, 0, rcpt_text_find(list, separator));
        list = rcpt_text_part(list, one.size + 1, list.size);
        one = rcpt_text_trim(one);
        if (one.size == skip + RCPT_BASE64_OF_SHA256 && rcpt_text_begins(one, prefix))
            found[count++] = rcpt_text_part(one, skip, one.size);
    }
    return count;
}

/* Secrets are base64 behind "whsec_"; one that is not decodable matches nothing. */
static bool standard_matches(const struct rcpt_reading *reading, struct rcpt_text list,
                             const struct rcpt_text *texts)
{
    struct rcpt_text given[RCPT_MAX_SIGNATURES];
    size_t count = rcpt_split_signatures(list, " ", "v1,", given);
    bool same = false;
    for (size_t index = 0; count > 0 && index < reading->account->secret_count; index++) {
        struct rcpt_text key = reading->account->secrets[index];
        if (rcpt_text_begins(key, "whsec_"))
            key = rcpt_text_part(key, 6, key.size);
        key = rcpt_base64_decode(key, reading->arena);
        if (key.at == NULL)
            continue;
        struct rcpt_text mac =
            rcpt_base64(rcpt_hmac(RCPT_SHA256, key, texts, reading->arena), reading->arena);
        for (size_t entry = 0; entry < count; entry++)
            same |= rcpt_same(mac, given[entry]);
    }
    return same;
}

/* A point in the id, or a time that is no number, would let the border to the body be moved. */
void rcpt_verify_standard(struct rcpt_reading *reading)
{
    struct rcpt_text id = either_header(reading, "webhook-id", "svix-id");
    struct rcpt_text time = either_header(reading, "webhook-timestamp", "svix-timestamp");
    struct rcpt_text given = either_header(reading, "webhook-signature", "svix-signature");
    const struct rcpt_text texts[] = {
        id, RCPT_TEXT("."), time, RCPT_TEXT("."), rcpt_body_of(reading), {NULL, 0}};
    if (id.size == 0 || time.size == 0 || given.size == 0) {
        rcpt_verdict(reading, RCPT_GATEWAY_MISSING,
                     "no headers webhook-id, -timestamp, -signature");
        return;
    }
    rcpt_verdict_of(reading, rcpt_text_find(id, ".") == id.size && rcpt_text_is_digits(time) &&
                                 standard_matches(reading, given, texts));
    bool named = rcpt_reading_header(reading, "webhook-id").size > 0;
    rcpt_cover_header(reading, named ? "webhook-id" : "svix-id", id);
    rcpt_verdict_once(reading, id);
    rcpt_verdict_age(reading, rcpt_seconds_of(time));
}

/* ---- Telnyx: Ed25519 over time, bar and body ---- */

#define BASE64_OF_ED25519 88u

/* A signature of the wrong length is not decoded. */
void rcpt_verify_telnyx(struct rcpt_reading *reading)
{
    struct rcpt_text given = rcpt_reading_header(reading, "telnyx-signature-ed25519");
    struct rcpt_text time = rcpt_reading_header(reading, "telnyx-timestamp");
    if (given.size == 0 || time.size == 0) {
        rcpt_verdict(reading, RCPT_GATEWAY_MISSING,
                     "no header telnyx-signature-ed25519 or telnyx-timestamp");
        return;
    }
    struct rcpt_text signature = {NULL, 0}, text = {NULL, 0};
    if (given.size == BASE64_OF_ED25519 && rcpt_text_is_digits(time)) {
        signature = rcpt_base64_decode(given, reading->arena);
        text = RCPT_TEXT_JOIN(reading->arena, time, RCPT_TEXT("|"), rcpt_body_of(reading));
    }
    bool same = false;
    for (size_t index = 0; index < reading->account->secret_count && signature.at != NULL; index++)
        same |=
            rcpt_ed25519_verify(reading->account->secrets[index], signature, text, reading->arena);
    rcpt_verdict_of(reading, same);
    rcpt_cover_header(reading, "telnyx-timestamp", time);
    rcpt_verdict_age(reading, rcpt_seconds_of(time));
}

/* Eleven digits reach the year 5138. */
int64_t rcpt_seconds_of(struct rcpt_text text)
{
    int64_t seconds = 0;
    if (!rcpt_text_is_digits(text) || text.size > 11)
        return 0;
    for (size_t index = 0; index < text.size; index++)
        seconds = seconds * 10 + (text.at[index] - '0');
    return seconds * 1000000;
}

/* An absent header is not covered. */
void rcpt_cover_header(struct rcpt_reading *reading, const char *name, struct rcpt_text value)
{
    RCPT_ASSERT(reading->signed_header_count < RCPT_COUNT_OF(reading->signed_headers));
    if (value.size > 0)
        reading->signed_headers[reading->signed_header_count++] =
            (struct rcpt_gateway_header){rcpt_text_of(name), value};
}

/* ---- the decision ---- */

/* An address that cannot be read is in no list. */
static bool is_allowed(const struct rcpt_reading *reading)
{
    const struct rcpt_gateway_account *account = reading->account;
    struct rcpt_text source = reading->source.request->source;
    struct rcpt_address address;
    return account->allow_count == 0 ||
           (rcpt_address_parse(source.at, source.size, &address) &&
            rcpt_networks_have(account->allow, account->allow_count, &address));
}

/* The gateway's own body is not sent: some take any body for success. */
static bool refuse(struct rcpt_reading *reading)
{
    struct rcpt_gateway_result *result = reading->result;
    struct rcpt_gateway_answer answer = {.code = 403};
    if (reading->gateway->refused_code != 0)
        answer.code = reading->gateway->refused_code;
    if (result->verdict == RCPT_GATEWAY_NEEDS_CERTIFICATE)
        answer.code = 503; /* the caller comes back with it, or the gateway does */
    else if (result->verdict == RCPT_GATEWAY_MISSING)
        answer.code = 401;
    if (answer.code == 401)
        answer.www_authenticate = result->answer.www_authenticate;
    result->answer = answer;
    return false;
}

/* Before anything of the request is parsed. */
bool rcpt_verify_allows(struct rcpt_reading *reading)
{
    if (is_allowed(reading))
        return true;
    rcpt_verdict(reading, RCPT_GATEWAY_BAD, "the address is not in the list");
    return refuse(reading);
}

/* Where credentials may be absent, a request without them is believed as a whole: no signature
 * tells which part to believe. */
static void believe_all(struct rcpt_reading *reading)
{
    reading->covers = RCPT_COVERS_REQUEST;
    reading->signed_id = (struct rcpt_text){NULL, 0};
}

/* From here on templates and hooks see only parts that could not be changed on the way. */
static void hide_unsigned(struct rcpt_reading *reading)
{
    struct rcpt_source *source = &reading->source;
    struct rcpt_gateway_request *view = &reading->view;
    unsigned covers = reading->covers;
    *view = *source->request;
    source->request = view;
    if ((covers & RCPT_COVERS_BODY) == 0)
        view->body = (struct rcpt_text){NULL, 0};
    if ((covers & (RCPT_COVERS_BODY | RCPT_COVERS_FORM)) == 0)
        source->form = (struct rcpt_form){NULL, 0};
    if ((covers & RCPT_COVERS_ROOT) == 0)
        source->root = NULL;
    if ((covers & RCPT_COVERS_QUERY) == 0) {
        view->query = (struct rcpt_text){NULL, 0};
        source->query = (struct rcpt_form){NULL, 0};
    }
    if ((covers & RCPT_COVERS_PATH) == 0)
        view->tail = (struct rcpt_text){NULL, 0};
    if ((covers & RCPT_COVERS_HEADERS) == 0) {
        view->headers = reading->signed_headers;
        view->header_count = reading->signed_header_count;
    }
}

/* False: the request is answered with a refusal. After true the source holds the verified view. */
bool rcpt_verify(struct rcpt_reading *reading)
{
    const struct rcpt_gateway_account *account = reading->account;
    struct rcpt_gateway_result *result = reading->result;
    reading->covers = account->scheme->covers;
    if (account->verify != RCPT_GATEWAY_VERIFY_OFF)
        account->scheme->verify(reading);
    if (result->verdict == RCPT_GATEWAY_MISSING && account->verify == RCPT_GATEWAY_VERIFY_OPTIONAL)
        result->verdict = RCPT_GATEWAY_UNVERIFIED;
    if (result->verdict != RCPT_GATEWAY_VERIFIED && result->verdict != RCPT_GATEWAY_UNVERIFIED)
        return refuse(reading);
    if (result->verdict == RCPT_GATEWAY_UNVERIFIED)
        believe_all(reading);
    else if (account->unsigned_ids)
        reading->covers |= RCPT_COVERS_QUERY | RCPT_COVERS_PATH | RCPT_COVERS_HEADERS;
    hide_unsigned(reading);
    result->answer.www_authenticate = NULL;
    return true;
}
