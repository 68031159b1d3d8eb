package datasetarg

import (
	"os"
	"strings"
	"testing"

	"github.com/spf13/pflag"

	"github.com/penstock/penstock/internal/testkit/require"
)

func TestFlags(t *testing.T) {
	t.Chdir(t.TempDir())
	require.NoError(t, os.WriteFile("ds", []byte("\x89HDF\r\n\x1a\n"), 0o600))
	for _, c := range []struct {
		flags, args string
		want        string // in the problems, "" for none
		size        int64
	}{
		{"", "ds", "", 0},
		{"--cache-dir=x", "ds", "nothing of ds is fetched", 0},
		{"--cache-size=2MiB", "ds ds", "nothing of ds is fetched", 2 << 20},
		{"--cache-size=2MiB", "missing", "", 2 << 20}, // which is the error
		{"--cache-size=2MiB", "ds s3://b/ds", "", 2 << 20},
		{"--cache-dir=x", "", "", 0}, // the missing argument is another problem
		{"--cache-size=-1", "s3://b/ds", `"-1" is not a size`, 0},
	} {
		var cache Cache
		f := pflag.NewFlagSet("", pflag.ContinueOnError)
		cache.Flags(f)
		require.NoError(t, f.Parse(strings.Fields(c.flags)))
		got := strings.Join(cache.Settle(strings.Fields(c.args)), "; ")
		if (got == "") != (c.want == "") || !strings.Contains(got, c.want) || cache.Size != c.size {
			t.Errorf("%q %q: %q and %d bytes, want %q and %d", c.flags, c.args, got, cache.Size, c.want, c.size)
		}
	}
}
