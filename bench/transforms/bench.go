package main

import (
	"fmt"
	"os"
	"strings"

	"github.com/penstock/penstock/bench/internal/measure"
	"github.com/penstock/penstock/internal/imagefile"
)

// bench is a run of this program: the photos, and everyone who works on them.
type bench struct {
	o          options
	dir        string
	sets       []set
	own        *server
	self       string         // where this program is
	usual      *measure.Child // this program again: its garbage shall not cost others
	other      *measure.Child // this program with the other decoder, or nil
	otherText  string
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
	if err := b.startPython(); err != nil {
		return nil, err
	}
	if o.order == "" {
		b.o.order = passOrder(b.pythonText)
	}
	if b.own, err = newServer(b.dir, b.o.order); err != nil {
		return nil, err
	}
	for _, s := range b.sets {
		b.own.sets[s.name] = s.files
	}
	if err := b.startUsual(); err != nil {
		return nil, err
	}
	return b, b.startOther()
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
	if _, err := fmt.Sscanf(versions, "Pillow %d.", &major); err == nil && major >= 13 {
		return "auto"
	}
	return "horizontal"
}

func (b *bench) startOther() (err error) {
	if b.o.other == "" {
		return nil
	}
	if b.other, err = b.start(b.o.other); err != nil {
		return err
	}
	a, err := b.other.Ask(measure.Request{})
	if err == nil && a.Text == imagefile.Backend() {
		err = fmt.Errorf("%s has the same JPEG decoder as this program: build one with -tags turbo, the other without", b.o.other)
	}
	b.otherText = a.Text
	return err
}

func (b *bench) startPython() (err error) {
	var a measure.Answer
	b.python, a, err = measure.StartPeers(b.o.python, b.o.peers, "images.py", b.dir)
	b.pythonText, b.peerWays = a.Text, a.Ways
	return err
}

func (b *bench) close() {
	for _, c := range []*measure.Child{b.usual, b.other, b.python} {
		if c != nil {
			c.Close()
		}
	}
	if b.dir != "" {
		os.RemoveAll(b.dir)
	}
}

// asking is the Do of a contender that is this program.
func (b *bench) asking(way, set string) func(from, to int) (measure.Spent, error) {
	return func(from, to int) (measure.Spent, error) {
		a, err := b.own.answer(measure.Request{Do: way, Set: set, From: from, To: to})
		return a.Spent, err
	}
}

// decoder is this program with one JPEG decoder.
type decoder struct {
	name    string
	program string
	do      func(way, set string) func(from, to int) (measure.Spent, error)
	ask     func(measure.Request) (measure.Answer, error)
}

// decoders returns this program, and the other one if there is one.
func (b *bench) decoders() []decoder {
	list := []decoder{{short(imagefile.Backend()), b.self, b.asking, b.own.answer}}
	if b.other != nil {
		list = append(list, decoder{short(b.otherText), b.o.other, b.other.Doing, b.other.Ask})
	}
	return list
}

// start starts a process that serves the photos.
func (b *bench) start(program string) (*measure.Child, error) {
	return measure.Start(program, "-serve", b.dir, "-pass-order", b.o.order)
}

// short names a build in tables, by the JPEG decoders in it.
func short(backend string) string {
	if strings.Contains(backend, "libjpeg-turbo") {
		return "turbo"
	}
	return "Go"
}
