/* A survey from outside the group (survey.h): three questions on a connection of its own, so that
 * it answers also for partitions that this instance does not have. Called by host/places.c and by
 * the command positions.
 */
#include "receiptd/kafka/survey.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>

#include "internal.h"

#define QUESTION_MS  4000 /* each of the three */
#define ALLOWANCE_MS 15000

/* ---- the questions; they block ---- */

static void note_error(struct rcpt_kafka_survey *survey, rd_kafka_resp_err_t code,
                       const char *subject)
{
    if (code != RD_KAFKA_RESP_ERR_NO_ERROR)
        rcpt_kafka_describe(&survey->error, code, subject, NULL);
}

/* The elements come in the order of the places. */
static rd_kafka_topic_partition_list_t *list_of(const struct rcpt_kafka_survey *survey,
                                                int64_t offset)
{
    rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new((int)survey->count);
    for (size_t index = 0; index < survey->count; index++)
        rd_kafka_topic_partition_list_add(list, survey->places[index].topic,
                                          survey->places[index].partition)
            ->offset = offset;
    return list;
}

static struct rcpt_kafka_place *find(const struct rcpt_kafka_survey *survey, const char *topic,
                                     int32_t partition)
{
    for (size_t index = 0; index < survey->count; index++)
        if (survey->places[index].partition == partition &&
            strcmp(survey->places[index].topic, topic) == 0)
            return &survey->places[index];
    return NULL;
}

/* `which` is a time, or librdkafka's name for an end, which stands where a time would. No record is
 * that young: librdkafka answers with its name for the end. */
static void ask_ends(rd_kafka_t *handle, struct rcpt_kafka_survey *survey, int64_t which)
{
    rd_kafka_topic_partition_list_t *list = list_of(survey, which);
    rd_kafka_resp_err_t code = rd_kafka_offsets_for_times(handle, list, QUESTION_MS);
    note_error(survey, code, "ends of the log");
    for (int index = 0; code == RD_KAFKA_RESP_ERR_NO_ERROR && index < list->cnt; index++) {
        const rd_kafka_topic_partition_t *entry = &list->elems[index];
        struct rcpt_kafka_place *place = find(survey, entry->topic, entry->partition);
        note_error(survey, entry->err, entry->topic);
        if (entry->err != RD_KAFKA_RESP_ERR_NO_ERROR)
            continue;
        if (which >= 0)
            place->at = entry->offset >= 0 ? entry->offset : place->high;
        else if (entry->offset >= 0)
            *(which == RD_KAFKA_OFFSET_END ? &place->high : &place->low) = entry->offset;
    }
    rd_kafka_topic_partition_list_destroy(list);
}

static void ask_notes(rd_kafka_t *handle, struct rcpt_kafka_survey *survey)
{
    rd_kafka_topic_partition_list_t *list = list_of(survey, RD_KAFKA_OFFSET_INVALID);
    rd_kafka_resp_err_t code = rd_kafka_committed(handle, list, QUESTION_MS);
    for (int index = 0; code == RD_KAFKA_RESP_ERR_NO_ERROR && index < list->cnt; index++) {
        const rd_kafka_topic_partition_t *entry = &list->elems[index];
        struct rcpt_kafka_place *place = find(survey, entry->topic, entry->partition);
        code = entry->err;
        if (place != NULL && entry->offset >= 0)
            place->committed = entry->offset;
        if (place != NULL && entry->metadata_size > 0)
            place->note = rcpt_strndup(entry->metadata, entry->metadata_size);
    }
    survey->notes_are_known = code == RD_KAFKA_RESP_ERR_NO_ERROR;
    note_error(survey, code, "committed offsets of the group");
    rd_kafka_topic_partition_list_destroy(list);
}

/* ---- owners ---- */

/* Reads a member's assignment in the form of the group's protocol. Members may come from any
 * program: a text that is too short gives -1, and nothing behind its end is read. */
struct reading {
    const unsigned char *at;
    size_t left;
};

static int64_t read_number(struct reading *reading, size_t size)
{
    int64_t number = 0;
    if (reading->left < size) {
        reading->left = 0;
        return -1;
    }
    for (size_t index = 0; index < size; index++)
        number = number << 8 | *reading->at++;
    reading->left -= size;
    return number;
}

static void set_owner(struct rcpt_kafka_survey *survey, const char *topic, size_t size,
                      int64_t partition, enum rcpt_kafka_owner owner, const char *name)
{
    for (size_t index = 0; index < survey->count; index++) {
        struct rcpt_kafka_place *place = &survey->places[index];
        if (place->partition != partition || strncmp(place->topic, topic, size) != 0 ||
            place->topic[size] != '\0' || place->member != NULL)
            continue;
        place->owner = owner;
        place->member = rcpt_strdup(name);
    }
}

/* A version, then topics: each a name and its partitions. */
static void take_member(struct rcpt_kafka_survey *survey,
                        const struct rd_kafka_group_member_info *member, const char *client_id)
{
    struct reading reading = {member->member_assignment, (size_t)member->member_assignment_size};
    enum rcpt_kafka_owner owner =
        strcmp(member->client_id, client_id) == 0 ? RCPT_KAFKA_OWNER_OURS : RCPT_KAFKA_OWNER_OTHER;
    char name[200];
    snprintf(name, sizeof(name), "%.100s at %.80s", member->client_id, member->client_host);
    (void)read_number(&reading, 2);
    for (int64_t topics = read_number(&reading, 4); topics > 0; topics--) {
        int64_t size = read_number(&reading, 2);
        if (size < 0 || (size_t)size > reading.left)
            return;
        const char *topic = (const char *)reading.at;
        reading.at += size;
        reading.left -= (size_t)size;
        for (int64_t count = read_number(&reading, 4); count > 0 && reading.left > 0; count--)
            set_owner(survey, topic, (size_t)size, read_number(&reading, 4), owner, name);
    }
}

/* While the group rebalances, owners are unknown. A group that is not listed has no members. */
static void take_group(struct rcpt_kafka_survey *survey, const struct rd_kafka_group_info *group,
                       const char *client_id)
{
    if (group != NULL)
        note_error(survey, group->err, "members of the group");
    if (group != NULL &&
        (group->err != RD_KAFKA_RESP_ERR_NO_ERROR ||
         (strcmp(group->state, "Stable") != 0 && strcmp(group->state, "Empty") != 0 &&
          strcmp(group->state, "Dead") != 0)))
        return;
    for (size_t index = 0; index < survey->count; index++)
        survey->places[index].owner = RCPT_KAFKA_OWNER_NOBODY;
    for (int index = 0; group != NULL && index < group->member_cnt; index++)
        take_member(survey, &group->members[index], client_id);
}

/* Not by rd_kafka_DescribeConsumerGroups: an assertion in librdkafka (its issue 4605) ends the
 * process if the coordinator goes away meanwhile. PARTIAL: only brokers that do not know the group
 * have not answered. */
static void ask_owners(rd_kafka_t *handle, struct rcpt_kafka_survey *survey, const char *group,
                       const char *client_id)
{
    const struct rd_kafka_group_list *list = NULL;
    rd_kafka_resp_err_t code = rd_kafka_list_groups(handle, group, &list, QUESTION_MS);
    if (code == RD_KAFKA_RESP_ERR_NO_ERROR || code == RD_KAFKA_RESP_ERR__PARTIAL)
        take_group(survey, list->group_cnt > 0 ? &list->groups[0] : NULL, client_id);
    else
        note_error(survey, code, "members of the group");
    if (list != NULL)
        rd_kafka_group_list_destroy(list);
}

static void ask(rd_kafka_t *handle, struct rcpt_kafka_survey *survey, const char *group,
                const char *client_id)
{
    if (survey->count == 0)
        return;
    ask_ends(handle, survey, RD_KAFKA_OFFSET_END);
    ask_ends(handle, survey, RD_KAFKA_OFFSET_BEGINNING);
    ask_notes(handle, survey);
    if (survey->notes_are_known) /* otherwise its coordinator does not answer */
        ask_owners(handle, survey, group, client_id);
}

/* ---- memory ---- */

static void add_places(struct rcpt_kafka_survey *survey, const char *topic, int32_t partitions)
{
    size_t count = survey->count + (size_t)(partitions > 0 ? partitions : 0);
    survey->places = rcpt_realloc(survey->places, (count + 1) * sizeof(*survey->places));
    for (int32_t partition = 0; partition < partitions; partition++)
        survey->places[survey->count++] = (struct rcpt_kafka_place){.topic = rcpt_strdup(topic),
                                                                    .partition = partition,
                                                                    .low = -1,
                                                                    .high = -1,
                                                                    .committed = -1};
}

void rcpt_kafka_survey_free(struct rcpt_kafka_survey *survey)
{
    for (size_t index = 0; index < survey->count; index++) {
        free(survey->places[index].topic);
        free(survey->places[index].member);
        free(survey->places[index].note);
    }
    free(survey->places);
    free(survey->cluster_id);
    *survey = (struct rcpt_kafka_survey){0};
}

/* An offset that was written beside another database may count records that this one lacks. */
int64_t rcpt_kafka_place_lag(const struct rcpt_kafka_place *place, int64_t position,
                             bool offset_holds)
{
    if (place->high < 0 || position < 0)
        return -1;
    int64_t stands_at = offset_holds && place->committed > position ? place->committed : position;
    return place->high > stands_at ? place->high - stands_at : 0;
}

/* ---- the connection ---- */

/* As for a lookup, but of the group, whose committed offsets are read. */
static rd_kafka_t *open_handle(const struct rcpt_kafka_settings *settings, struct rcpt_error *error)
{
    rd_kafka_conf_t *conf = rcpt_kafka_conf_new(settings, NULL, error);
    if (conf == NULL)
        return NULL;
    if (!rcpt_kafka_set_property(conf, "group.id", settings->group, error) ||
        !rcpt_kafka_set_property(conf, "log_level", "0", error)) {
        rd_kafka_conf_destroy(conf);
        return NULL;
    }
    return rcpt_kafka_open(conf, error);
}

static const char *client_id_of(const struct rcpt_kafka_settings *settings)
{
    const char *id = rcpt_kafka_property(settings, "client.id");
    return id != NULL ? id : "receiptd";
}

/* ---- in the daemon ---- */

struct survey_job {
    struct rcpt_kafka_job job;
    struct rcpt_kafka *kafka; /* the loop's */
    rd_kafka_t *handle;       /* goes back to `kafka` where the job is in time */
    char *group, *client_id;
    struct rcpt_kafka_survey survey;
    void (*on_done)(void *context, const struct rcpt_kafka_survey *survey);
    void *context;
};

/* A thread that is late destroys the connection itself, because it cannot be handed back. */
static void survey_work(struct rcpt_kafka_job *job)
{
    struct survey_job *survey = (struct survey_job *)job;
    uint64_t late_at = uv_hrtime() + (ALLOWANCE_MS - 500) * 1000000ull;
    ask(survey->handle, &survey->survey, survey->group, survey->client_id);
    if (uv_hrtime() < late_at)
        return;
    rd_kafka_destroy(survey->handle);
    survey->handle = NULL;
}

/* While the consumer closes, the connection is destroyed instead of kept. At the very end it is
 * left to the end of the process. */
static void survey_done(struct rcpt_kafka_job *job, bool in_time)
{
    struct survey_job *survey = (struct survey_job *)job;
    struct rcpt_kafka *kafka = survey->kafka;
    if (in_time && kafka->life == LIFE_OPEN)
        kafka->survey_handle = survey->handle;
    else if (in_time && survey->handle != NULL && kafka->life < LIFE_ENDING)
        rcpt_kafka_destroy_handle(kafka->workers, survey->handle, QUESTION_MS, NULL, NULL);
    survey->on_done(survey->context, in_time ? &survey->survey : NULL);
}

static void survey_free(struct rcpt_kafka_job *job)
{
    struct survey_job *survey = (struct survey_job *)job;
    rcpt_kafka_survey_free(&survey->survey);
    free(survey->group);
    free(survey->client_id);
    free(survey);
}

void rcpt_kafka_survey(struct rcpt_kafka *kafka,
                       void (*on_done)(void *context, const struct rcpt_kafka_survey *survey),
                       void *context)
{
    struct rcpt_error ignored; /* the same settings were accepted at the start */
    if (kafka->survey_handle == NULL)
        kafka->survey_handle = open_handle(&kafka->settings, &ignored);
    else
        rcpt_kafka_use_credentials(kafka->survey_handle, &kafka->settings);
    if (kafka->survey_handle == NULL) {
        on_done(context, NULL);
        return;
    }
    struct survey_job *survey = rcpt_calloc(1, sizeof(*survey));
    survey->job =
        (struct rcpt_kafka_job){.work = survey_work, .done = survey_done, .free = survey_free};
    survey->kafka = kafka;
    survey->handle = kafka->survey_handle;
    kafka->survey_handle = NULL;
    survey->group = rcpt_strdup(kafka->settings.group);
    survey->client_id = rcpt_strdup(client_id_of(&kafka->settings));
    survey->on_done = on_done;
    survey->context = context;
    for (size_t index = 0; index < kafka->settings.topic_count; index++)
        add_places(&survey->survey, kafka->settings.topics[index], kafka->counts[index]);
    rcpt_kafka_workers_start(kafka->workers, &survey->job, ALLOWANCE_MS);
}

/* ---- for commands ---- */

/* All topics must exist: a command names partitions. */
static bool find_places(rd_kafka_t *handle, const struct rcpt_kafka_settings *settings,
                        struct rcpt_kafka_survey *survey, struct rcpt_error *error)
{
    for (size_t index = 0; index < settings->topic_count; index++) {
        rd_kafka_topic_t *topic = rd_kafka_topic_new(handle, settings->topics[index], NULL);
        int32_t count = 0;
        rcpt_error_clear(error);
        rcpt_kafka_count_partitions(handle, &topic, 1, settings->brokers, &count, error);
        rd_kafka_topic_destroy(topic);
        if (count <= 0) {
            error->decision = RCPT_DECISION_FATAL;
            error->exit_code = EX_UNAVAILABLE;
            return false;
        }
        add_places(survey, settings->topics[index], count);
    }
    return true;
}

bool rcpt_kafka_survey_now(const struct rcpt_kafka_settings *settings,
                           struct rcpt_kafka_survey *survey, struct rcpt_error *error)
{
    rd_kafka_t *handle = open_handle(settings, error);
    *survey = (struct rcpt_kafka_survey){0};
    if (handle == NULL)
        return false;
    bool good = find_places(handle, settings, survey, error);
    char *cluster_id = good ? rd_kafka_clusterid(handle, QUESTION_MS) : NULL;
    if (cluster_id != NULL) {
        survey->cluster_id = rcpt_strdup(cluster_id);
        rd_kafka_mem_free(handle, cluster_id);
    }
    if (good)
        ask(handle, survey, settings->group, client_id_of(settings));
    else
        rcpt_kafka_survey_free(survey);
    rd_kafka_destroy_flags(handle, RD_KAFKA_DESTROY_F_NO_CONSUMER_CLOSE);
    return good;
}

bool rcpt_kafka_survey_at(const struct rcpt_kafka_settings *settings,
                          struct rcpt_kafka_survey *survey, int64_t at_ms, struct rcpt_error *error)
{
    rd_kafka_t *handle = open_handle(settings, error);
    if (handle == NULL)
        return false;
    rcpt_error_clear(&survey->error);
    ask_ends(handle, survey, at_ms);
    rd_kafka_destroy_flags(handle, RD_KAFKA_DESTROY_F_NO_CONSUMER_CLOSE);
    if (survey->error.decision == RCPT_DECISION_NONE)
        return true;
    *error = survey->error;
    error->decision = RCPT_DECISION_FATAL;
    error->exit_code = EX_UNAVAILABLE;
    return false;
}
