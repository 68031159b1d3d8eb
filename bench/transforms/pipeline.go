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
	rows := [][]string{{"JPEG bytes to 224x224 float32 CHW", "set", "us/photo", "times faster than usual",
		"of a bare libjpeg-turbo decode"}}
	for _, s := range b.sets {
		list := []measure.Contender{{Name: "image/jpeg, imaging.Resize(Linear), plain loop",
			Do: b.usual.Doing("usual", s.name)}}
		for _, d := range b.decoders() {
			list = append(list, measure.Contender{Name: "penstock, " + d.name, Do: d.do("bilinear float32", s.name)})
		}
		if bare != nil {
			list = append(list, measure.Contender{Name: "libjpeg-turbo, decode to RGB alone",
				Do: b.asking("decode alone", s.name)})
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

// severalScans compares decoding progressive photos with libjpeg-turbo, if both are available.
func (b *bench) severalScans() error {
	if bare == nil || b.scans == nil {
		return nil
	}
	s := b.scans[0]
	results, err := measure.Rounds(b.o.rounds, len(s.files), chunk, []measure.Contender{
		{Name: "libjpeg-turbo", Do: b.asking("decode alone", s.name)},
		{Name: "penstock", Do: b.asking("own decode", s.name)},
	})
	if err != nil {
		return err
	}
	measure.Lines(os.Stdout, "Decode/"+s.name, "photo", results)
	rows := [][]string{{"progressive JPEG to RGB", "us/photo", "times as fast as libjpeg-turbo"}}
	for _, r := range results {
		rows = append(rows, []string{r.Name, micros(r), results[0].Over(r, measure.CPU).String()})
	}
	measure.Table(os.Stdout, rows)
	return nil
}

// micros is the CPU time of an item, in microseconds.
func micros(r measure.Result) string { return fmt.Sprintf("%.0f", r.Median(measure.CPU)*1e6) }

// workers compares two workers with one, and two processes with one, which share nothing: what
// they fall short of twice is the machine's.
func (b *bench) workers() error {
	rows := [][]string{{"two workers against one", "set", "fastest rounds", "by the clock", "by what an image costs both",
		"two processes against one, by the clock", "by what an image costs both"}}
	for _, s := range b.sets {
		for _, d := range b.decoders() {
			results, err := b.oneAndTwo(s, d)
			if err != nil {
				return err
			}
			measure.Lines(os.Stdout, "Workers/"+s.name, "photo", results)
			one, workers, processes := results[0], results[1], results[2]
			rows = append(rows,
				[]string{d.name, s.name, measure.Digits(one.Fastest(measure.Wall) / workers.Fastest(measure.Wall)),
					one.Over(workers, measure.Wall).String(), twice(one.Over(workers, measure.CPU)),
					one.Over(processes, measure.Wall).String(), twice(one.Over(processes, measure.CPU))})
		}
	}
	measure.Table(os.Stdout, rows)
	return nil
}

// oneAndTwo measures one worker, two workers, and two processes of a worker each.
func (b *bench) oneAndTwo(s set, d decoder) ([]measure.Result, error) {
	const way = "bilinear float32"
	twin, err := b.start(d.program)
	if err != nil {
		return nil, err
	}
	defer twin.Close()
	return measure.Rounds(2*b.o.rounds, len(s.files), len(s.files), []measure.Contender{
		{Name: d.name + ", 1 worker", Do: d.do(way, s.name)},
		{Name: d.name + ", 2 workers", Do: d.do("2 workers", s.name)},
		{Name: d.name + ", 2 processes", Do: measure.AtOnce(d.do(way, s.name), twin.Doing(way, s.name))},
	})
}

// twice is for a ratio of what one item costs one worker and two.
func twice(r measure.Ratio) string {
	return measure.Ratio{Median: 2 * r.Median, Low: 2 * r.Low, High: 2 * r.High}.String()
}
