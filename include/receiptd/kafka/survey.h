/* A survey of a group's topics, as a client outside the group sees them. For each partition it has
 * the log's begin and end, the group's member that has it, and the note beside the group's
 * committed offset. Knows nothing of positions in PostgreSQL.
 */
#ifndef RECEIPTD_KAFKA_SURVEY_H
#define RECEIPTD_KAFKA_SURVEY_H

#include "receiptd/kafka/consumer.h"

enum rcpt_kafka_owner {
    RCPT_KAFKA_OWNER_UNKNOWN, /* the group is about to change, or could not be read */
    RCPT_KAFKA_OWNER_NOBODY,
    RCPT_KAFKA_OWNER_OURS,  /* a member with our client.id */
    RCPT_KAFKA_OWNER_OTHER, /* a member with another client.id: not a receiptd */
};

struct rcpt_kafka_place {
    char *topic;
    int32_t partition;
    int64_t low, high; /* of the log; -1: not known */
    int64_t at; /* first record of a time (rcpt_kafka_survey_at); -1: not asked, or not known */
    int64_t committed; /* the group's offset, which is advisory; -1: none, or not known */
    enum rcpt_kafka_owner owner;
    char *member; /* owner: client.id and host; NULL: no member has it, or it is not known */
    char *note;   /* NULL: none */
};

struct rcpt_kafka_survey {
    struct rcpt_kafka_place *places; /* topic by topic, in the order of the settings */
    size_t count;
    char *cluster_id; /* for commands; NULL: not asked, or not known */
    bool notes_are_known;
    struct rcpt_error error; /* of the last thing that could not be read; decision NONE: nothing */
};

/* Surveys in a thread; a connection of its own is kept for the next one. The survey is valid during
 * the call; NULL: no answer in time, or the partitions are not known yet. One at a time. */
void rcpt_kafka_survey(struct rcpt_kafka *kafka,
                       void (*on_done)(void *context, const struct rcpt_kafka_survey *survey),
                       void *context);

/* The same for commands: blocks. False: the cluster cannot be read, or a topic does not exist. The
 * caller frees the survey. It uses only brokers, group, topics and properties of the settings. */
RCPT_MUST_CHECK bool rcpt_kafka_survey_now(const struct rcpt_kafka_settings *settings,
                                           struct rcpt_kafka_survey *survey,
                                           struct rcpt_error *error);
/* Sets `at` of each place to its first record with this time or a later one, by Kafka's timestamps;
 * to `high` if there is none. False: the cluster does not answer. */
RCPT_MUST_CHECK bool rcpt_kafka_survey_at(const struct rcpt_kafka_settings *settings,
                                          struct rcpt_kafka_survey *survey, int64_t at_ms,
                                          struct rcpt_error *error);
void rcpt_kafka_survey_free(struct rcpt_kafka_survey *survey);

/* Records that are not applied; -1: not known. The group's offset may be ahead of the position, by
 * records that no consumer gets. `offset_holds`: it was written beside this position's database. */
int64_t rcpt_kafka_place_lag(const struct rcpt_kafka_place *place, int64_t position,
                             bool offset_holds);

#endif
