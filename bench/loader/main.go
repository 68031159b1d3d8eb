// Command loader measures batches of a dataset on disk, against plain loops over memory and reads of the system,
// and with -python against PyTorch's DataLoader, numpy.memmap and h5py on the same bytes.
//
//	loader [-python PYTHON] [-dir FOLDER] [-rounds 7] [-only PARTS]
//
// Files are in the page cache, but in the part "cold".
package main

import (
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/penstock/penstock/bench/internal/measure"
)

type options struct {
	dir, python, peers, only, match string
	rounds                          int
}

func main() {
	var o options
	flag.StringVar(&o.dir, "dir", os.TempDir(),
		"where a folder for the files is made, 1.4 GB, and removed: a disk, for the part cold")
	flag.StringVar(&o.python, "python", "", "Python with torch, NumPy, h5py and penstock, to be measured too")
	flag.StringVar(&o.peers, "peers", "", "folder of records.py; default: bench/peers")
	flag.StringVar(&o.only, "only", "", "parts to do, with commas between: sequential, shuffled, normalize, cold; "+
		"default: all")
	flag.StringVar(&o.match, "match", "", "record sizes to do: those that have these digits; default: all")
	flag.IntVar(&o.rounds, "rounds", 7, "rounds of every part")
	flag.Parse()
	if err := run(o); err != nil {
		fmt.Fprintln(os.Stderr, "loader:", err)
		os.Exit(1)
	}
}

func run(o options) error {
	b, err := newBench(o)
	if err != nil {
		return err
	}
	defer b.close()
	fmt.Println(measure.Machine())
	if b.python != nil {
		fmt.Printf("peers: %s\n", b.pythonText)
	}
	fmt.Printf("%d rounds; ratios are median [lowest..highest] of the rounds\n\n", o.rounds)
	for _, p := range []struct {
		name string
		do   func() error
	}{
		{"sequential", func() error { return b.touched("sequential") }},
		{"shuffled", func() error { return b.touched("shuffled") }},
		{"normalize", b.normalize},
		{"cold", b.cold},
	} {
		if o.only != "" && !slices.Contains(strings.Split(o.only, ","), p.name) {
			continue
		}
		if err := p.do(); err != nil {
			return fmt.Errorf("%s: %w", p.name, err)
		}
	}
	fmt.Println(measure.Machine())
	return nil
}
