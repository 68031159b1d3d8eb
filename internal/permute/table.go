package permute

// table is a permutation of a small n, held in full.
type table []uint16

// newTable shuffles [0, n) after Fisher and Yates, every permutation with equal
// probability.
func newTable(n int, seed uint64, epoch int) table {
	t := make(table, n)
	r := Rand(Key(seed, epoch, tableKey))
	for i := range t {
		j := r.Below(uint64(i + 1))
		t[i], t[j] = t[j], uint16(i)
	}
	return t
}

func (t table) Len() int { return len(t) }

func (t table) At(pos int) int { return int(t[pos]) }

func (t table) Fill(pos int, dst []int) {
	for i, v := range t[pos : pos+len(dst)] {
		dst[i] = int(v)
	}
}

func (t table) Map(x []int) {
	for i, pos := range x {
		x[i] = int(t[pos])
	}
}
