package mirror

import (
	"cmp"
	"slices"
	"sort"
)

// part is n bytes of a file from an offset on. A list of parts is called tidy if it is sorted and
// no two parts touch or overlap; see tidy.
type part struct{ off, n int64 }

func (p part) end() int64 { return p.off + p.n }

// byOffset compares parts by offset, then by length.
func byOffset(a, b part) int { return cmp.Or(cmp.Compare(a.off, b.off), cmp.Compare(a.n, b.n)) }

// tidy sorts parts, and joins parts with at most gap bytes between them. It reuses the memory of
// list.
func tidy(list []part, gap int64) []part {
	slices.SortFunc(list, byOffset)
	out := list[:0]
	for _, p := range list {
		if n := len(out); n > 0 && p.off-out[n-1].end() <= gap {
			out[n-1].n = max(out[n-1].n, p.end()-out[n-1].off)
			continue
		}
		if p.n > 0 {
			out = append(out, p)
		}
	}
	return out
}

// minus returns the bytes of list that are not in the list others. Both lists are tidy.
func minus(list, others []part) (rest []part) {
	for _, p := range list {
		for i := firstEnding(others, p.off); i < len(others) && others[i].off < p.end(); i++ {
			if o := others[i]; o.off > p.off {
				rest = append(rest, part{p.off, o.off - p.off})
			}
			end := p.end()
			p.off = min(end, others[i].end())
			p.n = end - p.off
		}
		if p.n > 0 {
			rest = append(rest, p)
		}
	}
	return rest
}

// touches reports whether a part shares bytes with a range of the tidy list others.
func touches(p part, others []part) bool {
	i := firstEnding(others, p.off)
	return i < len(others) && others[i].off < p.end()
}

// firstEnding returns the index of the first of tidy parts that ends after byte off.
func firstEnding(list []part, off int64) int {
	return sort.Search(len(list), func(i int) bool { return list[i].end() > off })
}

// pieces cuts parts into parts of at most n bytes.
func pieces(list []part, n int64) (out []part) {
	for _, p := range list {
		for p.n > n {
			out = append(out, part{p.off, n})
			p.off, p.n = p.off+n, p.n-n
		}
		out = append(out, p)
	}
	return out
}

// total returns the sum of the lengths.
func total(list []part) (n int64) {
	for _, p := range list {
		n += p.n
	}
	return n
}
