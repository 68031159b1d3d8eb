package main

import (
	"fmt"
	"os"

	"github.com/penstock/penstock/bench/internal/measure"
)

// chunk is how many photos a contender does before it is the next one's turn.
const chunk = 16

// pipeline compares the whole way, from a file's bytes to 224 x 224 float32, with the usual
// one and with decoding alone.
func (b *bench) pipeline() error {
	rows := [][]string{{"JPEG bytes to 224x224 float32 CHW", "set", "us/photo", "times faster than usual", "of a bare libjpeg-turbo decode"}}
	for _, s := range b.sets {
		list := []measure.Contender{{Name: "image/jpeg, imaging.Resize(Linear), plain loop", Do: b.usual.Doing("usual", s.name)}}
		for _, d := range b.decoders() {
			list = append(list, measure.Contender{Name: "penstock, " + d.name, Do: d.do("bilinear float32", s.name)})
		}
		if bare != nil {
			list = append(list, measure.Contender{Name: "penstock, libjpeg-turbo for every file", Do: b.asking(byLibrary, s.name)},
				measure.Contender{Name: "libjpeg-turbo, decode to RGB alone", Do: b.asking("decode alone", s.name)})
		}
		results, err := measure.Rounds(b.o.rounds, len(s.files), chunk, list)
		if err != nil {
			return err
		}
		measure.Lines(os.Stdout, "Pipeline/"+s.name, "photo", results)
		for _, r := range results {
			row := []string{r.Name, s.name, micros(r), results[0].Over(r, measure.CPU).String(), "-"}
			if bare != nil {
				row[4] = r.Over(results[len(results)-1], measure.CPU).String()
			}
			rows = append(rows, row)
		}
	}
	measure.Table(os.Stdout, rows)
	return nil
}

// micros is what an item took, in microseconds of the processor.
func micros(r measure.Result) string { return fmt.Sprintf("%.0f", r.Median(measure.CPU)*1e6) }

// workers compares two workers with one.
func (b *bench) workers() error {
	rows := [][]string{{"two workers against one", "set", "fastest rounds", "by the clock", "by what an image costs both"}}
	for _, s := range b.sets {
		for _, d := range b.decoders() {
			results, err := measure.Rounds(2*b.o.rounds, len(s.files), len(s.files), []measure.Contender{
				{Name: d.name + ", 1 worker", Do: d.do("bilinear float32", s.name)},
				{Name: d.name + ", 2 workers", Do: d.do("2 workers", s.name)},
			})
			if err != nil {
				return err
			}
			measure.Lines(os.Stdout, "Workers/"+s.name, "photo", results)
			cost := results[0].Over(results[1], measure.CPU)
			rows = append(rows, []string{d.name, s.name, measure.Digits(results[0].Fastest(measure.Wall) / results[1].Fastest(measure.Wall)), results[0].Over(results[1], measure.Wall).String(),
				measure.Ratio{Median: 2 * cost.Median, Low: 2 * cost.Low, High: 2 * cost.High}.String()})
		}
	}
	measure.Table(os.Stdout, rows)
	return nil
}
