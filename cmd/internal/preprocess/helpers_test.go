package preprocess

import (
	"path/filepath"
	"testing"

	"github.com/penstock/penstock/internal/testkit/rawtest"
	"github.com/penstock/penstock/internal/testkit/require"
	"github.com/penstock/penstock/prepare"
)

// plain is a Config that keeps what the source has.
func plain(t testing.TB, source string) prepare.Config {
	c := prepare.DefaultConfig()
	c.Source, c.Dest = source, filepath.Join(t.TempDir(), "ds")
	return c
}

// config is a Config for images: 24 short, 16x16 crop.
func config(t testing.TB, source string) prepare.Config {
	c := plain(t, source)
	c.Images.Resize, c.Images.Crop = []int{24}, []int{16}
	c.Images.Normalize = normalizeOf(t, "none")
	return c
}

func mustRun(t testing.TB, c prepare.Config) *prepare.Summary {
	t.Helper()
	s, err := prepare.Run(t.Context(), c, &rawtest.Silent{})
	require.NoError(t, err)
	return s
}

// runError runs c, which must fail with nothing left, and returns the error's text.
func runError(t testing.TB, c prepare.Config) string {
	t.Helper()
	s, err := prepare.Run(t.Context(), c, &rawtest.Silent{})
	if err == nil {
		t.Fatalf("made %+v, want an error", s)
	}
	rawtest.CheckNothing(t, c.Dest)
	return err.Error()
}
