package measure

import (
	"fmt"
	"slices"
)

// A Contender does items [from, to) of the work and returns their cost.
type Contender struct {
	Name string
	Do   func(from, to int) (Cost, error)
	// Items, if positive, is how many items the contender does in a round; it is set where
	// doing all items would take too long.
	Items int
}

// Timed is the Do of a function in this process.
func Timed(f func(from, to int) error) func(from, to int) (Cost, error) {
	return func(from, to int) (Cost, error) {
		return Time(func() error { return f(from, to) })
	}
}

// Repeated is the Do of a function that does all items. It calls f the given number of times
// and returns the mean.
func Repeated(times int, f func() error) func(from, to int) (Cost, error) {
	return func(int, int) (Cost, error) {
		s, err := Time(func() error {
			for range times {
				if err := f(); err != nil {
					return err
				}
			}
			return nil
		})
		return s.Per(times), err
	}
}

// Result is the time that a contender took for an item, in each round.
type Result struct {
	Name   string
	Rounds []Cost
}

// Rounds has all contenders do items, chunk at a time, in turn and in changing order: once to
// warm up, then that many rounds.
func Rounds(rounds, items, chunk int, list []Contender) ([]Result, error) {
	results := make([]Result, len(list))
	for i, c := range list {
		results[i].Name = c.Name
	}
	for round := range rounds + 1 {
		sums, done := make([]Cost, len(list)), make([]int, len(list))
		for from := 0; from < items; from += chunk {
			for k := range list {
				i := (k + round + from/chunk) % len(list)
				to := min(from+chunk, list[i].last(items))
				if from >= to {
					continue
				}
				s, err := list[i].Do(from, to)
				if err != nil {
					return nil, fmt.Errorf("%s: %w", list[i].Name, err)
				}
				sums[i] = sums[i].plus(s)
				done[i] += to - from
			}
		}
		for i := range list {
			if round > 0 {
				results[i].Rounds = append(results[i].Rounds, sums[i].Per(done[i]))
			}
		}
	}
	return results, nil
}

func (c Contender) last(items int) int {
	if c.Items > 0 {
		return min(c.Items, items)
	}
	return items
}

// Median returns the median cost of an item.
func (r Result) Median(of func(Cost) float64) float64 {
	var list []float64
	for _, s := range r.Rounds {
		list = append(list, of(s))
	}
	return spread(list).Median
}

// Fastest returns the cost of an item in the fastest round: the best estimate of the time
// by the clock on a machine that other programs keep busy.
func (r Result) Fastest(of func(Cost) float64) float64 {
	least := of(r.Rounds[0])
	for _, s := range r.Rounds {
		least = min(least, of(s))
	}
	return least
}

// A Ratio is the ratio of two contenders in several rounds: the median, the lowest and the
// highest.
type Ratio struct{ Median, Low, High float64 }

func (r Ratio) String() string {
	return fmt.Sprintf("%s [%s..%s]", Digits(r.Median), Digits(r.Low), Digits(r.High))
}

// Digits writes a number with at least three digits.
func Digits(x float64) string {
	switch {
	case x >= 100:
		return fmt.Sprintf("%.0f", x)
	case x >= 10:
		return fmt.Sprintf("%.1f", x)
	}
	return fmt.Sprintf("%.2f", x)
}

// Over returns how many times as long as base r took.
func (r Result) Over(base Result, of func(Cost) float64) Ratio {
	var list []float64
	for i := range r.Rounds {
		if b := of(base.Rounds[i]); b > 0 {
			list = append(list, of(r.Rounds[i])/b)
		}
	}
	return spread(list)
}

func spread(list []float64) Ratio {
	if len(list) == 0 {
		return Ratio{}
	}
	slices.Sort(list)
	mid := list[len(list)/2]
	if len(list)%2 == 0 {
		mid = (mid + list[len(list)/2-1]) / 2
	}
	return Ratio{mid, list[0], list[len(list)-1]}
}
