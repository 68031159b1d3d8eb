package prepare

import (
	"context"
	"errors"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/penstock/penstock/internal/testkit/rawtest"
	"github.com/penstock/penstock/internal/testkit/require"
)

// stopper is a Progress that stops the run at the beginning of a stage.
type stopper struct {
	rawtest.Silent
	at   string
	stop func()
}

func (s *stopper) Begin(what string, _ int64, _ string) {
	if what == s.at {
		s.stop()
	}
}

// stopAt runs c until it begins that stage.
func stopAt(t *testing.T, c Config, stage string) {
	t.Helper()
	stop := errors.New("stopped")
	ctx, cancel := context.WithCancelCause(context.Background())
	if _, err := Run(ctx, c, &stopper{at: stage, stop: func() { cancel(stop) }}); !errors.Is(err, stop) {
		t.Fatalf("error %v, want that of the stop", err)
	}
}

// A shuffle of what can only be read from its beginning, stopped in its second step, continues
// with that, and repeats the first if the source is another one or other records are wanted.
func TestShuffleResumesInItsSecondStep(t *testing.T) {
	data := rawtest.Rows(t, 40)
	text, err := os.ReadFile(data)
	require.NoError(t, err)
	if err := os.WriteFile(data, append(text, "0,ant\nmany,bee\n"...), 0o666); err != nil { // a duplicate, and no number
		t.Fatal(err)
	}
	c := plain(t, data)
	c.Fields, c.Shuffle, c.Skip, c.Dedup = "number:int64,label", Seed{true, 7}, true, true
	want := c
	want.Dest = c.Dest + "-whole"
	whole := mustRun(t, want)
	if whole.Duplicates != 1 || len(whole.Skipped) != 1 {
		t.Fatalf("summary %+v", whole)
	}
	other := func(c *Config) { c.MaxErrors = Limit{Set: true, Count: 30} }
	touched := func(*Config) {
		require.NoError(t, os.Chtimes(data, time.Time{}, time.Unix(1e9, 0)))
	}
	for name, change := range map[string]func(*Config){"": nil, "flags": other, "source": touched} {
		stopAt(t, c, "writing")
		again := c
		again.Resume = true
		if change != nil {
			change(&again)
		}
		p := new(recorded)
		got, err := Run(context.Background(), again, p)
		require.NoError(t, err)
		if repeated := slices.Contains(p.stages, "collecting"); repeated != (change != nil) {
			t.Errorf("with other %q: the stages are %q", name, p.stages)
		}
		if got.ID != whole.ID || got.Duplicates != 1 || !slices.Equal(got.Skipped, whole.Skipped) || got.Source != whole.Source {
			t.Errorf("with other %q: %+v, want as %+v", name, got, whole)
		}
		if change == nil {
			checkSame(t, c.Dest, want.Dest)
		}
		c.Overwrite = true
	}
}
