package loadbench

import (
	"fmt"
	"io"
	"strings"
)

// GoBench writes the rows as Go's benchmarks print theirs, so that benchstat compares runs.
// An operation is a batch.
func (r *Report) GoBench(w io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "goos: %s\ngoarch: %s\npkg: github.com/penstock/penstock/cmd/loadbench\n", r.Machine.OS,
		r.Machine.Arch)
	if r.Machine.CPU != "" {
		fmt.Fprintf(&b, "cpu: %s\n", r.Machine.CPU)
	}
	for i := range r.Tables {
		t := &r.Tables[i]
		for j := range t.Rows {
			if row := &t.Rows[j]; row.Ran() {
				row.goBench(&b, t.Name, r.Machine.Cores)
			}
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func (r *Result) goBench(b *strings.Builder, table string, cores int) {
	n := int64(max(1, r.Batches))
	fmt.Fprintf(b, "BenchmarkLoad/table=%s/row=%s", benchName(table), benchName(r.Name))
	if cores > 1 {
		fmt.Fprintf(b, "-%d", cores)
	}
	fmt.Fprintf(b, " %d %d ns/op %.2f MB/s %.1f records/s %d first-ns %d p50-wait-ns %d p95-wait-ns %d p99-wait-ns %d "+
		"cpu-ns/op %d copied-B/op\n",
		r.Batches, r.Total.Nanoseconds()/n, float64(r.Bytes)/1e6/max(1e-9, r.Total.Seconds()), r.Rate(),
		r.FirstBatch.Nanoseconds(),
		r.Wait.P50.Nanoseconds(), r.Wait.P95.Nanoseconds(), r.Wait.P99.Nanoseconds(), r.CPU.Nanoseconds()/n, r.Copied/n)
}

// benchName returns a name without what benchstat gives a meaning to.
func benchName(name string) string {
	parts := strings.FieldsFunc(name, func(r rune) bool { return strings.ContainsRune(" ,+/=-*():", r) })
	return strings.Join(parts, "_")
}
