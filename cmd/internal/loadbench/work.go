package loadbench

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"time"

	"github.com/penstock/penstock/loader"
	"github.com/penstock/penstock/tensor"
)

// The kinds of work.
const (
	workSleep = "sleep" // waits, as for a slow disk or service; takes no CPU time
	workCPU   = "cpu"   // computes, as decoding does: as many rounds as take that long on a free core

	// workReplay waits for times distributed like the times of the configuration guide's log:
	// log-normal, with its median of 0.293 s as the unit and its 99th percentile of 1.035 s.
	// Its mean is then 0.340 s, where the log has 0.346 s.
	workReplay = "replay"
)

// work is the cost of preparing a record.
type work struct {
	kind   string
	delay  time.Duration
	rounds int // of burn: as many as take delay on a free core
}

// newWork returns work that takes delay for a record.
func newWork(kind string, delay time.Duration) work {
	w := work{kind: kind, delay: delay}
	if kind == workCPU {
		w.rounds = int(delay.Seconds() * roundsPerSecond())
	}
	return w
}

// replayStream separates the random latencies from other random numbers.
const replayStream = 7

// replaySigma is the sigma of the log-normal distribution: ln(1.035/0.293) divided by the 99th
// percentile of the standard normal distribution.
const replaySigma = 1.26199 / 2.32635

// kindText describes the work for a record.
func kindText(kind string, delay time.Duration) string {
	switch kind {
	case workCPU:
		return fmt.Sprintf("%v of computing", delay)
	case workReplay:
		return fmt.Sprintf("a replayed latency of %v in the median (log-normal, p99 %v)", delay,
			time.Duration(float64(delay)*1.035/0.293).Round(time.Microsecond))
	}
	return fmt.Sprintf("%v of sleep", delay)
}

// do works on a record. A replayed latency is a function of the record's number, so that every row
// has the same ones.
func (w work) do(ctx context.Context, record int) error {
	switch {
	case w.delay == 0:
	case w.kind == workCPU:
		sink.Add(burn(w.rounds))
	case w.kind == workReplay:
		z := rand.New(rand.NewPCG(replayStream, uint64(record))).NormFloat64()
		return sleep(ctx, time.Duration(float64(w.delay)*math.Exp(replaySigma*z)))
	default:
		return sleep(ctx, w.delay)
	}
	return ctx.Err()
}

// sleep waits for d, or until ctx is done.
func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// burn computes for that many rounds of xorshift. Each round needs the result of the round
// before, so that a CPU cannot overlap them and the time is proportional to the rounds.
func burn(rounds int) uint64 {
	x := uint64(rounds) | 1
	for range rounds {
		x ^= x << 13
		x ^= x >> 7
		x ^= x << 17
	}
	return x
}

// roundsPerSecond returns the speed of burn on a core that does nothing else: the best of many
// short runs, as other programs may disturb some.
func roundsPerSecond() float64 {
	const rounds = 200_000
	best := time.Hour
	for range 40 {
		began := time.Now()
		sink.Add(burn(rounds))
		best = min(best, time.Since(began))
	}
	return rounds / best.Seconds()
}

// maker is the Transform that prepares one record: it works, and then copies the stored record or,
// if out is set, makes a random one of that shape.
type maker struct {
	ctx  context.Context
	work work
	out  tensor.Spec // the zero Spec copies
	seed uint64
}

// generates reports whether the maker makes records.
func (m maker) generates() bool { return m.out.DType != tensor.Invalid }

// Output describes a record after the transform.
func (m maker) Output(in tensor.Spec) (tensor.Spec, error) {
	if !m.generates() {
		return in, nil
	}
	out := m.out
	out.Name = in.Name
	return out, nil
}

// Worker returns the function for one goroutine.
func (m maker) Worker(tensor.Spec, int) (loader.RecordFunc, error) {
	return func(dst, src []byte, r loader.Record) error {
		if err := m.work.do(m.ctx, r.Index); err != nil {
			return err
		}
		if !m.generates() {
			copy(dst, src)
			return nil
		}
		normal(tensor.As[float32](tensor.Of(m.out, 1, dst)), m.seed, uint64(r.Index))
		return nil
	}, nil
}

// batchMaker is a Collate that prepares a whole batch by one call. If once is set, the batch takes the work of one
// record; otherwise it takes the work of every record.
type batchMaker struct {
	maker
	field string // the field to make, if the maker generates
	once  bool
}

// collate returns the loader's Collate.
func (m batchMaker) collate() loader.Collate {
	c := loader.Collate{Worker: func(int) (loader.CollateFunc, error) { return m.prepare, nil }}
	if m.generates() {
		out := m.out
		out.Name = m.field
		c.Adds = []tensor.Spec{out}
	}
	return c
}

// prepare prepares a batch.
func (m batchMaker) prepare(d *loader.MutableBatch) error {
	records := d.Indices()
	if m.once {
		records = records[:1]
	}
	for _, r := range records {
		if err := m.work.do(m.ctx, r); err != nil {
			return err
		}
	}
	if m.generates() {
		normal(tensor.As[float32](d.Field(m.field)), m.seed+1, uint64(records[0]))
	}
	return nil
}

// normal fills dst from the standard normal distribution. seed and stream determine all values.
func normal(dst []float32, seed, stream uint64) {
	r := rand.New(rand.NewPCG(seed, stream))
	for i := range dst {
		dst[i] = float32(r.NormFloat64())
	}
}
