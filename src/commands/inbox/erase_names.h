/* Finds ids of erased messages in a text, however its writer escaped it (readings.h). Pure. Private
 * to this folder. */
#ifndef RECEIPTD_COMMANDS_INBOX_ERASE_NAMES_H
#define RECEIPTD_COMMANDS_INBOX_ERASE_NAMES_H

#include "receiptd/base/text.h"

struct erase_name {
    struct rcpt_text account; /* at NULL: the id alone is enough */
    struct rcpt_text id;
};

struct erase_names { /* embedded; private */
    struct erase_name *at;
    size_t count, capacity;
    struct rcpt_arena texts, readings;
    bool sorted;
};

void erase_names_init(struct erase_names *names);
void erase_names_fini(struct erase_names *names);

/* A message's id; or, with the name of its account, a gateway's id, which another account may have
 * given to another message. Both are copied. */
void erase_names_add(struct erase_names *names, struct rcpt_text account, struct rcpt_text id);

/* Whether the text names one: as a word or several, not as part of a longer word. A number counts
 * as the integer that it is: 8.8e5 names 880000. */
bool erase_names_any(struct erase_names *names, struct rcpt_text text);

#endif
