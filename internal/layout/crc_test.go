package layout

import (
	"io"
	"strings"
	"testing"
)

// The check value is that of RFC 3720's polynomial for "123456789".
func TestCRCWriter(t *testing.T) {
	var w CRCWriter
	for range 2 {
		for _, part := range []string{"1", "", "2345", "6789"} {
			if n, err := io.Copy(&w, strings.NewReader(part)); int(n) != len(part) || err != nil {
				t.Errorf("%d of %q taken, error %v", n, part, err)
			}
		}
		if w.Sum != 0xe3069283 || w.Sum != CRC32C([]byte("123456789")) {
			t.Errorf("%08x", w.Sum)
		}
		w.Sum = 0
	}
}
