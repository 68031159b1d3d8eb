package loader

import (
	"fmt"
	"slices"
	"time"
)

// Bottleneck is what limits the speed of training.
type Bottleneck string

// The bottlenecks that Diagnose distinguishes.
const (
	TooEarly       Bottleneck = "too early to say"
	TrainBound     Bottleneck = "train-bound"
	TransformBound Bottleneck = "transform-bound"
	TransformWaits Bottleneck = "transforms wait"
	RemoteBound    Bottleneck = "remote-bound"
	ColdStorage    Bottleneck = "cold storage"
	DecodeBound    Bottleneck = "decode-bound"
	OrderBound     Bottleneck = "order-bound"
	CopyBound      Bottleneck = "copy-bound"
	Straggler      Bottleneck = "a straggler"
	TooFewWorkers  Bottleneck = "too few workers"
	TinyBatches    Bottleneck = "tiny batches"
	Bursts         Bottleneck = "bursts"
)

// Diagnosis is one thing to do.
type Diagnosis struct {
	Bottleneck Bottleneck
	Text       string  // one sentence with the numbers behind it
	Gain       float64 // how much faster a loop would be at most without the bottleneck: 1 is not at all
}

// String returns the sentence.
func (d Diagnosis) String() string { return d.Text }

// Thresholds of the rules.
const (
	fewBatches = 8    // fewer say nothing
	littleWait = 0.05 // of the loop: not worth fixing
	muchBusy   = 0.5  // of the workers' time
	tinyBatch  = time.Millisecond
	mostCores  = 0.7 // of them in use: the rest is not free to use
	moreAtOnce = 8   // times as many workers, at most, are advised in one step
)

// Diagnose says what limits the loop that the Loader feeds, from its Stats.
func (ld *Loader) Diagnose() Diagnosis { return ld.Stats().Diagnose() }

// Diagnose says what limits the loop that s is of. It is a function of s alone, so that
// figures which were logged can be looked at later, or the difference of two snapshots.
func (s Stats) Diagnose() Diagnosis {
	wait := s.Wait - s.Starts
	loop := wait + s.Body
	switch {
	case s.Batches < fewBatches || loop <= 0:
		return Diagnosis{TooEarly, fmt.Sprintf("too early to say: %d batches so far, and %d are the least that say something", s.Batches, fewBatches), 1}
	case share(wait, loop) < littleWait:
		return s.trainBound(wait, loop)
	case s.LateBatch.Wait > wait/2 && s.LateBatch.Wait > 10*s.Waits.P50:
		return s.straggler(wait, loop)
	case s.busy(loop) >= muchBusy:
		return s.saturated(wait, loop)
	case loop/time.Duration(s.Batches) < tinyBatch:
		return s.tiny(wait, loop)
	}
	return Diagnosis{Bursts, fmt.Sprintf("bursts: training waits %s of the time for batches although the workers are busy for only %s; let more batches wait ready: Prefetch %d instead of %d, or a MaxPrefetch that the Loader may go up to",
		percent(wait, loop), percentOf(s.busy(loop)), 4*s.Prefetch, s.Prefetch), gain(loop, wait)}
}

func (s Stats) trainBound(wait, loop time.Duration) Diagnosis {
	return Diagnosis{TrainBound, fmt.Sprintf("train-bound: training waits %s of the time for batches, and the workers are idle for %s of theirs; %s",
		percent(wait, loop), percentOf(1-min(1, s.busy(loop))), freeLoading(gain(loop, wait))), gain(loop, wait)}
}

func (s Stats) straggler(wait, loop time.Duration) Diagnosis {
	what := fmt.Sprintf("batch %d of epoch %d", s.LateBatch.Batch, s.LateBatch.Epoch)
	if s.Slowest.Took > s.LateBatch.Wait/2 {
		what = fmt.Sprintf("record %d, whose %q took %v", s.Slowest.Record, s.Slowest.Field, round(s.Slowest.Took))
		if s.Slowest.Among > 1 {
			what = fmt.Sprintf("record %d or one of the %d after it in its batch, whose %q took %v", s.Slowest.Record, s.Slowest.Among-1, s.Slowest.Field, round(s.Slowest.Took))
		}
	}
	return Diagnosis{Straggler, fmt.Sprintf("a straggler: %v of the %v that training waited were for one batch: %s; without it the loop would be %s",
		round(s.LateBatch.Wait), round(wait), what, faster(gain(loop, s.LateBatch.Wait))), gain(loop, s.LateBatch.Wait)}
}

// saturated says which work fills the workers' time.
func (s Stats) saturated(wait, loop time.Duration) Diagnosis {
	work := s.work()
	head := fmt.Sprintf("%s busy for %s of the time", s.makers(), percentOf(min(1, s.busy(loop))))
	free := freeLoading(gain(loop, wait))
	cores := "no core is free, and "
	if s.spare() > 0 {
		cores = ""
	}
	few := s.tooFew(wait, loop, head)
	switch packed, yes := s.unpacks(work); {
	case s.FetchWait > work/2:
		return s.remoteBound(wait, loop, head)
	case yes:
		return Diagnosis{DecodeBound, fmt.Sprintf("decode-bound: %s, and %s of that is unpacking %q (%s), which gives %s; %s: store it as it is, for example by preprocess OLD.h5 NEW.h5",
			head, percent(s.Read, work), packed.Field, packed.Why, rate(s.ReadBytes, loop), free), gain(loop, wait)}
	case s.SlowRead > work/2:
		return Diagnosis{ColdStorage, fmt.Sprintf("cold storage: %s, and %s of that is waiting for storage, which gives %s; %s: more Workers keep more reads in flight, and what fits into memory is fast from the second epoch on",
			head, percent(s.SlowRead, work), rate(s.ReadBytes, loop), free), gain(loop, wait)}
	case s.transformsWait(work, loop):
		return s.moreAtOnce(work, wait, loop)
	case s.spare() > 0 && few.Gain >= 1+littleWait:
		return few
	case s.Sampler > work/2:
		return Diagnosis{OrderBound, fmt.Sprintf("order-bound: %s, and the Sampler takes %s of that, %v a record; %s%s",
			head, percent(s.Sampler, work), s.each(s.Sampler), cores, free), gain(loop, wait)}
	case s.Read > work/2:
		return Diagnosis{CopyBound, fmt.Sprintf("copy-bound: %s, and %s of that is copying out of memory, %s; %s: Block with runs of whole batches copies nothing, and smaller types copy less",
			head, percent(s.Read, work), rate(s.ReadBytes, loop), free), gain(loop, wait)}
	}
	return Diagnosis{TransformBound, fmt.Sprintf("transform-bound: %s, and %s of that is transforming, %v a record; %s%s: do costly steps that are not random once, when the dataset is made",
		head, percent(s.Transform+s.Collate, work), s.each(s.Transform+s.Collate), cores, free), gain(loop, wait)}
}

// unpacks returns a field whose records are not stored as they are, if reading is most of the
// work, and keeps cores busy instead of waiting for storage.
func (s Stats) unpacks(work time.Duration) (packed FieldReads, yes bool) {
	i := slices.IndexFunc(s.Reads, func(r FieldReads) bool { return r.unpacked() })
	if i < 0 || s.Read <= work/2 || s.CPU > 0 && s.CPU < s.Read/4 {
		return packed, false
	}
	return s.Reads[i], true
}

// tooFew advises a worker for each core but one.
func (s Stats) tooFew(wait, loop time.Duration, head string) Diagnosis {
	all := time.Duration(max(1, s.Cores-1))
	better := max(s.Body, loop*time.Duration(s.Workers)/all)
	if s.Workers == 0 { // the loop's body could run meanwhile
		better = max(s.Body, wait/all)
	}
	return Diagnosis{TooFewWorkers, fmt.Sprintf("too few workers: training waits %s of the time, and %s; of %s free: Workers %d would make the loop %s",
		percent(wait, loop), head, coresAre(s.Cores, s.spare()), s.Cores-1, faster(gain(loop, loop-better))), gain(loop, loop-better)}
}

// spare returns how many cores have neither a worker nor the loop.
func (s Stats) spare() int { return s.Cores - 1 - s.Workers }

// coresAre says how many cores of some there are, with the verb.
func coresAre(all, some int) string {
	if some == 1 {
		return fmt.Sprintf("%d cores, 1 is", all)
	}
	return fmt.Sprintf("%d cores, %d are", all, some)
}

// makers says who makes the batches, with the verb.
func (s Stats) makers() string {
	switch s.Workers {
	case 0:
		return "the loop, which makes its batches itself, is"
	case 1:
		return "1 worker is"
	}
	return fmt.Sprintf("%d workers are", s.Workers)
}

// each divides a time among the records.
func (s Stats) each(d time.Duration) time.Duration {
	return round(d / time.Duration(max(1, s.Records)))
}

// transformsWait reports whether most of the workers' time passes in Transforms that wait for
// something else than a core, such as a network: for half of it at least no core was at work,
// although some were free.
func (s Stats) transformsWait(work, loop time.Duration) bool {
	in := s.Transform + s.Collate
	return s.CPU > 0 && in > work/2 && s.CPU < in/2 && share(s.CPU, loop) < mostCores*float64(s.Cores)
}

// moreAtOnce advises as many workers as keep the consumer busy.
func (s Stats) moreAtOnce(work, wait, loop time.Duration) Diagnosis {
	have := max(1, s.Workers)
	n := max(have+1, min(moreAtOnce*have, int(work/max(1, s.Body))+1))
	better := max(s.Body, work/time.Duration(n))
	return Diagnosis{TransformWaits, fmt.Sprintf("transforms wait: %s in Transforms for %s of the time, %v a record, but the process used %.1f of %d cores: something else is waited for; training waits %s of the time, and Workers %d would make the loop %s",
		s.makers(), percentOf(min(1, s.busy(loop))), s.each(s.Transform+s.Collate), share(s.CPU, loop), s.Cores, percent(wait, loop), n, faster(gain(loop, loop-better))), gain(loop, loop-better)}
}

func (s Stats) tiny(wait, loop time.Duration) Diagnosis {
	records := max(1, s.Records/s.Batches)
	larger := max(2, int(tinyBatch/max(1, loop/time.Duration(s.Batches)))) * records
	return Diagnosis{TinyBatches, fmt.Sprintf("tiny batches: a batch of %d records takes %v, most of it to hand it over, and training waits %s of the time; BatchSize %d would spread that over more records",
		records, round(loop/time.Duration(s.Batches)), percent(wait, loop), larger), gain(loop, wait)}
}

// work returns what those who make batches had to do.
func (s Stats) work() time.Duration { return s.Sampler + s.Read + s.Transform + s.Collate }

// busy returns the part of the workers' time at work, while the loop ran.
func (s Stats) busy(loop time.Duration) float64 {
	return share(s.work(), loop*time.Duration(max(1, s.Workers)))
}

// gain returns how many times as fast a loop is without some of its time.
func gain(loop, without time.Duration) float64 {
	return float64(loop) / float64(max(1, loop-without, loop/1000))
}

// freeLoading says what a loop would gain if batches cost nothing. A loop that does next to
// nothing but wait for batches would gain any number of times its speed, which says nothing.
func freeLoading(gain float64) string {
	if gain >= 9.95 {
		return "the loop does little else than load"
	}
	return "free loading would make the loop " + faster(gain)
}

// faster says in words what a gain is.
func faster(gain float64) string {
	switch {
	case gain >= 9.95:
		return fmt.Sprintf("%.0fx faster", gain)
	case gain >= 2:
		return fmt.Sprintf("%.1fx faster", gain)
	}
	return percentOf(gain-1) + " faster"
}

func share(part, whole time.Duration) float64 { return float64(part) / float64(max(1, whole)) }

func percent(part, whole time.Duration) string { return percentOf(share(part, whole)) }

func percentOf(f float64) string { return fmt.Sprintf("%.0f %%", 100*f) }

func rate(bytes int64, d time.Duration) string {
	return fmt.Sprintf("%.0f MB/s", float64(bytes)/1e6/max(1e-9, d.Seconds()))
}

// round cuts d to three digits.
func round(d time.Duration) time.Duration {
	unit := time.Duration(1)
	for d/unit >= 1000 {
		unit *= 10
	}
	return d.Round(unit)
}

// remoteBound says how much of the link is used, where the workers mostly wait for it.
func (s Stats) remoteBound(wait, loop time.Duration, head string) Diagnosis {
	used := float64(s.Fetched) / max(1e-9, loop.Seconds())
	return Diagnosis{RemoteBound, fmt.Sprintf("remote-bound, at %s of the link: %s, and %s of that is a wait for the store, which sends %.0f MB/s; the link's peak is %.0f MB/s; %s: smaller types and shapes, a faster link, or a cache that holds the dataset from the second epoch on",
		percentOf(min(1, used/max(1, s.LinkRate))), head, percent(s.FetchWait, s.work()), used/1e6, s.LinkRate/1e6, faster(gain(loop, wait))), gain(loop, wait)}
}
