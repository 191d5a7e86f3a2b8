/* Shared by the files of the intake. Private to src/intake.
 *
 * intake.c    start, drain, figures
 * readiness.c whether requests are taken, and why not
 * request.c   a request from its arrival to its answer
 * delivery.c  its memory and its span
 * targets.c   topics of receipts, and what waits for each
 * kafka.c     records on their way, dead letters
 * fetch.c     certificates and confirmations
 * alias.c     look-ups of gateways' ids, gathered
 */
#ifndef RECEIPTD_INTAKE_INTERNAL_H
#define RECEIPTD_INTAKE_INTERNAL_H

#include "receiptd/base/outage.h"
#include "receiptd/gateways/aggregate.h"
#include "receiptd/gateways/memory.h"
#include "receiptd/host/context.h"
#include "receiptd/intake/intake.h"
#include "receiptd/kafka/producer.h"
#include "receiptd/postgres/arrays.h"
#include "receiptd/postgres/connection.h"

#define INTAKE_TOPIC_LETTERS    0u /* index in the producer's topics; behind it the targets */
#define INTAKE_MOST_TARGETS     (RCPT_PRODUCER_MAX_TOPICS - 1)
#define INTAKE_ARENA_KEEP_BYTES 65536u /* of an arena in the free list */
#define INTAKE_CERTIFICATES     16u
#define INTAKE_FETCHES          32u /* certificates that requests wait for */

/* A topic of receipts, with the records that wait for it. */
struct intake_target {
    char *topic;
    struct rcpt_aggregate *aggregate;
};

struct intake_account {
    struct rcpt_gateway_account *adapter;
    struct intake_target *target;
    const char *name;
    size_t name_size;
    uint32_t number; /* scope in the memories */
    int64_t max_age_ms;
    struct rcpt_rate rate;
    struct rcpt_gateway_stats stats;
};

struct intake_retired { /* what requests in flight may still use */
    struct rcpt_gateway_account *adapter;
    struct intake_account *account; /* NULL: it goes on, with another adapter */
    struct intake_retired *next;
};

struct intake_arena { /* kept for the next request */
    struct rcpt_arena arena;
    struct intake_arena *next;
};

/* A request that is being dealt with: its answer goes when the ticket settles. */
struct delivery {
    struct rcpt_ticket ticket; /* first: on_settled gets its address */
    struct rcpt_intake *intake;
    struct intake_account *account;
    struct rcpt_http_request *request;
    struct delivery *next;             /* spare, or waiting for aliases */
    struct intake_arena *arena;        /* NULL: it waits for a certificate, or for Kafka */
    size_t arena_bytes;                /* of it, counted in the intake's */
    size_t consumed;                   /* of the path behind /dlr: the account's name */
    struct rcpt_gateway_result result; /* as long as the arena is held */
    int64_t received_us;
    char traceparent[RCPT_TRACE_TEXT_BYTES + 1]; /* for its records; "": none */
    const char *tracestate;                      /* as long as the arena is held; NULL: none */
    struct rcpt_span *span;                      /* NULL: not traced */
    uint32_t events;
    unsigned code;
    const char *content_type;
    char *body; /* of the answer; own copy */
    size_t body_size;
    bool has_key;
    struct rcpt_replay_key key;
};

struct intake_lookup { /* one at a time */
    struct delivery *deliveries;
    bool in_flight;
};

struct intake_certificate {
    char *url; /* NULL: a free place */
    char *pem; /* NULL: it could not be had, at used_ms */
    int64_t used_ms;
};

/* A certificate that requests of an account wait for. */
struct intake_fetch {
    struct rcpt_intake *intake;
    const struct intake_account *account; /* NULL: a free place */
    char *url;
    struct delivery *waiting;
    unsigned waiting_count;
    uint64_t number; /* the smallest is the next */
    bool in_flight;
};

enum intake_database {
    INTAKE_DATABASE_UNKNOWN, /* neither connected nor refused yet */
    INTAKE_DATABASE_UP,
    INTAKE_DATABASE_DOWN,
    INTAKE_DATABASE_UNUSED, /* intake.alias: off */
};

struct rcpt_intake {
    struct rcpt_intake_settings settings;
    const struct rcpt_config *config;
    uv_loop_t *loop;
    struct intake_account **accounts; /* sorted by name */
    struct intake_retired *retired;   /* by reloads */
    uint32_t next_number;             /* of a new account */
    size_t account_count;
    struct rcpt_http_server *http;
    struct rcpt_client *client; /* for certificates and confirmations */
    struct rcpt_producer *producer;
    struct intake_target targets[INTAKE_MOST_TARGETS];
    const char
        *topic_keys[RCPT_PRODUCER_MAX_TOPICS]; /* of the producer's topics; it borrows them */
    size_t target_count;
    struct rcpt_replay_memory *replay;
    struct rcpt_intake_totals totals;
    char **proxies; /* of intake.trusted_proxies */
    size_t proxy_count;

    struct rcpt_alias_cache *aliases;
    struct rcpt_pg *pg;
    struct rcpt_pg_encoder *encoder;
    enum intake_database database;
    struct delivery *waiting, *last_waiting; /* for the next look-up */
    struct intake_lookup lookup;
    struct rcpt_outage lookups;
    bool lookups_fail;

    struct intake_certificate certificates[INTAKE_CERTIFICATES], failures[INTAKE_CERTIFICATES];
    struct intake_fetch fetches[INTAKE_FETCHES];
    unsigned fetches_in_flight, confirmations_in_flight;
    uint64_t fetch_number;

    uv_check_t flush;
    uv_timer_t linger, tick;
    bool letters_known, kafka_healthy;
    char kafka_reason[HOST_REASON_BYTES];
    bool ready, started, draining, closing;
    char said_reason[HOST_REASON_BYTES];
    int64_t certificate_at_ms;
    uint64_t certificate_mark;
    unsigned open;
    struct delivery *spare_deliveries;
    struct intake_arena *spare_arenas;
    unsigned spare_delivery_count, spare_arena_count;
    size_t arena_bytes, most_arena_bytes; /* held now; the most since memory was given back */
    int64_t trim_at_ms;
    struct rcpt_arena json; /* of one event */
};

static inline int64_t intake_now(const struct rcpt_intake *intake)
{
    return (int64_t)uv_now(intake->loop);
}

/* ---- readiness.c ---- */
/* Why no request is taken whose receipts go to this target; NULL: they are taken. */
const char *intake_obstacle(const struct rcpt_intake *intake, const struct intake_target *target);
void intake_update_readiness(struct rcpt_intake *intake);

/* ---- accounts.c ---- */
/* Makes the accounts of the present configuration. False: nothing has changed. */
RCPT_MUST_CHECK bool intake_make_accounts(struct rcpt_intake *intake, struct rcpt_error *error);
void intake_free_retired(struct rcpt_intake *intake); /* while no request is in hand */
void intake_free_accounts(struct rcpt_intake *intake);

/* ---- request.c ---- */
void intake_on_request(void *context, struct rcpt_http_request *request);
/* Sends the delivery's events; no further aliases will be known. */
void intake_emit(struct delivery *delivery);
/* Reads the request once more: the thing that it waited for has arrived. */
void intake_adapt_again(struct delivery *delivery);
/* Answers 503, because a thing that the request needs cannot be had now. */
void intake_refuse(struct delivery *delivery);

/* ---- delivery.c ---- */
struct delivery *delivery_take(struct rcpt_intake *intake, struct intake_account *account,
                               struct rcpt_http_request *request,
                               void (*on_settled)(struct rcpt_ticket *ticket));
void delivery_give(struct delivery *delivery);
void delivery_take_arena(struct delivery *delivery);
/* The arena holds so many bytes now. */
void delivery_count_arena(struct delivery *delivery, size_t bytes);
/* Frees its arena, and with it what the result points to. */
void intake_drop_arena(struct delivery *delivery);
/* Reads the caller's trace headers and begins a span where one is due. */
void delivery_note_trace(struct delivery *delivery);
void delivery_end_span(struct delivery *delivery, unsigned code);
/* After a burst the process gives its memory back. */
void intake_trim(struct rcpt_intake *intake, int64_t now);
void intake_free_spares(struct rcpt_intake *intake);

/* ---- targets.c ---- */
/* Makes the targets of the configuration; each lives as long as the intake. */
RCPT_MUST_CHECK bool intake_make_targets(struct rcpt_intake *intake, struct rcpt_error *error);
void intake_free_targets(struct rcpt_intake *intake);
/* NULL: this topic was not among them at the start. */
struct intake_target *intake_find_target(struct rcpt_intake *intake, const char *topic);
size_t intake_record_bytes(const struct rcpt_intake *intake); /* open and on their way */
bool intake_has_records(const struct rcpt_intake *intake);    /* any of these */

/* ---- kafka.c ---- */
/* The callback on_closed gets the intake when the producer has ended. */
RCPT_MUST_CHECK bool intake_start_producer(struct rcpt_intake *intake,
                                           void (*on_closed)(void *context),
                                           struct rcpt_error *error);
/* Sends due records. */
void intake_flush(struct rcpt_intake *intake);
/* Holds the ticket until it is acknowledged. */
void intake_send_letter(struct delivery *delivery, const struct rcpt_gateway_drop *drop);

/* ---- fetch.c ---- */
/* For rcpt_gateway_request; the context is the intake. */
const char *intake_find_certificate(void *context, const char *url);
/* Reads the request again when the certificate that it names has come, or refuses it. It waits
 * without its arena. */
void intake_await_certificate(struct delivery *delivery);
bool intake_is_fetching(const struct rcpt_intake *intake);
/* Asks for the URL once; the answer waits for it. */
void intake_confirm(struct delivery *delivery);
void intake_free_certificates(struct rcpt_intake *intake);

/* ---- alias.c ---- */
void intake_start_aliases(struct rcpt_intake *intake);
void intake_apply_dsn(struct rcpt_intake *intake);
/* Finds the message id of this event's gateway id; false: it has to be looked up first. */
bool intake_resolve(struct rcpt_intake *intake, const struct intake_account *account,
                    const struct rcpt_gateway_event *event, struct rcpt_alias *found);
/* Whether a look-up can be made now. */
bool intake_can_look_up(const struct rcpt_intake *intake);
void intake_look_up(struct delivery *delivery);

#endif
