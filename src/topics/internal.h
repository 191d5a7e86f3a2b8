/* A reader of topics between its files.
 *
 * reader.c     the group, the consumer, the connection: its states
 * positions.c  where it stands: positions in PostgreSQL, rewinds, records that are gone
 * batch.c      records in, transactions out
 */
#ifndef RECEIPTD_TOPICS_INTERNAL_H
#define RECEIPTD_TOPICS_INTERNAL_H

#include "receiptd/host/places.h"
#include "receiptd/topics/topics.h"

enum topics_state {
    TOPICS_CLOSED,  /* no consumer, until topics_open */
    TOPICS_WAITING, /* for an assignment, or until retry_at_ms to read the positions again */
    TOPICS_READING, /* for positions, or for low watermarks of partitions without one */
    TOPICS_READY,   /* for records */
    TOPICS_LEAVING, /* for the transaction in flight */
    TOPICS_CLOSING, /* for the consumer to leave its group */
    TOPICS_STATE__COUNT,
};

struct topics_partition {
    char *topic;
    int32_t number;
    int64_t expected;      /* position in the database */
    int64_t sent, read;    /* behind the transaction in flight; behind what is in memory */
    int64_t delivered;     /* behind what the consumer delivered last, taken or not */
    int64_t rewound_from;  /* records from here on are dropped until one below came; 0: none */
    int64_t rewound_at_ms; /* without a record for REWIND_MS: assigned again, then it is a gap */
    unsigned rewinds;
    bool stands_still; /* its log ends below the position: until an operator has set it */
};

struct topics_reader {
    struct topics_settings settings;
    struct rcpt_pg *pg; /* asynchronous commit: positions cover all that it writes */
    struct rcpt_kafka *kafka;
    struct rcpt_asker asker; /* for `places`: they use the same connection; logs all failures */
    struct host_places *places;
    struct topics_partition *partitions; /* sorted by topic and number: rows are locked in order */
    size_t partition_count;
    enum topics_state state;
    uint64_t serial;      /* of the assignment or resync: answers to an older one are ignored */
    uint64_t sent_serial; /* of the transaction in flight */
    int64_t retry_at_ms;
    bool up;                /* the connection */
    bool in_flight;         /* a transaction */
    bool read_after_flight; /* READING waits for its end: it may move the positions */
    bool starved;           /* the consumer was refused a turn: it has to be kicked */
    bool subscribed, assigned;
    bool joined; /* the group has given partitions, or none, and has taken none since */
    bool kafka_healthy;
    char kafka_reason[HOST_REASON_BYTES], reason[HOST_REASON_BYTES];
    bool positions_refused, batch_refused; /* members of the asker's outage */
    void (*on_closed)(void *context);
    void *closed_context;
};

/* ---- reader.c ---- */
/* The only place that changes the state. */
void topics_set_state(struct topics_reader *reader, enum topics_state state, const char *reason);
/* LEAVING ends as soon as nothing is in flight. */
void topics_leave_if_settled(struct topics_reader *reader);

/* ---- positions.c ---- */
void topics_positions_set(struct topics_reader *reader,
                          const struct rcpt_kafka_partition *partitions, size_t count);
void topics_positions_forget(struct topics_reader *reader); /* the partitions themselves */
/* Drops the records in memory and reads the positions again. */
void topics_positions_resync(struct topics_reader *reader);
void topics_positions_read(struct topics_reader *reader);
void topics_positions_assign(struct topics_reader *reader);
void topics_positions_tick(struct topics_reader *reader);
void topics_positions_on_out_of_range(void *context, void *tag, const char *topic, int32_t number,
                                      int64_t offset, int64_t low, int64_t high);

/* ---- batch.c ---- */
bool topics_batch_wants(void *context, const char *topic, int32_t number, void *tag);
void topics_batch_on_message(void *context, void *tag, const struct rcpt_kafka_message *message);
void topics_batch_on_round(void *context);
void topics_batch_send(struct topics_reader *reader);         /* if there is anything, and it may */
void topics_batch_continue(struct topics_reader *reader);     /* to take in, if it was refused */
void topics_batch_commit(const struct topics_reader *reader); /* advisory offsets to Kafka */
/* Two parameters: topics and partitions. */
void topics_batch_put(struct rcpt_pg_encoder *encoder, const struct rcpt_kafka_partition *places,
                      size_t count);

#endif
