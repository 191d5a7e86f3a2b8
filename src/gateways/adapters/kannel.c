/* Kannel: GET on the URL that the sender wrote in dlr-url, with names of the sender's choice. Here
 * are the usual ones for %d (status), %T or %t (time, which is UTC) and %A (answer). The status is
 * a set of bits. Put an HMAC of the id in the URL (auth: url-hmac): Kannel itself signs nothing.
 * kannel.org, user guide, "Delivery reports" */
#include "../gateways.h"

static const struct {
    unsigned bits;
    struct rcpt_mapping mapping;
} states[] = {
    {1, {"1", NULL, "DELIVERED", NULL}}, /* to the phone */
    {2 | 32, {"34", NULL, "EXPIRED", NULL}}, {2 | 64, {"66", NULL, "UNKNOWN", NULL}},
    {2, {"2", NULL, "FAILED", NULL}},        {16, {"16", NULL, "REJECTED", NULL}}, /* by the SMSC */
    {4, {"4", NULL, "DEFERRED", NULL}}, /* queued at the SMSC */
    {8, {"8", NULL, "SENT", NULL}},     /* accepted by the SMSC */
};

/* The word of an SMPP receipt in the text. Kannel has one bit, "failed" or "queued", for several of
 * these words; a more precise bit counts instead of the word. */
static void take_word(struct rcpt_draft *draft, struct rcpt_text word)
{
    const char *raw = draft->mapped.raw;
    if (raw == NULL || (strcmp(raw, "2") != 0 && strcmp(raw, "4") != 0))
        return;
    for (size_t index = 0; index < rcpt_smpp_status_count; index++)
        if (rcpt_text_is_nocase(word, rcpt_smpp_statuses[index].raw) &&
            strcmp(rcpt_smpp_statuses[index].status, "DELIVERED") != 0)
            draft->mapped = rcpt_smpp_statuses[index];
}

/* The number is a set of bits; rows with several bits come before those with one. The text is an
 * SMPP receipt whose error is the reason. */
static void test_bits(struct rcpt_reading *reading, struct rcpt_draft *draft)
{
    struct rcpt_smpp_receipt receipt = {.stat = {NULL, 0}};
    unsigned value = 0;
    (void)reading;
    if (rcpt_smpp_parse(draft->reason, &receipt))
        draft->reason = receipt.err;
    if (!rcpt_text_number(draft->status, &value))
        return;
    for (size_t index = 0; index < RCPT_COUNT_OF(states) && draft->mapped.raw == NULL; index++)
        if ((value & states[index].bits) == states[index].bits)
            draft->mapped = states[index].mapping;
    take_word(draft, receipt.stat);
}

const struct rcpt_gateway rcpt_gateway_kannel = {
    .name = "kannel",
    .channel = "sms",
    .inbound = "{from,sender}{text}",
    .fields = {.id = "uuid,id,message_id,mid",
               .status = "status,type,dlr,d",
               .at = "ts,time,timestamp,t,T",
               .reason = "answer,reply,msg,A"},
    .time_zone = "Z",
    .item = test_bits,
};
