package kernel

// Moments summarizes bytes. The zero value has seen none; sums are exact up to 2^48 bytes.
type Moments struct {
	N, Sum, SumSq uint64
	Min, Max      byte // meaningful if N > 0
}

// Add counts the bytes of p.
func (m *Moments) Add(p []byte) {
	if len(p) == 0 {
		return
	}
	if m.N == 0 {
		m.Min, m.Max = p[0], p[0]
	}
	m.N += uint64(len(p))
	done, sum, squares, low, high := momentsFast(p, m.Min, m.Max)
	m.Sum, m.SumSq, m.Min, m.Max = m.Sum+sum, m.SumSq+squares, low, high
	for _, v := range p[done:] {
		m.Min, m.Max = min(m.Min, v), max(m.Max, v)
		m.Sum += uint64(v)
		m.SumSq += uint64(v) * uint64(v)
	}
}

// AddPixels counts interleaved bytes, the first of each len(ms) in ms[0] and so on.
func AddPixels(ms []Moments, p []byte) {
	c := len(ms)
	if c == 0 || len(p)%c != 0 {
		panic("kernel: AddPixels of incomplete pixels")
	}
	if c == 1 {
		ms[0].Add(p)
		return
	}
	var planes [3][256]byte
	if c == 3 { // plane by plane in cache, so that Add's kernel does the counting
		for len(p) > 0 {
			n := min(len(p)/3, len(planes[0]))
			Planes(planes[0][:n], planes[1][:n], planes[2][:n], p, 3)
			for i := range ms {
				ms[i].Add(planes[i][:n])
			}
			p = p[3*n:]
		}
		return
	}
	for i := range p {
		ms[i%c].Add(p[i : i+1])
	}
}
