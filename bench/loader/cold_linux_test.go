package main

import "testing"

// All contenders of the cold part read a whole epoch.
func TestCold(t *testing.T) {
	d := &dataset{name: "cold", n: 40, shape: small(t).shape, batch: 4}
	b := &bench{dir: t.TempDir()}
	if err := d.write(d.path(b)); err != nil {
		t.Fatal(err)
	}
	c := &coldBench{d: d, dir: d.path(b)}
	for _, f := range []func() error{c.preads, func() error { return c.epoch(2) }} {
		if err := f(); err != nil {
			t.Error(err)
		}
	}
	if late := beats(func() error { return nil }); len(late) == 0 || len(lateness(late)) != 2 {
		t.Errorf("%d beats", len(late))
	}
}
