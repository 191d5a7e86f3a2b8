/* The parts of an adapter, and the functions for it. Private to src/gateways.
 *
 * One adapter is one file in gateways/: a `struct rcpt_gateway` with tables, and hooks only where
 * the format demands code. Everything else (parsing, times, limits, events) is done by the reader
 * for all adapters alike.
 */
#ifndef RECEIPTD_GATEWAYS_GATEWAY_H
#define RECEIPTD_GATEWAYS_GATEWAY_H

#include "reason.h"
#include "receiptd/base/error.h"
#include "receiptd/base/zone.h"
#include "template.h"
#include "verify.h"

/* A gateway's word and its meaning. The first row that fits counts; letters' case does not. */
struct rcpt_mapping {
    const char *raw;    /* a * at the end stands for anything */
    const char *code;   /* a code or word of the error, with * as above; NULL: any */
    const char *status; /* NULL: of no interest, ignored */
    const char *flag;   /* NULL: none */
};

/* Templates (template.h). */
struct rcpt_fields {
    const char *id;     /* the gateway's id of the message */
    const char *status; /* its word */
    /* Codes and words of an error, the most precise first. The first that is no "no error" is kept,
     * except for successes. Each of them is looked up in the tables. */
    const char *reason;
    const char *words;    /* asked as well, and never kept: texts of servers and for people */
    const char *feedback; /* what a complaint says of itself; NULL: the usual names are tried */
    const char *at, *event_id, *message_id, *org_id, *campaign_id, *channel, *client_ref, *part,
        *parts;
    const char *link, *cost, *currency;
    /* of opens and clicks: who asked; only compared (rcpt_gateway_request.scanners) */
    const char *ip;
    const char *recipient, *until; /* of a receipt without an id: all messages to a person up to a
                                      time */
};

#define RCPT_SAID_MOST 10u

struct rcpt_reading;
struct rcpt_draft;

struct rcpt_gateway {
    const char *name;    /* of the file in gateways/, and in the configuration */
    const char *channel; /* where the receipt does not tell; NULL: unknown */
    const char *json_in; /* parameter that holds the JSON */
    const char *items;   /* path; several, parted by blanks: the first that is there */
    const char *inbound; /* template: has a value where a person has sent a message, and never in a
                            receipt; NULL: none is known */
    struct rcpt_fields fields;
    enum rcpt_gateway_time time_format;
    const char *time_zone; /* "+05:30": of times that carry none; NULL: unknown */
    const struct rcpt_mapping *statuses;
    size_t status_count;
    const struct rcpt_reason *reasons; /* what its codes mean; NULL: the status alone tells */
    size_t reason_count;
    bool smpp_words;                  /* the words of SMPP stand behind the table */
    rcpt_verifier *verify;            /* NULL: signs nothing */
    unsigned refused_code;            /* answer to wrong credentials; 0: 403 */
    const char *answer_type, *answer; /* NULL: an empty 200 */

    /* True for a request that does not deliver receipts, such as a challenge: fills verdict and
     * answer. Called before verification, so it has to verify by itself. */
    bool (*challenge)(struct rcpt_reading *reading);
    /* Called once, before the items are looked for: may set source.root or drop the request. */
    void (*open)(struct rcpt_reading *reading);
    /* Called for each element of a list that has no item, and for a document that has none. It
     * returns the (static) reason to ignore a node that is known to be no receipt. NULL: it may be
     * one. */
    const char *(*other)(const struct rcpt_node *node);
    /* Called for each item, after the templates and before the statuses. May change the draft's
     * values, set `mapped`, drop the draft, or split it with rcpt_reading_add. */
    void (*item)(struct rcpt_reading *reading, struct rcpt_draft *draft);
};

/* A receipt that is being read. */
struct rcpt_draft {
    struct rcpt_text id, status, reason, at, event_id, message_id, org_id, campaign_id, channel,
        client_ref, part, parts, link, cost, currency, ip, recipient, until;
    const struct rcpt_node *item;          /* NULL: no JSON */
    struct rcpt_text raw;                  /* bytes for the dead letter */
    struct rcpt_text said[RCPT_SAID_MOST]; /* of an error: codes and words, those of enhanced status
                                              codes in texts among them */
    unsigned said_count;
    struct rcpt_mapping mapped; /* .raw != NULL: the tables are not asked */
    const char *machine;        /* the flag that tells a machine from a person; NULL: none */
    bool whole_seconds;         /* the fraction of `at` says nothing */
    bool done;                  /* nothing more is to be done with it */
};

struct rcpt_reading {
    const struct rcpt_gateway_account *account;
    const struct rcpt_gateway *gateway;
    struct rcpt_source source;
    struct rcpt_gateway_result *result;
    struct rcpt_arena *arena;
    struct rcpt_gateway_event *events; /* growing */
    struct rcpt_gateway_drop *drops;
    size_t event_capacity, drop_capacity;
    bool body_is_utf8;
    bool has_no_length;
    bool answered;        /* by the challenge */
    struct rcpt_text raw; /* body, or query, as it came: for the dead letters and nothing else */

    /* ---- of the verdict; see verify.h ---- */
    unsigned covers;
    struct rcpt_gateway_request view; /* what source.request points to afterwards */
    struct rcpt_gateway_header signed_headers[2];
    size_t signed_header_count;
    /* RCPT_COVERS_ID: only these values name the message. */
    struct rcpt_text signed_id, signed_campaign;
};

/* ---- for hooks ---- */

/* Sets the draft aside; the reason is static. */
void rcpt_draft_ignore(struct rcpt_reading *reading, struct rcpt_draft *draft, const char *reason);
void rcpt_draft_reject(struct rcpt_reading *reading, struct rcpt_draft *draft, const char *reason);
/* May be a receipt, in a form that the adapter does not know: a letter `unknown_form`. */
void rcpt_draft_set_aside(struct rcpt_reading *reading, struct rcpt_draft *draft);
/* Whether the code is empty, "0" or "000": gateways mark "no error" like this. */
bool rcpt_code_is_zero(struct rcpt_text code);
/* One more code, word or text about an error. */
void rcpt_draft_say(struct rcpt_draft *draft, struct rcpt_text text);
/* Whether the item, or the form, is a message that a person has sent. */
bool rcpt_draft_is_inbound(const struct rcpt_reading *reading);
/* Sets the whole request aside. */
void rcpt_reading_ignore(struct rcpt_reading *reading, const char *reason);
void rcpt_reading_reject(struct rcpt_reading *reading, const char *reason, struct rcpt_text raw);
/* Finishes the draft: statuses, time, limits. Afterwards it may be changed and added again. */
void rcpt_reading_add(struct rcpt_reading *reading, struct rcpt_draft *draft);
/* A parameter or member by name (see template.h), a header. */
struct rcpt_text rcpt_reading_value(const struct rcpt_reading *reading, const char *name);
struct rcpt_text rcpt_reading_header(const struct rcpt_reading *reading, const char *name);

/* Whether a text is the pattern's: equal, letters' case aside; a * at the end stands for anything.
 */
bool rcpt_pattern_fits(struct rcpt_text text, const char *pattern);
/* Whether the row is the draft's, by status and reason. */
bool rcpt_mapping_fits(const struct rcpt_mapping *mapping, const struct rcpt_draft *draft);

/* ---- smpp.c ---- */

/* A delivery receipt in the text of a short message (SMPP 3.4, appendix B) as vendors write it. */
struct rcpt_smpp_receipt {
    struct rcpt_text id, stat, err, submit_date, done_date;
    unsigned sub, dlvrd; /* 0: not there */
};
/* False: the text has no `stat:`. */
bool rcpt_smpp_parse(struct rcpt_text text, struct rcpt_smpp_receipt *receipt);
/* Words of `stat:`, also as other gateways use them. */
extern const struct rcpt_mapping rcpt_smpp_statuses[];
extern const size_t rcpt_smpp_status_count;

/* ---- moment.c ---- */

struct rcpt_moment {
    bool exact; /* at_us holds */
    int64_t at_us;
    struct rcpt_text local; /* YYYY-MM-DDThh:mm:ss[.ffffff], when no zone is known */
};
/* The clock for times without a zone. Where clocks go back an hour comes twice: then the later
 * instant counts that is not after the arrival of the receipt. */
struct rcpt_clock {
    const struct rcpt_zone *zone; /* NULL: unknown */
    int64_t received_us;
};
/* False: no time, the moment is untouched. */
bool rcpt_moment_read(struct rcpt_text text, enum rcpt_gateway_time format,
                      const struct rcpt_clock *clock, struct rcpt_arena *arena,
                      struct rcpt_moment *moment);

/* ---- gateways.c ---- */

const struct rcpt_gateway *rcpt_gateway_find(const char *name);

#endif
