dnl SPDX-License-Identifier: MIT
dnl nami_optional.m4 - what the macros of single libraries share.

dnl NAMI_LIBRARY(NAME, PKG-CONFIG MODULE, HEADER, LINK TEST BODY, DEFAULT LIBS, HELP)
dnl
dnl --with-NAME=yes|no|guess|DIR. DIR holds include/ and lib/. Sets NAME_CPPFLAGS, NAME_LIBS (upper case),
dnl nami_have_NAME and nami_NAME_summary, and defines NAMI_HAVE_NAME. "yes" stops when the library is absent.
AC_DEFUN([NAMI_LIBRARY], [
  AC_ARG_WITH([$1], [AS_HELP_STRING([--with-$1=yes|no|guess|DIR], [$6])], [], [with_$1=guess])
  m4_pushdef([UP], m4_translit([$1], [a-z], [A-Z]))
  nami_have_$1=no
  UP[]_CPPFLAGS=
  UP[]_LIBS=
  AS_IF([test "x$with_$1" != xno], [
    AC_MSG_CHECKING([for $1])
    nami_from="default paths"
    AS_CASE([$with_$1],
      [*/*], [UP[]_CPPFLAGS="-I$with_$1/include"; UP[]_LIBS="-L$with_$1/lib -Wl,-rpath,$with_$1/lib $5"
        nami_from=$with_$1], [
        UP[]_LIBS="$5"
        AS_IF([test -n "$2" && test -n "$PKG_CONFIG" && $PKG_CONFIG --exists "$2"], [
          UP[]_CPPFLAGS=`$PKG_CONFIG --cflags "$2"`
          UP[]_LIBS=`$PKG_CONFIG --libs "$2"`
          nami_from="$2 `$PKG_CONFIG --modversion "$2"`"])])
    nami_save_CPPFLAGS=$CPPFLAGS
    nami_save_LIBS=$LIBS
    CPPFLAGS="$UP[]_CPPFLAGS $CPPFLAGS"
    LIBS="$UP[]_LIBS $LIBS"
    AC_LINK_IFELSE([AC_LANG_PROGRAM([$3], [$4])], [nami_have_$1=yes])
    CPPFLAGS=$nami_save_CPPFLAGS
    LIBS=$nami_save_LIBS
    AC_MSG_RESULT([$nami_have_$1])
    AS_IF([test "x$nami_have_$1" = xyes], [
      AC_DEFINE([NAMI_HAVE_]UP, [1], [$6])
      nami_$1_summary="yes ($nami_from)"
    ], [
      UP[]_CPPFLAGS=
      UP[]_LIBS=
      AS_IF([test "x$with_$1" != xguess],
        [AC_MSG_ERROR([--with-$1=$with_$1 was asked for, but a test program does not link (see config.log)])])
      nami_$1_summary="no (not found)"
    ])
  ], [nami_$1_summary="no (switched off)"])
  AC_SUBST(UP[_CPPFLAGS])
  AC_SUBST(UP[_LIBS])
  m4_popdef([UP])
])
