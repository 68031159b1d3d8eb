package main

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/penstock/penstock/bench/internal/measure"
)

// server answers requests on the photos in a folder.
type server struct {
	dir  string
	sets map[string][][]byte
	ways map[string]way
}

func newServer(dir string) (*server, error) {
	list, err := ways()
	return &server{dir, make(map[string][][]byte), list}, err
}

func serve(dir string) error {
	s, err := newServer(dir)
	if err != nil {
		return err
	}
	return measure.Serve(os.Stdin, os.Stdout, s.answer)
}

// answer does photos [From, To) of a set in a way.
func (s *server) answer(q measure.Request) (a measure.Answer, err error) {
	do, ok := s.ways[q.Do]
	if !ok {
		return a, fmt.Errorf("no way %q in this build", q.Do)
	}
	files, err := s.files(q.Set)
	if err != nil {
		return a, err
	}
	a.Cost, err = measure.Time(func() error {
		for i := q.From; i < q.To; i++ {
			if err := do(files[i]); err != nil {
				return fmt.Errorf("photo %d: %w", i, err)
			}
		}
		return nil
	})
	return a, err
}

func (s *server) files(set string) (files [][]byte, err error) {
	if s.sets[set] == nil {
		if s.sets[set], err = readFolder(filepath.Join(s.dir, set)); err != nil {
			return nil, err
		}
	}
	return s.sets[set], nil
}
