/* Whether the cluster accepts a client. The client is made for this question alone, since
 * librdkafka takes new credentials of a client without trying them. Blocks, so it is called in a
 * worker thread (reload.c).
 */
#include "internal.h"

/* librdkafka reports why it gets nowhere as events; "all brokers are down" comes last and is less
 * precise. */
static bool find_cause(rd_kafka_queue_t *events, struct rcpt_error *error)
{
    bool found = false;
    for (rd_kafka_event_t *event = rd_kafka_queue_poll(events, 0); event != NULL;
         event = rd_kafka_queue_poll(events, 0)) {
        rd_kafka_resp_err_t code = rd_kafka_event_error(event);
        if (rd_kafka_event_type(event) == RD_KAFKA_EVENT_ERROR && !found &&
            code != RD_KAFKA_RESP_ERR__ALL_BROKERS_DOWN) {
            rcpt_kafka_describe(error, code, "Kafka", rd_kafka_event_error_string(event));
            found = true;
        }
        rd_kafka_event_destroy(event);
    }
    return found;
}

bool rcpt_kafka_try(const struct rcpt_kafka_settings *settings, int timeout_ms,
                    struct rcpt_error *error)
{
    const struct rd_kafka_metadata *metadata = NULL;
    rd_kafka_conf_t *conf = rcpt_kafka_conf_new(settings, NULL, error);
    rd_kafka_t *handle = conf != NULL ? rcpt_kafka_open(conf, error) : NULL;
    if (handle == NULL)
        return false;
    rd_kafka_queue_t *events = rd_kafka_queue_get_main(handle);
    rd_kafka_resp_err_t code = rd_kafka_metadata(handle, 0, NULL, &metadata, timeout_ms);
    if (code == RD_KAFKA_RESP_ERR_NO_ERROR)
        rd_kafka_metadata_destroy(metadata);
    else if (!find_cause(events, error))
        rcpt_kafka_describe(error, code, settings->brokers, NULL);
    rd_kafka_queue_destroy(events);
    rd_kafka_destroy(handle);
    return code == RD_KAFKA_RESP_ERR_NO_ERROR;
}
