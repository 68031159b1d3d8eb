package loader_test

import (
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/penstock/penstock/internal/testkit/require"
	"github.com/penstock/penstock/loader"
)

func TestWriteMetrics(t *testing.T) {
	s := loader.Stats{Batches: 7, Wait: 1500 * time.Millisecond, Reads: []loader.FieldReads{{Field: "x", Resident: 0.25}, {Field: "y", Resident: -1}}}
	var b strings.Builder
	require.NoError(t, s.WriteMetrics(&b, "job", `a "b"`, "host", "n1"))
	const labels = `{job="a \"b\"",host="n1"`
	for _, want := range []string{
		"# TYPE penstock_loader_batches_total counter\npenstock_loader_batches_total" + labels + "} 7\n",
		"penstock_loader_wait_seconds_total" + labels + "} 1.5\n",
		"penstock_loader_resident_ratio" + labels + `,field="x"} 0.25` + "\n",
	} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("no %s in\n%s", want, b.String())
		}
	}
	line := regexp.MustCompile(`^(# (HELP|TYPE) penstock_loader_[a-z0-9_]+ .+|penstock_loader_[a-z0-9_]+\{.*\} [0-9.e+-]+)$`)
	for text := range strings.Lines(b.String()) {
		if !line.MatchString(strings.TrimSuffix(text, "\n")) {
			t.Errorf("line %q", text)
		}
	}
	if strings.Contains(b.String(), `field="y"`) {
		t.Error("WriteMetrics prints a residency that is not known")
	}
	if strings.Count(b.String(), "# TYPE penstock_loader_resident_ratio gauge\n") != 1 {
		t.Error("no type of the residency")
	}
	for _, name := range []string{"", "a-b", "9a", "a:b", "__a", "field", "é"} {
		if err := s.WriteMetrics(&b, name, "x"); err == nil {
			t.Errorf("label %q is not refused", name)
		}
	}
	odd := []string{"job"}
	mustPanic(t, "pairs of a name and a value", func() { _ = s.WriteMetrics(&b, odd...) })
}
