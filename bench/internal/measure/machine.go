package measure

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"
)

// Machine describes the machine on which the numbers were taken, and its load by other
// programs at the time.
func Machine() string {
	return fmt.Sprintf("%s, %d cores, %s/%s, %s, load %s, %s",
		processor(), runtime.NumCPU(), runtime.GOOS, runtime.GOARCH, runtime.Version(), load(),
		time.Now().UTC().Format("2006-01-02 15:04 MST"))
}

func processor() string {
	text, err := os.ReadFile("/proc/cpuinfo")
	if err != nil {
		return "unknown CPU"
	}
	var parts []string
	for _, want := range []string{"model name", "cpu family", "model\t"} {
		for line := range strings.Lines(string(text)) {
			if k, v, ok := strings.Cut(line, ":"); ok && strings.HasPrefix(k, want) {
				parts = append(parts, strings.TrimSpace(v))
				break
			}
		}
	}
	if len(parts) < 3 {
		return strings.Join(parts, " ")
	}
	return fmt.Sprintf("%s (family %s, model %s)", parts[0], parts[1], parts[2])
}

func load() string {
	text, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return "unknown"
	}
	return strings.Join(strings.Fields(string(text))[:1], "")
}

// Find returns the first of the places where a file is, looking upwards from the working
// directory, or "".
func Find(places ...string) string {
	dir, err := os.Getwd()
	if err != nil {
		return ""
	}
	for ; ; dir = filepath.Dir(dir) {
		for _, p := range places {
			if path := filepath.Join(dir, p); exists(path) {
				return path
			}
		}
		if dir == filepath.Dir(dir) {
			return ""
		}
	}
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}
