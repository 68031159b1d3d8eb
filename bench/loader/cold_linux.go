package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"golang.org/x/sys/unix"

	"github.com/penstock/penstock/bench/internal/measure"
	"github.com/penstock/penstock/loader"
	"github.com/penstock/penstock/loader/sampler"
	"github.com/penstock/penstock/mmapds"
	"github.com/penstock/penstock/tensor"
)

// coldSets have a gigabyte each, of which a round reads some records; if it reads one by one, it reads
// coldSingly records.
var coldSets = []struct{ size, batch, records int }{
	{512, 256, 4096}, {4096, 256, 4096}, {32_768, 128, 2048}, {150_528, 32, 1024}, {1 << 20, 16, 256},
}

const (
	coldBytes  = 1 << 30
	coldSingly = 256
)

// cold compares random records of a file that is not in the page cache with loops of pread.
func (b *bench) cold() error {
	for _, set := range coldSets {
		if !strings.Contains(fmt.Sprint(set.size), b.o.match) {
			continue
		}
		d := dataset{name: "random", n: coldBytes / set.size, shape: tensor.Shape{1, 1, set.size}, batch: set.batch}
		c := &coldBench{dataset: d, dir: d.path(b), python: b.python}
		err := c.write(c.dir)
		if err == nil {
			err = c.compare(b.o.rounds, set.records)
		}
		if err = errors.Join(err, os.RemoveAll(c.dir)); err != nil {
			return err
		}
	}
	return nil
}

type coldBench struct {
	dataset
	dir    string
	python *measure.Child // or nil
	warm   float64        // largest part that was in memory before a contender began
}

// contenders returns the loops of pread, the first of which reads one record at a time, and then the others.
func (c *coldBench) contenders() (list []measure.Contender, loops int) {
	add := func(name string, items int, do func(order []int) (measure.Cost, error)) {
		list = append(list, measure.Contender{Name: name, Items: items, Do: func(from, to int) (measure.Cost, error) {
			return do(rand.Perm(c.n)[:to-from])
		}})
	}
	add("pread, 1 thread", coldSingly, c.preads(1, 0))
	add("pread, 2 threads", 0, c.preads(2, 0))
	add("pread, 8 threads", 0, c.preads(8, 0))
	add("pread, 32 threads", 0, c.preads(32, 0))
	add("pread, 32 threads, O_DIRECT", 0, c.preads(32, unix.O_DIRECT))
	loops = len(list)
	add("penstock, loader", 0, c.mapped(c.epoch))
	add("penstock, Gather of a batch", 0, c.mapped(c.gather(c.batch)))
	add("penstock, Gather of one record", coldSingly, c.mapped(c.gather(1)))
	add("penstock, At", coldSingly, c.mapped(c.at))
	if c.python == nil {
		return list, loops
	}
	for _, way := range []string{
		"os.pread, NumPy", "numpy.memmap, m[i]", "torch.from_numpy(m)[i]", "penstock in Python, ds[i]",
	} {
		add(way, coldSingly, func(order []int) (measure.Cost, error) {
			if err := c.drop(); err != nil {
				return measure.Cost{}, err
			}
			a, err := c.python.Ask(measure.Request{Do: "cold " + way, Set: c.name, Order: order})
			return a.Cost, err
		})
	}
	return list, loops
}

func (c *coldBench) compare(rounds, records int) error {
	list, loops := c.contenders()
	results, err := measure.Rounds(rounds, records, records, list)
	if err != nil {
		return err
	}
	measure.Lines(os.Stdout, fmt.Sprintf("Cold/%d", c.size()), "record", results)
	best := slices.MinFunc(results[:loops], func(a, b measure.Result) int {
		return cmp.Compare(a.Median(measure.Wall), b.Median(measure.Wall))
	})
	rows := [][]string{{fmt.Sprintf("cold, %d-byte records", c.size()), "records/s", "GB/s", "of the best loop of pread",
		"of pread, 1 thread", "bytes read for each used"}}
	for _, r := range results {
		row := append([]string{r.Name}, rate(r, c.size())...)
		rows = append(rows, append(row, best.Over(r, measure.Wall).String(), results[0].Over(r, measure.Wall).String(),
			measure.Digits(r.Median(measure.Read)/float64(c.size()))))
	}
	measure.Table(os.Stdout, rows)
	fmt.Printf("cold, %d-byte records: at most %.0f %% were in memory before\n\n", c.size(), 100*c.warm)
	return nil
}

// drop has the system forget the file's pages, and notes how many it kept.
func (c *coldBench) drop() error {
	if err := dropPages(c.dir); err != nil {
		return err
	}
	f, err := os.Open(filepath.Join(c.dir, "x-00000.npy"))
	if err != nil {
		return err
	}
	defer f.Close()
	var st unix.Cachestat_t
	if err := unix.Cachestat(uint(f.Fd()), &unix.CachestatRange{}, &st, 0); err != nil {
		return fmt.Errorf("cachestat, which says whether the cache is cold: %w", err)
	}
	c.warm = max(c.warm, float64(st.Cache)*float64(os.Getpagesize())/float64(c.n*c.size()))
	return nil
}

// preads reads records by some threads, into memory that suits O_DIRECT.
func (c *coldBench) preads(threads, flags int) func(order []int) (measure.Cost, error) {
	const block = 4096 // of the header, too
	return func(order []int) (cost measure.Cost, err error) {
		fd, err := unix.Open(filepath.Join(c.dir, "x-00000.npy"), unix.O_RDONLY|flags, 0)
		if err != nil {
			return cost, err
		}
		defer unix.Close(fd)
		if err := errors.Join(unix.Fadvise(fd, 0, 0, unix.FADV_RANDOM), c.drop()); err != nil {
			return cost, err
		}
		var next atomic.Int64
		return measure.Time(func() error {
			var all sync.WaitGroup
			errs := make([]error, threads)
			for k := range errs {
				all.Go(func() {
					buf, err := unix.Mmap(-1, 0, c.size()+2*block, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
					for i := next.Add(1) - 1; err == nil && i < int64(len(order)); i = next.Add(1) - 1 {
						at, n := order[i]*c.size(), c.size()
						from := at
						if flags != 0 {
							from = at &^ (block - 1)
							n = (at + n - from + block - 1) &^ (block - 1)
						}
						_, err = unix.Pread(fd, buf[:n], int64(block+from))
						runtime.KeepAlive(touch(buf[at-from:][:c.size()])) // as training would
					}
					errs[k] = errors.Join(err, unix.Munmap(buf))
				})
			}
			all.Wait()
			return errors.Join(errs...)
		})
	}
}

// mapped opens the dataset and has do read records.
func (c *coldBench) mapped(do func(ds *mmapds.Dataset, order []int) error) func(order []int) (measure.Cost, error) {
	return func(order []int) (cost measure.Cost, err error) {
		ds, err := mmapds.Open(c.dir)
		if err != nil {
			return cost, err
		}
		defer ds.Close()
		if err := c.drop(); err != nil {
			return cost, err
		}
		return measure.Time(func() error { return do(ds, order) })
	}
}

func (c *coldBench) epoch(ds *mmapds.Dataset, order []int) error {
	ld, err := loader.New(ds, loader.Options{BatchSize: c.batch, Sampler: sampler.Subset{Indices: order}})
	if err != nil {
		return err
	}
	defer ld.Close()
	for b, err := range ld.Epoch(context.Background(), 0) {
		if err != nil {
			return err
		}
		runtime.KeepAlive(touch(b.Field("x").Bytes()))
	}
	return nil
}

func (c *coldBench) gather(batch int) func(ds *mmapds.Dataset, order []int) error {
	dst := make([]byte, batch*c.size())
	return func(ds *mmapds.Dataset, order []int) error {
		for some := range slices.Chunk(order, batch) {
			if err := ds.Gather(context.Background(), "x", some, dst[:len(some)*c.size()]); err != nil {
				return err
			}
			runtime.KeepAlive(touch(dst))
		}
		return nil
	}
}

func (c *coldBench) at(ds *mmapds.Dataset, order []int) error {
	records, err := ds.Records("x")
	for _, i := range order {
		var data []byte
		if err == nil {
			data, err = records.At(i)
		}
		runtime.KeepAlive(touch(data))
	}
	return err
}

// dropPages has the system forget the pages of a dataset's files.
func dropPages(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		f, err := os.Open(filepath.Join(dir, e.Name()))
		if err != nil {
			return err
		}
		err = errors.Join(unix.Fdatasync(int(f.Fd())), unix.Fadvise(int(f.Fd()), 0, 0, unix.FADV_DONTNEED), f.Close())
		if err != nil {
			return err
		}
	}
	return nil
}
