package prepare

import (
	"context"
	"path/filepath"
	"testing"

	"github.com/penstock/penstock/internal/testkit/rawtest"
	"github.com/penstock/penstock/internal/testkit/require"
)

// config is a Config that works: source to a new place, 24 short, 16x16 crop.
func config(t testing.TB, source string) Config {
	t.Helper()
	c := DefaultConfig()
	c.Source, c.Dest = source, filepath.Join(t.TempDir(), "ds")
	c.Images.Resize, c.Images.Crop = []int{24}, []int{16}
	c.Images.Normalize = normalizeOf(t, "none")
	return c
}

func mustRun(t testing.TB, c Config) *Summary {
	t.Helper()
	s, err := Run(context.Background(), c, &rawtest.Silent{})
	require.NoError(t, err)
	return s
}

// runError runs c, which must fail with nothing left, and returns the error's text.
func runError(t testing.TB, c Config) string {
	t.Helper()
	s, err := Run(context.Background(), c, &rawtest.Silent{})
	if err == nil {
		t.Fatalf("made %+v, want an error", s)
	}
	rawtest.CheckNothing(t, c.Dest)
	return err.Error()
}

func normalizeOf(t testing.TB, text string) Normalize {
	t.Helper()
	n, err := ParseNormalize(text)
	require.NoError(t, err)
	return n
}
