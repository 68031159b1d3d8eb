package loader

import (
	"fmt"
	"io"
	"strings"
	"time"
)

// metric is a number of Stats as collectors see it.
type metric struct {
	name, kind, help string
	value            func(s *Stats) float64
}

func seconds(d time.Duration) float64 { return d.Seconds() }

// metrics are counters, which only grow, and gauges.
var metrics = []metric{
	{"epochs_total", "counter", "epochs begun", func(s *Stats) float64 { return float64(s.Epochs) }},
	{"batches_total", "counter", "batches handed to the consumer", func(s *Stats) float64 { return float64(s.Batches) }},
	{"records_total", "counter", "records in those", func(s *Stats) float64 { return float64(s.Records) }},
	{"skipped_total", "counter", "records that OnError passed over", func(s *Stats) float64 { return float64(s.Skipped) }},
	{"view_bytes_total", "counter", "bytes of batches that are views of the source", func(s *Stats) float64 { return float64(s.ViewBytes) }},
	{"copied_bytes_total", "counter", "bytes of batches that were written to buffers", func(s *Stats) float64 { return float64(s.CopiedBytes) }},
	{"read_bytes_total", "counter", "bytes that were read", func(s *Stats) float64 { return float64(s.ReadBytes) }},
	{"ready_total", "counter", "batches that were there when they were asked for", func(s *Stats) float64 { return float64(s.Ready) }},
	{"inline_total", "counter", "batches that the loop made itself", func(s *Stats) float64 { return float64(s.Inline) }},
	{"wait_seconds_total", "counter", "time that the consumer waited for batches", func(s *Stats) float64 { return seconds(s.Wait) }},
	{"start_seconds_total", "counter", "of that, for first batches of loops", func(s *Stats) float64 { return seconds(s.Starts) }},
	{"body_seconds_total", "counter", "time that the consumer had a batch", func(s *Stats) float64 { return seconds(s.Body) }},
	{"order_seconds_total", "counter", "time of workers in the order", func(s *Stats) float64 { return seconds(s.Sampler) }},
	{"read_seconds_total", "counter", "time of workers in the source", func(s *Stats) float64 { return seconds(s.Read) }},
	{"slow_read_seconds_total", "counter", "of that, in reads slower than memory", func(s *Stats) float64 { return seconds(s.SlowRead) }},
	{"transform_seconds_total", "counter", "time of workers in transforms", func(s *Stats) float64 { return seconds(s.Transform) }},
	{"collate_seconds_total", "counter", "time of workers in collate", func(s *Stats) float64 { return seconds(s.Collate) }},
	{"idle_seconds_total", "counter", "time that workers waited", func(s *Stats) float64 { return seconds(s.Idle) }},
	{"cpu_seconds_total", "counter", "time of the process on cores while loops ran", func(s *Stats) float64 { return seconds(s.CPU) }},
	{"wait_seconds_p50", "gauge", "wait that half of the batches do not exceed", func(s *Stats) float64 { return seconds(s.Waits.P50) }},
	{"wait_seconds_p95", "gauge", "wait that 95 of 100 batches do not exceed", func(s *Stats) float64 { return seconds(s.Waits.P95) }},
	{"wait_seconds_p99", "gauge", "wait that 99 of 100 batches do not exceed", func(s *Stats) float64 { return seconds(s.Waits.P99) }},
	{"first_batch_seconds", "gauge", "from the start of the latest loop to its first batch", func(s *Stats) float64 { return seconds(s.FirstBatch) }},
	{"workers", "gauge", "goroutines at work", func(s *Stats) float64 { return float64(s.Workers) }},
	{"ring_bytes", "gauge", "memory of the buffers", func(s *Stats) float64 { return float64(s.RingBytes) }},
	{"pinned_bytes", "gauge", "of that, page-locked", func(s *Stats) float64 { return float64(s.Pinned) }},
	{"kept_batches", "gauge", "batches that are kept", func(s *Stats) float64 { return float64(s.Kept) }},
}

// WriteMetrics writes s in the text format of Prometheus (version 0.0.4), for a handler of
// /metrics: each number as penstock_loader_NAME, times in seconds. labels are pairs of a name
// and a value, which all numbers get; names must be those that Prometheus allows.
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
		set = append(set, labels[i]+`="`+escaped.Replace(labels[i+1])+`"`)
	}
	with := strings.Join(set, ",")
	var b strings.Builder
	for _, m := range metrics {
		fmt.Fprintf(&b, "# HELP penstock_loader_%s %s\n# TYPE penstock_loader_%s %s\npenstock_loader_%s{%s} %v\n",
			m.name, m.help, m.name, m.kind, m.name, with, m.value(&s))
	}
	for _, r := range s.Reads {
		if r.Resident >= 0 {
			fmt.Fprintf(&b, "penstock_loader_resident_ratio{%s} %v\n",
				strings.Join(append(set[:len(set):len(set)], `field="`+escaped.Replace(r.Field)+`"`), ","), r.Resident)
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// escaped writes what a label's value may not have as it is.
var escaped = strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`)
