/* SPDX-License-Identifier: MIT */
/* clock.h - time. */
#ifndef NAMI_BASE_CLOCK_H
#define NAMI_BASE_CLOCK_H

/* Seconds of a steady clock since some fixed moment. Local. */
double nami_now(void);

/* Give up the processor for about `seconds`. Local. */
void nami_sleep(double seconds);

/* Let sleeps of this thread end in time: Linux adds 50 us to each unless told otherwise. Local. */
void nami_sleep_sharply(void);

/* Give up the processor until nami_now reaches `moment`, to about a microsecond where cores are free. Local. */
void nami_sleep_until(double moment);

/* UTC as "2026-01-31T12:00:00Z" into buf[32]; returns buf. Local. */
const char *nami_utc(char buf[32]);

#endif
