package prepare

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/penstock/penstock/internal/testkit/rawtest"
	"github.com/penstock/penstock/internal/testkit/require"
)

// sparseNPY writes an array of bytes that is a header and a hole.
func sparseNPY(t *testing.T, shape string, bytes int64, fortran string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "x.npy")
	text := fmt.Sprintf("{'descr': '|u1', 'fortran_order': %s, 'shape': (%s), }", fortran, shape)
	text += strings.Repeat(" ", 117-len(text)) + "\n"
	require.NoError(t, os.WriteFile(path, append([]byte("\x93NUMPY\x01\x00\x76\x00"), text...), 0o666))
	if err := os.Truncate(path, 128+bytes); err != nil {
		t.Skip("no sparse files here: ", err)
	}
	return path
}

// A header that claims records of 100 GiB is refused with a sentence, before memory is taken.
func TestRecordsInProportion(t *testing.T) {
	c := config(t, sparseNPY(t, "10, 107374182400", 10*100<<30, "False"))
	c.Images.Resize, c.Images.Crop = nil, nil
	if got := runError(t, c); !strings.Contains(got, "takes 100.0 GiB, more than 256.0 MiB") || !strings.Contains(got, "--memory") {
		t.Error(got)
	}
	rawtest.CheckNothing(t, c.Dest)
}

// A transform whose result would be vectors of 10^11 elements is refused, too.
func TestTransformsInProportion(t *testing.T) {
	for _, classes := range []string{"100000000000", "4611686018427387905"} {
		c := config(t, sparseNPY(t, "4", 4, "False"))
		c.Images.Resize, c.Images.Crop = nil, nil
		c.Images.Transforms = []byte(`[{"op": "OneHot", "field": "x", "classes": ` + classes + `}]`)
		if got := runError(t, c); !strings.Contains(got, "OneHot") {
			t.Error(got)
		}
	}
}

// A block of an array in Fortran order takes many reads; a run ends between two of them.
func TestFortranOrderIsInterrupted(t *testing.T) {
	c := config(t, sparseNPY(t, "1048576, 1048576", 1<<40, "True"))
	c.Images.Resize, c.Images.Crop = nil, nil
	stop := errors.New("SIGTERM")
	ctx, cancel := context.WithCancelCause(t.Context())
	var asked time.Time
	time.AfterFunc(200*time.Millisecond, func() { asked = time.Now(); cancel(stop) })
	if _, err := Run(ctx, c, &rawtest.Silent{}); !errors.Is(err, stop) {
		t.Errorf("got %v", err)
	}
	t.Logf("it took %v", time.Since(asked))
}
