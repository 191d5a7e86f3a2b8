/* How `receiptd ctl` and the daemon talk: one line of words, an answer, the end.
 *
 * Request: "FORMAT VERB [WORD…]\n", format "text" or "json". Answer: the exit code as a decimal
 * number, a newline, then the text to be printed.
 */
#ifndef RECEIPTD_OPERATE_CONTROL_H
#define RECEIPTD_OPERATE_CONTROL_H

#define CONTROL_MAX_WORDS  4
#define CONTROL_LINE_BYTES 256u

#endif
