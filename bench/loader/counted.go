package main

import (
	"fmt"
	"os"

	"github.com/penstock/penstock/bench/internal/measure"
	"github.com/penstock/penstock/internal/uncounted"
	"github.com/penstock/penstock/loader"
	"github.com/penstock/penstock/loader/sampler"
	"github.com/penstock/penstock/tensor"
	"github.com/penstock/penstock/transforms"
)

// counted measures what the statistics of a Loader cost: warm, shuffled epochs with them and
// without, by turns, of Loaders that make batches in the goroutine that asks. That two of the
// same kind differ says how exact this is.
func (b *bench) counted() error {
	rows := [][]string{{"shuffled, warm, not touched", "ns/record", "times as long with statistics, processor", "fastest rounds", "two without, processor", "fastest rounds"}}
	ts, err := scaled()
	if err != nil {
		return err
	}
	for _, d := range b.sets {
		for _, v := range []variant{
			{d.name + "-byte records, gathered", loader.Options{}},
			{d.name + "-byte records, made float32", loader.Options{Transforms: ts}},
		} {
			v.o.Sampler, v.o.Workers = sampler.Shuffle{}, loader.Synchronous
			row, err := counting(*d, v, 15*b.o.rounds)
			if err != nil {
				return err
			}
			rows = append(rows, row)
		}
	}
	measure.Table(os.Stdout, rows)
	return nil
}

// counting compares a Loader with two that keep no statistics.
func counting(d dataset, v variant, rounds int) ([]string, error) {
	d.times = 1 // the shorter, the less happens meanwhile
	var list []measure.Contender
	for k, name := range []string{v.name, v.name + ", no statistics", v.name + ", none either"} {
		uncounted.Next = k > 0
		c, ld, err := epochs(name, &d, v.o, false)
		uncounted.Next = false
		if err != nil {
			return nil, err
		}
		defer ld.Close() // nothing was kept
		list = append(list, c)
	}
	results, err := measure.Rounds(rounds, d.n, d.n, list)
	if err != nil {
		return nil, err
	}
	measure.Lines(os.Stdout, "Statistics/"+d.name, "record", results)
	row := []string{v.name, measure.Digits(1e9 * results[0].Median(measure.CPU))}
	for _, k := range []int{0, 2} {
		row = append(row, thousandths(results[k].Over(results[1], measure.CPU).Median),
			thousandths(results[k].Fastest(measure.CPU)/results[1].Fastest(measure.CPU)))
	}
	return row, nil
}

// scaled is the Transform that makes float32 from 0 to 1 of stored images.
func scaled() (map[string]loader.Transform, error) {
	p, err := transforms.Compose(transforms.ToLayout{Layout: transforms.CHW}, transforms.ConvertDType{DType: tensor.Float32})
	return map[string]loader.Transform{"x": loader.Images{Pipeline: p, Layout: transforms.CHW}}, err
}

func thousandths(x float64) string { return fmt.Sprintf("%.3f", x) }
