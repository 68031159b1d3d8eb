// Command hdf5 measures reading HDF5 files by records: this module, gonum.org/v1/hdf5 on
// libhdf5, and h5py, on the same files in one run.
//
//	go run ./hdf5 [-rounds 9] [-only NAME] [-records FILE.npy] [-dir FOLDER]
//
// It needs a Python with h5py: python3, or those named by PYTHON, separated by commas; with cgo and libhdf5 it
// compares with gonum, too. Files are in the page cache. All contenders do the same work in turn, in changing
// order. It prints how many times as long the others took: the median over the rounds of the ratio within a
// round, and the lowest and highest. Times are wall-clock and CPU times; other programs on the machine disturb
// CPU times less, but these mean nothing when several goroutines work. "fastest" compares the fastest rounds of
// each by the clock; with many rounds (-rounds 100) this approaches an idle machine. Rows "without HDF5" do the
// same work in a plain loop: copy() of the mapped bytes, or with -tags libdeflate, which measures that back
// end, libdeflate on the same chunks.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/penstock/penstock/bench/internal/measure"
	"github.com/penstock/penstock/internal/codec/stream"
	"github.com/penstock/penstock/internal/hdf5/chunk"
)

func main() {
	rounds := flag.Int("rounds", 9, "rounds of every case")
	only := flag.String("only", "", "cases whose name has this in it")
	records := flag.String("records", "", "uint8 images [n, 3, 224, 224] as a .npy file; default: made up ones")
	dir := flag.String("dir", "", "folder for the files, about 300 MB, which is kept; default: a temporary one")
	flag.Parse()
	if err := run(*dir, *records, *only, *rounds); err != nil {
		fmt.Fprintln(os.Stderr, "hdf5:", err)
		os.Exit(1)
	}
}

func run(dir, records, only string, rounds int) error {
	if dir == "" {
		temp, err := os.MkdirTemp("", "bench-hdf5-")
		if err != nil {
			return err
		}
		defer os.RemoveAll(temp)
		dir = temp
	}
	peers, err := startPeers(pythons(), dir, records)
	for _, p := range peers {
		defer p.Close()
	}
	if err != nil {
		return err
	}
	fmt.Printf("%s\npenstock inflates by %s and decodes zstd by %s\n\n", measure.Machine(), chunk.Backend,
		stream.ZstdBackend)
	b := &bench{dir: dir, peers: peers, rounds: rounds}
	rows := [][]string{{"HDF5", "over", "clock", "CPU", "fastest", "penstock, a record"}}
	for _, c := range cases() {
		if !strings.Contains(c.name, only) {
			continue
		}
		if _, err := os.Stat(filepath.Join(dir, c.file+".h5")); c.plugin() && errors.Is(err, fs.ErrNotExist) {
			fmt.Printf("without %q: %s lacks hdf5plugin\n", c.name, pythons()[0])
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
