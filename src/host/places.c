/* Surveys of a reader's topics (places.h): first Kafka, in a thread, then the positions in
 * PostgreSQL, so that a lag is never too small for long. Made by receipts.c and topics/reader.c. */
#include "receiptd/host/places.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EVERY_MS   5000
#define SOON_MS    1000  /* while nothing may begin before the answer */
#define STALE_MS   15000 /* older answers count as unknown */
#define UNOWNED_MS 7000  /* a partition without a receiptd for so long is a reason */
#define SILENT_MS  7000  /* likewise a coordinator that says nothing of the group */

struct host_places {
    struct host_places_settings settings;
    struct host_places *next;
    struct rcpt_ask ask;
    bool surveying;
    int64_t survey_at_ms;
    struct rcpt_kafka_survey survey;           /* the last one; its strings are ours */
    int64_t *positions;                        /* of its places; -1: not known */
    int64_t *unowned_since_ms;                 /* likewise; 0: owned, or never known */
    int64_t surveyed_ms, read_ms, answered_ms; /* answered: by the coordinator of the group */
    char reason[HOST_REASON_BYTES];
};

static int64_t now_of(const struct host_places *places)
{
    return host_now(places->settings.context);
}

/* ---- owners ---- */

static bool is_unowned(enum rcpt_kafka_owner owner)
{
    return owner == RCPT_KAFKA_OWNER_NOBODY || owner == RCPT_KAFKA_OWNER_OTHER;
}

/* The receipts' group has the configured name, a reader's group its own behind it. */
static void name_group(const struct host_places *places, char group[120])
{
    const char *reader = places->settings.reader;
    bool of_reader = strcmp(reader, "receipts") != 0;
    snprintf(group, 120, "%.80s%s%s", places->settings.context->config->kafka.group,
             of_reader ? "-" : "", of_reader ? reader : "");
}

static void describe(struct host_places *places, size_t first, size_t count)
{
    const struct rcpt_kafka_place *place = &places->survey.places[first];
    bool other = place->owner == RCPT_KAFKA_OWNER_OTHER;
    struct rcpt_error error;
    char group[120];
    name_group(places, group);
    rcpt_error_set(&error, RCPT_DECISION_RETRY, "",
                   "nobody works on topic %s partition %" PRId32 "%s: group %s %s%s", place->topic,
                   place->partition, count > 1 ? " and others" : "", group,
                   other ? "gave it to " : "gave it to no member", other ? place->member : "");
    rcpt_error_hint(&error, other ? "that member is no receiptd: end it, or give it another group"
                                  : "restart an instance if this lasts");
    host_set_reason(places->reason, "a partition has no owner", &error);
}

/* A gap of knowledge does not make a partition owned. */
static void judge_owners(struct host_places *places)
{
    size_t first = 0, count = 0;
    int64_t now = now_of(places);
    for (size_t index = places->survey.count; index-- > 0;) {
        enum rcpt_kafka_owner owner = places->survey.places[index].owner;
        int64_t *since = &places->unowned_since_ms[index];
        if (owner == RCPT_KAFKA_OWNER_OURS)
            *since = 0;
        else if (is_unowned(owner) && *since == 0)
            *since = now;
        if (!is_unowned(owner) || now - *since < UNOWNED_MS)
            continue;
        first = index;
        count++;
    }
    places->reason[0] = '\0';
    if (count > 0)
        describe(places, first, count);
}

/* An instance without partitions loses none, so only this check notices a silent coordinator. */
static void judge_coordinator(struct host_places *places)
{
    struct rcpt_error error;
    char group[120];
    if (places->survey.notes_are_known)
        places->answered_ms = now_of(places);
    if (places->survey.notes_are_known || now_of(places) - places->answered_ms < SILENT_MS)
        return;
    name_group(places, group);
    rcpt_error_set(&error, RCPT_DECISION_RETRY, "", "group %s: %.300s", group,
                   places->survey.error.text);
    rcpt_error_hint(&error, "check the brokers that hold __consumer_offsets");
    host_set_reason(places->reason, "the coordinator of the group does not answer", &error);
}

/* ---- positions ---- */

static void on_positions(void *context, const struct rcpt_pg_rows *rows)
{
    struct host_places *places = context;
    if (rcpt_pg_rows_count(rows) != places->survey.count)
        return; /* a topic has got partitions since: the next survey asks for all */
    for (size_t index = 0; index < places->survey.count; index++)
        places->positions[index] =
            rcpt_pg_rows_text(rows, index, 0) != NULL ? rcpt_pg_rows_int(rows, index, 0) : -1;
    places->read_ms = now_of(places);
}

/* Asks after Kafka's ends were read. A record that is applied in between makes a lag too small for
 * one interval at most. One that arrives in between is not counted yet. */
static void ask_positions(struct host_places *places)
{
    const struct rcpt_kafka_survey *survey = &places->survey;
    struct rcpt_pg_encoder *encoder = survey->count > 0 ? rcpt_ask_begin(&places->ask) : NULL;
    if (encoder == NULL)
        return;
    rcpt_pg_begin_text_array(encoder, survey->count);
    for (size_t index = 0; index < survey->count; index++)
        rcpt_pg_put_bytes(encoder, survey->places[index].topic,
                          strlen(survey->places[index].topic));
    rcpt_pg_begin_int4_array(encoder, survey->count);
    for (size_t index = 0; index < survey->count; index++)
        rcpt_pg_put_int4(encoder, survey->places[index].partition);
    rcpt_ask_send(&places->ask);
}

/* ---- Kafka ---- */

static char *copy(const char *text)
{
    return text != NULL ? rcpt_strdup(text) : NULL;
}

/* If the number of places has changed, all of them are new. */
static void resize(struct host_places *places, size_t count)
{
    if (places->survey.count == count)
        return;
    places->positions = rcpt_realloc(places->positions, (count + 1) * sizeof(*places->positions));
    places->unowned_since_ms =
        rcpt_realloc(places->unowned_since_ms, (count + 1) * sizeof(*places->unowned_since_ms));
    for (size_t index = 0; index < count; index++) {
        places->positions[index] = -1;
        places->unowned_since_ms[index] = 0;
    }
    places->read_ms = 0;
}

/* Copies, since the survey and its strings are valid during the call only. */
static void take(struct host_places *places, const struct rcpt_kafka_survey *survey)
{
    resize(places, survey->count);
    rcpt_kafka_survey_free(&places->survey);
    places->survey = *survey;
    places->survey.places = rcpt_calloc(survey->count + 1, sizeof(*survey->places));
    for (size_t index = 0; index < survey->count; index++) {
        struct rcpt_kafka_place *place = &places->survey.places[index];
        *place = survey->places[index];
        place->topic = copy(place->topic);
        place->member = copy(place->member);
        place->note = copy(place->note);
    }
    places->surveyed_ms = now_of(places);
}

/* Learns what the members of the group have noted beside its offsets. */
static void recall(struct host_places *places)
{
    struct host_context *context = places->settings.context;
    struct rcpt_pg_server server;
    for (size_t index = 0; index < places->survey.count; index++)
        if (places->survey.places[index].note != NULL &&
            rcpt_pg_server_read(places->survey.places[index].note, &server))
            rcpt_pg_lineage_add(&context->lineage, server);
    context->recalled |= places->survey.notes_are_known && places->settings.remembers;
}

/* NULL: no answer came in time. The last survey stays until it is stale (STALE_MS). */
static void on_survey(void *context, const struct rcpt_kafka_survey *survey)
{
    struct host_places *places = context;
    places->surveying = false;
    if (survey == NULL || survey->count == 0 || host_is_stopping(places->settings.context))
        return;
    if (survey->error.decision != RCPT_DECISION_NONE)
        rcpt_log_debug("app", "%s: not all of the topics' places can be read: %s",
                       places->settings.reader, survey->error.text);
    take(places, survey);
    recall(places);
    judge_owners(places);
    judge_coordinator(places);
    host_update_readiness(places->settings.context);
    if (!places->survey.notes_are_known)
        places->survey_at_ms = now_of(places) + SOON_MS;
    ask_positions(places);
}

/* One survey at a time: when a coordinator does not answer, threads must not pile up. The work
 * waits for the group's notes, so until they are known it asks more often. */
void host_places_tick(struct host_places *places)
{
    if (places->surveying || *places->settings.kafka == NULL ||
        host_is_stopping(places->settings.context) || now_of(places) < places->survey_at_ms)
        return;
    places->surveying = true;
    places->survey_at_ms =
        now_of(places) + (places->settings.context->recalled ? EVERY_MS : SOON_MS);
    rcpt_kafka_survey(*places->settings.kafka, on_survey, places);
}

/* ---- life ---- */

struct host_places *host_places_new(const struct host_places_settings *settings)
{
    struct host_places *places = rcpt_calloc(1, sizeof(*places));
    struct host_places **end = &settings->context->places;
    places->settings = *settings;
    places->ask = (struct rcpt_ask){.asker = settings->asker,
                                    .statement = settings->statement,
                                    .what = "reading the positions of all partitions",
                                    .context = places,
                                    .on_answer = on_positions};
    while (*end != NULL)
        end = &(*end)->next;
    *end = places;
    return places;
}

/* Also forgets how long partitions were unowned: the next consumer starts without that knowledge.
 */
void host_places_forget(struct host_places *places)
{
    rcpt_kafka_survey_free(&places->survey);
    places->survey_at_ms = places->surveyed_ms = places->read_ms = places->answered_ms = 0;
    places->reason[0] = '\0';
}

void host_places_free(struct host_places *places)
{
    struct host_places **link = &places->settings.context->places;
    while (*link != places)
        link = &(*link)->next;
    *link = places->next;
    host_places_forget(places);
    free(places->positions);
    free(places->unowned_since_ms);
    free(places);
}

void host_places_refresh(struct host_places *places)
{
    places->survey_at_ms = 0;
}

/* ---- what there is to see ---- */

const struct host_places *host_places_next(const struct host_places *places)
{
    return places->next;
}

const char *host_places_reader(const struct host_places *places)
{
    return places->settings.reader;
}

static bool is_fresh(const struct host_places *places, int64_t at_ms)
{
    return at_ms > 0 && now_of(places) - at_ms < STALE_MS;
}

bool host_places_get(const struct host_places *places, size_t index, struct host_place *place)
{
    if (index >= places->survey.count)
        return false;
    const struct rcpt_kafka_place *found = &places->survey.places[index];
    *place = (struct host_place){.topic = found->topic,
                                 .partition = found->partition,
                                 .position = -1,
                                 .low = -1,
                                 .high = -1,
                                 .lag = -1};
    if (is_fresh(places, places->surveyed_ms)) {
        place->low = found->low;
        place->high = found->high;
        place->owner = found->owner;
        place->member = found->member;
    }
    if (is_fresh(places, places->read_ms))
        place->position = places->positions[index];
    if (place->high >= 0)
        place->lag = rcpt_kafka_place_lag(
            found, place->position,
            rcpt_pg_server_wrote(places->settings.context->lineage.current, found->note));
    return true;
}

/* Partitions of a topic are neighbours, in their order: one comparison per topic. */
bool host_places_find(const struct host_places *places, const char *topic, int32_t partition,
                      struct host_place *place)
{
    for (size_t index = 0; index < places->survey.count;) {
        const char *name = places->survey.places[index].topic;
        if (strcmp(name, topic) == 0)
            return partition >= 0 && host_places_get(places, index + (size_t)partition, place) &&
                   place->partition == partition && strcmp(place->topic, topic) == 0;
        for (index++; index < places->survey.count && places->survey.places[index].partition > 0;)
            index++;
    }
    return false;
}

/* The reason of the first reader that has one. A survey that is stale proves nothing about owners.
 */
const char *host_places_reason(const struct host_places *places)
{
    for (; places != NULL; places = places->next)
        if (places->reason[0] != '\0' && is_fresh(places, places->surveyed_ms))
            return places->reason;
    return NULL;
}
