package main

import (
	"os"
	"strings"

	"github.com/penstock/penstock/bench/internal/measure"
)

// peers compares the time of Python's libraries for the same work with penstock's.
func (b *bench) peers() error {
	for _, s := range b.sets {
		for _, filter := range []string{"bilinear", "bicubic", "lanczos"} {
			if err := b.peersOf(s, filter); err != nil {
				return err
			}
		}
	}
	return nil
}

func (b *bench) peersOf(s set, filter string) error {
	var list []measure.Contender
	head := []string{"JPEG bytes to 224x224 float32 CHW, " + filter, "set", "us/photo"}
	ours := b.decoders()
	for _, d := range ours {
		list = append(list, measure.Contender{Name: "penstock, " + d.name, Do: d.do(filter+" float32", s.name)})
		head = append(head, "vs penstock with "+d.name)
	}
	for _, w := range b.peerWays {
		if strings.HasSuffix(w.Name, ", "+filter+" float32") {
			list = append(list, measure.Contender{Name: w.Text, Do: b.python.Doing(w.Name, s.name)})
		}
	}
	results, err := measure.Rounds(b.o.rounds, len(s.files), chunk, list)
	if err != nil {
		return err
	}
	measure.Lines(os.Stdout, "Peers/"+s.name+"/"+filter, "photo", results)
	rows := [][]string{head}
	for _, r := range results {
		row := []string{r.Name, s.name, micros(r)}
		for i := range ours {
			row = append(row, r.Over(results[i], measure.CPU).String())
		}
		rows = append(rows, row)
	}
	measure.Table(os.Stdout, rows)
	return nil
}
