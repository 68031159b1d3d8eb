package loadbench

import (
	"slices"
	"time"

	"github.com/penstock/penstock/loader"
)

// Report is the result of a run, as --json prints it.
type Report struct {
	Dataset     Dataset `json:"dataset"`
	Machine     Machine `json:"machine"`
	Tables      []Table `json:"tables"`
	Scaled      string  `json:"scaled,omitempty"`      // how the run differs from the published ones
	Cache       string  `json:"cache,omitempty"`       // whether all rows found the dataset in memory
	Interrupted bool    `json:"interrupted,omitempty"` // rows are missing
	Bottleneck  string  `json:"bottleneck,omitempty"`  // what limits the best row, and what to do about it

	Order string `json:"order,omitempty"` // that records are stored in the order of their labels
	// Setting is the fastest row on a dataset; nil if records were prepared for some rows only.
	Setting *Setting `json:"setting,omitempty"`
}

// Dataset describes the loaded dataset.
type Dataset struct {
	Name        string   `json:"name"`
	Records     int      `json:"records"`
	RecordBytes int      `json:"record_bytes"`     // of all fields; 0 if lengths differ
	Fields      []string `json:"fields"`           // "images uint8 [3 224 224]"
	Remote      string   `json:"remote,omitempty"` // of a URL: how it was fetched
}

// Table is setups that are compared.
type Table struct {
	Name  string   `json:"name"`
	Title string   `json:"title"`
	Notes []string `json:"notes,omitempty"`
	Rows  []Result `json:"rows"`

	guide bool   // it has the guide's columns
	vary  string // in sweeps: what differs from row to row
}

// Result is one setup, measured. In JSON, times are in nanoseconds.
type Result struct {
	Name        string `json:"name"`
	Note        string `json:"note,omitempty"`
	Unavailable string `json:"unavailable,omitempty"` // why the setup could not be measured; "" if it was

	Batch    int    `json:"batch"`
	Workers  int    `json:"workers"`  // 0: the consumer fills its batches itself
	Prefetch int    `json:"prefetch"` // batches, over all workers
	Sampler  string `json:"sampler"`

	Total      time.Duration   `json:"total_ns"` // from before the Loader is made until it is closed
	FirstBatch time.Duration   `json:"first_batch_ns"`
	Epochs     []time.Duration `json:"epochs_ns,omitempty"`
	Batches    int             `json:"batches"`
	Records    int             `json:"records"`
	Bytes      int64           `json:"bytes"`
	CPU        time.Duration   `json:"cpu_ns"` // of the process, over all threads; 0 if unknown
	Copied     int64           `json:"copied_bytes"`
	Ring       int             `json:"ring_bytes"`
	Pinned     int             `json:"pinned_bytes"`            // of the ring
	Decoded    int64           `json:"decoded_bytes,omitempty"` // of chunks from which windows are cut
	Read       int64           `json:"read_bytes,omitempty"`    // of the source
	Wait       Waits           `json:"wait"`
	Waits      []time.Duration `json:"waits_ns,omitempty"`
	Waited     time.Duration   `json:"waited_ns"` // of Loop: waiting for batches, without the first of each epoch, as in Diagnosis
	Loop       time.Duration   `json:"loop_ns"`
	Busy       Busy            `json:"busy"`

	SpeedUp float64 `json:"speed_up,omitempty"`          // against the first row that ran
	Step    float64 `json:"speed_up_previous,omitempty"` // relative to the previous row that ran
	// Limit is the least time that this machine needs for the setup, as a share of Total.
	Limit     float64    `json:"of_limit,omitempty"`
	Published *Published `json:"published,omitempty"`
	Diagnosis string     `json:"diagnosis,omitempty"`

	asked int // batches for which the table gives times; 0 means all
}

// Busy says how the workers, or the consumer without workers, spent their time.
type Busy struct {
	Read      time.Duration `json:"read_ns"`
	Transform time.Duration `json:"transform_ns"`
	Collate   time.Duration `json:"collate_ns"`
	Idle      time.Duration `json:"idle_ns"`
}

// Published is a guide's own result for a setup, on its authors' machine.
type Published struct {
	Seconds float64 `json:"seconds"`
	SpeedUp float64 `json:"speed_up"` // relative to the first row that ran
}

// Waits summarizes how long the consumer waited for each batch, the first batch of the run
// included.
type Waits struct {
	Sum  time.Duration `json:"sum_ns"`
	Mean time.Duration `json:"mean_ns"`
	P50  time.Duration `json:"p50_ns"`
	P95  time.Duration `json:"p95_ns"`
	P99  time.Duration `json:"p99_ns"`
	Max  time.Duration `json:"max_ns"`
}

// waitsOf summarizes waits.
func waitsOf(all []time.Duration) Waits {
	if len(all) == 0 {
		return Waits{}
	}
	sorted := slices.Sorted(slices.Values(all))
	at := func(q float64) time.Duration { return sorted[min(len(sorted)-1, int(q*float64(len(sorted))))] }
	var sum time.Duration
	for _, d := range sorted {
		sum += d
	}
	return Waits{Sum: sum, Mean: sum / time.Duration(len(sorted)), P50: at(.50), P95: at(.95), P99: at(.99),
		Max: sorted[len(sorted)-1]}
}

// Ran reports whether the setup was measured.
func (r *Result) Ran() bool { return r.Unavailable == "" }

// Rate returns records per second, over the whole run.
func (r *Result) Rate() float64 { return float64(r.Records) / max(1e-9, r.Total.Seconds()) }

// ofAsked returns the share of d, a time for all batches, that belongs to the batches asked for.
// Short rows measure more batches, and the table still shows times for the same number.
func (r *Result) ofAsked(d time.Duration) time.Duration {
	if r.asked == 0 || r.Batches <= r.asked {
		return d
	}
	return time.Duration(float64(d) * float64(r.asked) / float64(r.Batches))
}

// epochs returns the time of all epochs: the run without its set-up.
func (r *Result) epochs() (sum time.Duration) {
	for _, d := range r.Epochs {
		sum += d
	}
	return sum
}

// takeStats adds the counts of a Loader.
func (r *Result) takeStats(st loader.Stats) {
	r.Copied += st.CopiedBytes
	r.Ring = max(r.Ring, st.RingBytes)
	r.Pinned = max(r.Pinned, st.Pinned)
	r.Decoded += st.Decoded
	r.Read += st.ReadBytes
	r.Busy.Read += st.Read
	r.Busy.Transform += st.Transform
	r.Busy.Collate += st.Collate
	r.Busy.Idle += st.Idle
	r.Waited += st.Wait - st.Starts
	r.Loop += st.Wait - st.Starts + st.Body
	r.Workers, r.Prefetch = st.Workers, st.Prefetch
	r.Diagnosis = st.Diagnose().Text
}

// compare sets the speed-ups of the last row, by records per second.
func (t *Table) compare() {
	last := &t.Rows[len(t.Rows)-1]
	if !last.Ran() {
		return
	}
	var first, before *Result
	for i := range t.Rows[:len(t.Rows)-1] {
		if r := &t.Rows[i]; r.Ran() {
			if before = r; first == nil {
				first = r
			}
		}
	}
	last.SpeedUp, last.Step = 1, 1
	if first != nil {
		last.SpeedUp, last.Step = last.Rate()/first.Rate(), last.Rate()/before.Rate()
	}
}

// best returns the fastest row with at least that many batches, nil if no row has as many.
func (t *Table) best(batches int) *Result {
	var best *Result
	for i := range t.Rows {
		if r := &t.Rows[i]; r.Ran() && r.Batches >= batches && (best == nil || r.Rate() > best.Rate()) {
			best = r
		}
	}
	return best
}
