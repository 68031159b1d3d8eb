package main

import (
	"testing"
	"time"

	"github.com/penstock/penstock/mmapds"
)

// All contenders of the cold part read a whole epoch.
func TestCold(t *testing.T) {
	d := &dataset{name: "cold", n: 40, shape: small(t).shape, batch: 4}
	b := &bench{dir: t.TempDir()}
	if err := d.write(d.path(b)); err != nil {
		t.Fatal(err)
	}
	c := &coldBench{d: d, dir: d.path(b)}
	for _, f := range []func() error{c.preads, func() error { return c.epoch(2, mmapds.ReadAuto) }, func() error { return c.epoch(1, mmapds.ReadDirect) }} {
		if err := f(); err != nil {
			t.Error(err)
		}
	}
	if late := beats(func() error { return nil }); len(late) == 0 || len(lateness(late, late)) != 4 {
		t.Errorf("%d beats", len(late))
	}
	list := []time.Duration{3e6, 1e6, 2e6}
	if got := lateness(list, []time.Duration{1e6}); got[0] != "1.00 ms" || got[3] != "2.00 ms" {
		t.Errorf("%q", got)
	}
}
