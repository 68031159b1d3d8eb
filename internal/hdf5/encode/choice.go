package encode

import "fmt"

// Shuffle says whether the bytes of elements are shuffled before they are deflated.
type Shuffle int

// Auto shuffles if that makes a sample smaller. On always shuffles, and Off never does.
const (
	Auto Shuffle = iota
	On
	Off
)

// Choice is a Recipe together with its effect on a sample of the records.
type Choice struct {
	Recipe
	Ratio  float64 // stored size of the sample relative to its own: smaller is better
	Reason string  // why Shuffle and Level were chosen
}

// worthShuffle is the ratio of the sizes with and without shuffle below which shuffle is worth its
// time, which a reader spends on each chunk.
const worthShuffle = 0.98

// usualLevel is the level at which shuffle is tried where none is given.
const usualLevel = 6

// levels are the levels that chooseLevel tries, from the fastest to the slowest.
var levels = []int{1, 3, 5, 6, 7, 8, 9}

// worthLevel is how large the result of a faster level may be, relative to the result of the last
// level, which is the slowest by far.
const worthLevel = 1.01

// Choose decides by deflating a sample of records, some MB at most, whether to shuffle, and, if
// r.Level is 0, at which level: the lowest that takes at most 1 % more than level 9. r.Shuffle is
// ignored. Shuffle gains where neighbors differ in their low bytes only, as measured floats do;
// floats that were 8-bit pixels are deflated far better without. Same sample, same choice.
func Choose(r Recipe, shuffle Shuffle, sample []byte) (Choice, error) {
	given := r.Level
	if given == 0 {
		r.Level = usualLevel
	}
	if err := r.check(); err != nil {
		return Choice{}, err
	}
	if len(sample) == 0 || len(sample)%r.Record != 0 {
		return Choice{}, fmt.Errorf("hdf5: a sample of %d bytes does not divide into records of %d", len(sample), r.Record)
	}
	c := Choice{Recipe: r}
	err := c.chooseShuffle(shuffle, sample)
	if err == nil && given == 0 {
		err = c.chooseLevel(sample)
	}
	return c, err
}

// chooseShuffle sets c.Shuffle, and the Ratio and Reason for it. Elements of one byte cannot be
// shuffled.
func (c *Choice) chooseShuffle(shuffle Shuffle, sample []byte) (err error) {
	c.Shuffle = shuffle == On && c.Elem > 1
	switch {
	case c.Elem == 1:
		c.Reason = "no shuffle, as elements have one byte"
	case shuffle != Auto:
		c.Reason = choose(c.Shuffle, "shuffle, as asked for", "no shuffle, as asked for")
	}
	if c.Ratio, err = tryOut(c.Recipe, sample); err != nil || c.Reason != "" {
		return err
	}
	with := c.Recipe
	with.Shuffle = true
	shuffled, err := tryOut(with, sample)
	if err != nil {
		return err
	}
	if plain := c.Ratio; shuffled < plain*worthShuffle {
		c.Shuffle, c.Ratio = true, shuffled
		c.Reason = fmt.Sprintf("shuffle, as a sample becomes %.3f of its size with it and %.3f without", shuffled, plain)
	} else {
		c.Reason = fmt.Sprintf("no shuffle, as a sample becomes %.3f of its size without it and %.3f with", plain, shuffled)
	}
	return nil
}

// chooseLevel sets c.Level to the first of levels whose result is nearly as small as the result
// of the last level. It also sets the Ratio, and adds to the Reason.
func (c *Choice) chooseLevel(sample []byte) error {
	tried := make(map[int]float64)
	at := func(level int) (ratio float64, err error) {
		ratio, known := tried[level]
		if !known {
			r := c.Recipe
			r.Level = level
			ratio, err = tryOut(r, sample)
			tried[level] = ratio
		}
		return ratio, err
	}
	best, err := at(levels[len(levels)-1])
	if err != nil {
		return err
	}
	for _, level := range levels {
		ratio, err := at(level)
		if err != nil {
			return err
		}
		if ratio <= best*worthLevel {
			c.Level, c.Ratio = level, ratio
			break
		}
	}
	c.Reason += fmt.Sprintf("; level %d, as it makes %.3f of the sample and level 9 %.3f", c.Level, c.Ratio, best)
	return nil
}

// choose returns yes if condition is true, else no.
func choose(condition bool, yes, no string) string {
	if condition {
		return yes
	}
	return no
}

// tryOut encodes a sample as r says, and returns its stored size relative to its own. A rest of the
// sample that does not fill a chunk is left out.
func tryOut(r Recipe, sample []byte) (float64, error) {
	r.Records = min(r.Records, len(sample)/r.Record)
	e, err := NewEncoder(r)
	if err != nil {
		return 0, err
	}
	stored, raw := 0, 0
	for n := r.Bytes(); len(sample) >= n; sample = sample[n:] {
		chunk, _, err := e.Encode(sample[:n])
		if err != nil {
			return 0, err
		}
		stored, raw = stored+len(chunk), raw+n
	}
	return float64(stored) / float64(raw), nil
}
