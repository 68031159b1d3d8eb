package imagefile

import (
	"testing"

	"github.com/penstock/penstock/internal/imagefile/jpeg"
	"github.com/penstock/penstock/internal/testkit/require"
)

// firstScans returns a progressive file that ends after n scans.
func firstScans(t *testing.T, data []byte, n int) []byte {
	t.Helper()
	pos, scans := 2, 0
	for scans < n {
		m, next, ok := jpeg.NextSegment(data, pos)
		if !ok {
			t.Fatal("too few scans")
		}
		_, end, err := jpeg.Segment(data, m, next)
		require.NoError(t, err)
		if pos = end; m == jpeg.SOS {
			scans++
			pos = jpeg.SkipEntropy(data, end)
		}
	}
	return splice(data[:pos], []byte{0xFF, jpeg.EOI})
}

// The digests are of the pixels that Pillow 13.0 with libjpeg-turbo 3.2 decodes from these files.
func TestScansMissing(t *testing.T) {
	base := readKind(t, "large-420-progressive.jpg")
	for n, want := range map[int]string{
		1: "11b47122e29578b0c1bd60c781448adf",
		2: "54a8b523d5c0fd20c7d8aa0413deaa82",
		3: "2a70ee085300553dc3660a46fb6982f8",
		5: "5abc8c41f03a62299fc68a04e1690637",
		6: "94d616c6d6322775b7899f0dfcdd320f",
		9: "085eed6ed62093f083919663c4129527",
	} {
		d := New(Options{})
		m, err := openAll(t, d, firstScans(t, base, n))
		if err != nil || digest(m) != want {
			t.Errorf("%d scans: %v, pixels %s", n, err, digest(m))
		}
	}
}
