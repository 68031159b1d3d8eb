package inspect

import (
	"bufio"
	"image"
	"image/png"
	"io"
	"path/filepath"

	"github.com/penstock/penstock/cmd/internal/cli"
)

// wrongName says that the name of -o is one of another kind of file; it may have no ending.
func wrongName(out string, endings ...string) []string {
	if filepath.Ext(out) == "" {
		return nil
	}
	return cli.EndsIn("-o", out, endings...)
}

// checkOutput finds out what stands in the way of writing, before the work is done.
func checkOutput(out string) error {
	if out == "-" {
		return nil
	}
	return cli.CheckWrite(out)
}

func encodePNG(w io.Writer, img image.Image) error {
	b := bufio.NewWriterSize(w, 1<<16)
	if err := png.Encode(b, img); err != nil {
		return err
	}
	return b.Flush()
}
