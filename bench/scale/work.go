package main

import (
	"container/heap"
	"fmt"
	"math"
	"math/rand/v2"
)

// spread describes how samples differ: the standard deviations of the logarithms of their costs,
// within a class and between classes. A folder is read in the order of its classes, so the second
// makes parts unequal.
const (
	within  = 0.5
	between = 0.4
	class   = 100_000 // samples
)

// restart is the time that an interrupted worker loses until it works again, in seconds.
const restart = 120

// work simulates workers that make parts of contiguous samples, and are interrupted.
func work(s scenario) error {
	rows := [][]string{{"parts", "for each worker", "ideal", "all done, resumed", "over ideal", "all done, restarted",
		"over ideal"}}
	for _, each := range []int{1, 4, 16, 64} {
		parts := s.workers * each
		ideal := float64(s.records) * s.sampleCost / float64(s.workers)
		resumed, anew := makespan(s, parts, true), makespan(s, parts, false)
		rows = append(rows, []string{
			fmt.Sprint(parts), fmt.Sprint(each), hours(ideal), hours(resumed), percent(resumed/ideal - 1), hours(anew),
			percent(anew/ideal - 1),
		})
	}
	table(fmt.Sprintf("%d workers of one core, %.3g interruptions an hour each, %d s to restart (simulated)", s.workers,
		s.interrupted, restart), rows)
	listings(s)
	return nil
}

func hours(seconds float64) string { return fmt.Sprintf("%.2f h", seconds/3600) }

func percent(share float64) string { return fmt.Sprintf("%.1f %%", 100*share) }

// makespan returns when the last part is done, in seconds, if every free worker takes the next
// part. An interrupted part resumes from its journal, or starts over.
func makespan(s scenario, parts int, resume bool) float64 {
	r := rand.New(rand.NewPCG(1, uint64(parts)))
	costs := partCosts(s, parts, r)
	free := make(times, s.workers)
	last := 0.0
	for _, cost := range costs {
		done := free[0] + interruptions(r, cost, s.interrupted/3600, resume)
		last = max(last, done)
		free[0] = done
		heap.Fix(&free, 0)
	}
	return last
}

// partCosts draws the seconds that each part takes: the sum over its classes of what their
// samples cost, which by their number is next to their mean.
func partCosts(s scenario, parts int, r *rand.Rand) []float64 {
	classes := make([]float64, (s.records+class-1)/class)
	for i := range classes {
		classes[i] = s.sampleCost * math.Exp(between*r.NormFloat64()-between*between/2)
	}
	costs := make([]float64, parts)
	for p := range costs {
		a, b := p*s.records/parts, (p+1)*s.records/parts
		for a < b {
			end := min(b, (a/class+1)*class)
			n := float64(end - a)
			noise := math.Sqrt(math.Expm1(within*within)/n) * r.NormFloat64()
			costs[p] += n * classes[a/class] * (1 + noise)
			a = end
		}
	}
	return costs
}

// interruptions returns how long a part of that cost takes with them.
func interruptions(r *rand.Rand, cost, rate float64, resume bool) float64 {
	if rate == 0 {
		return cost
	}
	took, left := 0.0, cost
	for {
		next := r.ExpFloat64() / rate
		if next >= left {
			return took + left
		}
		took += next + restart
		if resume {
			left -= next
		}
	}
}

// times is a heap of when workers are free.
type times []float64

func (t times) Len() int           { return len(t) }
func (t times) Less(i, j int) bool { return t[i] < t[j] }
func (t times) Swap(i, j int)      { t[i], t[j] = t[j], t[i] }
func (t *times) Push(x any)        { *t = append(*t, x.(float64)) }
func (t *times) Pop() any          { panic("scale: nobody leaves") }

// A table that names files: its row, and how many of them preprocess counts a second on one core
// (measured with 2,000,000 rows of paths and labels).
const (
	rowBytes = 35
	rowRate  = 2.4e6
	piece    = 4 << 20 // bytes of a request for it
)

// listings reports what finding the samples costs: as files of their own, as such that a table
// names, and in archives.
func listings(s scenario) {
	const page, roundTrip, archive = 1000, 0.1, 1e9
	rows := [][]string{{"samples are in", "objects", "pages of one listing", "time of one, page after page",
		"LISTs if each worker lists all", "price of them", "GETs to read all", "price of them"}}
	records := float64(s.records)
	for _, o := range []struct {
		name     string
		objects  float64 // to be read
		listed   float64 // to be listed
		table    float64 // bytes, which each worker reads
		tableFor float64 // seconds
	}{
		{"files of their own", records, records, 0, 0},
		{"files that a table names", records, 0, records * rowBytes, records / rowRate},
		{"archives of 1 GB", s.bytes() / archive, s.bytes() / archive, 0, 0},
	} {
		pages := math.Ceil(o.listed / page)
		lists := pages * float64(s.workers)
		gets := max(o.objects, s.bytes()/8e6) + o.table/piece*float64(s.workers)
		rows = append(rows, []string{
			o.name, scaled(o.objects, ""), scaled(pages, ""), hours(pages*roundTrip + o.tableFor), scaled(lists, ""),
			fmt.Sprintf("$%.2f", lists/1000*s.list), scaled(gets, ""), fmt.Sprintf("$%.2f", gets/1000*s.get),
		})
	}
	table("Finding the samples and reading them once, in pieces of 8 MB at most (arithmetic)", rows)
}
