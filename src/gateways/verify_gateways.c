/* Signatures that are some gateway's own: Twilio, Vonage SMS, Plivo, SendGrid, Mailgun, Meta,
 * Viber, LINE. The recipes are the gateways'; their adapters name the sources. Each function sets
 * the verdict and says what it covers.
 *
 * Many recipes join texts without marking their borders, so that a part could be moved over one
 * without changing the signature: the checks of names, digits and dots below are against that. */
#include "account.h"
#include "crypto.h"
#include "verify_support.h"

/* All names and values of a form in a row, each name behind `before` and each value behind
 * `between`. Written at once: a list of the texts would take more memory than they do. */
static struct rcpt_text join_form(const struct rcpt_form *form, struct rcpt_text before,
                                  struct rcpt_text between, struct rcpt_arena *arena)
{
    size_t size = 0;
    for (size_t index = 0; index < form->count; index++)
        size += before.size + form->fields[index].name.size + between.size +
                form->fields[index].value.size;
    char *all = rcpt_arena_alloc(arena, size + 1), *end = all;
    for (size_t index = 0; index < form->count; index++) {
        const struct rcpt_text texts[] = {before, form->fields[index].name, between,
                                          form->fields[index].value};
        for (size_t text = 0; text < RCPT_COUNT_OF(texts); text++)
            if (texts[text].size > 0)
                end = mempcpy(end, texts[text].at, texts[text].size);
    }
    return (struct rcpt_text){all, size};
}

/* ---- Twilio: base64 HMAC-SHA1 of URL and sorted form, or of a URL that has the body's hash ----
 */

#define BASE64_OF_SHA1 28u

/* Twilio may sign with or without the implied port, so both URLs are tried with every secret. */
static bool twilio_matches(const struct rcpt_reading *reading, struct rcpt_text given,
                           struct rcpt_text parameters)
{
    const struct rcpt_gateway_account *account = reading->account;
    struct rcpt_text urls[RCPT_MAX_URLS];
    unsigned url_count = rcpt_signed_urls(reading, false, urls);
    bool same = false;
    for (unsigned url = 0; url < url_count && !same; url++)
        for (size_t index = 0; index < account->secret_count; index++) {
            struct rcpt_text mac = RCPT_HMAC(RCPT_SHA1, account->secrets[index], reading->arena,
                                             urls[url], parameters);
            same |= rcpt_same(rcpt_base64(mac, reading->arena), given);
        }
    return same;
}

/* No mark separates the signed URL from the form. So an attacker could move the end of an id in the
 * URL to the beginning of the first name. The first name of Twilio and Plivo is a word that begins
 * with a capital letter. */
static bool form_begins_well(const struct rcpt_form *sorted)
{
    struct rcpt_text name = sorted->count > 0 ? sorted->fields[0].name : RCPT_TEXT("F");
    for (size_t index = 0; index < name.size; index++) {
        char byte = name.at[index];
        bool is_more = index > 0 && ((byte >= 'a' && byte <= 'z') || (byte >= '0' && byte <= '9') ||
                                     byte == '_' || byte == '-');
        if ((byte < 'A' || byte > 'Z') && !is_more)
            return false;
    }
    return name.size > 0;
}

/* Afterwards only the signed fields are read: sorted, equal ones once. */
static bool twilio_form_matches(struct rcpt_reading *reading, struct rcpt_text given)
{
    if (rcpt_document_looks_like(rcpt_body_of(reading)))
        return false; /* JSON is covered by its hash only */
    reading->covers = RCPT_COVERS_FORM | RCPT_COVERS_QUERY | RCPT_COVERS_PATH;
    reading->source.form = rcpt_sorted(&reading->source.form, true, reading->arena);
    return form_begins_well(&reading->source.form) &&
           twilio_matches(
               reading, given,
               join_form(&reading->source.form, RCPT_TEXT(""), RCPT_TEXT(""), reading->arena));
}

/* The URL signs the hash, and the hash the body. */
static bool twilio_body_matches(const struct rcpt_reading *reading, struct rcpt_text given,
                                struct rcpt_text hash)
{
    struct rcpt_text body = RCPT_HASH(RCPT_SHA256, reading->arena, rcpt_body_of(reading));
    bool same = rcpt_same(rcpt_hex(body, reading->arena), hash);
    return twilio_matches(reading, given, RCPT_TEXT("")) && same;
}

/* `bodySHA256` stands in the URL when the body is JSON. */
void rcpt_verify_twilio(struct rcpt_reading *reading)
{
    struct rcpt_text given = rcpt_reading_header(reading, "x-twilio-signature");
    struct rcpt_text hash = rcpt_form_get(&reading->source.query, RCPT_TEXT("bodySHA256"));
    if (given.size == 0)
        rcpt_verdict(reading, RCPT_GATEWAY_MISSING, "no header X-Twilio-Signature");
    else if (given.size != BASE64_OF_SHA1)
        rcpt_verdict_of(reading, false);
    else if (hash.at != NULL)
        rcpt_verdict_of(reading, twilio_body_matches(reading, given, hash));
    else
        rcpt_verdict_of(reading, twilio_form_matches(reading, given));
}

/* ---- Vonage SMS: hex digest of the sorted parameters, in one of five ways ---- */

/* Members of the body's object as parameters. Their values are scalars; an array or an object is
 * as empty as an empty text, and is read as one. */
static struct rcpt_form json_members(const struct rcpt_reading *reading)
{
    const char *reason;
    struct rcpt_node found[RCPT_FORM_MAX_FIELDS];
    size_t count = RCPT_FORM_MAX_FIELDS;
    if (!rcpt_document_members(rcpt_body_of(reading), reading->arena, NULL, found, &count, &reason))
        return (struct rcpt_form){NULL, 0};
    struct rcpt_parameter *fields =
        rcpt_arena_alloc(reading->arena, (count + 1) * sizeof(struct rcpt_parameter));
    for (size_t index = 0; index < count; index++)
        fields[index] =
            (struct rcpt_parameter){found[index].key, rcpt_text_or_empty(found[index].text)};
    return (struct rcpt_form){fields, count};
}

/* The one place that `sig` stands in; `covers` says which. */
static struct rcpt_form vonage_parameters(struct rcpt_reading *reading)
{
    if (rcpt_document_looks_like(rcpt_body_of(reading))) {
        reading->covers = RCPT_COVERS_ROOT;
        return json_members(reading);
    }
    reading->covers = reading->source.form.count > 0 ? RCPT_COVERS_FORM : RCPT_COVERS_QUERY;
    return reading->source.form.count > 0 ? reading->source.form : reading->source.query;
}

/* Leaves sig out, and writes _ for characters that separate a query's parts. */
static struct rcpt_form vonage_signed(const struct rcpt_form *form, struct rcpt_arena *arena)
{
    struct rcpt_parameter *fields =
        rcpt_arena_alloc(arena, (form->count + 1) * sizeof(struct rcpt_parameter));
    size_t count = 0;
    for (size_t index = 0; index < form->count; index++) {
        struct rcpt_text value = form->fields[index].value;
        if (rcpt_text_is(form->fields[index].name, "sig"))
            continue;
        if (rcpt_text_find(value, "&") < value.size || rcpt_text_find(value, "=") < value.size) {
            char *copy = rcpt_text_terminated(arena, value);
            for (size_t at = 0; at < value.size; at++)
                copy[at] = (char)(copy[at] == '&' || copy[at] == '=' ? '_' : copy[at]);
            value.at = copy;
        }
        fields[count++] = (struct rcpt_parameter){form->fields[index].name, value};
    }
    return (struct rcpt_form){fields, count};
}

/* A name with & or = could be cut into several without changing the signed text. */
static bool vonage_names_are_good(const struct rcpt_form *form)
{
    for (size_t index = 0; index < form->count; index++) {
        struct rcpt_text name = form->fields[index].name;
        if (rcpt_text_find(name, "&") < name.size || rcpt_text_find(name, "=") < name.size)
            return false;
    }
    return true;
}

/* The gateway writes small or capital digits, never both. */
static bool same_hex(struct rcpt_text digest, struct rcpt_text given, struct rcpt_arena *arena)
{
    bool same = rcpt_same(rcpt_hex(digest, arena), given);
    same |= rcpt_same(rcpt_hex_upper(digest, arena), given);
    return same;
}

/* Computes only digests of the given length that the account asks for. */
static bool vonage_matches(const struct rcpt_reading *reading, struct rcpt_text given,
                           struct rcpt_text text)
{
    static const struct {
        enum rcpt_gateway_digest name;
        enum rcpt_digest digest;
        size_t hex;
    } kinds[] = {{RCPT_GATEWAY_DIGEST_MD5HASH, RCPT_MD5, 32},
                 {RCPT_GATEWAY_DIGEST_MD5, RCPT_MD5, 32},
                 {RCPT_GATEWAY_DIGEST_SHA1, RCPT_SHA1, 40},
                 {RCPT_GATEWAY_DIGEST_SHA256, RCPT_SHA256, 64},
                 {RCPT_GATEWAY_DIGEST_SHA512, RCPT_SHA512, 128}};
    const struct rcpt_gateway_account *account = reading->account;
    bool same = false;
    for (size_t kind = 0; kind < RCPT_COUNT_OF(kinds); kind++) {
        if (given.size != kinds[kind].hex ||
            (account->digest != RCPT_GATEWAY_DIGEST_ANY && account->digest != kinds[kind].name))
            continue;
        for (size_t index = 0; index < account->secret_count; index++) {
            struct rcpt_text secret = account->secrets[index];
            struct rcpt_text digest =
                kinds[kind].name == RCPT_GATEWAY_DIGEST_MD5HASH
                    ? RCPT_HASH(RCPT_MD5, reading->arena, text, secret)
                    : RCPT_HMAC(kinds[kind].digest, secret, reading->arena, text);
            same |= same_hex(digest, given, reading->arena);
        }
    }
    return same;
}

/* An object of the parameters, for templates that are paths. */
static const struct rcpt_node *object_of(const struct rcpt_form *form, struct rcpt_text raw,
                                         struct rcpt_arena *arena)
{
    struct rcpt_node *object = rcpt_arena_alloc(arena, (form->count + 1) * sizeof(*object));
    *object = (struct rcpt_node){.type = RCPT_NODE_OBJECT, .raw = raw};
    for (size_t index = form->count; index > 0; index--) {
        const struct rcpt_parameter *field = &form->fields[index - 1];
        object[index] = (struct rcpt_node){.type = RCPT_NODE_STRING,
                                           .key = field->name,
                                           .text = field->value,
                                           .raw = field->value,
                                           .next = object->first};
        object->first = &object[index];
    }
    return object;
}

/* Afterwards the signed fields are read, with their underscores: the signature does not tell them
 * from the & and = for which they may stand. */
static void vonage_view(struct rcpt_reading *reading, struct rcpt_form signed_form)
{
    if (reading->covers == RCPT_COVERS_ROOT)
        reading->source.root = object_of(&signed_form, reading->raw, reading->arena);
    else if (reading->covers == RCPT_COVERS_QUERY)
        reading->source.query = signed_form;
    else
        reading->source.form = signed_form;
}

/* The digest's length says which kinds may have made it; `digest` of the account narrows it to
 * one. */
void rcpt_verify_vonage_sms(struct rcpt_reading *reading)
{
    struct rcpt_form form = vonage_parameters(reading);
    struct rcpt_text given = rcpt_form_get(&form, RCPT_TEXT("sig"));
    if (given.size == 0) {
        rcpt_verdict(reading, RCPT_GATEWAY_MISSING, "no parameter sig");
        return;
    }
    struct rcpt_form signed_form = vonage_signed(&form, reading->arena);
    signed_form = rcpt_sorted(&signed_form, false, reading->arena);
    struct rcpt_text text = join_form(&signed_form, RCPT_TEXT("&"), RCPT_TEXT("="), reading->arena);
    rcpt_verdict_of(reading, vonage_names_are_good(&form) && vonage_matches(reading, given, text));
    rcpt_verdict_once(reading, rcpt_form_get(&signed_form, RCPT_TEXT("nonce")));
    rcpt_verdict_age(reading, rcpt_seconds_of(rcpt_form_get(&signed_form, RCPT_TEXT("timestamp"))));
    if (reading->result->verdict == RCPT_GATEWAY_VERIFIED)
        vonage_view(reading, signed_form);
}

/* ---- Plivo: V3 covers the parameters, V2 only the path ---- */

/* The signatures of two headers, of a user's key and of the main account's. */
struct plivo_given {
    struct rcpt_text signatures[2 * RCPT_MAX_SIGNATURES];
    size_t count;
    struct rcpt_text nonce;
    bool any; /* one of the headers is there */
};

/* Both headers may hold a list. */
static struct plivo_given plivo_headers(const struct rcpt_reading *reading, const char *one,
                                        const char *other, const char *nonce)
{
    struct rcpt_text first = rcpt_reading_header(reading, one);
    struct rcpt_text second = rcpt_reading_header(reading, other);
    struct plivo_given given = {.nonce = rcpt_reading_header(reading, nonce),
                                .any = first.size + second.size > 0};
    given.count = rcpt_split_signatures(first, ",", "", given.signatures);
    given.count += rcpt_split_signatures(second, ",", "", given.signatures + given.count);
    return given;
}

/* One HMAC for each secret, however many signatures were given. */
static bool plivo_text_matches(const struct rcpt_reading *reading, const struct plivo_given *given,
                               const struct rcpt_text *texts)
{
    bool same = false;
    for (size_t index = 0; index < reading->account->secret_count; index++) {
        struct rcpt_text mac =
            rcpt_hmac(RCPT_SHA256, reading->account->secrets[index], texts, reading->arena);
        mac = rcpt_base64(mac, reading->arena);
        for (size_t entry = 0; entry < given->count; entry++)
            same |= rcpt_same(mac, given->signatures[entry]);
    }
    return same;
}

/* path?sorted query.sorted form.nonce, where the dot before the form stands behind a query only,
 * and the ? also without one when there is a form. Afterwards the sorted fields are read. */
static bool plivo_v3_matches(struct rcpt_reading *reading, const struct plivo_given *given)
{
    struct rcpt_arena *arena = reading->arena;
    struct rcpt_form *query = &reading->source.query, *form = &reading->source.form;
    struct rcpt_text urls[RCPT_MAX_URLS];
    unsigned url_count = rcpt_signed_urls(reading, true, urls);
    *query = rcpt_sorted(query, false, arena);
    *form = rcpt_sorted(form, false, arena);
    struct rcpt_text pairs = join_form(query, RCPT_TEXT("&"), RCPT_TEXT("="), arena);
    pairs = rcpt_text_part(pairs, pairs.size > 0, pairs.size);
    struct rcpt_text fields = join_form(form, RCPT_TEXT(""), RCPT_TEXT(""), arena);
    bool both = query->count > 0 && form->count > 0, same = false;
    if (!form_begins_well(form))
        return false;
    for (unsigned url = 0; url < url_count && !same; url++) {
        const struct rcpt_text texts[] = {
            urls[url],    query->count + form->count > 0 ? RCPT_TEXT("?") : RCPT_TEXT(""),
            pairs,        both ? RCPT_TEXT(".") : RCPT_TEXT(""),
            fields,       RCPT_TEXT("."),
            given->nonce, {NULL, 0}};
        same = plivo_text_matches(reading, given, texts);
    }
    return same;
}

/* V2 signs the path and the nonce: the sender is known, and nothing else. */
static bool plivo_v2_matches(struct rcpt_reading *reading, const struct plivo_given *given)
{
    struct rcpt_text urls[RCPT_MAX_URLS];
    unsigned url_count = rcpt_signed_urls(reading, true, urls);
    bool same = false;
    reading->covers = RCPT_COVERS_REQUEST; /* the sender is known, and nothing else */
    for (unsigned url = 0; url < url_count && !same; url++) {
        const struct rcpt_text texts[] = {urls[url], given->nonce, {NULL, 0}};
        same = plivo_text_matches(reading, given, texts);
    }
    return same;
}

/* A dot would let the border between the fields and the number be moved. */
static bool plivo_nonce_is_good(struct rcpt_text nonce)
{
    return nonce.size > 0 && nonce.size <= 128 && rcpt_text_find(nonce, ".") == nonce.size;
}

/* V2 counts only where the account asks for it, and never beside V3: else leaving V3's header out
 * would be enough to change the parameters. */
void rcpt_verify_plivo(struct rcpt_reading *reading)
{
    struct plivo_given given = plivo_headers(
        reading, "x-plivo-signature-v3", "x-plivo-signature-ma-v3", "x-plivo-signature-v3-nonce");
    bool v2 = !given.any && reading->account->plivo_v2, same = false;
    if (v2)
        given = plivo_headers(reading, "x-plivo-signature-v2", "x-plivo-signature-ma-v2",
                              "x-plivo-signature-v2-nonce");
    if (!given.any) {
        rcpt_verdict(reading, RCPT_GATEWAY_MISSING,
                     reading->account->plivo_v2 ? "no header X-Plivo-Signature-V3 or -V2"
                                                : "no header X-Plivo-Signature-V3");
        return;
    }
    if (!v2 && rcpt_document_looks_like(rcpt_body_of(reading))) {
        rcpt_verdict(reading, RCPT_GATEWAY_BAD, "V3 does not cover a body of JSON");
        return;
    }
    if (given.count > 0 && plivo_nonce_is_good(given.nonce))
        same = v2 ? plivo_v2_matches(reading, &given) : plivo_v3_matches(reading, &given);
    rcpt_verdict_of(reading, same);
    rcpt_verdict_once(reading, given.nonce);
}

/* ---- SendGrid: ECDSA over timestamp and raw body ---- */

#define MOST_BASE64_OF_ECDSA 96u

/* The secret is SendGrid's public key. */
void rcpt_verify_sendgrid(struct rcpt_reading *reading)
{
    struct rcpt_text given = rcpt_reading_header(reading, "x-twilio-email-event-webhook-signature");
    struct rcpt_text time = rcpt_reading_header(reading, "x-twilio-email-event-webhook-timestamp");
    if (given.size == 0 || time.size == 0) {
        rcpt_verdict(reading, RCPT_GATEWAY_MISSING,
                     "no header X-Twilio-Email-Event-Webhook-Signature or -Timestamp");
        return;
    }
    struct rcpt_text signature = {NULL, 0};
    const struct rcpt_text texts[] = {time, rcpt_body_of(reading), {NULL, 0}};
    if (given.size <= MOST_BASE64_OF_ECDSA && rcpt_text_is_digits(time))
        signature = rcpt_base64_decode(given, reading->arena);
    bool same = false;
    for (size_t index = 0; index < reading->account->secret_count && signature.at != NULL; index++)
        same |=
            rcpt_ecdsa_verify(reading->account->secrets[index], signature, texts, reading->arena);
    rcpt_verdict_of(reading, same);
    rcpt_cover_header(reading, "x-twilio-email-event-webhook-timestamp", time);
    rcpt_verdict_age(reading, rcpt_seconds_of(time));
}

/* ---- Mailgun: hex HMAC-SHA256 of timestamp and token, all three inside the body ---- */

/* The parent account's key may sign instead. */
static void mailgun_decide(struct rcpt_reading *reading, struct rcpt_text time,
                           struct rcpt_text token, struct rcpt_text given, struct rcpt_text parent)
{
    const struct rcpt_text texts[] = {time, token, {NULL, 0}};
    if (time.size == 0 || token.size == 0 || given.size == 0) {
        rcpt_verdict(reading, RCPT_GATEWAY_MISSING, "the body holds no signature");
        return;
    }
    bool same = rcpt_hmac_matches(reading, given, false, texts);
    same |= rcpt_hmac_matches(reading, parent, false, texts);
    /* Ten digits: else the border to the token could be moved, and it would be another token. */
    rcpt_verdict_of(reading, same && time.size == 10 && rcpt_text_is_digits(time));
    rcpt_verdict_once(reading, token);
    rcpt_verdict_age(reading, rcpt_seconds_of(time));
}

/* Only the members of `signature` are parsed before the verdict. */
static void mailgun_json(struct rcpt_reading *reading)
{
    static const char *const outer[] = {"signature"};
    static const char *const inner[] = {"timestamp", "token", "signature", "parent-signature"};
    const char *reason;
    struct rcpt_node object[RCPT_COUNT_OF(outer)], found[RCPT_COUNT_OF(inner)];
    size_t one = RCPT_COUNT_OF(outer), count = RCPT_COUNT_OF(inner);
    rcpt_document_members(rcpt_body_of(reading), reading->arena, outer, object, &one, &reason);
    struct rcpt_text raw = object[0].type == RCPT_NODE_OBJECT ? object[0].raw : RCPT_TEXT("");
    rcpt_document_members(raw, reading->arena, inner, found, &count, &reason);
    mailgun_decide(reading, rcpt_node_text(&found[0]), rcpt_node_text(&found[1]),
                   rcpt_node_text(&found[2]), rcpt_node_text(&found[3]));
}

/* JSON for webhooks, a form for the old ones, which have no parent signature. */
void rcpt_verify_mailgun(struct rcpt_reading *reading)
{
    const struct rcpt_form *form = &reading->source.form;
    if (rcpt_document_looks_like(rcpt_body_of(reading)))
        mailgun_json(reading);
    else
        mailgun_decide(reading, rcpt_form_get(form, RCPT_TEXT("timestamp")),
                       rcpt_form_get(form, RCPT_TEXT("token")),
                       rcpt_form_get(form, RCPT_TEXT("signature")), (struct rcpt_text){NULL, 0});
}

/* ---- signatures of the raw body in a header ---- */

/* The comparison runs also without the prefix, so that its time is the same. */
static void verify_header_of_body(struct rcpt_reading *reading, const char *header, bool base64,
                                  const char *prefix, const char *missing)
{
    struct rcpt_text given = rcpt_reading_header(reading, header);
    const struct rcpt_text texts[] = {rcpt_body_of(reading), {NULL, 0}};
    if (given.size == 0) {
        rcpt_verdict(reading, RCPT_GATEWAY_MISSING, missing);
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
