package column

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"

	"github.com/penstock/penstock/tensor"
)

// A plain number is the one that AppendNumber reads, of any type.
func TestTakePlain(t *testing.T) {
	rng := rand.New(rand.NewPCG(4, 9))
	words := []string{"0", "7", "-12", "0.5", "-0.25", "123456789012345", "-0.0", "1234567.875", "0.6369616873214543"}
	taken := len(words)
	for range 50_000 {
		word := strconv.FormatFloat(rng.NormFloat64()*float64(uint64(1)<<rng.IntN(60)), 'f', rng.IntN(22), 64)
		switch rng.IntN(8) {
		case 0:
			word = fmt.Sprint(rng.IntN(1 << rng.IntN(62)))
		case 1: // any characters
			word = ""
			for range rng.IntN(24) {
				word += string("0123456789.-+e:/ "[rng.IntN(17)])
			}
		}
		words = append(words, word)
	}
	for i, word := range words {
		p, end := TakePlain(word + "," + strings.Repeat("9", plainRoom))
		if end == 0 && i < taken {
			t.Errorf("%q is not plain", word)
		}
		if end == 0 {
			continue
		}
		for _, d := range []tensor.DType{tensor.Int64, tensor.Float32, tensor.Float64} {
			got := make([]byte, d.Size())
			want, err := AppendNumber(nil, word[:end], d)
			if p.Put(got, d) && (err != nil || !bytes.Equal(got, want)) {
				t.Errorf("%q as %v is %x, want %x, %v", word[:end], d, got, want, err)
			}
		}
	}
}

// A Guess that is given the traits of plain numbers finds the type that it finds from their cells.
func TestGuessOfPlainNumbers(t *testing.T) {
	rng := rand.New(rand.NewPCG(2, 6))
	words := []string{"0", "7", "-12", "0.5", "16777216", "16777217", "16777217.5", "16777216.00000000000",
		"-999999999999999"}
	for range 2000 {
		var want, got Guess
		want.Add(Cell{Text: "1"})
		got.Add(Cell{Text: "1"})
		for range 1 + rng.IntN(3) {
			word := words[rng.IntN(len(words))]
			want.Add(Cell{Text: word})
			p, end := TakePlain(word + strings.Repeat(" ", plainRoom))
			if end != len(word) || !got.KnowsPlain() {
				t.Fatalf("%q: %d bytes are plain", word, end)
			}
			got.AddPlain(p.Traits)
		}
		want.scratch, got.scratch = nil, nil
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Fatalf("%+v, want %+v", got, want)
		}
	}
}
