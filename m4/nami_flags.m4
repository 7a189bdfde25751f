dnl SPDX-License-Identifier: MIT
dnl nami_flags.m4 - compiler flags of our own: NAMI_CFLAGS, NAMI_LDFLAGS. The user's CFLAGS stay untouched.

dnl NAMI_TRY_FLAG(FLAG): add FLAG to NAMI_CFLAGS when the compiler knows it
AC_DEFUN([NAMI_TRY_FLAG], [
  nami_save_CFLAGS=$CFLAGS
  CFLAGS="$CFLAGS -Werror $1"
  AC_MSG_CHECKING([whether $CC knows $1])
  AC_COMPILE_IFELSE([AC_LANG_PROGRAM()],
    [AC_MSG_RESULT([yes]); NAMI_CFLAGS="$NAMI_CFLAGS $1"], [AC_MSG_RESULT([no])])
  CFLAGS=$nami_save_CFLAGS
])

dnl NAMI_WIDE_CONSTANTS: gcc 12 with AVX2 or AVX-512 copies constants of 32 bytes and more that end in zeros wrongly, as a
dnl structure {1, 1, 1, 0, 0} that is passed by value: it spreads the first word over all. Moves of 16 bytes are right.
AC_DEFUN([NAMI_WIDE_CONSTANTS], [
  nami_save_CFLAGS=$CFLAGS
  CFLAGS="$CFLAGS $NAMI_CFLAGS"
  AC_MSG_CHECKING([whether $CC copies constant structures rightly])
  AC_RUN_IFELSE([AC_LANG_SOURCE([[
    typedef struct s { long long a, b, c, d, e; } s;
    static inline s square(long long k, long long p) { return (s){k, k, 1, p, p}; }
    long long sum(int x, s v);
    long long sum(int x, s v) { return x + v.a + 10 * v.b + 100 * v.c + 1000 * v.d + 10000 * v.e; }
    int main(int argc, char **argv)
    { long long (*volatile f)(int, s) = sum; (void)argv; return f(argc, square(1, 0)) != 111 + argc; }]])],
    [AC_MSG_RESULT([yes]); nami_wide=right], [AC_MSG_RESULT([no]); nami_wide=wrong],
    [AC_MSG_RESULT([unknown, taken as no]); nami_wide=wrong])
  CFLAGS=$nami_save_CFLAGS
  AS_IF([test $nami_wide = wrong], [
    NAMI_TRY_FLAG([-mmove-max=128])
    NAMI_TRY_FLAG([-mstore-max=128])
  ])
])

AC_DEFUN([NAMI_FLAGS], [
  AC_ARG_ENABLE([native], [AS_HELP_STRING([--disable-native], [do not compile for this machine's processor (-march=native)])],
    [], [enable_native=yes])
  AC_ARG_ENABLE([asan], [AS_HELP_STRING([--enable-asan], [address, leak and undefined-behaviour sanitizers])],
    [], [enable_asan=no])
  AC_ARG_ENABLE([werror], [AS_HELP_STRING([--enable-werror], [warnings are errors])], [], [enable_werror=no])
  NAMI_CFLAGS=
  NAMI_LDFLAGS=
  for flag in -Wall -Wextra -Wshadow -Wvla -Wstrict-prototypes -Wmissing-prototypes -Wformat=2 -fno-common
  do
    NAMI_TRY_FLAG([$flag])
  done
  AS_IF([test "x$enable_native" = xyes], [NAMI_TRY_FLAG([-march=native])])
  NAMI_WIDE_CONSTANTS
  AS_IF([test "x$enable_werror" = xyes], [NAMI_CFLAGS="$NAMI_CFLAGS -Werror"])
  AS_IF([test "x$enable_asan" = xyes], [
    NAMI_CFLAGS="$NAMI_CFLAGS -fsanitize=address,undefined -fno-sanitize-recover=undefined -fno-omit-frame-pointer"
    NAMI_LDFLAGS="$NAMI_LDFLAGS -fsanitize=address,undefined"
    AC_DEFINE([NAMI_ASAN], [1], [built with the address sanitizer])
  ])
  AC_SUBST([NAMI_CFLAGS])
  AC_SUBST([NAMI_LDFLAGS])
])
