package loadbench

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/penstock/penstock/cmd/internal/datasetarg"
	"github.com/penstock/penstock/tensor"
)

// Options says what to measure.
type Options struct {
	Path      string // of the dataset, unless Synthetic; or its URL
	Cache     datasetarg.Cache
	Fields    []string // of the dataset; none means all
	Split     string   // of the dataset; "" means all records
	Synthetic bool     // records are made when they are asked for, instead of a dataset

	Size  int          // records of the synthetic dataset
	Shape tensor.Shape // of its records, float32

	Work     string        // "sleep", "cpu", "both" or "replay"
	Delay    time.Duration // of the work to prepare a record
	Batch    int           // records in a batch
	Batches  int           // measured in a row, at least
	MinTime  time.Duration // measure more batches until a row has taken this long
	Workers  int
	Prefetch int // batches per worker
	Seed     uint64
	Budget   int // bytes for the buffers of one Loader; 0 means no limit
	Quick    bool

	Tables    []string      // what to measure; none means the tutorial's rows
	TrainStep time.Duration // of the guide's table
	Epochs    int           // of the guide's table
	Scale     float64       // of Delay and TrainStep
	Log       string        // file for a line per batch; "" for none
}

// The tables that can be asked for.
const (
	tableRows     = "rows"
	tableGuide    = "guide"
	tableBatch    = "batch"
	tableWorkers  = "workers"
	tablePrefetch = "prefetch"
)

var allTables = []string{tableRows, tableGuide, tableBatch, tableWorkers, tablePrefetch}

// Defaults returns the tutorial's parameters, with its synthetic dataset.
func Defaults() Options {
	return Options{Size: 512, Shape: tensor.Shape{3, 224, 224}, Work: "both", Delay: 5 * time.Millisecond,
		Batch: 32, Batches: 160, Workers: 4, Prefetch: 2, Seed: 42,
		TrainStep: 100 * time.Millisecond, Epochs: 3, Scale: 1}
}

// mostRecords bounds options that count records, so that products with a record's size do not
// overflow.
const mostRecords = math.MaxInt32

// problems returns the invalid values of o.
func (o *Options) problems() (all []string) {
	within := func(name string, v, most int) {
		if v < 1 || v > most {
			all = append(all, fmt.Sprintf("--%s %d: it must be from 1 to %d", name, v, most))
		}
	}
	within("batch", o.Batch, mostRecords)
	within("batches", o.Batches, mostRecords)
	within("workers", o.Workers, 1<<12)
	within("prefetch", o.Prefetch, 1<<10)
	within("size", o.Size, mostRecords)
	within("epochs", o.Epochs, 1<<20)
	all = append(all, o.tableProblems()...)
	if o.MinTime < 0 || o.MinTime > time.Hour {
		all = append(all, fmt.Sprintf("--min-time %v: it must be from 0 to an hour", o.MinTime))
	}
	if o.TrainStep < 0 || o.TrainStep > time.Hour {
		all = append(all, fmt.Sprintf("--train-step %v: it must be from 0 to an hour", o.TrainStep))
	}
	if !(o.Scale > 0 && o.Scale <= 1000) {
		all = append(all, fmt.Sprintf("--scale %v: it must be more than 0, and 1000 at most", o.Scale))
	}
	if o.Delay < 0 || o.Delay > time.Hour {
		all = append(all, fmt.Sprintf("--delay %v: it must be from 0 to an hour", o.Delay))
	}
	if !slices.Contains([]string{workSleep, workCPU, workReplay, "both"}, o.Work) {
		all = append(all, fmt.Sprintf("--work %q: it is sleep, cpu, both or replay", o.Work))
	}
	if !o.Synthetic {
		return all
	}
	if len(o.Fields) > 0 || o.Split != "" {
		all = append(all, "--fields and --split are for a DATASET, not for --synthetic")
	}
	return all
}

// tableProblems returns the names of tables that do not exist.
func (o *Options) tableProblems() (all []string) {
	for _, name := range o.Tables {
		if !slices.Contains(allTables, name) {
			all = append(all, fmt.Sprintf("--tables %q: there are %s, and all", name, strings.Join(allTables, ", ")))
		}
	}
	return all
}

// scaled returns o with its times multiplied by Scale, which is then 1.
func (o *Options) scaled() *Options {
	s := *o
	s.Delay, s.TrainStep, s.Scale = time.Duration(float64(o.Delay)*o.Scale), time.Duration(float64(o.TrainStep)*o.Scale), 1
	return &s
}

// parseShape parses a shape such as 3x224x224.
func parseShape(text string) (tensor.Shape, error) {
	var shape tensor.Shape
	elems := 1
	for part := range strings.SplitSeq(text, "x") {
		n, err := strconv.Atoi(part)
		if err != nil || n < 1 || n > mostRecords/elems {
			return nil, fmt.Errorf("%q is not a shape; write it like 3x224x224", text)
		}
		elems *= n
		shape = append(shape, n)
	}
	if len(shape) > tensor.MaxRank-1 {
		return nil, fmt.Errorf("%q has more than %d axes", text, tensor.MaxRank-1)
	}
	return shape, nil
}

// shorten applies --quick, and says how the run differs from the published ones.
func (o *Options) shorten() string {
	var said []string
	if o.Scale != 1 {
		said = append(said, fmt.Sprintf("--scale %g: delays and training steps take %g times as long as asked for",
			o.Scale, o.Scale))
	}
	if o.Quick {
		batches := o.Batches
		o.Batches = max(1, o.Batches/8)
		o.MinTime /= 8
		said = append(said, fmt.Sprintf("--quick: %d batches a row instead of %d", o.Batches, batches))
	}
	return strings.Join(said, "; ")
}

// kinds returns the kinds of work to measure, a table each. Without a delay all kinds are the same.
func (o *Options) kinds() []string {
	if o.Work == "both" && o.Delay > 0 {
		return []string{workSleep, workCPU}
	}
	if o.Work == "both" {
		return []string{workSleep}
	}
	return []string{o.Work}
}
