dnl SPDX-License-Identifier: MIT
dnl nami_mpi.m4 - MPI: wrapper, flags, launcher, and the proof that they belong together.
dnl
dnl --with-mpi=guess|FLAVOUR|DIR   FLAVOUR names Debian's suffix (mpicc.FLAVOUR); DIR holds bin/mpicc
dnl Sets MPI_CPPFLAGS MPI_LIBS MPIEXEC MPIEXEC_FLAGS, nami_mpi (mpich, openmpi or other).
dnl The compiler stays the user's CC; only the flags come from the wrapper.

dnl Split what the wrapper shows into preprocessor flags and libraries.
AC_DEFUN([NAMI_MPI_ASK], [
  nami_mpi_show=`$MPICC -show 2>/dev/null`
  AS_IF([test -z "$nami_mpi_show"], [nami_mpi_show=`$MPICC --showme 2>/dev/null`])
  MPI_CPPFLAGS=
  MPI_LIBS=
  for word in $nami_mpi_show
  do
    AS_CASE([$word],
      [-I*|-D*], [MPI_CPPFLAGS="$MPI_CPPFLAGS $word"],
      [-L*|-l*|-Wl,*|-pthread], [MPI_LIBS="$MPI_LIBS $word"])
  done
])

dnl Two ranks must see a world of size two: the launcher of another MPI starts singletons.
AC_DEFUN([NAMI_MPI_PROBE], [
  AC_MSG_CHECKING([whether $MPIEXEC $MPIEXEC_FLAGS -n 2 starts two ranks of this MPI])
  AC_LINK_IFELSE([AC_LANG_SOURCE([[
#include <mpi.h>
#include <stdio.h>
int main(int argc, char **argv)
{
    int size = 0;
    if (MPI_Init(&argc, &argv) != MPI_SUCCESS || MPI_Comm_size(MPI_COMM_WORLD, &size) != MPI_SUCCESS)
        return 1;
    printf("size=%d\n", size);
    MPI_Finalize();
    return 0;
}]])], [
    nami_mpi_seen=`$MPIEXEC $MPIEXEC_FLAGS -n 2 ./conftest$EXEEXT 2>conftest.err | grep -c '^size=2$'`
    AS_IF([test "x$nami_mpi_seen" = x2], [AC_MSG_RESULT([yes])], [
      AC_MSG_RESULT([no])
      cat conftest.err >&AS_MESSAGE_LOG_FD
      AC_MSG_ERROR([$MPIEXEC does not start ranks of the MPI of $MPICC; set MPICC and MPIEXEC, or --with-mpi=mpich|openmpi (see config.log)])])
  ], [AC_MSG_RESULT([no]); AC_MSG_ERROR([cannot link an MPI program with '$MPI_LIBS'; set MPICC, or --with-mpi=DIR])])
])

AC_DEFUN([NAMI_WITH_MPI], [
  AC_ARG_WITH([mpi], [AS_HELP_STRING([--with-mpi=guess|mpich|openmpi|DIR], [which MPI (guess: mpich first)])],
    [], [with_mpi=guess])
  AC_ARG_VAR([MPICC], [MPI compiler wrapper, asked for flags])
  AC_ARG_VAR([MPIEXEC], [MPI launcher, used by the tests])
  AC_ARG_VAR([MPIEXEC_FLAGS], [flags of the launcher])
  AS_CASE([$with_mpi],
    [no], [AC_MSG_ERROR([nami is an MPI program: --without-mpi is not possible])],
    [guess|yes], [
      AC_CHECK_PROGS([MPICC], [mpicc.mpich mpicc])
      AS_CASE([$MPICC], [mpicc.mpich], [: ${MPIEXEC=mpiexec.mpich}])
      AC_CHECK_PROGS([MPIEXEC], [mpiexec mpirun])],
    [*/*], [: ${MPICC="$with_mpi/bin/mpicc"} ${MPIEXEC="$with_mpi/bin/mpiexec"}],
    [: ${MPICC="mpicc.$with_mpi"} ${MPIEXEC="mpiexec.$with_mpi"}])
  AS_IF([test -z "$MPICC" || test -z "$MPIEXEC"],
    [AC_MSG_ERROR([no MPI found: install libmpich-dev and mpich, or set MPICC and MPIEXEC])])
  NAMI_MPI_ASK
  nami_save_CPPFLAGS=$CPPFLAGS
  nami_save_LIBS=$LIBS
  CPPFLAGS="$MPI_CPPFLAGS $CPPFLAGS"
  LIBS="$MPI_LIBS $LIBS"
  AC_CHECK_HEADER([mpi.h], [], [AC_MSG_ERROR([mpi.h not found with '$MPI_CPPFLAGS' of $MPICC])])
  AC_CHECK_DECL([OPEN_MPI], [nami_mpi=openmpi],
    [AC_CHECK_DECL([MPICH_VERSION], [nami_mpi=mpich], [nami_mpi=other], [#include <mpi.h>])], [#include <mpi.h>])
  AS_IF([test "x$nami_mpi" = xopenmpi && test -z "$MPIEXEC_FLAGS"], [
    MPIEXEC_FLAGS="--oversubscribe"
    AS_IF([test "`id -u`" = 0], [MPIEXEC_FLAGS="--allow-run-as-root $MPIEXEC_FLAGS"])])
  NAMI_MPI_PROBE
  AC_CHECK_FUNCS([MPI_Send_c])
  CPPFLAGS=$nami_save_CPPFLAGS
  LIBS=$nami_save_LIBS
  nami_mpi_summary="$nami_mpi ($MPICC)"
  AC_SUBST([MPI_CPPFLAGS])
  AC_SUBST([MPI_LIBS])
  AC_DEFINE_UNQUOTED([NAMI_MPI], ["$nami_mpi"], [flavour of the MPI library])
  AC_DEFINE_UNQUOTED([NAMI_MPIEXEC], ["$MPIEXEC $MPIEXEC_FLAGS"], [launcher found by configure])
])
