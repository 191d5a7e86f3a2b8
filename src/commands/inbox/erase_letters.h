/* Dead letters of erased messages. Private to this folder. */
#ifndef RECEIPTD_COMMANDS_INBOX_ERASE_LETTERS_H
#define RECEIPTD_COMMANDS_INBOX_ERASE_LETTERS_H

#include "../command.h"
#include "erase_names.h"

/* Deletes the dead letters that name one of the ids, in the open transaction, and books them in
 * the record `erasure`. Reads all of them, each once. Returns how many went; -1: the error is in
 * the context. */
RCPT_MUST_CHECK int64_t erase_letters(struct command_context *context, struct erase_names *names,
                                      const char *erasure);

#endif
