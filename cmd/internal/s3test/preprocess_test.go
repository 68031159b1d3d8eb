package s3test

import (
	"flag"
	"maps"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/penstock/penstock/internal/testkit/foldertest"
)

// must runs a command and returns all that it prints, in which no secret may be.
func must(t *testing.T, name string, args ...string) string {
	t.Helper()
	text, err := exec.Command(name, args...).CombinedOutput()
	if err != nil {
		t.Fatalf("%s %q: %v\n%s", filepath.Base(name), args, err, text)
	}
	noSecret(t, "output", string(text))
	return string(text)
}

func noSecret(t *testing.T, where, text string) {
	t.Helper()
	for _, secret := range []string{AccessKey, SecretKey} {
		if strings.Contains(text, secret) {
			t.Errorf("%s has a secret in it", where)
		}
	}
}

func same(t *testing.T, got, want string) {
	t.Helper()
	a, b := foldertest.Files(t, got), foldertest.Files(t, want)
	if !maps.Equal(a, b) {
		t.Errorf("%s has %v, and %s has %v, or other bytes in them", got, slices.Sorted(maps.Keys(a)), want, slices.Sorted(maps.Keys(b)))
	}
	for name, text := range a {
		noSecret(t, name, text)
	}
}

var schedules = flag.Int("schedules", 4, "how many schedules of ranks TestSchedules runs")

// Ranks that run as engines run them make the bytes of a single run: TestSchedules of preprocess, with this store.
func TestSchedules(t *testing.T) {
	s := Start(t)
	must(t, "go", "test", "-C", "../../..", "./prepare", "-run", "^TestSchedules$", "-timeout", "2h", "-schedules", strconv.Itoa(*schedules),
		"-store-url", s.URL(s.Address, "schedules"), "-store-folder", filepath.Join(s.Root, "schedules"))
}
