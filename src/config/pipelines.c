/* The grammar of `pipelines`: reads each pipeline into steps (struct compiler), resolves names of
 * stages, refuses cycles without a wait, and has the result written as JSON for the database. Names
 * of statuses, flags and endpoints are checked here, so ladder and endpoints come first. Called by
 * config.c when a configuration is loaded. The parsed nodes are borrowed until pipelines_compile()
 * returns. */
#include "pipelines_internal.h"

#include <stdlib.h>
#include <string.h>

#include "receiptd/base/error.h"
#include "receiptd/config/value.h"

/* ---- actions ---- */

/* The database stores the name, so an endpoint's URL may change without a new wording of the
 * pipeline. */
static bool find_endpoint(struct compiler *compiler, const yaml_node_t *node, const char *endpoint)
{
    for (size_t index = 0; index < compiler->config->actions.endpoints_count; index++)
        if (strcmp(compiler->config->actions.endpoints[index].name, endpoint) == 0)
            return true;
    return pipelines_fail(compiler, node, "there is no endpoint \"%.63s\" in actions.endpoints",
                          endpoint);
}

/* All pipelines together use few topics: each has a producer's or reader's partition list. */
static bool add_topic(struct compiler *compiler, const yaml_node_t *node, const char *topic,
                      struct pipelines_topics *topics)
{
    if (!rcpt_config_is_topic(topic))
        return pipelines_fail(compiler, node, "\"%.63s\" is not the name of a topic", topic);
    for (size_t index = 0; index < topics->count; index++)
        if (strcmp(topics->names[index], topic) == 0)
            return true;
    if (topics->count == PIPELINES_MAX_TOPICS)
        return pipelines_fail(compiler, node, "more than %u topics are %s", PIPELINES_MAX_TOPICS,
                              topics == &compiler->made->topics ? "produced to" : "read");
    topics->names[topics->count++] = rcpt_strdup(topic);
    return true;
}

/* The short form is the endpoint's name alone. */
static bool read_webhook(struct compiler *compiler, yaml_node_t *node, struct step *step)
{
    step->op = OP_WEBHOOK;
    const yaml_node_t *endpoint = node;
    if (node->type != YAML_SCALAR_NODE) {
        if (!pipelines_check_keys(compiler, node, "webhook", "endpoint"))
            return false;
        endpoint = pipelines_member(compiler, node, "endpoint");
        if (endpoint == NULL)
            return pipelines_fail(compiler, node, "webhook needs an endpoint");
    }
    return pipelines_read_text(compiler, endpoint, "webhook.endpoint", &step->target) &&
           find_endpoint(compiler, endpoint, step->target);
}

/* The key decides which publications stay in order. */
static bool read_produce(struct compiler *compiler, yaml_node_t *node, struct step *step)
{
    step->op = OP_PRODUCE;
    step->key = "subject";
    const yaml_node_t *topic = node;
    if (node->type != YAML_SCALAR_NODE) {
        if (!pipelines_check_keys(compiler, node, "produce", "topic key"))
            return false;
        topic = pipelines_member(compiler, node, "topic");
        const yaml_node_t *key = pipelines_member(compiler, node, "key");
        if (topic == NULL)
            return pipelines_fail(compiler, node, "produce needs a topic");
        if (key != NULL && !pipelines_read_text(compiler, key, "produce.key", &step->key))
            return false;
        if (strcmp(step->key, "subject") != 0 && strcmp(step->key, "org_id") != 0 &&
            strcmp(step->key, "campaign_id") != 0 && strcmp(step->key, "message_id") != 0)
            return pipelines_fail(
                compiler, key,
                "produce.key is one of subject, org_id, campaign_id, message_id, not "
                "\"%.40s\"",
                step->key);
    }
    return pipelines_read_text(compiler, topic, "produce.topic", &step->target) &&
           add_topic(compiler, topic, step->target, &compiler->made->topics);
}

/* An await always ends: `within` is required. */
static bool read_await(struct compiler *compiler, yaml_node_t *node, struct step *step)
{
    step->op = OP_AWAIT;
    if (!pipelines_check_keys(compiler, node, "await", "status flag within else"))
        return false;
    const yaml_node_t *within = pipelines_member(compiler, node, "within");
    if (within == NULL)
        return pipelines_fail(compiler, node, "await needs within, how long to wait");
    step->else_stage = pipelines_member(compiler, node, "else");
    return pipelines_read_status_or_flag(compiler, node, "await", &step->awaits) &&
           pipelines_read_duration(compiler, within, "await.within", &step->wait_ms);
}

/* A step has two exits, `next` and `other`. An await needs `other` for its time-out, so a condition
 * on it (or on a wait before it) becomes a gate step in front. */
static bool needs_gate(const struct compiler *compiler, const struct step *await)
{
    const struct step *before = await - 1;
    return await->when.count > 0 || await->unless.count > 0 ||
           (await > compiler->steps && before->stage == await->stage && before->op == OP_WAIT &&
            !pipelines_is_plain(before));
}

/* The gate takes the place and the conditions of the await, which moves one step on. */
static void put_gate(struct compiler *compiler, struct step *step)
{
    struct step *await = &compiler->steps[compiler->step_count++];
    *await = *step;
    /* A gate moves on, to the await, or else past it (resolve_stages). */
    *step = (struct step){.op = OP_MOVE,
                          .stage = step->stage,
                          .when = step->when,
                          .unless = step->unless,
                          .is_gate = true,
                          .awaits = NO_CODE};
    await->when.count = await->unless.count = 0;
}

static bool read_conditions(struct compiler *compiler, yaml_node_t *node, struct step *step)
{
    return pipelines_read_codes(compiler, pipelines_member(compiler, node, "if"), false,
                                &step->when) &&
           pipelines_read_codes(compiler, pipelines_member(compiler, node, "unless"), true,
                                &step->unless) &&
           pipelines_read_capped(compiler, node, step) &&
           pipelines_read_lookup_conditions(compiler, node, step);
}

/* An action is a mapping with one verb; `if` and `unless` go with any of them. */
static bool read_action(struct compiler *compiler, yaml_node_t *node, const char *stage)
{
    if (compiler->action_count++ == PIPELINES_MAX_ACTIONS)
        return pipelines_fail(compiler, node, "more than %u actions", PIPELINES_MAX_ACTIONS);
    struct step *step = &compiler->steps[compiler->step_count++];
    *step = (struct step){.stage = stage, .awaits = NO_CODE};
    if (!pipelines_check_keys(compiler, node, "an action",
                              "wait await webhook produce move if unless split capped between "
                              "if_lookup unless_lookup"))
        return false;
    yaml_node_t *found = NULL;
    /* Every verb is searched, so that an action with two of them is refused. */
    for (enum op op = OP_WEBHOOK; op < OP_END; op++) {
        yaml_node_t *each = pipelines_member(compiler, node, pipelines_op_name(op));
        if (each != NULL && found != NULL)
            return pipelines_fail(compiler, each,
                                  "an action is one of wait, await, webhook, produce, move, split");
        if (each != NULL) {
            found = each;
            step->op = op;
        }
    }
    if (found == NULL)
        return pipelines_fail(compiler, node,
                              "an action is one of wait, await, webhook, produce, move, split");
    if (!read_conditions(compiler, node, step) || !pipelines_read_between(compiler, node, step))
        return false;
    switch (step->op) {
    case OP_WEBHOOK:
        return read_webhook(compiler, found, step);
    case OP_PRODUCE:
        return read_produce(compiler, found, step);
    case OP_AWAIT:
        if (!read_await(compiler, found, step))
            return false;
        if (needs_gate(compiler, step))
            put_gate(compiler, step);
        return true;
    case OP_WAIT:
        return pipelines_read_duration(compiler, found, "wait", &step->wait_ms);
    case OP_SPLIT:
        return pipelines_read_split(compiler, found, step);
    default:
        step->next_stage = found;
        return true;
    }
}

/* ---- stages ---- */

/* The first step of a stage is where moves to it land. */
static bool read_stage(struct compiler *compiler, yaml_node_t *node)
{
    if (!pipelines_check_keys(compiler, node, "a stage", "name actions"))
        return false;
    const yaml_node_t *name = pipelines_member(compiler, node, "name");
    const yaml_node_t *actions = pipelines_member(compiler, node, "actions");
    if (name == NULL || actions == NULL || actions->type != YAML_SEQUENCE_NODE)
        return pipelines_fail(compiler, node, "a stage has a name and a list of actions");
    if (compiler->stage_count == MAX_STAGES)
        return pipelines_fail(compiler, node, "more than %u stages", MAX_STAGES);
    struct stage *stage = &compiler->stages[compiler->stage_count];
    if (!pipelines_read_text(compiler, name, "the name of a stage", &stage->name))
        return false;
    for (size_t index = 0; index < compiler->stage_count; index++)
        if (strcmp(compiler->stages[index].name, stage->name) == 0)
            return pipelines_fail(compiler, name, "two stages are named \"%.63s\"", stage->name);
    compiler->stage_count++;
    stage->first = compiler->step_count;
    for (const yaml_node_item_t *item = actions->data.sequence.items.start;
         item < actions->data.sequence.items.top; item++) {
        size_t index = compiler->step_count;
        if (!read_action(compiler, pipelines_node(compiler, *item), stage->name))
            return false;
        for (; index < compiler->step_count; index++)
            compiler->steps[index].next = index + 1;
    }
    /* A stage that is not left by a move ends the run. */
    if (compiler->step_count > stage->first)
        compiler->steps[compiler->step_count - 1].next = RUN_ENDS;
    else
        return pipelines_fail(compiler, actions, "stage \"%.63s\" has no actions", stage->name);
    return true;
}

/* RUN_ENDS stands for a step whose number is not known before the last stage is read. */
static size_t end_of(const struct compiler *compiler, size_t step)
{
    return step == RUN_ENDS ? compiler->step_count : step;
}

/* Names of stages become numbers of steps; the run's end is one step more. */
static bool resolve_stages(struct compiler *compiler)
{
    for (size_t index = 0; index < compiler->step_count; index++) {
        struct step *step = &compiler->steps[index];
        step->next = end_of(compiler, step->next);
        /* Passed over, or not reached without an else. */
        step->other =
            step->is_gate ? end_of(compiler, compiler->steps[index + 1].next) : step->next;
        if (step->next_stage != NULL &&
            !pipelines_find_stage(compiler, step->next_stage, &step->next))
            return false;
        if (step->else_stage != NULL &&
            !pipelines_find_stage(compiler, step->else_stage, &step->other))
            return false;
    }
    compiler->steps[compiler->step_count] =
        (struct step){.op = OP_END, .stage = "", .awaits = NO_CODE, .next = compiler->step_count};
    compiler->steps[compiler->step_count].other = compiler->step_count;
    return true;
}

/* A cycle in which no time passes would call its receivers as fast as the scheduler runs. A cycle
 * of plain waits and moves has no step at which a run could stand. */
static bool check_cycles(struct compiler *compiler, const yaml_node_t *node)
{
    struct cycle cycle;
    enum cycle_kind kind = pipelines_find_cycle(compiler, &cycle);
    if (kind == CYCLE_UNCLEAR)
        return pipelines_fail(
            compiler, node,
            "has too many conditions on flags to see whether it moves in a cycle without "
            "a wait");
    if (kind == CYCLE_TURNS) {
        const struct step *last = &compiler->steps[cycle.last];
        return pipelines_fail(compiler, last->op == OP_AWAIT ? last->else_stage : last->next_stage,
                              "stage \"%.63s\" moves in a cycle without a wait%s", last->stage,
                              cycle.when);
    }
    /* Waits do take time in these, but no action ever comes. */
    for (size_t start = 0; start < compiler->step_count; start++) {
        int64_t delay_ms = 0;
        const struct step *landed = &compiler->steps[pipelines_land(compiler, start, &delay_ms)];
        if (pipelines_is_plain(landed) && pipelines_is_plain(&compiler->steps[landed->next]))
            return pipelines_fail(
                compiler, node,
                "stage \"%.63s\" waits and moves in a cycle in which nothing happens",
                compiler->steps[start].stage);
    }
    return true;
}

/* ---- pipelines ---- */

/* Runs can begin by records of a topic, but not of one that carries receipts: those begin runs by
 * their transitions. */
static bool read_source(struct compiler *compiler, const yaml_node_t *on)
{
    const yaml_node_t *topic = pipelines_member(compiler, on, "topic");
    if (pipelines_member(compiler, on, "status") != NULL ||
        pipelines_member(compiler, on, "flag") != NULL)
        return pipelines_fail(compiler, on, "on needs one of status, flag and topic");
    if (!pipelines_read_text(compiler, topic, "the name of a topic", &compiler->source))
        return false;
    for (size_t index = 0; index < compiler->config->kafka.topics_count; index++)
        if (strcmp(compiler->config->kafka.topics[index], compiler->source) == 0)
            return pipelines_fail(compiler, topic, "\"%.63s\" is a topic of receipts",
                                  compiler->source);
    return add_topic(compiler, topic, compiler->source, &compiler->made->sources);
}

/* Without `on`, or with `on: api`, runs begin by requests and imports only. */
static bool read_on(struct compiler *compiler, yaml_node_t *node)
{
    if (node == NULL)
        return true; /* begun by imports only */
    if (node->type == YAML_SCALAR_NODE && strcmp(rcpt_config_scalar(node), "api") == 0)
        return true; /* by the command only, said aloud */
    if (node->type == YAML_SCALAR_NODE)
        return pipelines_read_code(compiler, node, &compiler->on);
    if (!pipelines_check_keys(compiler, node, "on", "status flag topic match"))
        return false;
    yaml_node_t *match = pipelines_member(compiler, node, "match");
    if (match != NULL) {
        if (!pipelines_check_keys(compiler, match, "on.match", "org campaign"))
            return false;
        compiler->orgs = pipelines_member(compiler, match, "org");
        compiler->campaigns = pipelines_member(compiler, match, "campaign");
    }
    return pipelines_check_texts(compiler, compiler->orgs, "on.match.org", false) &&
           pipelines_check_texts(compiler, compiler->campaigns, "on.match.campaign", false) &&
           (pipelines_member(compiler, node, "topic") != NULL
                ? read_source(compiler, node)
                : pipelines_read_status_or_flag(compiler, node, "on", &compiler->on));
}

/* Defaults: the organisation is org_id, the subject is the message. */
static bool read_fields(struct compiler *compiler, yaml_node_t *node)
{
    const yaml_node_t *org = pipelines_member(compiler, node, "org");
    const yaml_node_t *subject = pipelines_member(compiler, node, "subject");
    compiler->once_per = pipelines_member(compiler, node, "once_per");
    compiler->org = "org_id";
    compiler->subject = "message_id";
    return pipelines_read_push(compiler, &compiler->once_per) &&
           (org == NULL || pipelines_read_field(compiler, org, "org", &compiler->org)) &&
           (subject == NULL ||
            pipelines_read_field(compiler, subject, "subject", &compiler->subject)) &&
           pipelines_check_texts(compiler, compiler->once_per, "once_per", true) &&
           pipelines_read_window(compiler, pipelines_member(compiler, node, "between"),
                                 &compiler->window);
}

/* The short form: one action instead of stages. */
static bool read_short(struct compiler *compiler, yaml_node_t *node)
{
    struct step *step = &compiler->steps[compiler->step_count++];
    yaml_node_t *webhook = pipelines_member(compiler, node, "webhook");
    yaml_node_t *produce = pipelines_member(compiler, node, "produce");
    const yaml_node_t *after = pipelines_member(compiler, node, "wait");
    if ((webhook == NULL) == (produce == NULL))
        return pipelines_fail(compiler, node, "needs either stages, or one of webhook and produce");
    *step = (struct step){.stage = "", .awaits = NO_CODE};
    /* A short form with `wait` has two steps: the wait, and then the action. */
    if (after != NULL) {
        step->op = OP_WAIT;
        step->next = 1;
        if (!pipelines_read_duration(compiler, after, "wait", &step->wait_ms))
            return false;
        step = &compiler->steps[compiler->step_count++];
        *step = (struct step){.stage = "", .awaits = NO_CODE};
    }
    step->next = RUN_ENDS;
    step->window = compiler->window;
    return read_conditions(compiler, node, step) &&
           (webhook != NULL ? read_webhook(compiler, webhook, step)
                            : read_produce(compiler, produce, step));
}

/* The short form and stages exclude each other. */
static bool read_stages(struct compiler *compiler, yaml_node_t *node)
{
    const yaml_node_t *stages = pipelines_member(compiler, node, "stages");
    static const char *const shorts[] = {"webhook", "produce", "wait",      "if",
                                         "unless",  "capped",  "if_lookup", "unless_lookup"};
    if (stages == NULL)
        return read_short(compiler, node);
    for (size_t index = 0; index < RCPT_COUNT_OF(shorts); index++)
        if (pipelines_member(compiler, node, shorts[index]) != NULL)
            return pipelines_fail(compiler, node, "has stages, so %s belongs into one of them",
                                  shorts[index]);
    if (stages->type != YAML_SEQUENCE_NODE ||
        stages->data.sequence.items.start == stages->data.sequence.items.top)
        return pipelines_fail(compiler, stages, "stages must be a list of stages");
    for (const yaml_node_item_t *item = stages->data.sequence.items.start;
         item < stages->data.sequence.items.top; item++)
        if (!read_stage(compiler, pipelines_node(compiler, *item)))
            return false;
    return true;
}

/* The name is the pipeline's identity in the database. */
static bool read_name(struct compiler *compiler, const yaml_node_t *list, const yaml_node_t *node,
                      const yaml_node_item_t *self)
{
    const yaml_node_t *name = pipelines_member(compiler, node, "name");
    const char *text = "";
    if (name == NULL)
        return pipelines_fail(compiler, node, "every pipeline needs a name");
    if (!pipelines_read_text(compiler, name, "the name of a pipeline", &text))
        return false;
    if (strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.") !=
        strlen(text))
        return pipelines_fail(compiler, name,
                              "\"%.63s\": a name has letters, digits, dots, dashes and underscores",
                              text);
    for (const yaml_node_item_t *item = list->data.sequence.items.start; item < self; item++) {
        const yaml_node_t *other =
            pipelines_member(compiler, pipelines_node(compiler, *item), "name");
        if (strcmp(rcpt_config_scalar(other), text) == 0)
            return pipelines_fail(compiler, name, "two pipelines are named \"%.63s\"", text);
    }
    compiler->pipeline = text;
    return true;
}

/* The compiler is reused: everything of the pipeline before is reset here. */
static bool read_pipeline(struct compiler *compiler, const yaml_node_t *list,
                          const yaml_node_item_t *item, struct rcpt_json *json)
{
    yaml_node_t *node = pipelines_node(compiler, *item);
    compiler->pipeline = NULL;
    compiler->step_count = compiler->action_count = compiler->stage_count = 0;
    compiler->on = NO_CODE;
    compiler->source = NULL;
    compiler->orgs = compiler->campaigns = compiler->once_per = NULL;
    compiler->push = NULL;
    compiler->split = (struct split){0};
    compiler->window = (struct window){0};
    bool good = pipelines_check_keys(compiler, node, "a pipeline",
                                     "name on org subject once_per stages webhook produce wait if "
                                     "unless capped between lookup if_lookup unless_lookup") &&
                read_name(compiler, list, node, item) &&
                read_on(compiler, pipelines_member(compiler, node, "on")) &&
                read_fields(compiler, node) && pipelines_read_lookup(compiler, node) &&
                read_stages(compiler, node) && resolve_stages(compiler) &&
                pipelines_check_split(compiler) && check_cycles(compiler, node);
    if (good)
        pipelines_write(compiler, json);
    return good;
}

/* The count is raised for each good pipeline; the first mistake ends the reading. */
static bool read_list(struct compiler *compiler, const yaml_node_t *list, struct rcpt_json *json)
{
    rcpt_json_begin_array(json);
    for (const yaml_node_item_t *item = list->data.sequence.items.start;
         item < list->data.sequence.items.top; item++) {
        if (!read_pipeline(compiler, list, item, json))
            return false;
        compiler->made->count++;
    }
    rcpt_json_end_array(json);
    return true;
}

/* The result is JSON for pipelines_store() (sql/functions), and the topics that the actions
 * need. */
struct pipelines *pipelines_compile(const char *name, yaml_document_t *document, yaml_node_t *node,
                                    const struct rcpt_config *config, struct rcpt_error *error)
{
    struct pipelines *made = rcpt_calloc(1, sizeof(*made));
    struct compiler *compiler = rcpt_calloc(1, sizeof(*compiler));
    *compiler = (struct compiler){
        .name = name, .document = document, .config = config, .error = error, .made = made};
    size_t size = 0;
    struct rcpt_json json;
    FILE *out = rcpt_open_memory(&made->definitions, &size);
    rcpt_json_init(&json, out);
    bool good = read_list(compiler, node, &json);
    RCPT_ASSERT(fclose(out) == 0);
    for (size_t index = 0; index < compiler->rule_count; index++)
        free(compiler->rules[index].text);
    free(compiler->lookup_sql);
    free(compiler);
    if (good)
        return made;
    pipelines_free(made);
    return NULL;
}

struct pipelines *pipelines_take(struct rcpt_config *config)
{
    struct pipelines *taken = config->compiled;
    config->compiled = NULL;
    return taken;
}

void pipelines_free(struct pipelines *pipelines)
{
    if (pipelines == NULL)
        return;
    for (size_t index = 0; index < PIPELINES_MAX_TOPICS; index++) {
        free(pipelines->topics.names[index]);
        free(pipelines->sources.names[index]);
    }
    free(pipelines->definitions);
    free(pipelines);
}
