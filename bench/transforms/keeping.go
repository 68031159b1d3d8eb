package main

import (
	"bytes"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/penstock/penstock/bench/internal/measure"
)

// keeping, before a way, asks for records that are kept as a plain loop would: each with its
// CRC32C, in a file that is on disk at the end. system, before it, asks for what the system does for
// that alone: the photos are read from their files, and as many bytes as their records have are
// written and synced, in the way that costs least.
const (
	keeping = "keep "
	system  = "system for "
)

// kept times what writes into a file, which is then synced and removed.
func (s *server) kept(f func(*os.File) error) (measure.Cost, error) {
	path := filepath.Join(s.dir, fmt.Sprintf("kept-%d", os.Getpid()))
	defer os.Remove(path)
	return measure.Time(func() error {
		out, err := os.Create(path)
		if err != nil {
			return err
		}
		err = f(out)
		return errors.Join(err, out.Sync(), out.Close())
	})
}

// keep does a way whose records are kept.
func (s *server) keep(q measure.Request, files [][]byte) (measure.Cost, error) {
	do, err := doing(s.crew[0], strings.TrimPrefix(q.Do, keeping), files)
	if err != nil {
		return measure.Cost{}, err
	}
	return s.kept(func(out *os.File) error { return do(q.From, q.To, &summed{w: out}) })
}

// summed writes records and keeps their checksums.
type summed struct {
	w    io.Writer
	sums []uint32
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Write implements io.Writer.
func (s *summed) Write(record []byte) (int, error) {
	s.sums = append(s.sums, crc32.Checksum(record, castagnoli))
	return s.w.Write(record)
}

// system reads the files and writes a record for each, always the first one's.
func (s *server) system(q measure.Request, files [][]byte) (cost measure.Cost, err error) {
	do, err := doing(s.crew[0], strings.TrimPrefix(q.Do, system), files)
	if err != nil {
		return cost, err
	}
	var record bytes.Buffer
	if err := do(0, 1, &record); err != nil {
		return cost, err
	}
	largest := 0
	for _, f := range files {
		largest = max(largest, len(f))
	}
	buf := make([]byte, largest)
	return s.kept(func(out *os.File) error {
		allocate(out, int64(q.To-q.From)*int64(record.Len()))
		for i := q.From; i < q.To; i++ {
			if err := readInto(buf[:len(files[i])], photoPath(filepath.Join(s.dir, q.Set), i)); err != nil {
				return err
			}
			if _, err := out.Write(record.Bytes()); err != nil {
				return err
			}
		}
		return nil
	})
}

func readInto(buf []byte, path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	_, err = io.ReadFull(f, buf)
	return errors.Join(err, f.Close())
}
