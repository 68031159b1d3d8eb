package samples

import (
	"bytes"
	"compress/flate"
	"encoding/json"
	"fmt"
	"io"
)

// Skipped is a sample that is not in the dataset: a line of skipped.jsonl.
type Skipped struct {
	Sample string `json:"sample"`
	Kind   string `json:"kind"`
	Reason string `json:"reason"`
}

// SkippedList is a list of samples that were left out, as compressed lines of JSON. A sample takes a few bytes if
// its reason is like the reasons before, so that a list of millions of duplicates fits into memory. The zero value
// is empty. A SkippedList serves one goroutine.
type SkippedList struct {
	n      int64
	chunks [][]byte // finished streams
	noted  int      // chunks that a note has had
	open   *flate.Writer
	buf    *bytes.Buffer // of open
}

// Len returns how many samples are in the list.
func (l *SkippedList) Len() int64 { return l.n }

// Add appends a sample to the list.
func (l *SkippedList) Add(s Skipped) error {
	if l.open == nil {
		l.buf = new(bytes.Buffer)
		w, err := flate.NewWriter(l.buf, flate.BestSpeed)
		if err != nil {
			return err
		}
		l.open = w
	}
	line, err := json.Marshal(s)
	if err != nil {
		return err
	}
	l.n++
	_, err = l.open.Write(append(line, '\n'))
	return err
}

// seal ends the compressed stream that is open, so that the lines in it can be read.
func (l *SkippedList) seal() error {
	if l.open == nil {
		return nil
	}
	err := l.open.Close()
	l.chunks, l.open, l.buf = append(l.chunks, l.buf.Bytes()), nil, nil
	return err
}

// Note returns the compressed lines that were added since the last note, for Restore.
func (l *SkippedList) Note() ([][]byte, error) {
	err := l.seal()
	fresh := l.chunks[l.noted:]
	l.noted = len(l.chunks)
	return fresh, err
}

// Restore adds the lines of a note. n is the number of samples in the list then.
func (l *SkippedList) Restore(chunks [][]byte, n int64) {
	l.chunks, l.n = append(l.chunks, chunks...), n
	l.noted = len(l.chunks)
}

// WriteLines writes all samples of the list as lines of JSON.
func (l *SkippedList) WriteLines(w io.Writer) error {
	if err := l.seal(); err != nil {
		return err
	}
	for _, c := range l.chunks {
		if _, err := io.Copy(w, flate.NewReader(bytes.NewReader(c))); err != nil {
			return fmt.Errorf("the list of samples that were left out: %w", err)
		}
	}
	return nil
}
