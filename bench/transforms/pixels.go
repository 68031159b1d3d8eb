package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/penstock/penstock/bench/internal/measure"
)

// pixels compares the records of all photos, byte by byte, with those of the peers.
func (b *bench) pixels() error {
	if err := b.resizedPixels(); err != nil {
		return err
	}
	rows := [][]string{{"peer", "set", "decoder", "values different", "largest difference", "mean difference"}}
	for _, s := range b.sets {
		for _, w := range b.peerWays {
			if !strings.HasSuffix(w.Name, "uint8") {
				continue
			}
			theirs, err := b.records(b.python.Ask, w.Name, s)
			if err != nil {
				return err
			}
			for _, d := range b.decoders() {
				ours, err := b.records(d.ask, oursLike(w.Name), s)
				if err != nil {
					return err
				}
				diff, err := compare(ours, theirs)
				if err != nil {
					return fmt.Errorf("%s: %w", w.Name, err)
				}
				rows = append(rows, append([]string{w.Text, s.name, d.name}, diff.cells()...))
			}
		}
	}
	measure.Table(os.Stdout, rows)
	return b.numbers()
}

// oursLike returns our way with the filter and type of a peer's "NAME, FILTER TYPE".
func oursLike(name string) string { return name[strings.Index(name, ", ")+2:] }

// records has somebody write the records of a set, and reads them.
func (b *bench) records(ask func(measure.Request) (measure.Answer, error), way string, s set) ([]byte, error) {
	path := filepath.Join(b.dir, "records")
	if _, err := ask(measure.Request{Do: way, Set: s.name, To: len(s.files), Out: path}); err != nil {
		return nil, err
	}
	return os.ReadFile(path)
}

// difference is how far bytes are from others.
type difference struct {
	n, different, most int
	sum                float64
}

func compare(a, b []byte) (d difference, err error) {
	if len(a) != len(b) {
		return d, errors.New("records of another length")
	}
	d.n = len(a)
	for i := range a {
		if x := int(a[i]) - int(b[i]); x != 0 {
			d.different++
			d.most = max(d.most, x, -x)
			d.sum += float64(max(x, -x))
		}
	}
	return d, nil
}

func (d difference) cells() []string {
	share := fmt.Sprintf("%.2g %%", 100*float64(d.different)/float64(d.n))
	if d.different == 0 {
		share = fmt.Sprintf("0 of %d", d.n)
	}
	return []string{share, fmt.Sprint(d.most), fmt.Sprintf("%.3g", d.sum/float64(d.n))}
}

// numbers compares torchvision's normalized float32 with penstock's, bit for bit.
func (b *bench) numbers() error {
	const way = "torchvision on Pillow, bilinear float32"
	rows := [][]string{{"float32 records", "set", "decoder", "values whose bits differ"}}
	for _, s := range b.sets {
		theirs, err := b.records(b.python.Ask, way, s)
		if err != nil {
			return err
		}
		for _, d := range b.decoders() {
			ours, err := b.records(d.ask, oursLike(way), s)
			if err != nil {
				return err
			}
			if len(ours) != len(theirs) {
				return errors.New("float32 records of another length")
			}
			different := 0
			for i := 0; i < len(ours); i += 4 {
				if [4]byte(ours[i:]) != [4]byte(theirs[i:]) {
					different++
				}
			}
			rows = append(rows, []string{"torchvision: ToTensor, Normalize", s.name, d.name,
				fmt.Sprintf("%d of %d", different, len(ours)/4)})
		}
	}
	measure.Table(os.Stdout, rows)
	return nil
}

// resizedPixels compares all filters at odd sizes with Pillow, by checksums.
func (b *bench) resizedPixels() error {
	rows := [][]string{{"decode and resize against Pillow, 5 filters, 9 sizes each", "set",
		"images with a different byte"}}
	for _, s := range b.sets {
		theirs, err := b.records(b.python.Ask, "all sizes", s)
		if err != nil {
			return err
		}
		for _, d := range b.decoders() {
			ours, err := b.records(d.ask, "all sizes", s)
			if err != nil {
				return err
			}
			if len(ours) != len(theirs) {
				return errors.New("another number of checksums")
			}
			different := 0
			for i := 0; i < len(ours); i += 4 {
				if [4]byte(ours[i:]) != [4]byte(theirs[i:]) {
					different++
				}
			}
			rows = append(rows, []string{d.name, s.name, fmt.Sprintf("%d of %d", different, len(ours)/4)})
		}
	}
	measure.Table(os.Stdout, rows)
	return nil
}
