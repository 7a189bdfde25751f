dnl SPDX-License-Identifier: MIT
dnl nami_pictures.m4 - libjpeg and libpng, to import folders of images; optional.
AC_DEFUN([NAMI_WITH_PICTURES], [
  NAMI_LIBRARY([jpeg], [libjpeg], [[#include <stdio.h>
#include <jpeglib.h>]], [[struct jpeg_decompress_struct d; jpeg_mem_src(&d, 0, 0);]],
    [-ljpeg], [libjpeg: JPEG files in 'nami import folder'])
  NAMI_LIBRARY([png], [libpng], [[#include <png.h>]],
    [[png_image i = {0}; return png_image_begin_read_from_memory(&i, "", 0);]], [-lpng],
    [libpng: PNG files in 'nami import folder'])])
