//go:build libjpeg && cgo

package main

/*
#cgo LDFLAGS: -ljpeg
#include <stdio.h>
#include <stdlib.h>
#include <jpeglib.h>

static struct jpeg_decompress_struct dec;
static struct jpeg_error_mgr err;
static unsigned char *rgb;
static size_t room;

// decode_all decodes a whole file to RGB, as libjpeg does if nothing else is asked for. It ends
// the process if the file is corrupt.
static int decode_all(const unsigned char *file, unsigned long n)
{
	if (dec.err == NULL) {
		dec.err = jpeg_std_error(&err);
		jpeg_create_decompress(&dec);
	}
	jpeg_mem_src(&dec, (unsigned char *)file, n);
	jpeg_read_header(&dec, TRUE);
	dec.out_color_space = JCS_RGB;
	jpeg_start_decompress(&dec);
	size_t stride = 3 * (size_t)dec.output_width;
	if (room < stride * dec.output_height) {
		room = stride * dec.output_height;
		free(rgb);
		rgb = malloc(room);
		if (rgb == NULL)
			return -1;
	}
	while (dec.output_scanline < dec.output_height) {
		JSAMPROW row = rgb + stride * dec.output_scanline;
		jpeg_read_scanlines(&dec, &row, 1);
	}
	jpeg_finish_decompress(&dec);
	return 0;
}
*/
import "C"

import (
	"errors"
	"unsafe"
)

// bare is libjpeg-turbo decoding the whole photo to RGB, and nothing else.
var bare way = func(data []byte) error {
	if C.decode_all((*C.uchar)(unsafe.Pointer(&data[0])), C.ulong(len(data))) != 0 {
		return errors.New("no memory for the pixels")
	}
	return nil
}
