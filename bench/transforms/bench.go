package main

import (
	"os"
	"slices"

	"github.com/penstock/penstock/bench/internal/measure"
)

// bench is a run of this program: the photos, and everyone who works on them.
type bench struct {
	o          options
	dir        string
	sets       []set
	scans      []set // photos in several scans, where there is a program to make them
	own        *server
	usual      *measure.Child // this program again: its garbage shall not cost others
	python     *measure.Child // or nil
	pythonText string
	peerWays   []measure.Way
}

func newBench(o options) (_ *bench, err error) {
	b := &bench{o: o}
	defer func() {
		if err != nil {
			b.close()
		}
	}()
	if b.dir, err = os.MkdirTemp("", "penstock-bench-"); err != nil {
		return nil, err
	}
	if b.sets, err = prepare(b.dir, o.data, o.every); err != nil {
		return nil, err
	}
	if b.scans, err = progressive(b.dir, b.sets[0]); err != nil {
		return nil, err
	}
	var a measure.Answer
	if b.python, a, err = measure.StartPeers(o.python, o.peers, "images.py", b.dir); err != nil {
		return nil, err
	}
	b.pythonText, b.peerWays = a.Text, a.Ways
	if b.own, err = newServer(b.dir); err != nil {
		return nil, err
	}
	for _, s := range slices.Concat(b.sets, b.scans) {
		b.own.sets[s.name] = s.files
	}
	self, err := os.Executable()
	if err == nil {
		b.usual, err = measure.Start(self, "-serve", b.dir)
	}
	return b, err
}

func (b *bench) close() {
	for _, c := range []*measure.Child{b.usual, b.python} {
		if c != nil {
			c.Close()
		}
	}
	if b.dir != "" {
		os.RemoveAll(b.dir)
	}
}

// doing is the Do of a contender that is this process.
func (b *bench) doing(way, set string) func(from, to int) (measure.Cost, error) {
	return func(from, to int) (measure.Cost, error) {
		a, err := b.own.answer(measure.Request{Do: way, Set: set, From: from, To: to})
		return a.Cost, err
	}
}
