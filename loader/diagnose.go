package loader

import (
	"fmt"
	"slices"
	"time"

	"github.com/penstock/penstock/internal/sys/shell"
	"github.com/penstock/penstock/loader/bottleneck"
	"github.com/penstock/penstock/loader/internal/schedule"
)

// Diagnosis is the bottleneck of a loop, and one advice against it.
type Diagnosis struct {
	Bottleneck bottleneck.Kind
	Text       string // one sentence with the numbers that support it
	// expected speedup of a loop that follows Text, as a factor; 0 if it cannot be predicted
	Gain float64
}

// String returns the sentence.
func (d Diagnosis) String() string { return d.Text }

// Thresholds of the rules. A rule that fires too early sends users to change options that do not
// matter, so that each threshold leaves a margin.
const (
	fewBatches = 8   // fewer say nothing
	muchBusy   = 0.5 // of the workers' time
	tinyBatch  = 100 * time.Microsecond
	tinyBytes  = 64 << 10        // of a batch: to copy them takes less than to hand it over
	mostCores  = 0.7             // of them in use: the rest is not free to use
	allCores   = 0.9             // of the machine's are in use: none is free
	muchOthers = 0.15            // of this process's cores that others take: less is not reported
	moreAtOnce = 8               // times as many workers, at most, are advised in one step
	muchLink   = 0.8             // of the fastest that a link ever was: it is in full use
	leastLoop  = time.Second / 2 // the shortest loop whose CPU time the system reports well enough
	mostGain   = 4               // more is not predicted: smaller costs would limit the loop then
	muchWait   = 0.1             // of the loop: with less, more batches that wait ready gain nothing to speak of
	mostFed    = 0.92            // of its time that a loop is fed by workers who wait: they finish at random times
	mostLess   = 0.85            // of a wait, that more of such workers take away
	// what programs and libraries are read from storage for, in bytes: less says nothing about records
	leastStorage = 16 << 20
	// that a worker reads in a second, in bytes: no memory is slower
	slowestMemory = 100e6
)

// Diagnose says what limits the loop that the Loader feeds, from its Stats.
func (ld *Loader) Diagnose() Diagnosis { return ld.Stats().Diagnose() }

// Diagnose returns the bottleneck of the loop that s describes. It is a function of s alone, so it
// also works on logged statistics and on the difference of two snapshots.
func (s Stats) Diagnose() Diagnosis { return s.DiagnoseFor(bottleneck.Names{}) }

// DiagnoseFor is Diagnose for users who set the options by other names.
func (s Stats) DiagnoseFor(names bottleneck.Names) Diagnosis {
	return judged{s, names.WithDefaults()}.diagnose()
}

// judged is the statistics to judge, with the names of the options in the caller's language.
type judged struct {
	Stats
	names bottleneck.Names
}

// diagnose applies the rules in order, and the first that matches wins. Rules that make the other
// numbers meaningless come first: too few batches, and other programs on the same cores. Rules
// about the loop as a whole (training is the limit, one late batch, tiny batches) come before rules
// about the workers' kinds of work.
func (s judged) diagnose() Diagnosis {
	wait := s.Wait - s.Starts
	l := loopTimes{wait, wait + s.Body}
	switch others := s.others(l.all); {
	case s.Batches < fewBatches || l.all <= 0:
		return Diagnosis{bottleneck.TooEarly, fmt.Sprintf("too early to say: %d batches so far, and %d are the least that "+
			"say something", s.Batches, fewBatches), 0}
	case others > 0:
		return Diagnosis{bottleneck.OtherPrograms, fmt.Sprintf("other programs: they take %.1f of this process's %d cores, "+
			"and no core of the machine is free; stop them, or run training elsewhere", others, s.Cores), 0}
	case schedule.Share(wait, l.all) < schedule.LittleWait && s.crowded(l.all):
		return s.saturated(l)
	case schedule.Share(wait, l.all) < schedule.LittleWait, s.idle(l):
		return Diagnosis{bottleneck.TrainBound, fmt.Sprintf("train-bound: training waits %s of the time for batches; "+
			"loading faster gains no more than that", percent(wait, l.all)), gain(l.all, wait)}
	case s.LateBatch.Wait > wait/2 && s.LateBatch.Wait > 10*s.Waits.P50:
		return s.straggler(l)
	case s.isTiny(l.all):
		return s.tiny(l)
	case s.Workers == 0, s.busy(l.all) >= muchBusy, s.fills(l.all), s.remote(l.all):
		return s.saturated(l)
	}
	return Diagnosis{bottleneck.Bursts, fmt.Sprintf("bursts: training waits %s of the time for batches although the "+
		"workers are busy for only %s; %s would let more batches wait ready",
		percent(wait, l.all), percentOf(s.busy(l.all)), s.names.Prefetch(8*s.Prefetch)), 0}
}

// loopTimes is how long a loop took, and how much of that it waited for batches.
type loopTimes struct{ wait, all time.Duration }

// others returns how many of this process's cores other programs take, or 0 if that is little or a
// core of the machine is free. Other programs are harmless as long as a core is free: the kernel
// moves threads there.
func (s judged) others(loop time.Duration) float64 {
	if loop < leastLoop || s.HostCores == 0 || s.Cores == 0 || schedule.Share(s.CPU+s.Others, loop) < allCores*float64(
		s.HostCores) {
		return 0
	}
	taken := schedule.Share(s.Others, loop) - float64(s.HostCores-s.Cores)
	if taken < muchOthers*float64(s.Cores) {
		return 0
	}
	return taken
}

// without returns the gain of a loop whose workers have less to do, and a clause for the sentence.
// The gain is 0 if it cannot be predicted.
func (s judged) without(l loopTimes, less time.Duration) (float64, string) {
	after := l.all - less // the loop's own work
	if s.Workers > 0 {
		after = time.Duration(float64(l.all) * (1 - min(1, schedule.Share(less, s.work()))))
	}
	g := gain(l.all, l.all-max(s.Body, after))
	// where no core is free, workers slow the body down
	if g > mostGain || schedule.Share(s.CPU, l.all) > mostCores*float64(s.Cores) {
		return 0, ""
	}
	return g, "; without that the loop would be " + faster(g)
}

// idle reports whether training waits a little although workers have little to do. A few batches
// are late then, for reasons such as the scheduling of goroutines, and nothing more is to gain.
func (s judged) idle(l loopTimes) bool {
	return schedule.Share(l.wait, l.all) < muchWait && s.busy(l.all) < muchBusy && !s.isTiny(l.all)
}

// crowded reports whether workers take cores from training: the workers' and the training's demand
// exceeds the cores of the process, and all cores are in use.
func (s judged) crowded(loop time.Duration) bool {
	return s.Cores > 0 && schedule.Share(s.CPU, loop) > allCores*float64(s.Cores) &&
		1+schedule.Share(s.work(), loop) > float64(s.Cores)+muchBusy
}

// fills reports whether workers wait for cores: most cores are in use, and most of that use is the
// workers' own work.
func (s judged) fills(loop time.Duration) bool {
	return s.Cores > 0 && schedule.Share(s.CPU, loop) > mostCores*float64(s.Cores) && s.work() > s.CPU/2
}

// straggler names the batch that training waited for longest, or, if one record explains most of
// that wait, the record.
func (s judged) straggler(l loopTimes) Diagnosis {
	what := fmt.Sprintf("batch %d of epoch %d", s.LateBatch.Batch, s.LateBatch.Epoch)
	if s.Slowest.Took > s.LateBatch.Wait/2 {
		what = fmt.Sprintf("record %d, whose %q took %v", s.Slowest.Record, s.Slowest.Field, round(s.Slowest.Took))
		if s.Slowest.Among > 1 {
			what = fmt.Sprintf("record %d or one of the %d after it in its batch, whose %q took %v", s.Slowest.Record,
				s.Slowest.Among-1, s.Slowest.Field, round(s.Slowest.Took))
		}
	}
	g := gain(l.all, s.LateBatch.Wait)
	return Diagnosis{bottleneck.Straggler, fmt.Sprintf("a straggler: %v of the %v that training waited were for one "+
		"batch: %s; without it the loop would be %s",
		round(s.LateBatch.Wait), round(l.wait), what, faster(g)), g}
}

// saturated says which kind of work fills the workers' time. Kinds that have a specific remedy come
// first; transforms are what is left.
func (s judged) saturated(l loopTimes) Diagnosis {
	work := s.work()
	head := fmt.Sprintf("training waits %s of the time, and %s busy for %s", percent(l.wait, l.all), makers(s.Workers),
		percentOf(min(1, s.busy(l.all))))
	if s.crowded(l.all) {
		head += " and take cores from it"
	}
	packed, unpacks := s.unpacks(work)
	switch {
	case s.remote(l.all):
		return s.remoteBound(l, head)
	case s.Cheaper != "" && s.Read > work/2 && s.Decoded > s.ReadBytes:
		return Diagnosis{bottleneck.DecodeBound,
			fmt.Sprintf("decode-bound: %s, %s of that with reading, for which %.1f bytes of chunks were decoded for each "+
				"byte: %s", head, percent(s.Read, work), float64(s.Decoded)/float64(max(1, s.ReadBytes)), s.Order), 0}
	case unpacks:
		return Diagnosis{bottleneck.DecodeBound,
			fmt.Sprintf("decode-bound: %s, %s of that with unpacking %q (%s) to %s; store it as it is, for example by %s",
				head, percent(s.Read, work), packed.Field, packed.Why, rate(s.ReadBytes, l.all),
				shell.Penstock("preprocess OLD.h5 NEW.h5")), 0}
	case s.SlowRead > work/2 && s.Storage > max(leastStorage, s.ReadBytes/4):
		g, says := s.without(l, s.SlowRead)
		return Diagnosis{bottleneck.ColdStorage, fmt.Sprintf("cold storage: %s, %s of that with waiting for storage, which "+
			"gives %s; what fits into memory is fast from the second epoch on%s",
			head, percent(s.SlowRead, work), rate(s.Storage, l.all), says), g}
	case s.readsWait(l.all):
		return s.moreAtOnce(l, bottleneck.ReadsWait, "reads wait: "+s.names.Source, s.Read)
	case s.transformsWait(l.all):
		return s.moreAtOnce(l, bottleneck.TransformWaits, "transforms wait: "+s.names.Transform, s.Transform+s.Collate)
	case s.Workers == s.MaxWorkers && s.Workers < s.Cores && s.CPU > 0 &&
		schedule.Share(s.CPU, l.all) < allCores*float64(s.Cores):
		return Diagnosis{bottleneck.TooFewWorkers,
			fmt.Sprintf("too few workers: %s, but only %.1f of %d cores; %s finds how many make the loop fastest",
				head, schedule.Share(s.CPU, l.all), s.Cores, s.names.Find), 0}
	case s.Sampler > work/2:
		g, says := s.without(l, s.Sampler)
		return Diagnosis{bottleneck.OrderBound, fmt.Sprintf("order-bound: %s, %s of that with %s, %v a record%s",
			head, percent(s.Sampler, work), s.names.Sampler, s.each(s.Sampler), says), g}
	case s.SlowRead > work/2 && float64(s.ReadBytes) < slowestMemory*s.SlowRead.Seconds():
		return Diagnosis{bottleneck.ReadsWait, fmt.Sprintf("reads wait: %s, %s of that with %s, which takes %v a "+
			"record: longer than memory would; make it faster, or store its records as a dataset",
			head, percent(s.Read, work), s.names.Source, s.each(s.Read)), 0}
	case s.Read > work/2:
		advice := "smaller types take less"
		if s.Transform+s.Collate == 0 && s.ViewBytes == 0 {
			advice += ", and " + s.names.Block + " with blocks of whole batches copies nothing (for records that are not in " +
				"the order of their labels)"
		}
		return Diagnosis{bottleneck.CopyBound, fmt.Sprintf("copy-bound: %s, %s of that with reading from memory, %s; %s",
			head, percent(s.Read, work), rate(s.ReadBytes, l.all), advice), 0}
	}
	g, says := s.without(l, s.Transform+s.Collate)
	return Diagnosis{bottleneck.TransformBound, fmt.Sprintf("transform-bound: %s, %s of that with transforming, %v a "+
		"record; do steps that are not random once, in preprocess%s",
		head, percent(s.Transform+s.Collate, work), s.each(s.Transform+s.Collate), says), g}
}

// unpacks returns a field whose records are stored compressed or otherwise packed, if reading is
// most of the work and keeps cores busy. Reading that leaves the cores idle waits for storage
// instead.
func (s judged) unpacks(work time.Duration) (packed FieldReads, yes bool) {
	i := slices.IndexFunc(s.Reads, func(r FieldReads) bool { return r.unpacked() })
	if i < 0 || s.Read <= work/2 || s.CPU > 0 && s.CPU < s.Read/4 {
		return packed, false
	}
	return s.Reads[i], true
}

// makers returns who makes the batches, with its verb, for the head of the sentence.
func makers(workers int) string {
	switch workers {
	case 0:
		return "the loop, which makes its batches itself, is"
	case 1:
		return "1 worker is"
	}
	return fmt.Sprintf("%d workers are", workers)
}

// each divides a time by the number of records.
func (s judged) each(d time.Duration) time.Duration {
	return round(d / time.Duration(max(1, s.Records)))
}

// stepWaits reports whether a step that is most of the workers' time waits for something other than
// a core, such as a network. cpu is the time on cores that the step may have used. The step waits
// if the cores were at work for less than half of its time, although some cores were free.
func stepWaits(s judged, in, loop, cpu time.Duration) bool {
	return s.CPU > 0 && in > s.work()/2 && cpu < in/2 && schedule.Share(s.CPU, loop) < mostCores*float64(s.Cores)
}

// readsWait reports whether slow reads wait. Training may itself have computed whenever it had a
// batch, so that its whole time is subtracted from the time on cores first.
func (s judged) readsWait(loop time.Duration) bool {
	return stepWaits(s, s.SlowRead, loop, max(0, s.CPU-s.Body))
}

// transformsWait reports whether transforms wait. If training computes as well, the time on cores
// cannot be divided between the two. Only with at least as many workers as cores is the answer
// known: they would fill all cores if they computed.
func (s judged) transformsWait(loop time.Duration) bool {
	cpu := s.CPU
	if s.Workers >= s.Cores {
		cpu = max(0, cpu-s.Body)
	}
	return stepWaits(s, s.Transform+s.Collate, loop, cpu)
}

// moreAtOnce advises as many workers as would keep the consumer busy, at most moreAtOnce times the
// present number. The predicted gain is lowered by mostFed and mostLess, because workers that wait
// finish at random times.
func (s judged) moreAtOnce(l loopTimes, b bottleneck.Kind, what string, in time.Duration) Diagnosis {
	have := max(1, s.Workers)
	n := max(have+1, min(moreAtOnce*have, int(s.work()/max(1, s.Body))+1))
	after := max(s.Body, s.work()/time.Duration(n))
	after = min(time.Duration(float64(after)/mostFed), l.all-time.Duration(mostLess*float64(l.all-after)))
	g := gain(l.all, l.all-after)
	return Diagnosis{b, fmt.Sprintf("%s takes %v a record, but the process used %.1f of %d cores: something else is "+
		"waited for; training waits %s of the time, and %s would make the loop %s",
		what, s.each(in), schedule.Share(s.CPU, l.all), s.Cores, percent(l.wait, l.all), s.names.Workers(n), faster(g)), g}
}

// isTiny reports whether handing a batch over takes longer than making it.
func (s judged) isTiny(loop time.Duration) bool {
	each := loop / time.Duration(s.Batches)
	small := s.ReadBytes/int64(s.Batches) < tinyBytes && s.Transform+s.Collate < s.work()/2
	return each < tinyBatch && (small || s.share(loop) < muchBusy)
}

func (s judged) tiny(l loopTimes) Diagnosis {
	records := max(1, (s.Records+s.Batches-1)/s.Batches) // the last batch of an epoch may have fewer
	larger := max(2, int(tinyBatch/max(1, l.all/time.Duration(s.Batches)))) * records
	return Diagnosis{bottleneck.TinyBatches, fmt.Sprintf("tiny batches: a batch of %d records takes %v, most of it to "+
		"hand it over, and training waits %s of the time; %s would spread that over more records",
		records, round(l.all/time.Duration(s.Batches)), percent(l.wait, l.all), s.names.BatchSize(larger)), 0}
}

// work returns the time that workers, or the loop itself, spent making batches.
func (s judged) work() time.Duration { return s.Sampler + s.Read + s.Transform + s.Collate }

// share returns the fraction of the workers' time that was work while the loop ran.
func (s judged) share(loop time.Duration) float64 {
	return schedule.Share(s.work(), loop*time.Duration(max(1, s.Workers)))
}

// busy is share for a number of workers that changes. While the Loader searches for the best
// number, the present number says little about the past, so that the workers' total idle time is
// used as well. The idle time includes the pauses between loops; the larger of both estimates is
// returned.
func (s judged) busy(loop time.Duration) float64 {
	if s.Workers == 0 || s.Workers == s.MaxWorkers {
		return s.share(loop)
	}
	return max(s.share(loop), schedule.Share(s.work(), s.work()+s.Idle))
}

// gain returns the speedup of a loop that is shortened by a time. The result is limited to 1000,
// where the measurement says nothing more.
func gain(loop, without time.Duration) float64 {
	return float64(loop) / float64(max(1, loop-without, loop/1000))
}

// faster returns a gain in words: a percentage below 2x, and a factor from there on.
func faster(gain float64) string {
	switch {
	case gain >= 9.95:
		return fmt.Sprintf("%.0fx faster", gain)
	case gain >= 2:
		return fmt.Sprintf("%.1fx faster", gain)
	}
	return percentOf(gain-1) + " faster"
}

func percent(part, whole time.Duration) string { return percentOf(schedule.Share(part, whole)) }

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

// remote reports whether workers wait for the network: for most of their time, or for a quarter of
// it while the link is in full use.
func (s judged) remote(loop time.Duration) bool {
	full := float64(s.Fetched) > muchLink*s.LinkRate*loop.Seconds()
	return s.FetchWait > s.work()/2 || full && s.FetchWait > s.work()/4
}

// remoteBound advises against waiting for the network, and compares the traffic with the fastest
// that the link ever was.
func (s judged) remoteBound(l loopTimes, head string) Diagnosis {
	used := float64(s.Fetched) / max(1e-9, l.all.Seconds())
	return Diagnosis{bottleneck.RemoteBound, fmt.Sprintf("remote-bound, at %s of the link: %s, %s of that with a wait "+
		"for the store, which sends %.0f MB/s; the link's peak is %.0f MB/s; use smaller types, a faster link, or a cache "+
		"that holds the dataset from the second epoch on",
		percentOf(min(1, used/max(1, s.LinkRate))), head, percent(s.FetchWait, s.work()), used/1e6, s.LinkRate/1e6), 0}
}
