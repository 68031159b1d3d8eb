package decode

import (
	"os"
	"path/filepath"
	"testing"
)

// Every file of testdata/raw, and its gray version, as Pillow reads them.
func TestRawAgainstPillow(t *testing.T) {
	paths, err := filepath.Glob("../../testdata/raw/*/*")
	if err != nil || len(paths) == 0 {
		t.Fatal("no testdata/raw:", err)
	}
	for mode, color := range map[string]Color{"RGB": RGB, "L": Gray} {
		t.Run(mode, func(t *testing.T) {
			p, d := newPillow(t, mode, "nothing"), New(Options{Library: true, Color: color})
			defer d.Close()
			for _, path := range paths {
				data, err := os.ReadFile(path)
				if err != nil {
					t.Fatal(err)
				}
				got, err := openAll(t, d, data)
				if err != nil {
					t.Fatalf("%s: %v", path, err)
				}
				want, ok := p.open(path)
				if !ok {
					t.Fatalf("%s: Pillow cannot read it", path)
				}
				if largest, _ := difference(t, got, want); largest > 0 {
					t.Errorf("%s: differs from Pillow by up to %d", path, largest)
				}
			}
		})
	}
}
