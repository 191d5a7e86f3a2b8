/* What the choices of the table of keys are called, and what they mean. Included by table.c alone.
 */
#ifndef RECEIPTD_CONFIG_CHOICES_H
#define RECEIPTD_CONFIG_CHOICES_H

#include "table.h"

/* The names of choices, in the order in which errors and pages list them. */
static const cyaml_strval_t gap_policies[] = {
    {"halt", RCPT_GAP_HALT},
    {"skip", RCPT_GAP_SKIP},
};
static const cyaml_strval_t unknown_policies[] = {
    {"park", RCPT_UNKNOWN_PARK},
    {"insert", RCPT_UNKNOWN_INSERT},
    {"dead-letter", RCPT_UNKNOWN_DEAD_LETTER},
};
/* Some choices are bools with telling names, so that a third value may come without a new key. */
static const cyaml_strval_t targeted_policies[] = {
    {"trigger", true},
    {"none", false},
};
static const cyaml_strval_t log_levels[] = {
    {"error", RCPT_LOG_ERROR},
    {"warn", RCPT_LOG_WARN},
    {"info", RCPT_LOG_INFO},
    {"debug", RCPT_LOG_DEBUG},
};
static const cyaml_strval_t log_formats[] = {
    {"logfmt", RCPT_LOG_LOGFMT},
    {"json", RCPT_LOG_JSON},
};
static const cyaml_strval_t alias_policies[] = {
    {"optional", RCPT_ALIAS_OPTIONAL},
    {"required", RCPT_ALIAS_REQUIRED},
    {"off", RCPT_ALIAS_OFF},
};
static const cyaml_strval_t letter_payloads[] = {
    {"raw", RCPT_LETTER_RAW},
    {"masked", RCPT_LETTER_MASKED},
    {"none", RCPT_LETTER_NONE},
};
static const cyaml_strval_t partition_makers[] = {
    {"none", RCPT_PARTITIONS_NONE},
    {"own", RCPT_PARTITIONS_OWN},
    {"external", RCPT_PARTITIONS_EXTERNAL},
};
static const cyaml_strval_t id_kinds[] = {
    {"any", RCPT_ID_ANY},     {"uuidv7", RCPT_ID_UUIDV7},       {"ulid", RCPT_ID_ULID},
    {"ksuid", RCPT_ID_KSUID}, {"snowflake", RCPT_ID_SNOWFLAKE},
};
static const cyaml_strval_t machine_policies[] = {
    {"flag", RCPT_MACHINE_FLAG},
    {"count", RCPT_MACHINE_COUNT},
    {"ignore", RCPT_MACHINE_IGNORE},
};
static const cyaml_strval_t message_id_forms[] = {
    {"hash", false},
    {"plain", true},
};

#endif
