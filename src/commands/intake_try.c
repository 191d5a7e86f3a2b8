/* `receiptd intake --try ACCOUNT`: one HTTP request as text on the standard input becomes events as
 * JSON lines on the standard output; verdict and drops go to stderr. Everything is checked as the
 * intake would, except the age of the signature. Connects to nothing. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>
#include <time.h>

#include "receiptd/base/clock.h"
#include "receiptd/http/message.h"
#include "try.h"

#define PREFIX "/dlr/"

/* The path behind /dlr/NAME. A sample with another path is read as if it had come to /dlr/NAME. */
static struct rcpt_text tail_of(struct rcpt_text path, const char *account)
{
    size_t size = strlen(PREFIX) + strlen(account);
    struct rcpt_text none = {"", 0};
    if (path.size < size || memcmp(path.at, PREFIX, strlen(PREFIX)) != 0 ||
        memcmp(path.at + strlen(PREFIX), account, strlen(account)) != 0)
        return none;
    if (path.size > size && path.at[size] != '/')
        return none;
    return (struct rcpt_text){path.at + size, path.size - size};
}

/* The time of receipt, for events that carry none. */
static int64_t now_us(void)
{
    return rcpt_wall_ns() / RCPT_NS_PER_US;
}

/* The id is that of the event, or the gateway's, which the alias table would translate. */
static void print_events(const struct rcpt_gateway_account *account,
                         const struct rcpt_gateway_result *result, struct rcpt_arena *arena)
{
    for (size_t index = 0; index < result->event_count; index++) {
        const struct rcpt_gateway_event *event = &result->events[index];
        struct rcpt_text id =
            event->message_id.size > 0 ? event->message_id : event->gateway_message_id;
        struct rcpt_text json = rcpt_gateway_event_json(account, event, id, arena);
        printf("%.*s\n", (int)json.size, json.at);
    }
}

/* Returns whether a part of the request was dropped that may have been a receipt. */
static bool report_drops(const struct rcpt_gateway_result *result)
{
    static const char *const kinds[RCPT_GATEWAY_DROP__COUNT] = {
        [RCPT_GATEWAY_IGNORED] = "ignored",
        [RCPT_GATEWAY_UNMAPPED] = "not mapped",
        [RCPT_GATEWAY_REJECTED] = "rejected",
        [RCPT_GATEWAY_UNKNOWN_FORM] = "not understood",
    };
    bool lost = false;
    for (size_t index = 0; index < result->drop_count; index++) {
        const struct rcpt_gateway_drop *drop = &result->drops[index];
        lost |= drop->kind != RCPT_GATEWAY_IGNORED;
        fprintf(stderr, "receiptd: %s: %s", kinds[drop->kind], drop->reason);
        if (drop->status.size > 0)
            fprintf(stderr, " (status \"%.*s\")", (int)drop->status.size, drop->status.at);
        fputc('\n', stderr);
    }
    if (result->event_count == 0 && result->drop_count == 0)
        fputs("receiptd: the request does not bring receipts\n", stderr);
    return lost;
}

/* Exit codes distinguish three ends: refused (77), something lost (65), all fine. */
static int report(const struct rcpt_gateway_account *account,
                  const struct rcpt_gateway_result *result, struct rcpt_arena *arena)
{
    bool refused =
        result->verdict != RCPT_GATEWAY_VERIFIED && result->verdict != RCPT_GATEWAY_UNVERIFIED;
    print_events(account, result, arena);
    fprintf(stderr, "receiptd: %s: %s; answer %u", rcpt_gateway_verdict_name(result->verdict),
            result->verdict_reason, result->answer.code);
    if (result->answer.body.size > 0)
        fprintf(stderr, " with %zu bytes of %s", result->answer.body.size,
                result->answer.content_type);
    fputc('\n', stderr);
    if (refused)
        return EX_NOPERM;
    return report_drops(result) ? EX_DATAERR : EX_OK;
}

/* A sample is old by nature: its age is not checked, everything else is. */
static int try_request(const struct rcpt_gateway_account_config *config,
                       const struct rcpt_config *whole, const struct rcpt_http_message *message,
                       struct rcpt_error *error)
{
    struct rcpt_gateway_account_config ageless = *config;
    ageless.max_age_ms = 0;
    struct rcpt_gateway_account *account = rcpt_gateway_account_new(&ageless, whole->ladder, error);
    if (account == NULL)
        return command_fail(error);
    struct rcpt_gateway_header *headers = rcpt_calloc(message->header_count + 1, sizeof(*headers));
    for (size_t index = 0; index < message->header_count; index++) {
        headers[index].name =
            (struct rcpt_text){message->headers[index].name, message->headers[index].name_size};
        headers[index].value =
            (struct rcpt_text){message->headers[index].value, message->headers[index].value_size};
    }
    /* The source is loopback: an account with `allow` refuses the sample unless it lists
     * 127.0.0.1. */
    struct rcpt_gateway_request request = {
        .method = {message->method, strlen(message->method)},
        .tail = tail_of((struct rcpt_text){message->path, message->path_size}, config->name),
        .query = {message->query, message->query_size},
        .headers = headers,
        .header_count = message->header_count,
        .body = {message->body, message->body_size},
        .source = {"127.0.0.1", 9},
        .received_us = now_us(),
        .scanners = whole->scanners,
    };
    struct rcpt_arena arena;
    struct rcpt_gateway_result result;
    rcpt_arena_init(&arena, 65536);
    rcpt_gateway_adapt(account, &request, &arena, &result);
    int exit_code = report(account, &result, &arena);
    rcpt_arena_fini(&arena);
    rcpt_gateway_account_free(account);
    free(headers);
    return command_printed(exit_code);
}

/* Loads a part of the configuration: accounts are enough, without brokers and database. */
int command_intake_try(const struct command_call *call)
{
    const char *name = command_option(call, "try");
    struct rcpt_error error = {0};
    struct rcpt_config *config = rcpt_config_load_for_try(call->config_path, &error);
    if (config == NULL)
        return command_fail(&error);
    const struct rcpt_gateway_account_config *account =
        command_try_find(config->intake.accounts, config->intake.accounts_count, name);
    if (account == NULL) {
        int exit_code = command_try_unknown("intake account", name, config->intake.accounts,
                                            config->intake.accounts_count);
        rcpt_config_free(config);
        return exit_code;
    }
    size_t size;
    char *text = command_try_input(&size);
    struct rcpt_http_message *message = rcpt_http_message_parse(text, size, &error);
    int exit_code = EX_DATAERR;
    if (message != NULL && message->body_size > (size_t)config->intake.limits.body_bytes)
        fprintf(stderr,
                "receiptd: the server answers 413: the body has %zu bytes, more than "
                "intake.limits.body\n",
                message->body_size);
    else if (message != NULL)
        exit_code = try_request(account, config, message, &error);
    else
        command_fail(&error);
    rcpt_http_message_free(message);
    free(text);
    rcpt_config_free(config);
    return exit_code;
}
