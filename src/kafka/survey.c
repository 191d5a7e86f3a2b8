/* A survey from outside the group (survey.h): three questions on a connection of its own, so that
 * it answers also for partitions that this instance does not have. Called by host/places.c and by
 * the command positions.
 */
#include "survey.h"

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

/* `which` is librdkafka's name for an end, which stands where a time would. */
static void ask_ends(rd_kafka_t *handle, struct rcpt_kafka_survey *survey, int64_t which)
{
    rd_kafka_topic_partition_list_t *list = list_of(survey, which);
    rd_kafka_resp_err_t code = rd_kafka_offsets_for_times(handle, list, QUESTION_MS);
    note_error(survey, code, "ends of the log");
    for (int index = 0; code == RD_KAFKA_RESP_ERR_NO_ERROR && index < list->cnt; index++) {
        const rd_kafka_topic_partition_t *entry = &list->elems[index];
        struct rcpt_kafka_place *place = find(survey, entry->topic, entry->partition);
        note_error(survey, entry->err, entry->topic);
        if (entry->err != RD_KAFKA_RESP_ERR_NO_ERROR || entry->offset < 0)
            continue;
        if (which == RD_KAFKA_OFFSET_END)
            place->high = entry->offset;
        else
            place->low = entry->offset;
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
        if (place != NULL && entry->metadata_size > 0)
            place->note = rcpt_strndup(entry->metadata, entry->metadata_size);
    }
    survey->notes_are_known = code == RD_KAFKA_RESP_ERR_NO_ERROR;
    note_error(survey, code, "committed offsets of the group");
    rd_kafka_topic_partition_list_destroy(list);
}

static void take_member(struct rcpt_kafka_survey *survey,
                        const rd_kafka_MemberDescription_t *member, const char *client_id)
{
    const rd_kafka_topic_partition_list_t *list =
        rd_kafka_MemberAssignment_partitions(rd_kafka_MemberDescription_assignment(member));
    const char *id = rd_kafka_MemberDescription_client_id(member);
    char name[200];
    snprintf(name, sizeof(name), "%.100s at %.80s", id, rd_kafka_MemberDescription_host(member));
    for (int index = 0; list != NULL && index < list->cnt; index++) {
        struct rcpt_kafka_place *place =
            find(survey, list->elems[index].topic, list->elems[index].partition);
        if (place == NULL || place->member != NULL)
            continue;
        place->owner = strcmp(id, client_id) == 0 ? RCPT_KAFKA_OWNER_OURS : RCPT_KAFKA_OWNER_OTHER;
        place->member = rcpt_strdup(name);
    }
}

/* While the group rebalances, nobody's partitions are known. */
static void take_group(struct rcpt_kafka_survey *survey,
                       const rd_kafka_ConsumerGroupDescription_t *group, const char *client_id)
{
    const rd_kafka_error_t *error = rd_kafka_ConsumerGroupDescription_error(group);
    rd_kafka_consumer_group_state_t state = rd_kafka_ConsumerGroupDescription_state(group);
    if (error != NULL)
        note_error(survey, rd_kafka_error_code(error), "members of the group");
    if (error != NULL || (state != RD_KAFKA_CONSUMER_GROUP_STATE_STABLE &&
                          state != RD_KAFKA_CONSUMER_GROUP_STATE_EMPTY &&
                          state != RD_KAFKA_CONSUMER_GROUP_STATE_DEAD))
        return;
    for (size_t index = 0; index < survey->count; index++)
        survey->places[index].owner = RCPT_KAFKA_OWNER_NOBODY;
    for (size_t index = 0; index < rd_kafka_ConsumerGroupDescription_member_count(group); index++)
        take_member(survey, rd_kafka_ConsumerGroupDescription_member(group, index), client_id);
}

static void ask_owners(rd_kafka_t *handle, struct rcpt_kafka_survey *survey, const char *group,
                       const char *client_id)
{
    rd_kafka_queue_t *queue = rd_kafka_queue_new(handle);
    rd_kafka_AdminOptions_t *options =
        rd_kafka_AdminOptions_new(handle, RD_KAFKA_ADMIN_OP_DESCRIBECONSUMERGROUPS);
    size_t count = 0;
    (void)rd_kafka_AdminOptions_set_request_timeout(options, QUESTION_MS, NULL, 0);
    rd_kafka_DescribeConsumerGroups(handle, &group, 1, options, queue);
    rd_kafka_event_t *event = rd_kafka_queue_poll(queue, QUESTION_MS + 1000);
    const rd_kafka_DescribeConsumerGroups_result_t *result =
        event != NULL ? rd_kafka_event_DescribeConsumerGroups_result(event) : NULL;
    if (event != NULL)
        note_error(survey, rd_kafka_event_error(event), "members of the group");
    if (result != NULL && rd_kafka_event_error(event) == RD_KAFKA_RESP_ERR_NO_ERROR) {
        const rd_kafka_ConsumerGroupDescription_t **groups =
            rd_kafka_DescribeConsumerGroups_result_groups(result, &count);
        if (count == 1)
            take_group(survey, groups[0], client_id);
    }
    if (event != NULL)
        rd_kafka_event_destroy(event);
    rd_kafka_AdminOptions_destroy(options);
    rd_kafka_queue_destroy(queue);
}

static void ask(rd_kafka_t *handle, struct rcpt_kafka_survey *survey, const char *group,
                const char *client_id)
{
    if (survey->count == 0)
        return;
    ask_ends(handle, survey, RD_KAFKA_OFFSET_END);
    ask_ends(handle, survey, RD_KAFKA_OFFSET_BEGINNING);
    ask_notes(handle, survey);
    ask_owners(handle, survey, group, client_id);
}

/* ---- memory ---- */

static void add_places(struct rcpt_kafka_survey *survey, const char *topic, int32_t partitions)
{
    size_t count = survey->count + (size_t)(partitions > 0 ? partitions : 0);
    survey->places = rcpt_realloc(survey->places, (count + 1) * sizeof(*survey->places));
    for (int32_t partition = 0; partition < partitions; partition++)
        survey->places[survey->count++] = (struct rcpt_kafka_place){
            .topic = rcpt_strdup(topic), .partition = partition, .low = -1, .high = -1};
}

void rcpt_kafka_survey_free(struct rcpt_kafka_survey *survey)
{
    for (size_t index = 0; index < survey->count; index++) {
        free(survey->places[index].topic);
        free(survey->places[index].member);
        free(survey->places[index].note);
    }
    free(survey->places);
    *survey = (struct rcpt_kafka_survey){0};
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

/* A thread that is late destroys the connection, since nobody takes it back. */
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

/* While the consumer closes, nobody would use the connection again; at the very end it is left to
 * the end of the process. */
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
    if (good)
        ask(handle, survey, settings->group, client_id_of(settings));
    else
        rcpt_kafka_survey_free(survey);
    rd_kafka_destroy_flags(handle, RD_KAFKA_DESTROY_F_NO_CONSUMER_CLOSE);
    return good;
}
