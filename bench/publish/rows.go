package main

import (
	"fmt"
	"slices"
	"strings"
)

// Heads of the tables that numbers are taken from.
const (
	photosHead = "JPEG bytes to 224x224 float32 CHW"
	bareHead   = "of a bare libjpeg-turbo decode"
	fasterHead = "times faster than usual"
	resizeHead = "decoded photo to shorter side 256"
	peersHead  = photosHead + ", bilinear"
	clockHead  = "vs penstock, clock"
	cpuHead    = "CPU"
)

// Rows of a DataLoader: whose Dataset returns records, and whose Dataset gathers whole batches.
const (
	singly = "DataLoader,"
	wholly = "DataLoader by take,"
)

func touched(order, bytes string) string { return order + ", " + bytes + "-byte records, touch" }

// ratio is a line of the README's table: how many times faster penstock is. In Go it is the number at figure. In
// Python, where instead is empty, it is penstock's rate in a table of bench/peers, divided by the rate of the fastest
// other row, which names it.
type ratio struct {
	what, instead, section string
	figure                 figure
}

// ratios compare penstock with the usual alternatives, in the order of a user's questions.
var ratios = []ratio{
	{what: "JPEG photo to a 224x224 tensor", instead: "`image/jpeg` and `imaging` in Go",
		section: "photos-to-records",
		figure: figure{program: "transforms", head: photosHead, rows: []string{"penstock, Go / photos"},
			column: fasterHead}},
	{what: "JPEG photo to a 224x224 tensor", instead: "torchvision on Pillow",
		section: "against-pythons-libraries",
		figure: figure{program: "transforms", head: peersHead, rows: []string{"torchvision on Pillow, BILINEAR / photos"},
			column: "vs penstock with Go"}},
	{what: "shuffled batches, records of 784 bytes", instead: byTake, section: "batches",
		figure: figure{program: "loader", head: touched("shuffled", "784"), rows: []string{wholly}, column: clockHead}},
	inPython("shuffled batches, records of 784 bytes", "784 B, shuffled, batches of 256"),
	{what: "shuffled batches, records of 150,528 bytes", instead: byTake, section: "batches",
		figure: figure{program: "loader", head: touched("shuffled", "150528"), rows: []string{wholly}, column: clockHead}},
	inPython("shuffled batches, records of 150,528 bytes", "150,528 B, shuffled, batches of 64"),
	{what: "normalized to float32 and mirrored", instead: "DataLoader and torchvision", section: "batches",
		figure: figure{program: "loader", head: "shuffled, 150528-byte records, normalize", rows: []string{"DataLoader"},
			column: clockHead}},
	inPython("normalized to float32 and mirrored", "150,528 B, shuffled, mirrored and normalized to float32"),
	{what: "HDF5 images compressed by gzip, one per chunk", instead: "h5py", section: "hdf5",
		figure: hdf5("hdf5", "gzip, 1 a chunk, 1 worker / h5py", cpuHead)},
	inPython("HDF5 images compressed by gzip, one per chunk",
		"150,528 B a gzip chunk (HDF5, Zarr), shuffled, batches of 64"),
}

const byTake = "DataLoader, whole batches by `numpy.take`"

func inPython(what, head string) ratio {
	return ratio{what: what, section: "other-loaders",
		figure: figure{program: "peers", head: head, rows: []string{"penstock in Python"}, column: rate}}
}

// ratios returns the README's table.
func (r results) ratios() ([]string, error) {
	lines := []string{"| work | penstock in | instead of | times faster |",
		"| ---- | ----------- | ---------- | -----------: |"}
	for _, x := range ratios {
		n, err := r.number(x.figure)
		if err != nil {
			return nil, err
		}
		language := "Go"
		if x.instead == "" {
			language = "Python"
			name, most, err := r.rival(x.figure.head)
			if err != nil {
				return nil, err
			}
			x.instead = name
			n /= most
		}
		lines = append(lines, fmt.Sprintf("| %s | %s | %s | [%s](docs/benchmarks.md#%s) |", x.what, language, x.instead,
			digits(n), x.section))
	}
	return lines, nil
}

// rival returns the name, setting and rate of the fastest row of a table of bench/peers that is not penstock's.
func (r results) rival(head string) (name string, most float64, err error) {
	t, err := r.table("peers", head)
	if err != nil {
		return "", 0, err
	}
	for _, row := range t.cells[1:] {
		n, err := leading(row[slices.Index(t.cells[0], rate)])
		if err == nil && n > most && !strings.HasPrefix(row[0], "penstock") {
			name, most = row[0]+", "+row[1], n
		}
	}
	if name == "" {
		return "", 0, fmt.Errorf("the table %q has penstock's rows alone", head)
	}
	return name, most, nil
}

// target is the goal for a number.
type target struct {
	what   string
	figure figure
	most   bool // the goal is a ceiling
	goal   float64
}

var targets = []target{
	{"JPEG to tensor against image/jpeg and imaging, without C", figure{"transforms", photosHead, []string{"penstock, Go"},
		fasterHead, false}, false, 5},
	{"JPEG to tensor against a bare libjpeg-turbo decode", figure{"transforms", photosHead, []string{"penstock, Go"},
		bareHead, true}, true, 1.1},
	{"progressive JPEG to RGB, against libjpeg-turbo 2.1.5", figure{"transforms", "progressive JPEG to RGB",
		[]string{"penstock"}, "times as fast as libjpeg-turbo", false}, false, 1},
	{"resizing against imaging", figure{"transforms", resizeHead, []string{"bilinear", "bicubic", "lanczos"},
		"times faster", false}, false, 9},
	{"the fastest Python library on photos, vs penstock",
		figure{"transforms", peersHead, []string{"Pillow, BILINEAR", "torchvision", "OpenCV, INTER_AREA"},
			"vs penstock with Go", false}, false, 1},
	{"batches in order, 784 bytes, against DataLoader record by record", figure{"loader", touched("sequential", "784"),
		[]string{singly}, clockHead, false}, false, 50},
	{"batches in order, 784 bytes, against DataLoader with whole batches by NumPy's take",
		figure{"loader", touched("sequential", "784"), []string{wholly}, clockHead, false}, false, 50},
	{"batches in order, 150,528 bytes, against DataLoader record by record",
		figure{"loader", touched("sequential", "150528"), []string{singly}, clockHead, false}, false, 5},
	{"batches in order, 150,528 bytes, against DataLoader with whole batches by NumPy's take",
		figure{"loader", touched("sequential", "150528"), []string{wholly}, clockHead, false}, false, 5},
	{"shuffled, 150,528 bytes, against DataLoader record by record", figure{"loader", touched("shuffled", "150528"),
		[]string{singly}, clockHead, false}, false, 4},
	{"shuffled, 150,528 bytes, against DataLoader with whole batches by NumPy's take",
		figure{"loader", touched("shuffled", "150528"), []string{wholly}, clockHead, false}, false, 4},
	{"shuffled, 784 bytes, against h5py record by record",
		figure{"loader", touched("shuffled", "784"), []string{"h5py, d[i]"}, clockHead, false}, false, 100},
	{"normalized and mirrored, against DataLoader's best", figure{"loader", "shuffled, 150528-byte records, normalize",
		[]string{"DataLoader"}, clockHead, false}, false, 5},
	{"cold, of the bandwidth of the best of five loops of pread", figure{"loader-cold",
		cold(512, 4096, 32768, 150528, 1048576), []string{"penstock, loader"}, "of the best loop of pread", false},
		false, .85},
	{"cold, bytes read for each used, above 4 kB", figure{"loader-cold", cold(32768, 150528, 1048576),
		[]string{"penstock"}, "bytes read for each used", true}, true, 1.3},
	{"batches in Python, normalized, DataLoader's best of penstock's", figure{"peers",
		"150,528 B, shuffled, mirrored and normalized to float32", []string{"PyTorch DataLoader"}, "of penstock's", true},
		true, .2},
	{"HDF5, contiguous, in order, copied, against h5py", hdf5("hdf5", "contiguous 150528 B, in order, copy / h5py",
		cpuHead), false, 1.5},
	{"HDF5, contiguous, at random, copied, against h5py", hdf5("hdf5", "contiguous 150528 B, random, copy / h5py",
		cpuHead), false, 1.7},
	{"HDF5, contiguous, 784 bytes, record by record of an order, against h5py",
		hdf5("hdf5", "contiguous 784 B, random, Over, copy / h5py", cpuHead), false, 100},
	{"HDF5, gzip, one record a chunk, against libhdf5", hdf5("hdf5", "gzip, 1 a chunk, 1 worker", cpuHead), false, .75},
	{"HDF5, gzip, batches of one record a chunk, two workers, against libhdf5",
		hdf5("hdf5", "gzip, 1 a chunk, batch 32, 2 workers / gonum", "clock"), false, 1.4},
	{"HDF5, gzip, 32 records a chunk, in order, against libhdf5 with its default cache",
		hdf5("hdf5", "gzip, 32 a chunk, in order / gonum", cpuHead), false, 25},
	{"HDF5 with libdeflate, gzip, one record a chunk, against libhdf5",
		hdf5("hdf5-libdeflate", "gzip, 1 a chunk, 1 worker", cpuHead), false, 1.8},
	{"HDF5 with libdeflate, batches of one record a chunk, two workers, against libhdf5",
		hdf5("hdf5-libdeflate", "gzip, 1 a chunk, batch 32, 2 workers / gonum", "clock"), false, 3.2},
	{"the tutorial's table, last row against its baseline (published: 11.55)",
		figure{"loadbench-tutorial", "progressive-sleep", []string{"precomputed, zero-copy"}, "speed-up", false}, false, 30},
	{"from a bucket over a link, a shuffled epoch, of what the link can", linked("of the link", false), false, .9},
	{"from a bucket over a link, opening to the first batch, round trips", linked("round trips", true), true, 5},
	{"from a bucket over a link, the second epoch, of a local dataset's time",
		linked("second epoch, of local time (warm)", true), true, 1.05},
	{"from a bucket over a link, against a loop of GETs, a record each", linked("times a loop of GETs", false), false, 10},
}

// cold returns the heads of the tables of records that are not in memory, by their sizes.
func cold(sizes ...int) string {
	heads := make([]string, len(sizes))
	for i, n := range sizes {
		heads[i] = fmt.Sprintf("cold, %d-byte records", n)
	}
	return strings.Join(heads, severalHeads)
}

// hdf5 locates a number of bench/hdf5.
func hdf5(program, rows, column string) figure {
	return figure{program, "HDF5", []string{rows}, column, false}
}

// linked locates a number of training over a shaped link, see cmd/internal/s3test.
func linked(column string, worst bool) figure {
	return figure{"remote", "over a link", []string{""}, column, worst}
}

// targets returns the table of targets, missed ones first. Targets that no program measured are
// left out.
func (r results) targets() ([]string, error) {
	head := []string{"| aim | measured | goal | |", "| --- | -------: | ---: | --- |"}
	var short, met []string
	for _, x := range targets {
		if r[x.figure.program] == nil {
			continue
		}
		n, err := r.number(x.figure)
		if err != nil {
			return nil, err
		}
		ok, bound := n >= x.goal, ">="
		if x.most {
			ok, bound = n <= x.goal, "<="
		}
		line := fmt.Sprintf("| %s | %s | %s %g |", x.what, digits(n), bound, x.goal)
		if ok {
			met = append(met, line+" met |")
		} else {
			short = append(short, line+" **short** |")
		}
	}
	return slices.Concat(head, short, met), nil
}
