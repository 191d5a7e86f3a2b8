/* The SQL of sql/, embedded by the build: sql/lane/apply.sql is "lane/apply". Readable and runnable
 * there. */
#ifndef RECEIPTD_POSTGRES_SQL_H
#define RECEIPTD_POSTGRES_SQL_H

/* Text of an embedded file, terminated; asserts that the name exists. Valid for ever. */
const char *rcpt_sql(const char *name);

#endif
