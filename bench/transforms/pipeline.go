package main

import (
	"fmt"
	"os"
	"strings"

	"github.com/penstock/penstock/bench/internal/measure"
)

// chunk is how many photos a contender does before the next contender's turn.
const chunk = 16

// compare has contenders do all photos of a set, in turn.
func (b *bench) compare(name string, s set, list ...measure.Contender) ([]measure.Result, error) {
	results, err := measure.Rounds(b.o.rounds, len(s.files), chunk, list)
	if err == nil {
		measure.Lines(os.Stdout, name, "photo", results)
	}
	return results, err
}

// pipeline compares the whole way, from a file's bytes to 224 x 224 float32, with the usual
// one and with decoding alone.
func (b *bench) pipeline() error {
	rows := [][]string{{"JPEG bytes to 224x224 float32 CHW", "set", "us/photo", "times faster than usual",
		"of a bare libjpeg-turbo decode"}}
	for _, s := range b.sets {
		list := []measure.Contender{
			{Name: "image/jpeg, imaging.Resize(Linear), plain loop", Do: b.usual.Doing("usual", s.name)},
			{Name: "penstock, Go", Do: b.doing("bilinear", s.name)},
		}
		if bare != nil {
			list = append(list, measure.Contender{Name: "libjpeg-turbo, decode to RGB alone",
				Do: b.doing("decode alone", s.name)})
		}
		results, err := b.compare("Pipeline/"+s.name, s, list...)
		if err != nil {
			return err
		}
		for _, r := range results {
			row := []string{r.Name, s.name, micros(r), results[0].Over(r, measure.CPU).String(), "-"}
			if bare != nil {
				row[4] = r.Over(results[2], measure.CPU).String()
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
	results, err := b.compare("Decode/"+s.name, s,
		measure.Contender{Name: "libjpeg-turbo", Do: b.doing("decode alone", s.name)},
		measure.Contender{Name: "penstock", Do: b.doing("own decode", s.name)})
	if err != nil {
		return err
	}
	rows := [][]string{{"progressive JPEG to RGB", "us/photo", "times as fast as libjpeg-turbo"}}
	for _, r := range results {
		rows = append(rows, []string{r.Name, micros(r), results[0].Over(r, measure.CPU).String()})
	}
	measure.Table(os.Stdout, rows)
	return nil
}

// peers compares the time of Python's libraries for the same work with penstock's.
func (b *bench) peers() error {
	s := b.sets[0]
	for _, f := range filters {
		list := []measure.Contender{{Name: "penstock, Go", Do: b.doing(f.name, s.name)}}
		for _, w := range b.peerWays {
			if strings.HasSuffix(w.Name, ", "+f.name) {
				list = append(list, measure.Contender{Name: w.Text, Do: b.python.Doing(w.Name, s.name)})
			}
		}
		results, err := b.compare("Peers/"+s.name+"/"+f.name, s, list...)
		if err != nil {
			return err
		}
		rows := [][]string{{"JPEG bytes to 224x224 float32 CHW, " + f.name, "set", "us/photo", "vs penstock with Go"}}
		for _, r := range results {
			rows = append(rows, []string{r.Name, s.name, micros(r), r.Over(results[0], measure.CPU).String()})
		}
		measure.Table(os.Stdout, rows)
	}
	return nil
}

// micros is the CPU time of an item, in microseconds.
func micros(r measure.Result) string { return fmt.Sprintf("%.0f", r.Median(measure.CPU)*1e6) }
