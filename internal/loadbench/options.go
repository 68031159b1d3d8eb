package loadbench

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/penstock/penstock/tensor"
)

// Options says what to measure.
type Options struct {
	Path      string   // of the dataset, unless Synthetic
	Fields    []string // of the dataset; none means all
	Split     string   // of the dataset; "" means all records
	Synthetic bool     // records are made when they are asked for

	Size  int          // records of the synthetic dataset
	Shape tensor.Shape // of its records, float32

	Work     string        // "sleep", "cpu" or "both"
	Delay    time.Duration // of work that a record's preparation takes
	Batch    int           // records in a batch
	Batches  int           // of a row
	Workers  int
	Prefetch int // batches ahead for each worker
	Seed     uint64
	Budget   int // bytes that the buffers of one Loader may take; 0 means no limit
	Quick    bool
}

// Defaults returns the tutorial's parameters: those of the synthetic dataset.
func Defaults() Options {
	return Options{Size: 512, Shape: tensor.Shape{3, 224, 224}, Work: "both", Delay: 5 * time.Millisecond,
		Batch: 32, Batches: 160, Workers: 4, Prefetch: 2, Seed: 42}
}

const mostRecords = math.MaxInt32

// problems says what is wrong with o.
func (o *Options) problems() (all []string) {
	atLeast := func(name string, v, least, most int) {
		if v < least || v > most {
			all = append(all, fmt.Sprintf("--%s %d: it must be from %d to %d", name, v, least, most))
		}
	}
	atLeast("batch", o.Batch, 1, mostRecords)
	atLeast("batches", o.Batches, 1, mostRecords)
	atLeast("workers", o.Workers, 1, 1<<12)
	atLeast("prefetch", o.Prefetch, 1, 1<<10)
	atLeast("size", o.Size, 1, mostRecords)
	if o.Delay < 0 || o.Delay > time.Hour {
		all = append(all, fmt.Sprintf("--delay %v: it must be from 0 to an hour", o.Delay))
	}
	if o.Work != workSleep && o.Work != workCPU && o.Work != "both" {
		all = append(all, fmt.Sprintf("--work %q: it is sleep, cpu or both", o.Work))
	}
	if !o.Synthetic {
		return all
	}
	if len(o.Fields) > 0 || o.Split != "" {
		all = append(all, "--fields and --split are for a DATASET, not for --synthetic")
	}
	return all
}

// parseShape reads 3x224x224.
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

// scale shortens the run if it is to be quick, and says how.
func (o *Options) scale() string {
	if !o.Quick {
		return ""
	}
	batches := o.Batches
	o.Batches = max(1, o.Batches/8)
	return fmt.Sprintf("--quick: %d batches a row instead of %d", o.Batches, batches)
}

// kinds returns the kinds of work to measure.
func (o *Options) kinds() []string {
	if o.Work == "both" && o.Delay > 0 {
		return []string{workSleep, workCPU}
	}
	if o.Work == workCPU {
		return []string{workCPU}
	}
	return []string{workSleep}
}
