package loader

import (
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/penstock/penstock/internal/sys/usage"
	"github.com/penstock/penstock/loader/internal/fill"
	"github.com/penstock/penstock/loader/sampler"
)

// Stats counts the work of a Loader since New: a snapshot of numbers, ready for expvar.Func or for
// a Prometheus collector. Times of workers are sums over all workers, so that they may exceed the
// elapsed time.
type Stats struct {
	Epochs      int   // epochs begun
	Batches     int   // batches handed to the consumer
	Records     int   // records in these batches
	Skipped     int   // records that OnError replaced or blanked
	ViewBytes   int64 // bytes of batches that are views of the Source
	CopiedBytes int64 // bytes of batches that were written to buffers

	Wait   time.Duration // total time that the consumer waited for batches
	Starts time.Duration // part of Wait for the first batches of loops
	Waits  Quantiles     // of the waits for one batch
	Ready  int           // batches that were ready when they were asked for
	// batches that the loop made itself: with Workers, views of memory that is warm, as they cost less to make than to
	// hand over
	Inline     int
	Body       time.Duration // time that the consumer had a batch: its own work
	FirstBatch time.Duration // from the start of the latest loop to its first batch

	Sampler   time.Duration // of workers: in the Sampler, of batches that are not known to be one run
	Read      time.Duration // of workers: in the Source
	SlowRead  time.Duration // part of Read in reads slower than memory
	ReadBytes int64         // bytes read
	Transform time.Duration // of workers: in Transforms
	Collate   time.Duration // of workers: in Collate
	// that the whole process ran on cores while loops were iterated, from Python with the process that trains and the
	// processes that it started; 0 where the system does not report
	CPU time.Duration
	// that other programs ran on the machine's cores meanwhile, looked at every 50 ms at most; 0 where the system
	// does not report
	Others    time.Duration
	Storage   int64         // bytes that the process had read from storage meanwhile; 0 where the system does not report
	Idle      time.Duration // of workers: waiting for a free buffer, or for the next loop
	Slowest   Slowest       // the record that took longest to read and transform, of fields with a Transform
	LateBatch LateBatch     // the longest wait for a batch that was not the first of its loop

	// goroutines that make batches, as found so far where Workers was 0; 0 if the consumer makes them
	Workers    int
	Prefetch   int    // finished batches that may wait
	MaxWorkers int    // the largest number that the Loader tries; Workers if Options say one
	Cores      int    // this process's share of the cores when the Loader was made
	LocalSize  int    // processes of this host that share its cores: World.LocalSize
	HostCores  int    // cores of the machine; 0 where the system does not report
	RingBytes  int    // memory of the buffers; 0 as long as nothing is copied
	Pinned     int    // part of RingBytes that is page-locked, if the Allocator says so
	Unpinned   string // why the ring is not page-locked, if the Allocator says so
	Kept       int    // batches kept now

	Fetched   int64         // bytes that the Source had to get over a network
	FetchWait time.Duration // time that workers waited for the network
	LinkRate  float64       // highest rate of the network so far, in bytes a second

	Decoded int64  // bytes of chunks that the Source decoded, if it is a ChunkSource: compare ReadBytes
	Order   string // what the order costs of such a Source, in a sentence
	Cheaper string // which order would decode less than half as much; "" if none would

	Reads []FieldReads // how the Source reads, if it says so
}

// MixedStats counts the records of one source of a sampler.Mix.
type MixedStats struct {
	Records int     // of the source
	Drawn   int     // of all ranks, in all steps before a State
	Epochs  float64 // Drawn/Records: how often each record came, on average
}

// Quantiles are upper bounds of percentages of times, at most an eighth above the true values:
// times are counted in buckets.
type Quantiles struct{ P50, P95, P99, Max time.Duration }

// Slowest is the record that took longest to read and transform.
type Slowest struct {
	Field  string
	Record int
	// how many records of a batch, from the slow record on, were timed together: as many as take about 16 µs, at
	// least 1 and at most 64
	Among int
	Took  time.Duration
}

// LateBatch is the batch that the consumer waited for longest.
type LateBatch struct {
	Epoch, Batch int
	Wait         time.Duration
}

// FieldReads says how a Source reads a field.
type FieldReads struct {
	Field    string
	How, Why string  // for example "mapped", "96 % of the pages are in memory"
	Resident float64 // part of the bytes that are in memory; -1 if not known
}

// unpacked reports whether a field's records are stored packed, by the words that *mmapds.Dataset
// uses.
func (r FieldReads) unpacked() bool {
	return strings.Contains(r.How, "inflated") || strings.Contains(r.How, "copied")
}

// resources are the CPU time that the process has used so far, and the bytes that it has read from storage.
type resources struct {
	cpu     time.Duration
	storage int64 // bytes read
}

// The system's clocks; tests replace them.
var (
	processClock = usage.Job
	machineClock = usage.Machine
	storageRead  = usage.StorageRead
)

// used reads the process's clocks.
func used() resources { return resources{processClock(), storageRead()} }

// since adds the resources used since r was taken.
func (s *Stats) since(r resources) {
	now := used()
	s.CPU += now.cpu - r.cpu
	s.Storage += now.storage - r.storage
}

// othersMeter measures how much other programs use the machine's cores while loops run. Reading the
// clocks of all cores takes as long as a short loop, so that loops in close succession are measured
// as one.
type othersMeter struct {
	open       bool
	at, left   time.Duration // of the look that it began with; the end of the last loop
	busy, self time.Duration // of all programs, and of this process, then
}

const (
	othersGap   = time.Millisecond      // between loops that are measured as one
	othersEvery = 50 * time.Millisecond // a look, of a clock that ticks in hundredths of a second
)

// enter records that a loop begins.
func (m *othersMeter) enter(now time.Duration) {
	if !m.open || now-m.left > othersGap {
		m.open = true
		m.look(now)
	}
}

// leave records that a loop ends. If the clocks are due, leave reads them and returns the
// core time that other programs used since the last reading.
func (m *othersMeter) leave(now time.Duration) time.Duration {
	m.left = now
	if now-m.at < othersEvery {
		return 0
	}
	return m.look(now)
}

// look reads the clocks, and returns the core time that other programs used since the last reading.
func (m *othersMeter) look(now time.Duration) time.Duration {
	busy, self := m.busy, m.self
	m.at, m.self = now, processClock()
	m.busy, _ = machineClock()
	return max(0, m.busy-busy-(m.self-self))
}

// tally counts what the consumer got, and what the process used meanwhile. Its lock is separate
// from the schedule's, and held for a few additions only.
type tally struct {
	setup *setup

	mu     sync.Mutex
	stats  Stats
	others othersMeter
	loops  bool      // one is under way
	start  resources // that were used when it began
}

func newTally(c *setup) *tally {
	t := &tally{setup: c}
	t.stats.Cores, t.stats.LocalSize = cores(c.opts.World), max(1, c.opts.World.LocalSize)
	_, t.stats.HostCores = machineClock()
	return t
}

// costs sums the work of one worker. Each worker has its own costs and lock, so that workers do not
// wait for each other; Stats adds all of them up.
type costs struct {
	mu  sync.Mutex
	sum fill.Cost
}

// take moves the Filler's counts into c.
func (c *costs) take(w *fill.Filler) {
	c.mu.Lock()
	defer c.mu.Unlock()
	w.MoveCost(&c.sum)
}

// addTo adds the counts of c to sum.
func (c *costs) addTo(sum *fill.Cost) {
	c.mu.Lock()
	defer c.mu.Unlock()
	sum.Add(&c.sum)
}

// addCost sets the work of all workers.
func (s *Stats) addCost(c fill.Cost, fields []fill.Field) {
	s.Sampler, s.Read, s.SlowRead, s.ReadBytes = c.Sampler, c.Read, c.SlowRead, c.Bytes
	s.Transform, s.Collate, s.Skipped = c.Transform, c.Collate, c.Skipped
	if slow := c.Slowest; slow.Took > 0 {
		s.Slowest = Slowest{fields[slow.Field].In.Name, slow.Record, slow.Among, slow.Took}
	}
}

// count counts a batch that is handed out.
func (t *tally) count(b *fill.Batch, inline bool) {
	viewed, copied := b.Bytes()
	t.mu.Lock()
	defer t.mu.Unlock()
	st := &t.stats
	st.Batches++
	st.Records += b.Len()
	if inline {
		st.Inline++
	}
	st.ViewBytes += viewed
	st.CopiedBytes += copied
}

// enter records the resources that had been used when a loop began.
func (t *tally) enter(start resources) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.loops, t.start = true, start
	t.others.enter(t.setup.plan.Clock())
}

// leave records that the loop has ended.
func (t *tally) leave() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.loops = false
	t.stats.since(t.start)
	t.stats.Others += t.others.leave(t.setup.plan.Clock())
}

// fromStorage reports whether most of the bytes that a loop read since start came from storage.
// Slow reads alone do not show this: memory that is mapped for the first time is slow too. Reads of
// the program's own files are the reason for the 1 MiB.
func (t *tally) fromStorage(start resources, bytes int64) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.stats.Storage+storageRead()-start.storage > max(1<<20, bytes/2)
}

// snapshot returns the counts so far, including the counts of a loop that is running.
func (t *tally) snapshot() Stats {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.loops {
		t.stats.Others += t.others.leave(t.setup.plan.Clock())
	}
	st := t.stats
	if t.loops {
		st.since(t.start)
	}
	return st
}

// Stats returns the counts so far. Any goroutine may call it during an epoch. The parts are read
// one after the other without a common lock, so that they may differ by a batch or two.
func (ld *Loader) Stats() Stats {
	c := ld.setup
	reads := c.reads()
	fetched, waited, linkRate := c.can.NetworkStats()
	st, times := ld.tally.snapshot(), ld.schedule.Times()
	st.addCost(ld.pool.cost(), c.plan.Fields)
	st.Reads = reads
	if c.can.Chunks != nil {
		st.Decoded = c.can.Chunks.Decoded() - c.chunks.before
		st.Order, st.Cheaper = ld.Order()
	}
	st.Fetched, st.FetchWait, st.LinkRate = fetched-c.fetched, waited-c.fetchWait, linkRate
	st.Epochs, st.Wait, st.Starts, st.Waits, st.LateBatch = times.Epochs, times.Wait, times.Starts, Quantiles(times.Waits),
		LateBatch(times.Late)
	st.Ready, st.Body, st.FirstBatch, st.Idle = times.Ready, times.Body, times.FirstBatch, times.Idle
	st.Workers, st.MaxWorkers, st.Prefetch, st.Kept = times.Workers, times.MaxWorkers, times.Prefetch, times.Kept
	st.RingBytes = c.ring.Bytes()
	if p, ok := c.opts.Allocator.(interface{ Pinned() bool }); ok && p.Pinned() {
		st.Pinned = st.RingBytes
	}
	if p, ok := c.opts.Allocator.(interface{ Why() string }); ok {
		st.Unpinned = p.Why()
	}
	return st
}

// Mixed returns how many records of each source of a [sampler.Mix] came before an epoch's step, in all epochs; nil of
// other Samplers. The position may be of any State of this run: the order is a function, so nothing is counted.
func (ld *Loader) Mixed(epoch, step int) []MixedStats {
	return mixed(sampler.MixOf(ld.setup.order.Load().Sampler), epoch, step, ld.setup.opts.DropLast)
}

// mixed counts the records of each source of a Mix before an epoch's step; nil if m is nil.
func mixed(m *sampler.Mix, epoch, step int, dropLast bool) (list []MixedStats) {
	if m == nil {
		return nil
	}
	drawn := m.Seen(epoch, step, dropLast)
	for i, n := range m.Sizes() {
		list = append(list, MixedStats{n, drawn[i], float64(drawn[i]) / float64(max(1, n))})
	}
	return list
}

// Order says what the order of a Source in chunks costs: how often a chunk is decoded, and how random a ChunkShuffle
// is. cheaper is not empty if another order decodes chunks less than half as often. Both are empty of other Sources.
func (ld *Loader) Order() (order, cheaper string) {
	c := ld.setup
	if c.can.Chunks == nil {
		return "", ""
	}
	c.chunks.once.Do(func() {
		var fields []string
		for i := range c.plan.Fields {
			if f := &c.plan.Fields[i]; !f.Made() {
				fields = append(fields, f.In.Name)
			}
		}
		c.chunks.look(&c.opts, c.src.Len(), c.can.Chunks, fields)
	})
	return c.chunks.order, c.chunks.cheaper
}

// reads asks the Source how it reads.
func (c *setup) reads() []FieldReads {
	if c.can.Described == nil {
		return nil
	}
	var out []FieldReads
	for i := range c.plan.Fields {
		if f := &c.plan.Fields[i]; !f.Made() {
			how, why, resident := c.can.Described.DescribeReads(f.In.Name)
			out = append(out, FieldReads{f.In.Name, how, why, resident})
		}
	}
	return out
}

// metric is one number of Stats as Prometheus sees it.
type metric struct {
	name, kind, help string
	value            func(s *Stats) float64
}

func seconds(d time.Duration) float64 { return d.Seconds() }

// metrics are counters, which only grow, and gauges. Their names are part of the interface:
// dashboards use them.
var metrics = []metric{
	{"epochs_total", "counter", "epochs begun", func(s *Stats) float64 { return float64(s.Epochs) }},
	{"batches_total", "counter", "batches handed to the consumer", func(s *Stats) float64 { return float64(s.Batches) }},
	{"records_total", "counter", "records in those", func(s *Stats) float64 { return float64(s.Records) }},
	{"skipped_total", "counter", "records that OnError passed over", func(s *Stats) float64 { return float64(s.Skipped) }},
	{"view_bytes_total", "counter", "bytes of batches that are views of the source", func(s *Stats) float64 {
		return float64(s.ViewBytes)
	}},
	{"copied_bytes_total", "counter", "bytes of batches that were written to buffers", func(s *Stats) float64 {
		return float64(s.CopiedBytes)
	}},
	{"read_bytes_total", "counter", "bytes that were read", func(s *Stats) float64 { return float64(s.ReadBytes) }},
	{"decoded_bytes_total", "counter", "bytes of chunks that were decoded", func(s *Stats) float64 {
		return float64(s.Decoded)
	}},
	{"ready_total", "counter", "batches that were ready when they were asked for", func(s *Stats) float64 {
		return float64(s.Ready)
	}},
	{"inline_total", "counter", "batches that the loop made itself", func(s *Stats) float64 { return float64(s.Inline) }},
	{"wait_seconds_total", "counter", "time that the consumer waited for batches", func(s *Stats) float64 {
		return seconds(s.Wait)
	}},
	{"start_seconds_total", "counter", "of that, for first batches of loops", func(s *Stats) float64 {
		return seconds(s.Starts)
	}},
	{"body_seconds_total", "counter", "time that the consumer had a batch", func(s *Stats) float64 {
		return seconds(s.Body)
	}},
	{"order_seconds_total", "counter", "time of workers in the order", func(s *Stats) float64 {
		return seconds(s.Sampler)
	}},
	{"read_seconds_total", "counter", "time of workers in the source", func(s *Stats) float64 { return seconds(s.Read) }},
	{"slow_read_seconds_total", "counter", "of that, in reads slower than memory", func(s *Stats) float64 {
		return seconds(s.SlowRead)
	}},
	{"transform_seconds_total", "counter", "time of workers in transforms", func(s *Stats) float64 {
		return seconds(s.Transform)
	}},
	{"collate_seconds_total", "counter", "time of workers in collate", func(s *Stats) float64 {
		return seconds(s.Collate)
	}},
	{"idle_seconds_total", "counter", "time that workers waited", func(s *Stats) float64 { return seconds(s.Idle) }},
	{"cpu_seconds_total", "counter", "time of the process on cores while loops ran", func(s *Stats) float64 {
		return seconds(s.CPU)
	}},
	{"other_cpu_seconds_total", "counter", "time of other programs on the machine's cores while loops ran",
		func(s *Stats) float64 {
			return seconds(s.Others)
		}},
	{"storage_bytes_total", "counter", "bytes that the process had read from storage while loops ran",
		func(s *Stats) float64 {
			return float64(s.Storage)
		}},
	{"wait_seconds_p50", "gauge", "wait that half of the batches do not exceed", func(s *Stats) float64 {
		return seconds(s.Waits.P50)
	}},
	{"wait_seconds_p95", "gauge", "wait that 95 of 100 batches do not exceed", func(s *Stats) float64 {
		return seconds(s.Waits.P95)
	}},
	{"wait_seconds_p99", "gauge", "wait that 99 of 100 batches do not exceed", func(s *Stats) float64 {
		return seconds(s.Waits.P99)
	}},
	{"first_batch_seconds", "gauge", "from the start of the latest loop to its first batch", func(s *Stats) float64 {
		return seconds(s.FirstBatch)
	}},
	{"workers", "gauge", "goroutines at work", func(s *Stats) float64 { return float64(s.Workers) }},
	{"ring_bytes", "gauge", "memory of the buffers", func(s *Stats) float64 { return float64(s.RingBytes) }},
	{"pinned_bytes", "gauge", "of that, page-locked", func(s *Stats) float64 { return float64(s.Pinned) }},
	{"kept_batches", "gauge", "batches that are kept", func(s *Stats) float64 { return float64(s.Kept) }},
}

// WriteMetrics writes s in the text format of Prometheus (version 0.0.4), for a handler of
// /metrics: each number as penstock_loader_NAME, times in seconds. labels are pairs of a name
// and a value, which all numbers get. A name that Prometheus does not allow is an error, and so is "field", which some
// numbers have already.
//
//	http.HandleFunc("/metrics", func(w http.ResponseWriter, _ *http.Request) {
//		_ = ld.Stats().WriteMetrics(w, "job", "train")
//	})
func (s Stats) WriteMetrics(w io.Writer, labels ...string) error {
	if len(labels)%2 != 0 {
		panic("loader: WriteMetrics: labels are pairs of a name and a value")
	}
	var set []string
	for i := 0; i < len(labels); i += 2 {
		if name := labels[i]; !isLabelName(name) || strings.HasPrefix(name, "__") || name == "field" {
			return fmt.Errorf("loader: label %q: a name is of ASCII letters, digits and _, begins with neither a digit nor __, "+
				"and is not field", name)
		}
		set = append(set, labels[i]+`="`+escaped.Replace(labels[i+1])+`"`)
	}
	with := strings.Join(set, ",")
	var b strings.Builder
	for _, m := range metrics {
		fmt.Fprintf(&b, "# HELP penstock_loader_%s %s\n# TYPE penstock_loader_%s %s\npenstock_loader_%s{%s} %v\n",
			m.name, m.help, m.name, m.kind, m.name, with, m.value(&s))
	}
	about := "# HELP penstock_loader_resident_ratio part of a field that is in memory\n" +
		"# TYPE penstock_loader_resident_ratio gauge\n"
	for _, r := range s.Reads {
		if r.Resident >= 0 {
			b.WriteString(about)
			about = ""
			fmt.Fprintf(&b, "penstock_loader_resident_ratio{%s} %v\n",
				strings.Join(append(set[:len(set):len(set)], `field="`+escaped.Replace(r.Field)+`"`), ","), r.Resident)
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// isLabelName reports whether Prometheus allows a name of a label: ASCII letters, digits and _, no digit first. A regexp
// would be compiled at the start of every program.
func isLabelName(name string) bool {
	for i, c := range []byte(name) {
		letter := 'a' <= c|0x20 && c|0x20 <= 'z'
		if !letter && c != '_' && !('0' <= c && c <= '9' && i > 0) {
			return false
		}
	}
	return name != ""
}

// escaped escapes the characters that Prometheus does not allow in a label's value.
var escaped = strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`)
