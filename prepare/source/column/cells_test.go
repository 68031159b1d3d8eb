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

// Cells whose places are known have the values and the traits that TakePlain finds, or are left to it.
func TestCells(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 4))
	words := []string{"0", "7", "-12", "0.5", "-0.25", "123456789012345", "-0.0", "1234567.875", "0.6369616873214543",
		"16777216", "16777217", "-0", "00", "01.5", "", "-", ".", "1.", ".5", "1..5", "1.2.3", "--1", "1-1", "0x10",
		"9999999999999999999", "12345678.5", "1234567.123456789012", "1234567.1234567890123", "1e5", "1:", "1/", "1 ", "\r"}
	sure := 10
	for range 30_000 {
		word := strconv.FormatFloat(rng.NormFloat64()*float64(uint64(1)<<rng.IntN(40)), 'f', rng.IntN(20), 64)
		switch rng.IntN(8) {
		case 0:
			word = fmt.Sprint(rng.IntN(1 << rng.IntN(62)))
		case 1: // any characters
			word = ""
			for range rng.IntN(24) {
				word += string("0123456789.-+e:/ "[rng.IntN(17)])
			}
		case 2: // close to half-way between two float32
			word = strconv.FormatFloat(float64(rng.Float32())+0x1p-26+float64(rng.IntN(3)-1)*0x1p-53, 'f', -1, 64)
		}
		words = append(words, word)
	}
	margin := strings.Repeat("9", CellMargin)
	text, ends := []byte(margin+","), []uint32{CellMargin}
	for _, word := range words {
		ends = append(ends, uint32(len(text)+len(word)))
		text = append(append(text, word...), ',')
	}
	c := Cells{Text: string(text) + margin + margin, Ends: ends, Step: 1}
	for _, d := range []tensor.DType{tensor.Int64, tensor.Float32, tensor.Float64} {
		took := 0
		for row := range words {
			got, next, traits := c.AppendPlain(make([]byte, 0, 8), row, row+1, d)
			p, end := TakePlain(words[row] + "," + margin + margin)
			want := make([]byte, d.Size())
			plain := end == len(words[row]) && end > 0 && p.Put(want, d)
			switch {
			case next > row && (!plain || !bytes.Equal(got, want) || traits != p.Traits):
				t.Errorf("%q as %v is %x, %v, want %x, %v, %v", words[row], d, got, traits, want, p.Traits, plain)
			case next == row && (len(got) > 0 || plain && row < sure):
				t.Errorf("%q as %v is %x and left", words[row], d, got)
			case next > row:
				took++
			}
		}
		if d != tensor.Int64 && took < len(words)/2 {
			t.Errorf("%d of %d cells were taken as %v", took, len(words), d)
		}
	}
}
