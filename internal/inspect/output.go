package inspect

import (
	"bufio"
	"errors"
	"fmt"
	"image"
	"image/png"
	"io"
	"os"
	"path/filepath"
)

// writeFile writes to the file at path what write does, which is never found half-written: it
// is made under another name beside it, and renamed.
func writeFile(path string, write func(io.Writer) error) error {
	partial := filepath.Join(filepath.Dir(path), fmt.Sprintf(".%s.%d.partial", filepath.Base(path), os.Getpid()))
	f, err := os.OpenFile(partial, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o666)
	if err != nil {
		return fmt.Errorf("write %s: %w", path, bare(err))
	}
	err = errors.Join(write(f), f.Close())
	if err == nil {
		err = os.Rename(partial, path)
	}
	if err != nil {
		return errors.Join(fmt.Errorf("write %s: %w", path, bare(err)), os.Remove(partial))
	}
	return nil
}

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
