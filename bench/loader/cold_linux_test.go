package main

import (
	"path/filepath"
	"testing"

	"github.com/penstock/penstock/bench/internal/measure"
	"github.com/penstock/penstock/tensor"
)

// Each contender reads its records from the disk, and Go's readers nothing around them.
func TestCold(t *testing.T) {
	c := &coldBench{dataset: dataset{n: 400, shape: tensor.Shape{1, 1, 20_000}, batch: 4}}
	c.dir = filepath.Join(t.TempDir(), "random")
	if err := c.write(c.dir); err != nil {
		t.Fatal(err)
	}
	list, loops := c.contenders()
	results, err := measure.Rounds(1, 40, 40, list)
	if err != nil {
		t.Fatal(err)
	}
	if c.warm > 0.5 {
		t.Skipf("this file system keeps %.0f %% of a file in memory", 100*c.warm)
	}
	for _, r := range results {
		if times := r.Median(measure.Read) / float64(c.size()); times < 0.5 || times > 1.6 { // six pages a record
			t.Errorf("%s: %.2f bytes read for each used", r.Name, times)
		}
	}
	if loops != 5 || len(list) <= loops {
		t.Errorf("%d loops of pread, %d contenders", loops, len(list))
	}
}
