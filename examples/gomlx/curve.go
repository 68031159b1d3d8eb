package main

import (
	"bytes"
	"fmt"
	"os"
)

// curve is a file with the loss of every step, a line each. One with no file takes and
// keeps nothing.
type curve struct{ file *os.File }

// openCurve opens a curve to be continued after so many steps.
func openCurve(name string, steps int) (curve, error) {
	if name == "" {
		return curve{}, nil
	}
	old, err := os.ReadFile(name)
	if err != nil && !os.IsNotExist(err) {
		return curve{}, err
	}
	lines := bytes.SplitAfter(old, []byte("\n"))
	if len(lines)-1 < steps {
		return curve{}, fmt.Errorf("%s has %d steps, and the checkpoint %d: they are not of the same run", name, len(lines)-1, steps)
	}
	file, err := os.Create(name)
	if err != nil {
		return curve{}, err
	}
	_, err = file.Write(bytes.Join(lines[:steps], nil))
	return curve{file}, err
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
