// Command zarr measures reading folders of Zarr by records: this module, tensorstore and zarr-python, on the same
// files in one run.
//
//	PYTHON=python3 go run [-tags libzstd] ./zarr [-rounds 3] [-only NAME] [-dir FOLDER]
//
// It needs a Python with zarr and tensorstore. An array has 8192 records of 64x64 float32 in chunks of 16 records,
// 128 MiB in all, and is in the page cache. All contenders read the same batches of 64 records, on all CPUs, and
// compare the last ones; penstock and tensorstore cache up to 64 MiB of chunks. It prints how many times as long the
// others took: the median over the rounds of the ratio within a round, and the lowest and highest.
package main

import (
	"context"
	"flag"
	"fmt"
	"hash/crc32"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/penstock/penstock/bench/internal/measure"
	"github.com/penstock/penstock/internal/codec/stream"
	"github.com/penstock/penstock/mmapds"
)

const records, batch = 8192, 64

func main() {
	rounds := flag.Int("rounds", 3, "rounds of every case")
	only := flag.String("only", "", "arrays whose name has this in it")
	dir := flag.String("dir", "", "folder for the arrays, about 300 MB, which is kept; default: a temporary one")
	flag.Parse()
	if err := run(*dir, *only, *rounds); err != nil {
		fmt.Fprintln(os.Stderr, "zarr:", err)
		os.Exit(1)
	}
}

func run(dir, only string, rounds int) error {
	if dir == "" {
		temp, err := os.MkdirTemp("", "bench-zarr-")
		if err != nil {
			return err
		}
		defer os.RemoveAll(temp)
		dir = temp
	}
	python := "python3"
	if p := os.Getenv("PYTHON"); p != "" {
		python = p
	}
	const script = "zarr_arrays.py"
	if _, err := os.Stat(filepath.Join(dir, "zstd-shuffle.zarr")); err != nil {
		program := filepath.Join(measure.Find("bench/peers", "peers"), script)
		if out, err := exec.Command(python, program, "make", dir).CombinedOutput(); err != nil {
			return fmt.Errorf("%s with zarr and tensorstore is needed (set PYTHON): %w: %s", python, err, out)
		}
	}
	var peers []peer
	for _, library := range []string{"tensorstore", "zarr-python"} {
		c, a, err := measure.StartPeers(python, "", script, "serve", library, dir)
		if err != nil {
			return err
		}
		defer c.Close()
		peers = append(peers, peer{c, a.Text})
	}
	fmt.Printf("%s\npenstock decodes zstd by %s\n\n", measure.Machine(), stream.ZstdBackend)
	rows := [][]string{{"Zarr", "over", "clock", "CPU", "penstock, a record"}}
	for _, array := range []string{"plain", "zstd", "lz4-shuffle", "lz4-bitshuffle", "zstd-shuffle"} {
		for _, shuffled := range []bool{true, false} {
			if !strings.Contains(array, only) {
				continue
			}
			more, err := compare(dir, array, shuffled, rounds, peers)
			if err != nil {
				return fmt.Errorf("%s: %w", array, err)
			}
			rows = append(rows, more...)
		}
	}
	measure.Table(os.Stdout, rows)
	return nil
}

// peer is a child process that reads with another library.
type peer struct {
	*measure.Child
	name string
}

// compare measures one array, in one order.
func compare(dir, array string, shuffled bool, rounds int, peers []peer) (rows [][]string, err error) {
	ds, err := mmapds.Open(filepath.Join(dir, array+".zarr"))
	if err != nil {
		return nil, err
	}
	defer ds.Close()
	order, what, items := rand.New(rand.NewPCG(1, 2)).Perm(records), ", shuffled", records/8
	if !shuffled {
		what, items = ", in order", records // more than anybody's cache has
		for i := range order {
			order[i] = i
		}
	}
	dst := make([]byte, batch*ds.Specs()[0].RecordBytes())
	ours := func(order []int) (cost measure.Cost, sum uint32, err error) {
		cost, err = measure.Time(func() error {
			for k := 0; k < len(order); k += batch {
				if err := ds.Gather(context.Background(), array, order[k:k+batch], dst); err != nil {
					return err
				}
			}
			return nil
		})
		return cost, crc32.ChecksumIEEE(dst), err
	}
	sums := make([][]uint32, 1+len(peers))
	list := []measure.Contender{part("penstock", order, items, &sums[0], ours)}
	for i, p := range peers {
		list = append(list, part(p.name, order, items, &sums[i+1], func(order []int) (measure.Cost, uint32, error) {
			a, err := p.Ask(measure.Request{Do: "read", Set: array, Order: order, Batch: batch})
			return a.Cost, uint32(a.Sum), err
		}))
	}
	results, err := measure.Rounds(rounds, items, items, list)
	if err != nil {
		return nil, err
	}
	for i := range sums {
		if !slices.Equal(sums[i], sums[0]) {
			return nil, fmt.Errorf("%s read other values", list[i].Name)
		}
	}
	base := results[0]
	for _, r := range results[1:] {
		rows = append(rows, []string{array + what, r.Name, r.Over(base, measure.Wall).String(),
			r.Over(base, measure.CPU).String(), fmt.Sprintf("%.1f us", base.Median(measure.Wall)*1e6)})
	}
	return rows, nil
}

// part is a contender that reads the next part of the order each time.
func part(name string, order []int, items int, sums *[]uint32, read func(order []int) (measure.Cost, uint32,
	error)) measure.Contender {
	return measure.Contender{Name: name, Do: func(int, int) (measure.Cost, error) {
		at := len(*sums) * items % len(order)
		cost, sum, err := read(order[at : at+items])
		*sums = append(*sums, sum)
		return cost, err
	}}
}
