package kernel

// lanes are sums of every sixteenth number: as many as the CPU can add to without waiting for the addition before.
type lanes [16]float64

// total adds the lanes in halves.
func (l *lanes) total() float64 {
	for n := len(l) / 2; n > 0; n /= 2 {
		for i := range n {
			l[i] += l[i+n]
		}
	}
	return l[0]
}
