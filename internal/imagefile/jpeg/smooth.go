package jpeg

// A progressive file may end before its coefficients are known to the last bit. libjpeg then
// guesses the coefficients of low frequencies that are 0, from the first coefficients of the 5 x
// 5 blocks around ("block smoothing", jdcoefct.c of libjpeg-turbo 2.1 and later). The tables and
// formulas here are that file's, since pixels must be equal.
//
// A guess is the weights, times 256, of the first coefficients of the 5 x 5 blocks, by rows; the
// block in question is number 12.
type guess [25]int

// blindGuesses are the guesses for coefficients 0 to 9, by zigzag, if the file brings only the
// first coefficients of the component. The first is then smoothed as well.
var blindGuesses = [guessed]guess{
	{-2, -6, -8, -6, -2, -6, 6, 42, 6, -6, -8, 42, 152, 42, -8, -6, 6, 42, 6, -6, -2, -6, -8, -6, -2},
	{-1, -1, 0, 1, 1, -3, 13, 0, -13, 3, -3, 38, 0, -38, 3, -3, 13, 0, -13, 3, -1, -1, 0, 1, 1},
	{-1, -3, -3, -3, -1, -1, 13, 38, 13, -1, 0, 0, 0, 0, 0, 1, -13, -38, -13, 1, 1, 3, 3, 3, 1},
	{0, 0, 1, 0, 0, 0, 2, 7, 2, 0, 0, -5, -14, -5, 0, 0, 2, 7, 2, 0, 0, 0, 1, 0, 0},
	{-1, 0, 0, 0, 1, 0, 9, 0, -9, 0, 0, 0, 0, 0, 0, 0, -9, 0, 9, 0, 1, 0, 0, 0, -1},
	{0, 0, 0, 0, 0, 0, 2, -5, 2, 0, 1, 7, -14, 7, 1, 0, 2, -5, 2, 0, 0, 0, 0, 0, 0},
	{0, 0, 0, 0, 0, 0, 1, 0, -1, 0, 0, 2, 0, -2, 0, 0, 1, 0, -1, 0, 0, 0, 0, 0, 0},
	{0, 0, 0, 0, 0, 0, 1, -3, 1, 0, 0, 0, 0, 0, 0, 0, -1, 3, -1, 0, 0, 0, 0, 0, 0},
	{0, 0, 0, 0, 0, 0, 1, 0, -1, 0, 0, -3, 0, 3, 0, 0, 1, 0, -1, 0, 0, 0, 0, 0, 0},
	{0, 0, 0, 0, 0, 0, 1, 2, 1, 0, 0, 0, 0, 0, 0, 0, -1, -2, -1, 0, 0, 0, 0, 0, 0},
}

// partGuesses are the guesses for coefficients 1 to 5 if the file brings some of coefficients 1 to
// 9 of the component. Entry 0 is not used.
var partGuesses = [6]guess{
	1: {10: -7, 50, 0, -50, 7},
	2: {2: -7, 7: 50, 17: -50, 22: 7},
	3: {2: -1, 7: 13, 12: -24, 17: 13, 22: -1},
	4: {1: -1, 3: 1, 5: -1, 10, 0, -10, 1, 15: 1, -10, 0, 10, -1, 21: 1, 23: -1},
	5: {10: -1, 13, -24, 13, -1},
}

// incomplete reports whether the file lacks bits of coefficients that libjpeg guesses. It guesses
// nothing unless the first coefficients of all components are there.
func (h *header) incomplete() (found bool) {
	if !h.progressive() {
		return false
	}
	for _, bits := range h.missing[:h.n] {
		if bits[0] < 0 {
			return false
		}
		for _, b := range bits[1:] {
			found = found || b != 0
		}
	}
	return found
}

// guesses reports whether coefficients of the file are to be guessed. A quantisation table with a 0
// rules it out, as in libjpeg: a guess divides by its entries.
func (j *decoder) guesses() bool {
	if !j.h.incomplete() {
		return false
	}
	for i := range j.h.n {
		for k := range guessed {
			if j.comp[i].quant[zigzag[k]] == 0 {
				return false
			}
		}
	}
	return true
}

// smoother guesses, for one component, those coefficients of low frequencies that are 0 so far and of
// which the file lacks bits. With blindGuesses it also smooths the first coefficient.
type smoother struct {
	c       *component
	missing *[guessed]int8
	guesses []guess
	first   int // the first coefficient, by zigzag, that is guessed: 0 or 1
	high    int // the component's vertical sampling factor: libjpeg counts rows of blocks by it even if there is but one component
}

// smoother returns the smoother of component i, with the guesses for the coefficients of the component that
// the file does not have.
func (j *decoder) smoother(i int) smoother {
	missing := &j.h.missing[i]
	s := smoother{c: &j.comp[i], missing: missing, guesses: blindGuesses[:], high: int(j.h.comp[i].v)}
	for _, bits := range missing[1:] {
		if bits >= 0 {
			s.guesses, s.first = partGuesses[:], 1
		}
	}
	return s
}

// rows returns the rows of blocks that count as the two above a row, the row itself and the two
// below. At the border of the image the outermost row stands for the missing rows.
//
// libjpeg decides where the border is by counting as if all units had as many rows of blocks as the
// present unit, which is wrong for a last unit that is not whole. rows counts in the same way.
func (s *smoother) rows(row int) (rows [5]int) {
	unit, units, n := row/s.high, (s.c.down+s.high-1)/s.high, s.high
	if unit == units-1 {
		n = s.c.down - unit*s.high
	}
	at := unit*n + row%s.high
	rows = [5]int{row, row, row, row, row}
	if at > 0 {
		rows[0], rows[1] = row-1, row-1
	}
	if at > 1 {
		rows[0] = row - 2
	}
	if at < n*units-1 {
		rows[3], rows[4] = row+1, row+1
	}
	if at < n*units-2 {
		rows[4] = row + 2
	}
	return rows
}

// block copies the block in column x of row rows[2] to dst and fills in its guesses. rows is the
// result of the method rows. A block of padding is copied unchanged.
func (s *smoother) block(dst *[64]int16, x int, rows *[5]int) {
	c := s.c
	if x >= c.across {
		return
	}
	*dst = [64]int16(c.coefs[64*(rows[2]*c.blocksX+x):])
	var around [25]int
	for i, row := range rows {
		if 64*row*c.blocksX >= len(c.coefs) { // of a unit that is not whole, where there is but one component
			break
		}
		for k := range 5 {
			at := row*c.blocksX + max(0, min(x+k-2, c.across-1))
			around[5*i+k] = int(c.coefs[64*at])
		}
	}
	for k := s.first; k < len(s.guesses); k++ {
		if p := &dst[zigzag[k]]; k == 0 || *p == 0 && s.missing[k] != 0 {
			*p = s.guess(k, &around)
		}
	}
}

// guess returns the value guessed for coefficient k. The bits that the file does bring of the
// coefficient are 0, so the guess is limited to the missing ones. The division by 256 times the
// quantiser rounds half away from zero.
func (s *smoother) guess(k int, around *[25]int) int16 {
	sum := 0
	for i, w := range s.guesses[k] {
		sum += w * around[i]
	}
	sum *= int(s.c.quant[0])
	q := int(s.c.quant[zigzag[k]])
	v := (q<<7 + max(sum, -sum)) / (q << 8)
	if bits := s.missing[k]; k > 0 && bits > 0 {
		v = min(v, 1<<bits-1)
	}
	if sum < 0 {
		v = -v
	}
	return int16(v)
}
