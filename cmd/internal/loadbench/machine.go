package loadbench

import (
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/penstock/penstock/internal/layout"
	"github.com/penstock/penstock/loader"
	"github.com/penstock/penstock/tensor"
)

// Machine is the capacity of this machine, measured in the same run: rates in bytes per second on
// one core, each the best of several short runs. "Of limit" in the tables is relative to these
// numbers, so that results of different machines can be compared.
type Machine struct {
	CPU      string  `json:"cpu,omitempty"`
	Cores    int     `json:"cores"` // that Go may use
	OS       string  `json:"os"`
	Arch     string  `json:"arch"`
	Go       string  `json:"go"`
	Load     string  `json:"load,omitempty"` // averages of the system at the start, over 1, 5 and 15 minutes
	Memcpy   float64 `json:"memcpy_bytes_per_s"`
	Read     float64 `json:"read_bytes_per_s"`     // reading every cache line of memory
	Generate float64 `json:"generate_bytes_per_s"` // drawing random float32, for a synthetic dataset
	// Pread is the rate of reading records of the dataset's files, in whatever state the page cache
	// is; 0 if not measured.
	Pread    float64 `json:"pread_bytes_per_s"`
	Fault    float64 `json:"page_fault_ns"` // the first touch of a page of new memory
	Resident float64 `json:"resident"`      // share of the dataset that is in memory at the start; -1 if unknown
}

// calibrationBytes is more than CPU caches hold, so that memory is measured and not a cache.
const calibrationBytes = 64 << 20

// newMachine measures everything that does not depend on a dataset. faultTime comes first: it needs
// memory that was never touched.
func newMachine() Machine {
	m := Machine{CPU: cpuName(), Cores: runtime.GOMAXPROCS(0), OS: runtime.GOOS, Arch: runtime.GOARCH,
		Go: runtime.Version(), Load: loadAverage(), Resident: -1}
	src := make([]byte, calibrationBytes)
	m.Fault = faultTime(src)
	dst := make([]byte, calibrationBytes)
	m.Memcpy = bestRate(calibrationBytes, func() { copy(dst, src) })
	m.Read = bestRate(calibrationBytes, func() { sink.Add(touch(src)) })
	floats := tensor.As[float32](tensor.Of(tensor.Spec{Name: "x", DType: tensor.Float32, Shape: tensor.Shape{}}, 1<<18,
		dst[:4<<18]))
	m.Generate = bestRate(4<<18, func() { normal(floats, 1, 2) })
	return m
}

// faultTime returns the nanoseconds that the first touch of a page of b takes: the best of several
// parts, since other programs may disturb some.
func faultTime(b []byte) float64 {
	const parts = 16
	page, best := os.Getpagesize(), time.Hour
	for part := range slices.Chunk(b, len(b)/parts) {
		began := time.Now()
		for i := 0; i < len(part); i += page {
			part[i] = 1
		}
		best = min(best, time.Since(began))
	}
	return float64(best.Nanoseconds()) * parts * float64(page) / float64(len(b))
}

// bestRate returns n divided by the time of the fastest of several runs of f, per second.
func bestRate(n int, f func()) float64 {
	const least, most, longest = 5, 40, 300 * time.Millisecond
	best := time.Hour
	f() // the first run pays for memory that was never touched
	for i, start := 0, time.Now(); i < least || i < most && time.Since(start) < longest; i++ {
		began := time.Now()
		f()
		best = min(best, max(1, time.Since(began)))
	}
	return float64(n) / best.Seconds()
}

// lookAt measures how much of the dataset's largest field is in memory, and how fast its file is
// read.
func (m *Machine) lookAt(s *subject, field string) {
	if can, err := loader.CapabilitiesOf(s.stored); err == nil && can.Contiguous(field, 0, s.stored.Len()) {
		if v, err := s.stored.Slice(field, 0, s.stored.Len()); err == nil {
			m.Resident = resident(v.Bytes())
		}
	}
	for _, d := range s.files {
		for _, c := range layout.Of(d).Columns {
			spec := d.Schema.Fields[c.Field].Spec
			if spec.Name == field && !c.Packed && len(c.Extents) > 0 {
				m.Pread = preadRate(c.Extents[0], max(1, spec.RecordBytes()))
			}
		}
	}
}

// preadRate reads records of an extent, spread over it, for up to a fifth of a second, and returns
// bytes per second.
func preadRate(e layout.Extent, size int) float64 {
	const longest = 200 * time.Millisecond
	f, err := e.Open()
	if err != nil || e.Count == 0 || size > calibrationBytes {
		return 0
	}
	defer f.Close()
	buf := make([]byte, size)
	began, n := time.Now(), int64(0)
	for ; n < 4096 && (n < 8 || time.Since(began) < longest); n++ {
		record := n * 40503 % e.Count
		if _, err := f.ReadAt(buf, e.Offset+record*int64(size)); err != nil {
			return 0
		}
	}
	return float64(n*int64(size)) / max(1e-9, time.Since(began).Seconds())
}

// cpuName returns the CPU's name; "" if the system does not report it in /proc/cpuinfo.
func cpuName() string {
	text, err := os.ReadFile("/proc/cpuinfo")
	if err != nil {
		return ""
	}
	for line := range strings.Lines(string(text)) {
		if name, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(name) == "model name" {
			return strings.TrimSpace(value)
		}
	}
	return ""
}

// loadAverage returns the system's load averages over 1, 5 and 15 minutes; "" if unknown.
func loadAverage() string {
	text, err := os.ReadFile("/proc/loadavg")
	if f := strings.Fields(string(text)); err == nil && len(f) >= 3 {
		return strings.Join(f[:3], " ")
	}
	return ""
}

// busy returns a warning if other programs used half of the cores or more when the run began.
func (m *Machine) busy() string {
	var now float64
	if n, _ := fmt.Sscan(m.Load, &now); n == 0 || now < float64(m.Cores)/2 {
		return ""
	}
	return fmt.Sprintf("others use this machine too (load %.1f on %d cores): times are longer than on an idle "+
		"one, and vary", now, m.Cores)
}

// freeMemory returns the bytes that are available without swapping, 0 if unknown.
func freeMemory() int {
	text, err := os.ReadFile("/proc/meminfo")
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(text)) {
		var kib int
		if n, _ := fmt.Sscanf(line, "MemAvailable: %d kB", &kib); n == 1 {
			return kib << 10
		}
	}
	return 0
}
