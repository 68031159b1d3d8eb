package samples

import (
	"crypto/sha256"
	"encoding/binary"
	"flag"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

var cases = flag.Int("cases", 500, "random cases of a property")

func digestOf(n uint64) (d Digest) {
	var b [8]byte
	binary.LittleEndian.PutUint64(b[:], n)
	h := sha256.Sum256(b[:])
	copy(d[:], h[:])
	return d
}

// randomShares returns 2 to 6 splits.
func randomShares(r *rand.Rand) []Share {
	list, sum := make([]Share, 2+r.IntN(5)), 0.0
	for i := range list {
		list[i] = Share{string(rune('a' + i)), math.Exp(r.NormFloat64() * 1.5)}
		sum += list[i].Share
	}
	for i := range list {
		list[i].Share /= sum
	}
	return list
}

// With strata, copies are on one side, and after each record every split has its share of each class to
// within one record, not counting copies; stopped runs continue with the same result.
func TestSplitterStrata(t *testing.T) {
	for seed := range uint64(*cases) {
		r := rand.New(rand.NewPCG(seed, 1))
		shares := randomShares(r)
		s := NewSplitter(shares, WithCopies)
		var noted []byte
		classes, contents := 1+r.IntN(8), 1+r.IntN(60)
		side, counts, totals := make(map[uint64]string), make(map[int64]map[string]float64), make(map[int64]float64)
		for range 1 + r.IntN(120) {
			content := r.Uint64N(uint64(contents))
			class := int64(content%uint64(classes)) - 2
			if r.IntN(20) == 0 {
				class = 5 // a copy that has another label
			}
			if r.IntN(15) == 0 {
				noted = append(noted, s.Fresh()...)
				s = resumed(t, s, shares, noted)
			}
			split := s.Choose(digestOf(content), digestOf(content^seed), class)
			if before, ok := side[content]; ok {
				if before != split {
					t.Fatalf("case %d: content %d is in %s and in %s", seed, content, before, split)
				}
				continue
			}
			side[content] = split
			if counts[class] == nil {
				counts[class] = make(map[string]float64)
			}
			counts[class][split]++
			totals[class]++
			for _, p := range shares {
				if off := counts[class][p.Name] - p.Share*totals[class]; math.Abs(off) > 1+rounding {
					t.Fatalf("case %d: %v: split %s is %v records off its share of %v", seed, shares, p.Name, off, totals[class])
				}
			}
		}
	}
}

// resumed returns what a run has that takes over what s noted.
func resumed(t *testing.T, s *Splitter, shares []Share, noted []byte) *Splitter {
	t.Helper()
	out := NewSplitter(shares, WithCopies)
	if !out.Possible(s.Counts(), noted) {
		t.Fatal("an honest note is refused")
	}
	out.Restore(s.Counts(), noted)
	return out
}

// Without strata the split is a function of the content, and copies make no difference.
func TestSplitterPlain(t *testing.T) {
	shares := []Share{{"train", 0.8}, {"val", 0.2}}
	a, b := NewSplitter(shares, NoStrata), NewSplitter(shares, NoStrata)
	n := 0
	for i := range uint64(5000) {
		if a.Choose(digestOf(i), digestOf(i), 0) == "val" {
			n++
		}
	}
	for _, i := range rand.New(rand.NewPCG(1, 1)).Perm(5000) {
		if a, b := a.Choose(digestOf(uint64(i)), Digest{}, 1), b.Choose(digestOf(uint64(i)), Digest{}, 7); a != b {
			t.Fatalf("sample %d is in %s and in %s", i, a, b)
		}
	}
	if n < 900 || n > 1100 {
		t.Errorf("val has %d of 5000", n)
	}
}

// Of two splits, each record is as likely to be in one as its share says, wherever it stands. Of three it is nearly so.
func TestSplitterHasNoPeriod(t *testing.T) {
	two := NewSplitter([]Share{{"train", 0.8}, {"val", 0.2}}, ByClass)
	var val [5]int
	for i := range uint64(20000) {
		if two.Choose(digestOf(i), Digest{}, 0) == "val" {
			val[i%5]++
		}
	}
	for i, n := range val {
		if n < 700 || n > 900 {
			t.Errorf("of the records %d, %d, ... are %d in val, want about 800", i, i+5, n)
		}
	}
	s := NewSplitter([]Share{{"train", 0.7}, {"val", 0.2}, {"test", 0.1}}, ByClass)
	var by [10]map[string]int
	for i := range uint64(20000) {
		if by[i%10] == nil {
			by[i%10] = make(map[string]int)
		}
		by[i%10][s.Choose(digestOf(i), Digest{}, 0)]++
	}
	for i, n := range by {
		if n["train"] < 1200 || n["train"] > 1600 || n["val"] < 240 || n["val"] > 600 || n["test"] < 130 || n["test"] > 270 {
			t.Errorf("of the records %d, %d, ... are %v", i, i+10, n)
		}
	}
}

func TestSplitterAdd(t *testing.T) {
	s := NewSplitter([]Share{{"train", 0.5}, {"val", 0.5}}, WithCopies)
	for i := range uint64(10) {
		s.Add(digestOf(i), 3, "val")
		s.Add(digestOf(i), 3, "val") // a copy of it
	}
	s.Add(digestOf(99), 3, "holdout")
	if got := s.Choose(digestOf(4), digestOf(4), 3); got != "val" {
		t.Errorf("a copy of a record of val is in %s", got)
	}
	for i := range uint64(10) {
		if got := s.Choose(digestOf(100+i), digestOf(100+i), 3); got != "train" {
			t.Errorf("after 10 records of val comes %s", got)
		}
	}
	if got := s.Counts()[3]; !slices.Equal(got, []int64{10, 10}) {
		t.Errorf("counts are %v", got)
	}
}
