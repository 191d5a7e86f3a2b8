/* Shared by the files of src/kafka. Private to src/kafka.
 *
 * consumer.c    lifecycle, the loop's handles, dispatch of control events
 * partition.c   the assigned partitions: list, queues, states
 * assignment.c  rebalances, seek and re-assignment
 * messages.c    rounds over the partition queues, errors of one partition
 * inflate.c     a bound on the size to which librdkafka inflates batches
 * oversized.c   the way past a batch beyond that bound
 * cluster.c     lookups in threads: cluster id, partition counts, watermarks
 * survey.c      the group's topics seen from outside: ends, owners, notes
 * advice.c      hints for trouble with TLS and passwords, by the values that are set
 * health.c      the meaning of errors, transitions of health, rate-limited logs
 * settings.c    properties: defaults, the protocol's own, checks
 * producer.c    the other direction: records, deliveries, a new client for a failed one
 * transactor.c, transactor_records.c  records in transactions
 * send_settings.c  properties of both
 * client.c      parts of all clients: copies of settings, waking the loop, the end of a handle
 * worker.c      jobs in threads of their own, with a deadline
 */
#ifndef RECEIPTD_KAFKA_INTERNAL_H
#define RECEIPTD_KAFKA_INTERNAL_H

#include <librdkafka/rdkafka.h>

#include "receiptd/base/backoff.h"
#include "receiptd/base/buffer.h"
#include "receiptd/base/log.h"
#include "receiptd/base/states.h"
#include "receiptd/kafka/consumer.h"
#include "receiptd/kafka/producer.h"
#include "worker.h"

enum partition_state {
    PARTITION_ACTIVE,       /* polled while the owner takes records */
    PARTITION_BACKING_OFF,  /* a damaged batch: fetched again from `next` at `retry_at_ms` (tick) */
    PARTITION_OUT_OF_RANGE, /* nothing comes until the owner seeks or re-assigns */
    PARTITION_MOVING,       /* to be re-assigned at `next`, by the next turn */
    PARTITION_STATE__COUNT,
};

enum kafka_life {
    LIFE_OPEN,
    LIFE_CLOSE_ASKED, /* the next turn leaves the group */
    LIFE_LEAVING,     /* until librdkafka says closed, or the deadline */
    LIFE_DESTROYING,  /* a worker destroys the handle */
    LIFE_ENDING,      /* handles of the loop close; the last one frees */
    LIFE__COUNT,
};

struct oversized { /* the search for the end of a batch that is not inflated */
    bool searching;
    int64_t base;   /* the batch's first offset */
    int64_t start;  /* where the partition stood */
    int64_t first;  /* of the batch's offsets, the first that is needed */
    int64_t inside; /* known to be of the batch */
    int64_t behind; /* known not to be; INT64_MAX: none is known */
    int64_t probe;  /* what is fetched now, to see which of the two it is */
    int64_t step;
    int64_t until_ms; /* nothing came by then: behind (tick) */
    size_t in_size;   /* compressed */
};

struct partition {
    char *topic;
    int32_t partition;
    enum partition_state state;
    void *tag;
    rd_kafka_queue_t *queue;
    int64_t next; /* last offset handed out + 1, or where it starts */
    int64_t end;  /* where the log ended when all before was handed out; 0: not reached yet */
    int64_t retry_at_ms;
    unsigned retries;
    uint64_t epoch;   /* another one after each assign and each move: late answers are recognised */
    bool troubled;    /* counted in health.troubled_partitions */
    int64_t time_ms;  /* of the last record handed out; 0: none yet */
    uint64_t done_in; /* number of the round in which it had nothing more to give */
    struct oversized oversized;
};

#define LOGGED_CODES 16

struct logged_code { /* at_ms 0: free */
    char code[32];
    int64_t at_ms;
    unsigned suppressed;
};

struct health {
    bool healthy; /* as on_health was called last; false at first */
    bool cluster_trouble;
    char cluster_code[32]; /* of the trouble that was reported last */
    bool group_trouble;
    bool fatal;
    unsigned troubled_partitions;
    struct logged_code logged[LOGGED_CODES];
};

/* Back-off of lookups of the cluster. */
#define RCPT_KAFKA_LOOKUP_MIN_MS 250
#define RCPT_KAFKA_LOOKUP_MAX_MS 5000
/* An eventfd that librdkafka writes to when an empty queue gets its first event. */
struct rcpt_kafka_wake {
    uv_poll_t poll; /* first: its callbacks find the wake by it; data is the context */
    int fd;
    void (*on_wake)(void *context);
    void *context;
};

#define ROUND_MESSAGES 256u /* of all partitions, see messages.c */

struct rcpt_kafka {
    struct rcpt_kafka_settings settings; /* deep copy */
    struct rcpt_kafka_callbacks callbacks;
    uv_loop_t *loop;

    rd_kafka_t *handle;        /* NULL before the group is joined */
    rd_kafka_queue_t *control; /* rebalances and errors */
    rd_kafka_queue_t *logs;
    struct rcpt_kafka_wake wake;
    uv_idle_t again; /* active: a turn is due without waiting */
    uv_idle_cb on_again;
    void (*on_topics_known)(struct rcpt_kafka *kafka); /* of consumer.c: joins if it may */
    uv_timer_t tick;
    unsigned open_handles;

    struct rcpt_kafka_workers *workers;
    rd_kafka_t *survey_handle; /* NULL: none yet, or a survey is under way */

    struct partition **partitions;
    size_t partition_count, partition_capacity;
    size_t turn; /* whose turn it is */
    bool favour; /* the turn is that of the partition that is furthest behind */
    struct {
        unsigned messages;
        size_t bytes;
    } taken;                 /* in this turn, which a round may have cut */
    unsigned round_messages; /* bound of a round; tests make it small */
    uint64_t rounds;
    uint64_t epochs;
    rd_kafka_topic_partition_list_t *held; /* an assignment that waits for rcpt_kafka_assign */
    bool moves_pending;

    char *cluster_id;
    int32_t *counts; /* per topic of the settings; -1: not known yet */
    bool lookup_in_flight;
    int64_t lookup_at_ms; /* when to look up the cluster next; INT64_MAX: no need */
    struct rcpt_backoff lookup_backoff;

    struct health health;
    int64_t committed_at_ms;
    char committed_note[128];
    bool subscribe_requested;
    bool polling;
    enum kafka_life life; /* consumer.c sets it */
    int64_t close_deadline_ms;
};

static inline int64_t rcpt_kafka_now_ms(const struct rcpt_kafka *kafka)
{
    return (int64_t)uv_now(kafka->loop);
}

/* Has a turn run soon, without waiting for an event. */
static inline void rcpt_kafka_again(struct rcpt_kafka *kafka)
{
    if (kafka->life < LIFE_ENDING)
        uv_idle_start(&kafka->again, kafka->on_again);
}

/* client.c */
/* A client that joins no group. NULL with the error where librdkafka refuses the configuration. */
RCPT_MUST_CHECK rd_kafka_t *rcpt_kafka_open(rd_kafka_conf_t *conf_taken, struct rcpt_error *error);
void rcpt_kafka_copy_settings(struct rcpt_kafka_settings *to,
                              const struct rcpt_kafka_settings *from); /* deep */
void rcpt_kafka_free_settings(struct rcpt_kafka_settings *settings);   /* of such a copy */
/* Copies credentials into a deep copy of settings, in place of the former ones. */
void rcpt_kafka_take_credentials(struct rcpt_kafka_settings *settings,
                                 const struct rcpt_kafka_credentials *credentials);
/* The client uses those of the settings from its next connection on; a thread may use it meanwhile.
 */
void rcpt_kafka_use_credentials(rd_kafka_t *handle, const struct rcpt_kafka_settings *settings);
/* The descriptor is there from here on, and open until the caller closes it. */
void rcpt_kafka_wake_open(struct rcpt_kafka_wake *wake, void (*on_wake)(void *context),
                          void *context);
void rcpt_kafka_wake_start(struct rcpt_kafka_wake *wake, uv_loop_t *loop);
void rcpt_kafka_wake_by(const struct rcpt_kafka_wake *wake, rd_kafka_queue_t *queue);
/* librdkafka must not write to the descriptor's number once that belongs to another file. */
void rcpt_kafka_release_queue(rd_kafka_queue_t *queue);
/* In a thread, since it may take long. `on_destroyed` NULL: nothing waits for it. */
void rcpt_kafka_destroy_handle(struct rcpt_kafka_workers *workers, rd_kafka_t *handle_taken,
                               int64_t allowance_ms, void (*on_destroyed)(void *context),
                               void *context);

/* settings.c */
RCPT_MUST_CHECK bool rcpt_kafka_set_properties(rd_kafka_conf_t *conf,
                                               const struct rcpt_kafka_property *properties,
                                               size_t count, struct rcpt_error *error);
struct fetch_limits {
    size_t queued_kbytes;   /* queued.max.messages.kbytes, per partition */
    size_t queued_messages; /* queued.min.messages, per partition */
    size_t fetch_bytes;     /* fetch.message.max.bytes, per partition */
};
struct fetch_limits rcpt_kafka_fetch_limits(size_t budget_bytes, size_t partitions);
/* limits NULL: for a lookup, a handle that is no member of the group. NULL and the error on
 * refusal. */
rd_kafka_conf_t *rcpt_kafka_conf_new(const struct rcpt_kafka_settings *settings,
                                     const struct fetch_limits *limits, struct rcpt_error *error);
RCPT_MUST_CHECK bool rcpt_kafka_set_property(rd_kafka_conf_t *conf, const char *name,
                                             const char *value, struct rcpt_error *error);
void rcpt_kafka_warn_of_library(const struct rcpt_kafka_settings *settings);
/* The value of a property in kafka.properties, the last one if it is there more than once; NULL:
 * not set. */
const char *rcpt_kafka_property(const struct rcpt_kafka_settings *settings, const char *name);
/* sasl.mechanism in either spelling; NULL: not set. */
const char *rcpt_kafka_mechanism(const struct rcpt_kafka_settings *settings);
/* Whether this librdkafka cannot do the SCRAM that is asked for where the broker is of release 4.
 */
bool rcpt_kafka_is_scram_broken(const struct rcpt_kafka_settings *settings);

/* send_settings.c: NULL and the error on refusal. `producer` false: to read the mark. */
struct rcpt_producer_settings;
struct rcpt_transactor_settings;
rd_kafka_conf_t *rcpt_producer_conf_new(const struct rcpt_producer_settings *settings,
                                        struct rcpt_error *error);
rd_kafka_conf_t *rcpt_transactor_conf_new(const struct rcpt_transactor_settings *settings,
                                          bool producer, struct rcpt_error *error);

/* transactor_records.c */
struct rcpt_transactor_record;
struct rcpt_transactor_records {
    struct rcpt_transactor_record *list; /* their texts are in the block */
    size_t count;
    struct rcpt_buffer block;
};
void rcpt_transactor_records_copy(struct rcpt_transactor_records *copies,
                                  const struct rcpt_transactor_record *records, size_t count);
void rcpt_transactor_records_free(struct rcpt_transactor_records *copies);
/* The caller owns them. */
rd_kafka_headers_t *rcpt_transactor_headers(const struct rcpt_transactor_record *record);

/* advice.c */
/* Replaces the hint of an error of TLS or of a password by one that names what is set. */
void rcpt_kafka_advise(const struct rcpt_kafka_settings *settings, struct rcpt_error *error);
void rcpt_producer_advise(const struct rcpt_producer_settings *settings, struct rcpt_error *error);

/* partition.c */
struct partition *rcpt_kafka_find(const struct rcpt_kafka *kafka, const char *topic,
                                  int32_t number);
/* Any state may follow any other but MOVING: a move that was asked for is carried out. */
void rcpt_kafka_set_partition(struct partition *partition, enum partition_state state);
void rcpt_kafka_bind_queue(struct rcpt_kafka *kafka, struct partition *partition);
void rcpt_kafka_partition_add(struct rcpt_kafka *kafka, const struct rcpt_kafka_partition *given,
                              void *tag);
void rcpt_kafka_partition_remove(struct rcpt_kafka *kafka, size_t index);
/* Drops every partition without a callback. */
void rcpt_kafka_forget_partitions(struct rcpt_kafka *kafka);

/* assignment.c */
void rcpt_kafka_on_rebalance(struct rcpt_kafka *kafka, rd_kafka_event_t *event);
/* Withdraws an assignment that is still held, with the callback. */
void rcpt_kafka_withdraw_held(struct rcpt_kafka *kafka);
/* Carries out the moves that were asked for. */
void rcpt_kafka_apply_moves(struct rcpt_kafka *kafka);
void rcpt_kafka_seek_now(struct rcpt_kafka *kafka, struct partition *partition, int64_t offset);
bool rcpt_kafka_is_cooperative(const struct rcpt_kafka *kafka);

/* messages.c: one round; true: it stopped before the queues were empty. */
bool rcpt_kafka_round(struct rcpt_kafka *kafka);
/* Fetches damaged batches again whose time has come. */
void rcpt_kafka_retry_partitions(struct rcpt_kafka *kafka);

/* inflate.c */
enum rcpt_inflate_verdict {
    RCPT_INFLATE_NOT_REFUSED, /* it is damaged, or of a codec that is not bounded here */
    RCPT_INFLATE_TOO_LARGE,
    RCPT_INFLATE_NO_CAPACITY, /* for those before it in the same fetch */
};
/* The reason why the batch of this compressed size, which librdkafka could not decompress, was
 * refused. Each refusal is reported once. If several have this size, the one that skips nothing is
 * reported. */
enum rcpt_inflate_verdict rcpt_inflate_verdict(size_t compressed_size);
size_t rcpt_inflate_get_limit(void);
/* False: librdkafka does not use these functions, since it brings codecs of its own. */
bool rcpt_inflate_is_bounded(void);

/* oversized.c */
/* librdkafka says that the batch at `base` was refused. */
void rcpt_kafka_refused(struct rcpt_kafka *kafka, struct partition *partition, int64_t base,
                        size_t in_size);
/* Call while searching, when something else than the batch came. True: the search has ended. */
bool rcpt_kafka_is_behind(struct rcpt_kafka *kafka, struct partition *partition);
/* Fetches from the same offset again. */
void rcpt_kafka_probe_again(struct rcpt_kafka *kafka, struct partition *partition);
void rcpt_kafka_tick_search(struct rcpt_kafka *kafka, struct partition *partition);

/* cluster.c */
/* Blocks; for a worker. Counts of topics that do not exist are 0, those that were not answered
 * stay. */
void rcpt_kafka_count_partitions(rd_kafka_t *handle, rd_kafka_topic_t *const *topics, size_t count,
                                 const char *brokers, int32_t *counts, struct rcpt_error *error);
/* Starts a look-up if one is due. `handle` NULL: one is made. */
void rcpt_kafka_look_up(struct rcpt_kafka *kafka, rd_kafka_t *handle_taken);
void rcpt_kafka_query_range(struct rcpt_kafka *kafka, const struct partition *partition,
                            int64_t requested);

/* health.c */
/* Fills the error for a librdkafka code: text, hint, decision. */
void rcpt_kafka_describe(struct rcpt_error *error, rd_kafka_resp_err_t code, const char *subject,
                         const char *text);
/* An error event of the control queue. */
void rcpt_kafka_on_error(struct rcpt_kafka *kafka, rd_kafka_resp_err_t code, const char *text,
                         bool fatal);
void rcpt_kafka_cluster_trouble(struct rcpt_kafka *kafka, const struct rcpt_error *error);
void rcpt_kafka_cluster_fine(struct rcpt_kafka *kafka);
void rcpt_kafka_group_fine(struct rcpt_kafka *kafka);
void rcpt_kafka_partition_trouble(struct rcpt_kafka *kafka, struct partition *partition,
                                  const struct rcpt_error *error);
void rcpt_kafka_partition_fine(struct rcpt_kafka *kafka, struct partition *partition);
void rcpt_kafka_fatal(struct rcpt_kafka *kafka, const struct rcpt_error *error);
/* Has the cluster looked up soon, for what its metadata may show. */
void rcpt_kafka_look_up_soon(struct rcpt_kafka *kafka);

#endif
