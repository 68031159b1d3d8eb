package inspect

import (
	"bufio"
	"image"
	"image/png"
	"io"
)

func encodePNG(w io.Writer, img image.Image) error {
	b := bufio.NewWriterSize(w, 1<<16)
	if err := png.Encode(b, img); err != nil {
		return err
	}
	return b.Flush()
}
