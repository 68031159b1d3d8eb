package main

import (
	"math/rand/v2"
	"runtime"

	"github.com/penstock/penstock/bench/internal/measure"
)

// plain does what an epoch's consumer and a gather do, on the same mapped bytes, without a Loader:
// what this machine's memory lets a simple loop do.
type plain struct {
	d     *dataset
	bytes []byte // all records
	order []int
}

func newPlain(d *dataset) (*plain, error) {
	all, err := d.ds.Slice("x", 0, d.n)
	if err != nil {
		return nil, err
	}
	if err := d.ds.Warm("x", 0, d.n); err != nil {
		return nil, err
	}
	return &plain{d: d, bytes: all.Bytes(), order: rand.New(rand.NewPCG(1, 1)).Perm(d.n)}, nil
}

// batch returns the number of bytes of a batch.
func (p *plain) batch() int { return p.d.batch * p.d.size() }

// reading touches the batches in order.
func (p *plain) reading() measure.Contender {
	return measure.Contender{Name: "reading the bytes once, no loader", Do: measure.Repeated(p.d.times, func() error {
		for at := 0; at < len(p.bytes); at += p.batch() {
			runtime.KeepAlive(touch(p.bytes[at:min(at+p.batch(), len(p.bytes))]))
		}
		return nil
	})}
}

// ring returns as many buffers of a batch as a Loader with one worker has.
func (p *plain) ring() (ring [][]byte) {
	for range 4 {
		ring = append(ring, make([]byte, p.batch()))
	}
	return ring
}

// copying copies records in a random order to batches, and touches the batches.
func (p *plain) copying() measure.Contender {
	ring := p.ring()
	return measure.Contender{Name: "copy() of each record and reading, no loader",
		Do: measure.Repeated(p.d.times, func() error {
			p.gather(ring)
			return nil
		})}
}

// gather copies the records of each batch to the buffers in turn, and touches them.
func (p *plain) gather(ring [][]byte) {
	size := p.d.size()
	for k := 0; k < len(p.order); k += p.d.batch {
		list := p.order[k:min(k+p.d.batch, len(p.order))]
		dst := ring[k/p.d.batch%len(ring)][:len(list)*size]
		for j, r := range list {
			copy(dst[j*size:(j+1)*size], p.bytes[r*size:])
		}
		runtime.KeepAlive(touch(dst))
	}
}
