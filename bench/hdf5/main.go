// Command hdf5 measures reading HDF5 files by records, and writing compressed ones: this module, gonum.org/v1/hdf5 on
// libhdf5, and h5py, on the same files in one run.
//
//	go run ./hdf5 [-rounds 9] [-only NAME] [-records FILE.npy] [-dir FOLDER] [-pack [-levels 1,6]]
//
// It needs a Python with h5py: python3, or those named by PYTHON, separated by commas; with cgo and libhdf5 it
// compares with gonum, too. Files are in the page cache. All contenders do the same work in turn, in changing
// order. It prints how many times as long the others took: the median over the rounds of the ratio within a
// round, and the lowest and highest. Times are wall-clock and CPU times; other programs on the machine disturb
// CPU times less, but these mean nothing when several goroutines work. "fastest" compares the fastest rounds of
// each by the clock; with many rounds (-rounds 100) this approaches an idle machine. Rows "without HDF5" do the
// same work in a plain loop: copy() of the mapped bytes, or with -tags libdeflate, which measures that back
// end, libdeflate on the same chunks.
//
// With -pack, records are written at some levels of gzip: deflaters make streams of different sizes at the same level.
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"strings"

	"github.com/penstock/penstock/bench/internal/measure"
	"github.com/penstock/penstock/internal/hdf5/chunk"
)

func main() {
	rounds := flag.Int("rounds", 9, "rounds of every case")
	only := flag.String("only", "", "cases whose name has this in it")
	records := flag.String("records", "", "uint8 images [n, 3, 224, 224], a .npy file of a dataset; default: made up ones")
	dir := flag.String("dir", "", "folder for the files, about 300 MB, which is kept; default: a temporary one")
	pack := flag.Bool("pack", false, "write the records, instead of reading")
	levels := flag.String("levels", "1,4,6", "levels of gzip, for -pack")
	flag.Parse()
	if !*pack {
		*levels = ""
	}
	if err := run(*dir, *records, *only, *levels, *rounds); err != nil {
		fmt.Fprintln(os.Stderr, "hdf5:", err)
		os.Exit(1)
	}
}

func run(dir, records, only, levels string, rounds int) error {
	if levels != "" && records == "" {
		return errors.New("-pack writes the records that -records names")
	}
	if dir == "" {
		temp, err := os.MkdirTemp("", "bench-hdf5-")
		if err != nil {
			return err
		}
		defer os.RemoveAll(temp)
		dir = temp
	}
	args := []string{dir}
	if records != "" {
		args = append(args, records)
	}
	if levels == "" {
		if err := makeFiles(pythons()[0], args); err != nil {
			return err
		}
	}
	peers, err := startPeers(pythons(), args)
	for _, p := range peers {
		defer p.Close()
	}
	if err != nil {
		return err
	}
	b := &bench{dir: dir, peers: peers, rounds: rounds}
	if levels != "" {
		return b.pack(records, levels)
	}
	return b.readers(only)
}

// readers compares all ways to read.
func (b *bench) readers(only string) error {
	fmt.Printf("%s\npenstock inflates by %s\n\n", measure.Machine(), chunk.Backend)
	rows := [][]string{{"HDF5", "over", "clock", "CPU", "fastest", "penstock, a record"}}
	for _, c := range cases() {
		if !strings.Contains(c.name, only) {
			continue
		}
		results, err := b.measure(c)
		if err != nil {
			return fmt.Errorf("%s: %w", c.name, err)
		}
		rows = append(rows, c.rows(results)...)
	}
	measure.Table(os.Stdout, rows)
	return nil
}
