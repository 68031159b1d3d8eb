package main

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/penstock/penstock/bench/internal/measure"
	"github.com/penstock/penstock/internal/imagefile"
)

// server answers requests on the photos in a folder.
type server struct {
	dir, order string
	sets       map[string][][]byte
	crew       []map[string]way // of each worker
}

func newServer(dir, order string) (*server, error) {
	s := &server{dir: dir, order: order, sets: make(map[string][][]byte)}
	for range 2 {
		list, err := ways(order)
		if err != nil {
			return nil, err
		}
		s.crew = append(s.crew, list)
	}
	return s, nil
}

func serve(dir, order string) error {
	s, err := newServer(dir, order)
	if err != nil {
		return err
	}
	return measure.Serve(os.Stdin, os.Stdout, s.answer)
}

func (s *server) answer(q measure.Request) (a measure.Answer, err error) {
	a.Text = imagefile.Backend()
	if q.Do == "" {
		for name := range s.crew[0] {
			a.Ways = append(a.Ways, measure.Way{Name: name})
		}
		return a, nil
	}
	files, err := s.files(q.Set)
	if err != nil {
		return a, err
	}
	switch {
	case q.Do == "2 workers":
		a.Cost, err = measure.Time(func() error { return s.two(files[q.From:q.To]) })
	case q.Out != "":
		err = s.write(q, files)
	case strings.HasPrefix(q.Do, keeping):
		a.Cost, err = s.keep(q, files)
	case strings.HasPrefix(q.Do, system):
		a.Cost, err = s.system(q, files)
	default:
		do, missing := doing(s.crew[0], q.Do, files)
		if missing != nil {
			return a, missing
		}
		a.Cost, err = measure.Time(func() error { return do(q.From, q.To, nil) })
	}
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

// write stores the records of a request in its file.
func (s *server) write(q measure.Request, files [][]byte) error {
	do, err := doing(s.crew[0], q.Do, files)
	if err != nil {
		return err
	}
	return create(q.Out, func(w io.Writer) error { return do(q.From, q.To, w) })
}

// create writes a file.
func create(path string, f func(w io.Writer) error) error {
	out, err := os.Create(path)
	if err != nil {
		return err
	}
	return errors.Join(f(out), out.Close())
}

// two has two workers share the photos.
func (s *server) two(files [][]byte) error {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(2))
	var next atomic.Int64
	var errs [2]error
	var crew sync.WaitGroup
	for k := range errs {
		crew.Go(func() {
			for errs[k] == nil {
				i := int(next.Add(1)) - 1
				if i >= len(files) {
					return
				}
				errs[k] = s.crew[k]["bilinear float32"](files[i], nil)
			}
		})
	}
	crew.Wait()
	return errors.Join(errs[:]...)
}
