package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
)

// curve is a file with the loss of every step, a line each. One with no file takes and
// keeps nothing.
type curve struct{ file *os.File }

// openCurve opens a curve to be continued after that many steps. The file always keeps those
// steps, so that a run that is killed here can resume, too.
func openCurve(name string, steps int) (curve, error) {
	if name == "" {
		return curve{}, nil
	}
	file, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_APPEND, 0o666)
	if err != nil {
		return curve{}, err
	}
	old, err := io.ReadAll(file)
	lines := bytes.SplitAfter(old, []byte("\n"))
	if err == nil && len(lines)-1 < steps {
		err = fmt.Errorf("%s has %d steps, and the checkpoint %d: they are not of the same run", name, len(lines)-1, steps)
	}
	if err == nil {
		err = file.Truncate(int64(len(bytes.Join(lines[:steps], nil))))
	}
	if err != nil {
		return curve{}, errors.Join(err, file.Close())
	}
	return curve{file}, nil
}

func (c curve) add(loss float32) error {
	if c.file == nil {
		return nil
	}
	_, err := fmt.Fprintln(c.file, loss)
	return err
}

func (c curve) close() error {
	if c.file == nil {
		return nil
	}
	return c.file.Close()
}
