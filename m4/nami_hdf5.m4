dnl SPDX-License-Identifier: MIT
dnl nami_hdf5.m4 - parallel HDF5 built with the same MPI.
dnl
dnl --with-hdf5=guess|DIR. Tries pkg-config hdf5-FLAVOUR, then hdf5-mpi, then hdf5, then h5pcc's -I and -L.
dnl Sets HDF5_CPPFLAGS HDF5_LIBS.

dnl NAMI_HDF5_TEST(CPPFLAGS, LIBS): keep them when a parallel program links
AC_DEFUN([NAMI_HDF5_TEST], [
  nami_save_CPPFLAGS=$CPPFLAGS
  nami_save_LIBS=$LIBS
  CPPFLAGS="$1 $MPI_CPPFLAGS $CPPFLAGS"
  LIBS="$2 $MPI_LIBS $LIBS"
  AC_LINK_IFELSE([AC_LANG_PROGRAM([[
#include <hdf5.h>
#ifndef H5_HAVE_PARALLEL
#error "serial HDF5"
#endif
]], [[return H5Pset_fapl_mpio(H5P_DEFAULT, MPI_COMM_WORLD, MPI_INFO_NULL) < 0;]])],
    [nami_hdf5=yes; HDF5_CPPFLAGS="$1"; HDF5_LIBS="$2"])
  CPPFLAGS=$nami_save_CPPFLAGS
  LIBS=$nami_save_LIBS
])

AC_DEFUN([NAMI_WITH_HDF5], [
  AC_ARG_WITH([hdf5], [AS_HELP_STRING([--with-hdf5=guess|DIR], [parallel HDF5])], [], [with_hdf5=guess])
  AC_CHECK_PROGS([PKG_CONFIG], [pkg-config])
  AC_MSG_CHECKING([for parallel HDF5])
  nami_hdf5=no
  AS_CASE([$with_hdf5],
    [no], [AC_MSG_ERROR([nami keeps its data in HDF5: --without-hdf5 is not possible])],
    [*/*], [NAMI_HDF5_TEST([-I$with_hdf5/include], [-L$with_hdf5/lib -Wl,-rpath,$with_hdf5/lib -lhdf5])
      nami_hdf5_from=$with_hdf5], [
      for module in hdf5-$nami_mpi hdf5-mpi hdf5
      do
        AS_IF([test "x$nami_hdf5" = xno && test -n "$PKG_CONFIG" && $PKG_CONFIG --exists $module], [
          NAMI_HDF5_TEST([`$PKG_CONFIG --cflags-only-I $module`], [`$PKG_CONFIG --libs-only-L $module` -lhdf5])
          nami_hdf5_from=$module])
      done
      for wrapper in h5pcc.$nami_mpi h5pcc
      do
        AS_IF([test "x$nami_hdf5" = xno && $wrapper -show >/dev/null 2>&1], [
          nami_hdf5_cpp= nami_hdf5_lib=
          for word in `$wrapper -show`
          do
            AS_CASE([$word], [-I*], [nami_hdf5_cpp="$nami_hdf5_cpp $word"], [-L*], [nami_hdf5_lib="$nami_hdf5_lib $word"])
          done
          NAMI_HDF5_TEST([$nami_hdf5_cpp], [$nami_hdf5_lib -lhdf5])
          nami_hdf5_from=$wrapper])
      done])
  AC_MSG_RESULT([$nami_hdf5])
  AS_IF([test "x$nami_hdf5" = xno],
    [AC_MSG_ERROR([no parallel HDF5 for $nami_mpi: install libhdf5-$nami_mpi-dev, or --with-hdf5=DIR])])
  nami_hdf5_summary="yes ($nami_hdf5_from)"
  AC_SUBST([HDF5_CPPFLAGS])
  AC_SUBST([HDF5_LIBS])
])
