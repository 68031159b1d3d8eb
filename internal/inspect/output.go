package inspect

import (
	"bufio"
	"errors"
	"image"
	"image/png"
	"io"
	"os"
)

func encodePNG(w io.Writer, img image.Image) error {
	b := bufio.NewWriterSize(w, 1<<16)
	if err := png.Encode(b, img); err != nil {
		return err
	}
	return b.Flush()
}

// bare takes the path out of a file error, for a message that has it already.
func bare(err error) error {
	var p *os.PathError
	var l *os.LinkError
	switch {
	case errors.As(err, &p):
		return p.Err
	case errors.As(err, &l):
		return l.Err
	}
	return err
}
