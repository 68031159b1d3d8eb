package prepare

import (
	"archive/tar"
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/penstock/penstock/internal/sys/usage"
	"github.com/penstock/penstock/internal/testkit/rawtest"
	"github.com/penstock/penstock/internal/testkit/require"
)

// tiny is how many records TestManyTinyRecords converts: few in every run of the tests, and
// with -tiny 1000000 as many as docs/benchmarks.md speaks of.
var tiny = flag.Int("tiny", 10_000, "how many records TestManyTinyRecords converts")

// peakKey is the environment variable that makes the tests' binary convert SOURCE, a line
// break, DEST, and print the most memory that it had.
const peakKey = "PENSTOCK_PREPROCESS_PEAK"

func printPeak(text string) error {
	c := DefaultConfig()
	c.Source, c.Dest, _ = strings.Cut(text, "\n")
	c.Workers = peakWorkers
	s, err := Run(context.Background(), c, &rawtest.Silent{})
	if err == nil {
		fmt.Println(s.PeakMemory)
	}
	return err
}

// peakWorkers is how many workers such a process has, and on how many CPUs: each has its own memory,
// which many of them have used only after many records.
const peakWorkers = 2

// peakOf converts a source in a separate process and returns its memory.
func peakOf(t *testing.T, source, dest string) int64 {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	// GOGC=10: live memory counts, not garbage.
	cmd.Env = append(os.Environ(), peakKey+"="+source+"\n"+dest, fmt.Sprint("GOMAXPROCS=", peakWorkers), "GOGC=10")
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	require.NoError(t, err)
	n, err := strconv.ParseInt(strings.TrimSpace(string(out)), 10, 64)
	require.NoError(t, err)
	return n
}

// create makes a file by what write puts into it.
func create(t *testing.T, name string, write func(w *bufio.Writer) error) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	f, err := os.Create(path)
	require.NoError(t, err)
	w := bufio.NewWriter(f)
	require.NoError(t, write(w))
	require.NoError(t, w.Flush())
	require.NoError(t, f.Close())
	return path
}

func tinyCSV(t *testing.T, n int) string {
	return create(t, "rows.csv", func(w *bufio.Writer) error {
		fmt.Fprintln(w, "id,x,label,caption,tokens")
		for i := range n {
			fmt.Fprintf(w, "%d,%.4f,%c,caption %d,\"[%d, %d]\"\n", i, float64(i)/7, 'a'+i%3, i, i%50, i%7)
		}
		return nil
	})
}

func tinyTar(t *testing.T, n int) string {
	return create(t, "samples.tar", func(w *bufio.Writer) error {
		a := tar.NewWriter(w)
		for i := range n {
			for ext, text := range map[string]string{"cls": strconv.Itoa(i % 10), "txt": fmt.Sprint("caption ", i)} {
				if err := a.WriteHeader(&tar.Header{Name: fmt.Sprintf("%07d.%s", i, ext), Size: int64(len(text)), Mode: 0o644}); err != nil {
					return err
				}
				if _, err := a.Write([]byte(text)); err != nil {
					return err
				}
			}
		}
		return a.Close()
	})
}

// Memory does not grow with the number of records.
func TestManyTinyRecords(t *testing.T) {
	if usage.PeakMemory() == 0 {
		t.Skip("this system does not report the memory of a process")
	}
	for name, make := range map[string]func(*testing.T, int) string{"csv": tinyCSV, "tar": tinyTar} {
		t.Run(name, func(t *testing.T) {
			few := peakOf(t, make(t, *tiny/4), filepath.Join(t.TempDir(), "few"))
			many := peakOf(t, make(t, *tiny), filepath.Join(t.TempDir(), "many"))
			t.Logf("%d records: %d KiB at most; %d records: %d KiB", *tiny/4, few>>10, *tiny, many>>10)
			if many > few+24<<20 {
				t.Errorf("four times the records take %d bytes more memory", many-few)
			}
		})
	}
}

// The memory of a process is its own, and not that of the one that started it.
func TestPeakMemoryIsItsOwn(t *testing.T) {
	if usage.PeakMemory() == 0 {
		t.Skip("this system does not report the memory of a process")
	}
	source := tinyCSV(t, 100)
	before := peakOf(t, source, filepath.Join(t.TempDir(), "before"))
	ours := bytes.Repeat([]byte{1}, int(before)+128<<20)
	if after := peakOf(t, source, filepath.Join(t.TempDir(), "after")); after > before+64<<20 {
		t.Errorf("%d bytes when it was started by a process of %d and more, %d before", after, len(ours), before)
	}
	if is := usage.PeakMemory(); is < int64(len(ours)) {
		t.Errorf("%d bytes, with %d in use", is, len(ours))
	}
}

// asChild does the work of a child process of these tests.
func asChild() (is bool, err error) {
	if text := os.Getenv(peakKey); text != "" {
		return true, printPeak(text)
	}
	text := os.Getenv(childKey)
	if text == "" {
		return false, nil
	}
	var w child
	if err := json.Unmarshal([]byte(text), &w); err != nil {
		return true, err
	}
	return true, w.do(steps())
}
