package chart

import (
	"encoding/xml"
	"strings"
	"testing"

	"github.com/penstock/penstock/internal/testkit/require"
)

// The largest value of a panel fills the width that names and texts leave; long names stand above their bars.
func TestDraw(t *testing.T) {
	rows := []Row{{Name: "a", Text: "2 s", Value: 2}, {Name: "penstock <b>", Text: "500 ms", Value: .5, Marked: true}}
	long := []Row{{Name: "a name that does not fit at the left", Value: 1}}
	svg := Draw("times & rates", Panel{"short", rows}, Panel{"long", long}, Panel{"zero", []Row{{Name: "nothing"}}})
	require.NoError(t, xml.Unmarshal([]byte(svg), new(struct{})))
	for _, want := range []string{
		`aria-label="times &amp; rates"`, `>penstock &lt;b&gt;<`,
		`<svg class="b" x="150" y="30" width="274" height="16"><rect width="100.00%" height="100%"/></svg><text x="430" y="42">2 s<`,
		`<svg class="p" x="150" y="54" width="274" height="16"><rect width="25.00%" height="100%"/></svg><text x="224" y="66">500 ms<`,
		`<svg class="b" x="0" y="134" width="472" height="16">`, `<rect width="0.00%"`,
	} {
		if !strings.Contains(svg, want) {
			t.Errorf("no %s in\n%s", want, svg)
		}
	}
}
