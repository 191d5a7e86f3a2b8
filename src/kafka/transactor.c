/* A transactional producer for folds and the stream. Each operation is a job in a thread, which
 * owns the client while it runs; on_done returns the client, or destroys it in another job. States:
 * closed (no handle), busy (a job has it), open. Called by folds/shard.c. */
#include "receiptd/kafka/transactor.h"
#include "receiptd/base/clock.h"

#include <stdlib.h>
#include <string.h>
#include <sysexits.h>

#include "internal.h"

#define OPEN_MS    30000
#define DESTROY_MS 5000 /* of a client that has been replaced */
#define PUBLISH_MS 30000
#define CALL_MS    5000 /* of one blocking call; what did not end in it is asked again */
#define GRACE_MS   5000 /* beyond the deadline, until a thread is given up */

struct rcpt_transactor {
    struct rcpt_transactor_settings settings; /* its texts are those of `common` */
    struct rcpt_kafka_settings common;        /* deep copy; the group is the id */
    struct rcpt_kafka_workers *workers;
    rd_kafka_t *handle; /* NULL: closed, or lent to the job */
    bool busy, dropped;
    unsigned destroying; /* clients on their way out */
    void (*on_closed)(void *context);
    void *close_context;
};

/* One job of OPEN or PUBLISH at a time; DESTROY may run beside them, for a client that was
 * replaced. */
enum kind { JOB_OPEN, JOB_PUBLISH, JOB_DESTROY };

struct job {
    struct rcpt_kafka_job job;
    struct rcpt_transactor *transactor; /* the loop's */
    enum kind kind;
    rd_kafka_conf_t *conf, *reader_conf; /* to open with */
    rd_kafka_t *handle;                  /* the job's while it runs */
    char *group, *mark_topic;
    int64_t mark;
    struct rcpt_transactor_records records;
    bool refused; /* a record was: `error` says which topic and why */
    struct rcpt_error error;
};

/* ---- in the thread ---- */

/* Not the loop's clock, which threads may not read. */
static int64_t now_ms(void)
{
    return rcpt_monotonic_ns() / RCPT_NS_PER_MS;
}

/* A blocking call never lasts longer than CALL_MS, so that deadlines hold where librdkafka's own do
 * not. */
static int call_ms(int64_t deadline)
{
    int64_t left = deadline - now_ms();
    return left < 1 ? 1 : left > CALL_MS ? CALL_MS : (int)left;
}

/* Takes the error over. Keeps the first refusal of a record: it is more precise than the failure of
 * the transaction. */
static bool fail(struct job *job, rd_kafka_error_t *error, enum rcpt_decision decision,
                 const char *what)
{
    if (job->refused)
        job->error.decision = decision;
    else
        rcpt_error_set(&job->error, decision, rd_kafka_error_name(error), "%s: %s", what,
                       rd_kafka_error_string(error));
    rd_kafka_error_destroy(error);
    return false;
}

/* As fail(), for the calls that return a code. */
static bool fail_code(struct job *job, rd_kafka_resp_err_t code, enum rcpt_decision decision,
                      const char *what)
{
    return rcpt_error_set(&job->error, decision, rd_kafka_err2name(code), "%s: %s", what,
                          rd_kafka_err2str(code));
}

/* Takes the configuration where it succeeds; otherwise job_free() destroys it. */
static rd_kafka_t *open_client(struct job *job, rd_kafka_type_t type, rd_kafka_conf_t **conf)
{
    char text[256];
    rd_kafka_t *handle = rd_kafka_new(type, *conf, text, sizeof(text));
    if (handle != NULL)
        *conf = NULL;
    else
        rcpt_error_fatal(&job->error, EX_CONFIG, "librdkafka refuses the producer of folds: %s",
                         text);
    return handle;
}

/* The group has no members: its offset is read by a client that joins nothing. */
static bool read_mark(struct job *job, int64_t deadline)
{
    rd_kafka_t *reader = open_client(job, RD_KAFKA_CONSUMER, &job->reader_conf);
    if (reader == NULL)
        return false;
    rd_kafka_resp_err_t code;
    rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new(1);
    rd_kafka_topic_partition_list_add(list, job->mark_topic, 0);
    do
        code = rd_kafka_committed(reader, list, call_ms(deadline));
    while (code != RD_KAFKA_RESP_ERR_NO_ERROR && now_ms() < deadline);
    if (code == RD_KAFKA_RESP_ERR_NO_ERROR)
        code = list->elems[0].err;
    job->mark = list->elems[0].offset >= 0 ? list->elems[0].offset : -1;
    rd_kafka_topic_partition_list_destroy(list);
    rd_kafka_destroy_flags(reader, RD_KAFKA_DESTROY_F_NO_CONSUMER_CLOSE);
    return code == RD_KAFKA_RESP_ERR_NO_ERROR ||
           fail_code(job, code, RCPT_DECISION_RETRY, "the mark of folds cannot be read");
}

/* Waits for the coordinator, which may have to end a transaction of the former owner first. */
static bool init_transactions(struct job *job, int64_t deadline)
{
    rd_kafka_error_t *error;
    while ((error = rd_kafka_init_transactions(job->handle, call_ms(deadline))) != NULL) {
        if (!rd_kafka_error_is_retriable(error) || now_ms() >= deadline)
            return fail(job, error, RCPT_DECISION_RETRY,
                        "transactions of folds cannot be initialised");
        rd_kafka_error_destroy(error);
    }
    return true;
}

/* First the fence, then the mark: transactions of another owner are settled by then. */
static void open_work(struct job *job)
{
    int64_t deadline = now_ms() + OPEN_MS;
    job->handle = open_client(job, RD_KAFKA_PRODUCER, &job->conf);
    if (job->handle != NULL && init_transactions(job, deadline))
        (void)read_mark(job, deadline);
}

/* NULL: librdkafka's text has to do. */
static const char *advice_on(rd_kafka_resp_err_t code)
{
    switch (code) {
    case RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART:
    case RD_KAFKA_RESP_ERR__UNKNOWN_TOPIC:
        return "create the topic, or correct publish.kafka.topic of folds or stream.topic";
    case RD_KAFKA_RESP_ERR_MSG_SIZE_TOO_LARGE:
        return "raise max.message.bytes of the topic, or lower max_values of the rule of folds";
    case RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED:
        return "grant WRITE and DESCRIBE on the topic to receiptd's user";
    default:
        return NULL;
    }
}

/* The first record that is refused names the topic and the reason for the operator. */
static bool refuse(struct job *job, rd_kafka_resp_err_t code, const char *topic)
{
    const char *advice = advice_on(code);
    job->refused = true;
    rcpt_error_set(&job->error, RCPT_DECISION_RETRY, rd_kafka_err2name(code),
                   "topic %s does not take a publication: %s", topic, rd_kafka_err2str(code));
    if (advice != NULL)
        rcpt_error_hint(&job->error, "%s", advice);
    return false;
}

/* Called in the job's thread, by calls that wait for the transaction. After the first refused
 * record the others are only purged. */
static void on_delivery(rd_kafka_t *handle, const rd_kafka_message_t *message, void *opaque)
{
    struct job *job = message->_private;
    (void)handle;
    (void)opaque;
    if (message->err != RD_KAFKA_RESP_ERR_NO_ERROR && job->error.decision == RCPT_DECISION_NONE)
        refuse(job, message->err, rd_kafka_topic_name(message->rkt));
}

/* A full queue is waited for; librdkafka copies key and value. */
static bool produce(struct job *job, size_t index, int64_t deadline)
{
    const struct rcpt_transactor_record *record = &job->records.list[index];
    for (;;) {
        rd_kafka_headers_t *headers = rcpt_transactor_headers(record);
        rd_kafka_resp_err_t code = rd_kafka_producev(
            job->handle, RD_KAFKA_V_TOPIC(record->topic), RD_KAFKA_V_MSGFLAGS(RD_KAFKA_MSG_F_COPY),
            RD_KAFKA_V_KEY((void *)(uintptr_t)record->key.at, record->key.size),
            RD_KAFKA_V_VALUE((void *)(uintptr_t)record->value.at, record->value.size),
            RD_KAFKA_V_HEADERS(headers), RD_KAFKA_V_OPAQUE(job), RD_KAFKA_V_END);
        if (code == RD_KAFKA_RESP_ERR_NO_ERROR)
            return true;
        rd_kafka_headers_destroy(headers);
        if (code != RD_KAFKA_RESP_ERR__QUEUE_FULL || now_ms() >= deadline)
            return refuse(job, code, record->topic);
        rd_kafka_poll(job->handle, 50);
    }
}

/* The mark moves in the same transaction as the records: that makes publishing exactly once. */
static bool send_mark(struct job *job, int64_t deadline)
{
    rd_kafka_error_t *error;
    rd_kafka_consumer_group_metadata_t *group = rd_kafka_consumer_group_metadata_new(job->group);
    rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new(1);
    rd_kafka_topic_partition_list_add(list, job->mark_topic, 0)->offset = job->mark;
    while ((error = rd_kafka_send_offsets_to_transaction(job->handle, list, group,
                                                         call_ms(deadline))) != NULL &&
           rd_kafka_error_is_retriable(error) && now_ms() < deadline)
        rd_kafka_error_destroy(error);
    rd_kafka_topic_partition_list_destroy(list);
    rd_kafka_consumer_group_metadata_destroy(group);
    return error == NULL ||
           fail(job, error, RCPT_DECISION_RETRY, "the mark of folds cannot be sent");
}

/* RETRY only where it is certain that nothing became visible. */
static void roll_back(struct job *job, int64_t deadline)
{
    rd_kafka_error_t *error;
    char text[128];
    while ((error = rd_kafka_abort_transaction(job->handle, call_ms(deadline))) != NULL &&
           rd_kafka_error_is_retriable(error) && now_ms() < deadline)
        rd_kafka_error_destroy(error);
    if (error != NULL || rd_kafka_fatal_error(job->handle, text, sizeof(text)) != 0)
        job->error.decision = RCPT_DECISION_RECONNECT;
    if (error != NULL)
        rd_kafka_error_destroy(error);
}

/* RECONNECT: the outcome is unknown, and only opening the client again shows it. */
static bool commit(struct job *job, int64_t deadline)
{
    rd_kafka_error_t *error;
    while ((error = rd_kafka_commit_transaction(job->handle, call_ms(deadline))) != NULL) {
        if (rd_kafka_error_is_retriable(error) && now_ms() < deadline) {
            rd_kafka_error_destroy(error);
            continue;
        }
        bool abortable = rd_kafka_error_txn_requires_abort(error);
        return fail(job, error, abortable ? RCPT_DECISION_RETRY : RCPT_DECISION_RECONNECT,
                    "a transaction of folds was not committed");
    }
    return true;
}

/* Any failure aborts the transaction; its records never become visible. */
static void publish_work(struct job *job)
{
    int64_t deadline = now_ms() + PUBLISH_MS;
    rd_kafka_error_t *error = rd_kafka_begin_transaction(job->handle);
    if (error != NULL) {
        fail(job, error, RCPT_DECISION_RECONNECT, "a transaction of folds cannot begin");
        return;
    }
    bool good = true;
    for (size_t index = 0; index < job->records.count && good; index++)
        good = produce(job, index, deadline);
    if (good && send_mark(job, deadline) && commit(job, deadline))
        return;
    if (job->error.decision == RCPT_DECISION_RETRY)
        roll_back(job, deadline);
}

/* In the job's thread; the job alone has the client. */
static void on_work(struct rcpt_kafka_job *base)
{
    struct job *job = (struct job *)base;
    if (job->kind == JOB_OPEN)
        open_work(job);
    else if (job->kind == JOB_PUBLISH)
        publish_work(job);
    else
        rd_kafka_destroy(job->handle);
}

/* ---- on the loop ---- */

/* After both the thread and the loop are done with the job. */
static void job_free(struct rcpt_kafka_job *base)
{
    struct job *job = (struct job *)base;
    if (job->conf != NULL)
        rd_kafka_conf_destroy(job->conf);
    if (job->reader_conf != NULL)
        rd_kafka_conf_destroy(job->reader_conf);
    rcpt_transactor_records_free(&job->records);
    free(job->group);
    free(job->mark_topic);
    free(job);
}

static void on_done(struct rcpt_kafka_job *base, bool in_time);

/* Texts are copied: the job may outlive the transactor when its thread hangs. */
static struct job *job_new(struct rcpt_transactor *transactor, enum kind kind)
{
    struct job *job = rcpt_calloc(1, sizeof(*job));
    job->job = (struct rcpt_kafka_job){.work = on_work, .done = on_done, .free = job_free};
    job->transactor = transactor;
    job->kind = kind;
    job->mark = -1;
    job->group = rcpt_strdup(transactor->settings.id);
    job->mark_topic = rcpt_strdup(transactor->settings.mark_topic);
    return job;
}

/* A client may take long to go: not on the loop. */
static void destroy(struct rcpt_transactor *transactor, rd_kafka_t *handle_taken)
{
    struct job *job = job_new(transactor, JOB_DESTROY);
    job->handle = handle_taken;
    transactor->destroying++;
    rcpt_kafka_workers_start(transactor->workers, &job->job, DESTROY_MS);
}

/* Whether the client goes on to be used. */
static void settle(struct rcpt_transactor *transactor, struct job *job)
{
    bool keep = job->error.decision == RCPT_DECISION_NONE ||
                (job->kind == JOB_PUBLISH && job->error.decision == RCPT_DECISION_RETRY);
    if (keep && !transactor->dropped && transactor->on_closed == NULL)
        transactor->handle = job->handle;
    else if (job->handle != NULL)
        destroy(transactor, job->handle);
}

static void on_done(struct rcpt_kafka_job *base, bool in_time)
{
    struct job *job = (struct job *)base;
    struct rcpt_transactor *transactor = job->transactor;
    struct rcpt_error late;
    if (job->kind == JOB_DESTROY) {
        transactor->destroying--;
        return;
    }
    transactor->busy = false;
    if (!in_time) { /* the thread may still write to the job; its client is fenced by the next */
        rcpt_error_set(&late, RCPT_DECISION_RECONNECT, "LATE",
                       "Kafka has not answered the producer of folds in time");
    } else {
        settle(transactor, job);
        late = job->error;
    }
    transactor->dropped = false;
    const struct rcpt_error *error = late.decision != RCPT_DECISION_NONE ? &late : NULL;
    if (job->kind == JOB_OPEN)
        transactor->settings.on_opened(transactor->settings.context, in_time ? job->mark : -1,
                                       error);
    else
        transactor->settings.on_published(transactor->settings.context, error);
}

/* ---- the module ---- */

struct rcpt_transactor *rcpt_transactor_new(const struct rcpt_transactor_settings *settings)
{
    struct rcpt_transactor *transactor = rcpt_calloc(1, sizeof(*transactor));
    const struct rcpt_kafka_settings common = {
        .brokers = settings->brokers,
        .group = settings->id,
        .topics = &settings->mark_topic,
        .topic_count = 1,
        .properties = settings->properties,
        .property_count = settings->property_count,
    };
    rcpt_kafka_copy_settings(&transactor->common, &common);
    transactor->settings = *settings;
    transactor->settings.brokers = transactor->common.brokers;
    transactor->settings.id = transactor->common.group;
    transactor->settings.mark_topic = transactor->common.topics[0];
    transactor->settings.properties = transactor->common.properties;
    transactor->workers = rcpt_kafka_workers_new(settings->loop);
    return transactor;
}

bool rcpt_transactor_is_open(const struct rcpt_transactor *transactor)
{
    return transactor->handle != NULL;
}

bool rcpt_transactor_is_busy(const struct rcpt_transactor *transactor)
{
    return transactor->busy;
}

/* True when nothing of it runs in a thread: the drain waits for this. */
bool rcpt_transactor_is_settled(const struct rcpt_transactor *transactor)
{
    return transactor->handle == NULL && !transactor->busy && transactor->destroying == 0;
}

/* A thread that exceeds the deadline by more than the grace is left alone. */
static void start(struct rcpt_transactor *transactor, struct job *job, int64_t allowance_ms)
{
    transactor->busy = true;
    rcpt_kafka_workers_start(transactor->workers, &job->job, allowance_ms + GRACE_MS);
}

/* A client that is open is replaced. */
void rcpt_transactor_open(struct rcpt_transactor *transactor)
{
    struct rcpt_error error;
    RCPT_ASSERT(!transactor->busy && transactor->on_closed == NULL);
    if (transactor->handle != NULL)
        destroy(transactor, transactor->handle);
    transactor->handle = NULL;
    struct job *job = job_new(transactor, JOB_OPEN);
    job->conf = rcpt_transactor_conf_new(&transactor->settings, true, &error);
    job->reader_conf = rcpt_transactor_conf_new(&transactor->settings, false, &error);
    RCPT_ASSERT(job->conf != NULL && job->reader_conf != NULL); /* the consumer's check took them */
    rd_kafka_conf_set_dr_msg_cb(job->conf, on_delivery);
    start(transactor, job, OPEN_MS);
}

/* The job owns the client while it runs, so no other call can touch it. */
void rcpt_transactor_publish(struct rcpt_transactor *transactor,
                             const struct rcpt_transactor_record *records, size_t count,
                             int64_t mark)
{
    RCPT_ASSERT(!transactor->busy && transactor->handle != NULL);
    struct job *job = job_new(transactor, JOB_PUBLISH);
    job->handle = transactor->handle;
    transactor->handle = NULL;
    rcpt_kafka_use_credentials(job->handle, &transactor->common);
    job->mark = mark;
    rcpt_transactor_records_copy(&job->records, records, count);
    start(transactor, job, PUBLISH_MS);
}

/* A call in flight is answered first; then its client is destroyed instead of kept. */
void rcpt_transactor_drop(struct rcpt_transactor *transactor)
{
    transactor->dropped = transactor->busy;
    if (transactor->handle == NULL)
        return;
    destroy(transactor, transactor->handle);
    transactor->handle = NULL;
}

void rcpt_transactor_set_credentials(struct rcpt_transactor *transactor,
                                     const struct rcpt_kafka_credentials *credentials)
{
    rcpt_kafka_take_credentials(&transactor->common, credentials);
}

void rcpt_transactor_tick(struct rcpt_transactor *transactor)
{
    rcpt_kafka_workers_tick(transactor->workers);
}

/* No thread will answer now, so the texts of the settings may be freed. */
static void on_workers_closed(void *context)
{
    struct rcpt_transactor *transactor = context;
    void (*on_closed)(void *context) = transactor->on_closed;
    void *close_context = transactor->close_context;
    rcpt_kafka_free_settings(&transactor->common);
    free(transactor);
    on_closed(close_context);
}

void rcpt_transactor_close(struct rcpt_transactor *transactor, void (*on_closed)(void *context),
                           void *context)
{
    if (transactor->handle != NULL) /* its thread is left alone */
        destroy(transactor, transactor->handle);
    transactor->handle = NULL;
    transactor->on_closed = on_closed;
    transactor->close_context = context;
    rcpt_kafka_workers_close(transactor->workers, on_workers_closed, transactor);
}
