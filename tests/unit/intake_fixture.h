/* What the tests of the adapters share: accounts with little text, requests from literals. */
#ifndef RECEIPTD_TESTS_UNIT_INTAKE_FIXTURE_H
#define RECEIPTD_TESTS_UNIT_INTAKE_FIXTURE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "receiptd/base/document.h"
#include "receiptd/gateways/adapter.h"

#define NOW_US   INT64_C(1760789445000000) /* 2025-10-18T12:10:45Z, just after most samples */
#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

struct fixture {
    struct rcpt_ladder *ladder;
    struct rcpt_arena arena;
    struct rcpt_gateway_account *account;
    struct rcpt_gateway_request request;
    struct rcpt_gateway_header headers[32];
    struct rcpt_gateway_result result;
};

static inline void fixture_init(struct fixture *fixture)
{
    struct rcpt_error error;
    memset(fixture, 0, sizeof(*fixture));
    fixture->ladder = rcpt_ladder_new(rcpt_ladder_default_definition(), &error);
    assert_non_null(fixture->ladder);
    rcpt_arena_init(&fixture->arena, 65536);
}

static inline void fixture_fini(struct fixture *fixture)
{
    rcpt_gateway_account_free(fixture->account);
    rcpt_arena_fini(&fixture->arena);
    rcpt_ladder_free(fixture->ladder);
}

/* Most fields as the configuration's defaults have them. */
static inline struct rcpt_gateway_account_config account_config(char *gateway)
{
    static char name[] = "acme", org[] = "o1";
    return (struct rcpt_gateway_account_config){
        .name = name, .gateway = gateway, .org_id = org, .verify = RCPT_GATEWAY_VERIFY_OFF};
}

static inline void fixture_account(struct fixture *fixture,
                                   const struct rcpt_gateway_account_config *config)
{
    struct rcpt_error error;
    rcpt_gateway_account_free(fixture->account);
    fixture->account = rcpt_gateway_account_new(config, fixture->ladder, &error);
    if (fixture->account == NULL)
        fail_msg("%s (%s)", error.text, error.hint);
}

static inline void fixture_gateway(struct fixture *fixture, const char *gateway)
{
    char *copy = rcpt_strdup(gateway);
    struct rcpt_gateway_account_config config = account_config(copy);
    fixture_account(fixture, &config);
    free(copy);
}

/* `target` is what follows /dlr/NAME. */
static inline void fixture_request(struct fixture *fixture, const char *method,
                                   struct rcpt_text target, struct rcpt_text body)
{
    size_t mark = rcpt_text_find(target, "?");
    fixture->request = (struct rcpt_gateway_request){
        .method = rcpt_text_of(method),
        .tail = rcpt_text_part(target, 0, mark),
        .headers = fixture->headers,
        .body = body,
        .source = RCPT_TEXT("192.0.2.1"),
        .received_us = NOW_US,
    };
    if (mark < target.size)
        fixture->request.query = rcpt_text_part(target, mark + 1, target.size);
}

static inline void fixture_header(struct fixture *fixture, struct rcpt_text name,
                                  struct rcpt_text value)
{
    assert_true(fixture->request.header_count < COUNT(fixture->headers));
    fixture->headers[fixture->request.header_count++] = (struct rcpt_gateway_header){name, value};
}

/* The request of a sample in tests/payloads. */
static inline void fixture_sample(struct fixture *fixture, const struct rcpt_node *request)
{
    struct rcpt_text path = rcpt_node_text_of(request, "path");
    const struct rcpt_node *body = rcpt_node_get(request, "body");
    const struct rcpt_node *headers = rcpt_node_get(request, "headers");
    size_t size = rcpt_text_begins(path, "/dlr") ? 4 : 0;
    fixture_request(fixture,
                    rcpt_text_terminated(&fixture->arena, rcpt_node_text_of(request, "method")),
                    rcpt_text_part(path, size, path.size), body->text);
    for (const struct rcpt_node *header = headers->first; header != NULL; header = header->next)
        fixture_header(fixture, header->key, header->text);
}

static inline void fixture_adapt(struct fixture *fixture)
{
    rcpt_gateway_adapt(fixture->account, &fixture->request, &fixture->arena, &fixture->result);
}

static inline void fixture_post(struct fixture *fixture, const char *type, const char *body)
{
    rcpt_arena_reset(&fixture->arena, 65536);
    fixture_request(fixture, "POST", RCPT_TEXT(""), rcpt_text_of(body));
    fixture_header(fixture, RCPT_TEXT("Content-Type"), rcpt_text_of(type));
    fixture_adapt(fixture);
}

static inline void fixture_get(struct fixture *fixture, const char *target)
{
    rcpt_arena_reset(&fixture->arena, 65536);
    fixture_request(fixture, "GET", rcpt_text_of(target), RCPT_TEXT(""));
    fixture_adapt(fixture);
}

/* The event as JSON, parsed again. */
static inline const struct rcpt_node *fixture_event(struct fixture *fixture, size_t index)
{
    assert_true(index < fixture->result.event_count);
    const struct rcpt_gateway_event *event = &fixture->result.events[index];
    struct rcpt_text id =
        event->message_id.size > 0 ? event->message_id : event->gateway_message_id;
    struct rcpt_text json = rcpt_gateway_event_json(fixture->account, event, id, &fixture->arena);
    const char *reason = NULL;
    const struct rcpt_node *node = rcpt_document_parse(json, &fixture->arena, &reason);
    assert_non_null(node);
    return node;
}

static inline char *file_text(const char *path)
{
    char *text = NULL;
    size_t size = 0;
    FILE *file = fopen(path, "re");
    if (file == NULL)
        return NULL;
    if (getdelim(&text, &size, '\0', file) < 0) {
        free(text);
        text = NULL;
    }
    fclose(file);
    return text;
}

#endif
