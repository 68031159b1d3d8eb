package loadbench

import (
	"bytes"
	"compress/zlib"
	"encoding/binary"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/penstock/penstock/internal/testkit/require"
)

// makeWindows writes Zarr of some chunks of zlib, and a view of windows over them, and returns its path.
func makeWindows(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	write := func(name string, data []byte) {
		path := filepath.Join(dir, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, data, 0o644))
	}
	write("a.zarr/.zgroup", []byte(`{"zarr_format": 2}`))
	write("a.zarr/x/.zarray", []byte(`{"zarr_format": 2, "shape": [64, 8], "chunks": [4, 8], "dtype": "<f4", "fill_value": 0,
		"compressor": {"id": "zlib", "level": 1}, "order": "C", "filters": null}`))
	for k := range 16 {
		var raw, packed bytes.Buffer
		for i := range 4 * 8 {
			raw.Write(binary.LittleEndian.AppendUint32(nil, math.Float32bits(float32(k*32+i))))
		}
		w := zlib.NewWriter(&packed)
		_, _ = w.Write(raw.Bytes())
		_ = w.Close()
		write(fmt.Sprintf("a.zarr/x/%d.0", k), packed.Bytes())
	}
	write("windows.view.json", []byte(`{"penstock": "view", "version": 1, "window": {"dataset": "a.zarr"}, "by": {"sizes": {"0": 6}}}`))
	return filepath.Join(dir, "windows.view.json")
}

// TestWindowsHaveARowInTheOrderOfChunks measures windows over chunks: a row in the order of their chunks, and how much rows
// decode.
func TestWindowsHaveARowInTheOrderOfChunks(t *testing.T) {
	o := Defaults()
	o.Path, o.Delay, o.Batch, o.Batches, o.Workers, o.Tables = makeWindows(t), 0, 8, 10, 1, []string{tableRows}
	r, err := Run(t.Context(), o, silent{})
	require.NoError(t, err)
	for _, table := range r.Tables {
		row := table.Rows[len(table.Rows)-1]
		if row.Name != chunkShuffle || !row.Ran() || row.Sampler != chunkShuffle {
			t.Errorf("%s: the last row is %+v", table.Name, row)
		}
	}
	if first := r.Tables[0].Rows[0]; first.Decoded == 0 || first.Read == 0 {
		t.Errorf("nothing was decoded: %+v", first)
	}
	var text bytes.Buffer
	if err := r.Text(&text); err != nil || !strings.Contains(text.String(), "bytes of chunks were decoded for each byte of the batches") {
		t.Errorf("%v: %s", err, &text)
	}
}
