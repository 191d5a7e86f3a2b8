/* The context of every module of the running daemon: the loop, the configuration, the metrics, the
 * tracer, the name of the instance, and the owner's callbacks.
 *
 * The owner (run.c) fills it and outlives all modules; modules keep a pointer. Modules never learn
 * who owns the process: they call host_fail() and its like, which go to the owner's callbacks. Work
 * that is due every 50 ms registers a ticker. Call from the loop's thread only. Private to this
 * daemon.
 */
#ifndef RECEIPTD_HOST_CONTEXT_H
#define RECEIPTD_HOST_CONTEXT_H

#include <uv.h>

#include "receiptd/base/outage.h"
#include "receiptd/config/config.h"
#include "receiptd/host/metrics.h"
#include "receiptd/postgres/connection.h"
#include "receiptd/trace/tracer.h"

#define HOST_REASON_BYTES   800u /* an error with its hint */
#define HOST_MOST_REASONS   12u
#define HOST_TICK_MS        50
#define HOST_INSTANCE_BYTES 80u

struct host_hooks { /* callbacks of the owner; `owner` is their first argument */
    void *owner;
    void (*fail)(void *owner, const struct rcpt_error *error);
    void (*update_readiness)(void *owner);
    void (*check_drain)(void *owner);
    unsigned (*reasons)(const void *owner, const char *reasons[HOST_MOST_REASONS]);
};

/* The life of the process, in this order. The owner sets it by host_enter(). */
enum host_phase {
    HOST_STARTING, /* modules start one after the other; a failure stops the process */
    HOST_RUNNING,  /* until a signal or a fatal error */
    HOST_STOPPING, /* work in flight settles, the group is left; at most shutdown.deadline */
    HOST_CLOSING,  /* everything has settled: connections and handles close */
    HOST_CLOSED,   /* the loop is empty */
    HOST_PHASE__COUNT,
};

/* Called every HOST_TICK_MS from registration to the end, in the order of registration. */
struct host_ticker {
    void (*tick)(void *context);
    void *context;
    struct host_ticker *next;
};

struct host_context {
    uv_loop_t *loop;
    struct rcpt_config *config; /* a reload exchanges single values */
    const char *config_path;
    struct rcpt_metrics *metrics;
    struct rcpt_tracer *tracer; /* NULL: nothing is traced */
    struct host_hooks host;
    struct rcpt_pg_lineage lineage; /* of the database */
    bool recalled; /* the lineage has what Kafka remembers: nothing is read or written before */
    struct rcpt_outage *database; /* shared by all connections to PostgreSQL */
    struct rcpt_pg_peers peers;   /* all connections to PostgreSQL */
    struct host_ticker *tickers;
    struct host_places *places; /* of all readers (places.h) */
    enum host_phase phase;
    bool ready, was_ready; /* as logged last; once at least */
    unsigned halted;       /* how much of the work stands still until an operator acts */
    char halt_reason[HOST_REASON_BYTES]; /* of the last halt */
    int64_t started_ms, loaded_ms;       /* the process, the configuration; since 1970 */
    unsigned open;                       /* things that have to say that they are closed */
    char instance[HOST_INSTANCE_BYTES];
};

/* Counts a loss of the connection that `was_up`; a failed attempt does not count. */
void host_count_lost(const struct host_context *context, const char *connection, bool was_up);
int64_t host_now(const struct host_context *context); /* of the loop, in milliseconds */
int64_t host_wall_ms(void);                           /* since 1970 */
static inline bool host_is_stopping(const struct host_context *context)
{
    return context->phase >= HOST_STOPPING;
}

/* The one setter of the phase: asserts that it may follow, and logs it. For the owner only. */
void host_enter(struct host_context *context, enum host_phase phase, const char *reason);

/* The ticker is borrowed for good. */
void host_add_ticker(struct host_context *context, struct host_ticker *ticker);

/* Logs the error and drains; the process ends with error->exit_code. */
void host_fail(const struct host_context *context, const struct rcpt_error *error);
/* Part of the work stands still: logs the error; the process is not ready until host_go_on(). */
void host_halt(struct host_context *context, const struct rcpt_error *error);
/* Ends one halt: the halted work goes on. */
void host_go_on(struct host_context *context);
/* Call when something has changed on which readiness may depend. */
void host_update_readiness(const struct host_context *context);
/* Call when something has settled: goes on with the drain if one is under way. */
void host_check_drain(const struct host_context *context);
/* All reasons for not being ready, the most important first; returns how many. */
unsigned host_reasons(const struct host_context *context, const char *reasons[HOST_MOST_REASONS]);

/* The reason "STATE: CAUSE; HINT: …" of an error. */
void host_set_reason(char reason[HOST_REASON_BYTES], const char *state,
                     const struct rcpt_error *error);
/* The reason without its cause, which is logged where it occurs. */
void host_name_state(char state[HOST_REASON_BYTES], const char *reason);

/* host_open() counts a thing that is open, and host_closed() says later that it is closed. The
 * function host_close_handle() closes a handle of the loop and counts it until it is closed; it
 * overwrites the handle's `data`. */
void host_open(struct host_context *context);
void host_closed(struct host_context *context);
void host_close_handle(struct host_context *context, uv_handle_t *handle);

/* Settings that all connections share; context, callbacks and statements are the caller's. */
struct rcpt_pg_settings host_pg_settings(struct host_context *context, const char *name);

/* ---- process.c ---- */
/* Records are allocated by librdkafka's threads and freed by ours, of all sizes: few arenas and a
 * fixed threshold for large blocks keep resident memory near used memory. */
void host_limit_memory(void);
/* Gives memory back to the system when a burst is over; called at every tick. */
struct host_burst {
    uint64_t most_bytes; /* held since memory was given back */
    int64_t over_at_ms;  /* unless more is held by then */
};
void host_trim_memory(struct host_burst *burst, uint64_t held_bytes, int64_t now_ms);
/* HOST-PID, which tells the instances of a group apart. */
void host_name_instance(char name[HOST_INSTANCE_BYTES]);

/* ---- kafka_properties.c ---- */
struct rcpt_kafka_property;
/* kafka.properties as all clients get them. The caller frees the array; its texts belong to the
 * configuration. */
struct rcpt_kafka_property *host_kafka_properties(const struct rcpt_config *config);
/* The same for a reader that begins again with each assignment: its group is eager, whatever the
 * receipts' own group is. */
struct rcpt_kafka_property *host_kafka_reader_properties(const struct rcpt_config *config,
                                                         size_t *count);
/* The credentials that a reload may change; borrowed from the configuration. */
struct rcpt_kafka_credentials;
void host_kafka_credentials(const struct rcpt_config *config,
                            struct rcpt_kafka_credentials *credentials);

#endif
