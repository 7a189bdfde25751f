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
  AS_IF([test "x$enable_werror" = xyes], [NAMI_CFLAGS="$NAMI_CFLAGS -Werror"])
  AS_IF([test "x$enable_asan" = xyes], [
    NAMI_CFLAGS="$NAMI_CFLAGS -fsanitize=address,undefined -fno-sanitize-recover=undefined -fno-omit-frame-pointer"
    NAMI_LDFLAGS="$NAMI_LDFLAGS -fsanitize=address,undefined"
    AC_DEFINE([NAMI_ASAN], [1], [built with the address sanitizer])
  ])
  AC_SUBST([NAMI_CFLAGS])
  AC_SUBST([NAMI_LDFLAGS])
])
