//go:build cgo

package main

import (
	"fmt"

	"gonum.org/v1/hdf5"
)

// gonumName names the contender that reads by package gonum/hdf5.
func gonumName() string {
	v, err := hdf5.LibVersion()
	if err != nil {
		return "gonum/hdf5"
	}
	return fmt.Sprintf("gonum/hdf5 on libhdf5 %v", v)
}

// gonumReader reads records as gonum's documentation does: a hyperslab each.
type gonumReader struct {
	file  *hdf5.File
	data  *hdf5.Dataset
	dims  []uint
	batch int
	buf   []byte
}

func openGonum(path string, record, batch int) (reader, error) {
	f, err := hdf5.OpenFile(path, hdf5.F_ACC_RDONLY)
	if err != nil {
		return nil, err
	}
	r := &gonumReader{file: f, batch: batch, buf: make([]byte, batch*record)}
	if r.data, err = f.OpenDataset("x"); err != nil {
		return nil, err
	}
	space := r.data.Space()
	defer space.Close()
	r.dims, _, err = space.SimpleExtentDims()
	return r, err
}

func (r *gonumReader) sum() (int64, error) { return 0, nil }

func (r *gonumReader) close() {
	r.data.Close()
	r.file.Close()
}

// read reads records one by one.
func (r *gonumReader) read(order []int) error {
	count := append([]uint(nil), r.dims...)
	count[0] = 1
	memory, err := hdf5.CreateSimpleDataspace(count, nil)
	if err != nil {
		return err
	}
	defer memory.Close()
	start := make([]uint, len(count))
	record := len(r.buf) / r.batch
	for k, i := range order {
		space := r.data.Space()
		start[0] = uint(i)
		if err := space.SelectHyperslab(start, nil, count, nil); err != nil {
			return err
		}
		at := k % r.batch * record
		part := r.buf[at : at+record]
		if err := r.data.ReadSubset(&part[0], memory, space); err != nil {
			return err
		}
		if err := space.Close(); err != nil {
			return err
		}
	}
	return nil
}
