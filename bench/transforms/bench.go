package main

import (
	"fmt"
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
	self       string         // where this program is
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
	if err := b.startPython(); err != nil {
		return nil, err
	}
	if o.order == "" {
		b.o.order = passOrder(b.pythonText)
	}
	if b.own, err = newServer(b.dir, b.o.order); err != nil {
		return nil, err
	}
	for _, s := range slices.Concat(b.sets, b.scans) {
		b.own.sets[s.name] = s.files
	}
	return b, b.startUsual()
}

func (b *bench) startUsual() (err error) {
	if b.self, err = os.Executable(); err != nil {
		return err
	}
	b.usual, err = b.start(b.self)
	return err
}

// passOrder returns how a Pillow resizes: since version 13 it chooses which axis comes first.
func passOrder(versions string) string {
	var major int
	if _, err := fmt.Sscanf(versions, "Pillow %d.", &major); err == nil && major < 13 {
		return "horizontal"
	}
	return "auto"
}

func (b *bench) startPython() (err error) {
	var a measure.Answer
	b.python, a, err = measure.StartPeers(b.o.python, b.o.peers, "images.py", b.dir)
	b.pythonText, b.peerWays = a.Text, a.Ways
	return err
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

// asking is the Do of a contender that is this program.
func (b *bench) asking(way, set string) func(from, to int) (measure.Cost, error) {
	return func(from, to int) (measure.Cost, error) {
		a, err := b.own.answer(measure.Request{Do: way, Set: set, From: from, To: to})
		return a.Cost, err
	}
}

// decoder is this program with one JPEG decoder.
type decoder struct {
	name    string
	program string
	do      func(way, set string) func(from, to int) (measure.Cost, error)
	ask     func(measure.Request) (measure.Answer, error)
}

// decoders returns this program.
func (b *bench) decoders() []decoder {
	return []decoder{{"Go", b.self, b.asking, b.own.answer}}
}

// start starts a process that serves the photos.
func (b *bench) start(program string) (*measure.Child, error) {
	return measure.Start(program, "-serve", b.dir, "-pass-order", b.o.order)
}
