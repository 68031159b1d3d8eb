package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/penstock/penstock/bench/internal/measure"
	"github.com/penstock/penstock/loader"
	"github.com/penstock/penstock/loader/bottleneck"
	"github.com/penstock/penstock/loader/sampler"
	"github.com/penstock/penstock/tensor"
)

// scene is a loop with a bottleneck that is really there. It is measured, and then again as its
// diagnosis advises.
type scene struct {
	name string
	want bottleneck.Kind
	loop scenery
	// follows the sentence's advice; advised is the number after Workers, MaxPrefetch or BatchSize
	follow func(s *scenery, advised int)
}

// scenery is the set-up of a loop.
type scenery struct {
	workload
	o      loader.Options
	each   func(record int)  // computing of a Transform, if there is one
	read   func(records int) // what the Source waits for
	step   time.Duration     // of a device, for which the body waits
	cold   bool              // the files are not in the page cache
	others int               // programs that compute meanwhile
	nobody bool              // nothing is loaded
}

func scenes() []scene {
	small := workload{set: "12288", batch: 32, count: 300, shuffle: true}
	large := workload{set: "150528", batch: 32, count: 200, shuffle: true}
	computes := func(d time.Duration) func(int) { return func(int) { spinFor(d) } }
	sleeps := func(d time.Duration) func(int) { return func(int) { time.Sleep(d) } }
	without := func(s *scenery, _ int) { s.each = nil }
	workers := func(s *scenery, n int) { s.o.Workers = n }
	found := func(s *scenery, _ int) { s.o.Workers = 0 }
	ms := time.Millisecond
	return []scene{
		{"a slow step", bottleneck.TrainBound, scenery{workload: small, step: 3 * ms}, func(s *scenery, _ int) {
			s.nobody = true
		}},
		{"transforms compute", bottleneck.TransformBound, scenery{workload: small, each: computes(100 * time.Microsecond),
			step: ms}, without},
		{"transforms compute, a long step", bottleneck.TransformBound,
			scenery{workload: small, each: computes(200 * time.Microsecond), step: 2 * ms}, without},
		{"transforms wait for a network", bottleneck.TransformWaits, scenery{workload: small, each: sleeps(ms), step: 2 * ms},
			workers},
		{"transforms wait, 1 worker", bottleneck.TransformWaits, scenery{workload: small, each: sleeps(ms / 2), step: 5 * ms,
			o: loader.Options{Workers: 1}}, workers},
		{"reads wait for a network", bottleneck.ReadsWait, scenery{workload: small, read: func(int) {
			time.Sleep(20 * ms)
		}, step: 3 * ms}, workers},
		{"1 worker, two cores", bottleneck.TooFewWorkers, scenery{workload: small, each: computes(100 * time.Microsecond),
			o: loader.Options{Workers: 1}}, found},
		{"no worker, a step", bottleneck.TooFewWorkers, scenery{workload: small, each: computes(100 * time.Microsecond),
			step: 2 * ms, o: loader.Options{Workers: loader.Synchronous}}, found},
		{"1 worker, one memory bus", bottleneck.TooFewWorkers,
			scenery{workload: workload{set: "150528", batch: 32, count: 200, shuffle: true, pass: normalizedTo(3)},
				o: loader.Options{Workers: 1}}, found},
		{"another program", bottleneck.OtherPrograms, scenery{workload: small, each: computes(100 * time.Microsecond),
			step: ms, others: 2}, func(s *scenery, _ int) {
			s.others = 0
		}},
		{"another program, a long step", bottleneck.OtherPrograms,
			scenery{workload: small, each: computes(20 * time.Microsecond), step: 3 * ms, others: 3}, func(s *scenery, _ int) {
				s.others = 0
			}},
		{"one record in 500 is slow", bottleneck.Bursts, scenery{workload: small, each: func(r int) {
			if r%500 == 0 {
				time.Sleep(20 * ms)
			}
		}, step: 2 * ms, o: loader.Options{Workers: 2}}, func(s *scenery, n int) { s.o.MaxPrefetch = n }},
		{"one record is very slow", bottleneck.Straggler, scenery{workload: small, each: func(r int) {
			if r == 7 {
				time.Sleep(700 * ms)
			}
		}, step: 2 * ms}, without},
		{"a slow sampler", bottleneck.OrderBound,
			scenery{workload: small, step: 2 * ms, o: loader.Options{Sampler: slowSampler(200 * time.Microsecond), Workers: 2}},
			func(s *scenery, _ int) {
				s.o.Sampler = sampler.Sequential{}
			}},
		{"copying", bottleneck.CopyBound, scenery{workload: large}, func(s *scenery, _ int) {
			s.o.Sampler = sampler.Block{Size: s.batch}
		}},
		{"copying, smaller records", bottleneck.CopyBound,
			scenery{workload: workload{set: "12288", batch: 128, count: 800, shuffle: true}}, func(s *scenery, _ int) {
				s.o.Sampler = sampler.Block{Size: s.batch}
			}},
		{"gzip", bottleneck.DecodeBound, scenery{workload: workload{set: "12288.h5", batch: 32, count: 300, shuffle: true}},
			func(s *scenery, _ int) {
				s.set = "12288"
			}},
		{"one record a batch", bottleneck.TinyBatches,
			scenery{workload: workload{set: "784", batch: 1, count: 30_000, shuffle: true}, o: loader.Options{Workers: 1}},
			func(s *scenery, n int) {
				s.batch, s.count = max(1, n), max(30, s.count/max(1, n))
			}},
		{"pages on disk", bottleneck.ColdStorage,
			scenery{workload: workload{set: "cold", batch: 32, count: 60, shuffle: true}, step: 4 * ms,
				cold: true}, func(s *scenery, _ int) {
				s.cold = false
			}},
		{"a slow link", bottleneck.RemoteBound,
			scenery{workload: workload{set: "12288", batch: 32, count: 200, shuffle: true, link: true},
				step: ms}, func(s *scenery, _ int) {
				s.link = false
			}},
	}
}

// diagnose stages each bottleneck, follows its diagnosis, and compares the gain with the promise.
func (b *bench) diagnose() error {
	if err := b.writeDefaults(); err != nil {
		return err
	}
	d := *b.sets[1]
	d.name = "cold"
	if err := d.write(d.path(b)); err != nil {
		return err
	}
	rows := [][]string{{"scene", "diagnosis", "promise", "gain", "sentence"}}
	var right, harmful, exact, promised int
	list := scenes()
	for _, c := range list {
		if b.o.match != "" && !strings.Contains(c.name, b.o.match) {
			continue
		}
		var says []loader.Diagnosis
		var gains []float64
		for range b.o.rounds {
			before, st, err := b.play(c.loop)
			if err != nil {
				return fmt.Errorf("%s: %w", c.name, err)
			}
			d := st.Diagnose()
			says = append(says, d)
			after := c.loop
			c.follow(&after, advised(d.Text))
			better, _, err := b.play(after)
			if err != nil {
				return fmt.Errorf("%s, %s: %w", c.name, d.Text, err)
			}
			gains = append(gains, before/better)
		}
		mid := says[len(says)/2]
		slices.Sort(gains)
		gain := gains[len(gains)/2]
		row := []string{c.name, string(mid.Bottleneck), "none", measure.Digits(gain), mid.Text}
		if mid.Gain > 0 {
			promised++
			row[2] = measure.Digits(mid.Gain)
			if off := gain / mid.Gain; off > 0.85 && off < 1/0.85 {
				exact++
			}
		}
		if mid.Bottleneck == c.want {
			right++
			if gain < 0.95 {
				harmful++
			}
		} else { // what was changed is not what it said
			row[1] += " (staged: " + string(c.want) + ")"
		}
		fmt.Fprintln(os.Stderr, strings.Join(row, " | "))
		rows = append(rows, row)
	}
	measure.Table(os.Stdout, rows)
	fmt.Printf("%d of %d bottlenecks are named; %d of %d promises within 15 %%; %d harmful\n", right, len(rows)-1, exact,
		promised, harmful)
	return nil
}

var number = regexp.MustCompile(`(?:Workers|MaxPrefetch|BatchSize) ([1-9]\d*)`)

// advised returns the number that a sentence advises, or 0.
func advised(text string) int {
	if m := number.FindStringSubmatch(text); m != nil {
		n, _ := strconv.Atoi(m[1]) // digits
		return n
	}
	return 0
}

// play does a loop, and returns what a record took after the first batches, in seconds.
func (b *bench) play(s scenery) (record float64, st loader.Stats, err error) {
	if s.nobody {
		began := time.Now()
		for range s.count {
			time.Sleep(s.step)
		}
		return time.Since(began).Seconds() / float64(s.count*s.batch), st, nil
	}
	if s.cold {
		if err := dropPages(filepath.Join(b.dir, s.set)); err != nil {
			return 0, st, err
		}
	}
	stop, err := compete(s.others)
	if err != nil {
		return 0, st, err
	}
	defer stop()
	src, err := b.openSet(s.workload)
	if err != nil {
		return 0, st, err
	}
	defer src.Close()
	o := s.o
	o.BatchSize, o.DropLast = s.batch, true
	if s.shuffle && o.Sampler == nil {
		o.Sampler = sampler.Shuffle{}
	}
	if s.pass != nil {
		if o.Transforms, err = s.pass(); err != nil {
			return 0, st, err
		}
	}
	if s.each != nil {
		o.Transforms = map[string]loader.Transform{"x": working(s.each)}
	}
	var from loader.Source = src
	if s.read != nil {
		from = waiting{src, s.read}
	}
	ld, err := loader.New(from, o)
	if err != nil {
		return 0, st, err
	}
	defer ld.Close()
	n := 0
	began := time.Now()
	for _, epoch := range ld.Epochs(context.Background(), 1<<30) {
		for batch, err := range epoch {
			if err != nil {
				return 0, st, err
			}
			runtime.KeepAlive(touch(batch.Field("x").Bytes()))
			if s.step > 0 {
				time.Sleep(s.step)
			}
			if n++; n == s.count {
				return time.Since(began).Seconds() / float64(n*s.batch), ld.Stats(), nil
			}
		}
	}
	return 0, st, nil
}

// compete starts programs that compute.
func compete(n int) (stop func(), err error) {
	var list []*exec.Cmd
	stop = func() {
		for _, c := range list {
			_ = c.Process.Kill()
			_ = c.Wait() // it was killed
		}
	}
	for range n {
		c := exec.Command("sh", "-c", "while :; do :; done")
		if err := c.Start(); err != nil {
			stop()
			return nil, err
		}
		list = append(list, c)
	}
	return stop, nil
}

// working is a Transform that does some work on each record, and copies it.
type working func(record int)

func (working) Output(in tensor.Spec) (tensor.Spec, error) { return in, nil }

func (w working) Worker(tensor.Spec, int) (loader.RecordFunc, error) {
	return func(dst, src []byte, r loader.Record) error {
		w(r.Index)
		copy(dst, src)
		return nil
	}, nil
}

// waiting is a Source that waits for something before it reads.
type waiting struct {
	loader.Source
	before func(records int)
}

func (w waiting) Contiguous(string, int, int) bool { return false }

func (w waiting) Gather(ctx context.Context, field string, indices []int, dst []byte) error {
	w.before(len(indices))
	return w.Source.Gather(ctx, field, indices, dst)
}

// slowSampler takes a while for each record.
type slowSampler time.Duration

func (o slowSampler) Epoch(n int, seed uint64, epoch int) sampler.Sequence {
	return slowSequence{sampler.Shuffle{}.Epoch(n, seed, epoch), time.Duration(o)}
}

type slowSequence struct {
	sampler.Sequence
	each time.Duration
}

func (s slowSequence) Fill(pos int, dst []int) {
	spinFor(time.Duration(len(dst)) * s.each)
	s.Sequence.Fill(pos, dst)
}
