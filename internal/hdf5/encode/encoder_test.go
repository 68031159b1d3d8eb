package encode

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/penstock/penstock/internal/testkit/h5test"
	"github.com/penstock/penstock/internal/testkit/require"
)

func TestChunkRecords(t *testing.T) {
	for _, tt := range []struct {
		records int64
		record  int
		want    int
	}{
		{1000, 150528, 1},
		{1000, 65536, 1},
		{1000, 784, 83},
		{10, 784, 10},
		{0, 784, 1},
		{1 << 30, 784, 1337},   // never more than 1 MiB
		{1 << 20, 100_000, 10}, // not enough even so
		{200_000, 65536, 4},    // fewer than 65,536
		{5, 3 << 20, 1},        // larger than 1 MiB
		{math.MaxInt64, 1, 1 << 20},
	} {
		if got := ChunkRecords(tt.records, tt.record); got != tt.want {
			t.Errorf("%d records of %d bytes: %d a chunk, want %d", tt.records, tt.record, got, tt.want)
		}
	}
}

// smooth gives float32 measurements, whose high bytes shuffle brings together.
func smooth(n int) []byte {
	var b []byte
	x := uint32(1)
	for i := range n {
		x = x*1664525 + 1013904223
		v := 100 + float32(math.Sin(float64(i)/300)) + float32(x>>8)/(1<<28)
		b = binary.LittleEndian.AppendUint32(b, math.Float32bits(v))
	}
	return b
}

// pixels gives float32 values that were bytes.
func pixels(n int) []byte {
	var b []byte
	for _, v := range h5test.Values(9, n) {
		b = binary.LittleEndian.AppendUint32(b, math.Float32bits(float32(v)/255))
	}
	return b
}

func TestChoose(t *testing.T) {
	r := Recipe{Record: 4000, Elem: 4, Records: 16, Level: 6}
	for name, tt := range map[string]struct {
		ask     Shuffle
		sample  []byte
		shuffle bool
	}{
		"measured": {Auto, smooth(16000), true},
		"pixels":   {Auto, pixels(16000), false},
		"short":    {Auto, smooth(1000), true},
		"on":       {On, pixels(16000), true},
		"off":      {Off, smooth(16000), false},
	} {
		c, err := Choose(r, tt.ask, tt.sample)
		if err != nil || c.Shuffle != tt.shuffle || c.Level != 6 || c.Ratio <= 0 || c.Ratio > 1 {
			t.Errorf("%s: %+v, error %v", name, c, err)
		}
		if strings.Contains(c.Reason, "asked for") != (tt.ask != Auto) || strings.HasPrefix(c.Reason, "no ") == c.Shuffle {
			t.Errorf("%s: %+v", name, c)
		}
		again, err := Choose(r, tt.ask, tt.sample)
		if err != nil || again != c {
			t.Errorf("%s: %+v, then %+v, error %v", name, c, again, err)
		}
	}
	r.Elem = 1
	if c, err := Choose(r, On, h5test.Values(1, 8000)); err != nil || c.Shuffle || c.Ratio <= 0 || c.Ratio > 1 {
		t.Errorf("bytes: %+v, error %v", c, err)
	}
}

// The level is the lowest that comes close to the best.
func TestChooseLevel(t *testing.T) {
	r := Recipe{Record: 4000, Elem: 4, Records: 16}
	for name, sample := range map[string][]byte{"measured": smooth(16000), "pixels": pixels(16000),
		"zeros": make([]byte, 64000)} {
		c, err := Choose(r, Auto, sample)
		if err != nil || c.Level < 1 || c.Level > 9 || !strings.Contains(c.Reason, "; level ") {
			t.Fatalf("%s: %+v, error %v", name, c, err)
		}
		least := c.Recipe
		for least.Level = 9; least.Level > 0; least.Level-- {
			ratio, err := tryOut(least, sample)
			require.NoError(t, err)
			if least.Level == 9 && c.Ratio > ratio*worthLevel {
				t.Errorf("%s: %+v, but level 9 makes %v", name, c, ratio)
			}
			if least.Level == c.Level && ratio != c.Ratio {
				t.Errorf("%s: %+v, but its level makes %v", name, c, ratio)
			}
		}
	}
}

func TestChooseErrors(t *testing.T) {
	for _, bad := range []Recipe{{}, {Record: 10, Elem: 4, Records: 1, Level: 6}, {Record: 8, Elem: 4, Level: 6},
		{Record: 8, Elem: 4, Records: 1, Level: 10}} {
		if _, err := Choose(bad, Auto, make([]byte, 8)); err == nil {
			t.Errorf("%+v: no error", bad)
		}
	}
	for _, n := range []int{0, 9} {
		if _, err := Choose(Recipe{Record: 8, Elem: 4, Records: 1, Level: 6}, Auto, make([]byte, n)); err == nil {
			t.Errorf("sample of %d bytes: no error", n)
		}
	}
}

// The same records give the same chunk, whatever was made before.
func TestEncodeIsDeterministic(t *testing.T) {
	for level := 1; level <= 9; level++ {
		r := Recipe{Record: 1 << 12, Elem: 4, Records: 4, Level: level, Shuffle: level%2 == 0}
		used, err := NewEncoder(r)
		require.NoError(t, err)
		for seed := range 8 {
			records := h5test.Values(seed, (1+seed%4)<<12)
			fresh, err := NewEncoder(r)
			require.NoError(t, err)
			want, mask, err := fresh.Encode(records)
			require.NoError(t, err)
			got, again, err := used.Encode(records)
			if err != nil || !bytes.Equal(got, want) || mask != again {
				t.Fatalf("level %d, chunk %d: other bytes, error %v", level, seed, err)
			}
		}
	}
}

func TestEncodeErrors(t *testing.T) {
	e, err := NewEncoder(Recipe{Record: 8, Elem: 4, Records: 2, Level: 6})
	require.NoError(t, err)
	for _, n := range []int{0, 7, 9, 24} {
		if _, _, err := e.Encode(make([]byte, n)); err == nil {
			t.Errorf("%d bytes: no error", n)
		}
	}
}

const assemble = `
import json, sys, h5py, numpy as np
folder = sys.argv[1]
spec = json.load(open(folder + "/spec.json"))
with h5py.File(folder + "/x.h5", "w") as f:
    for k, s in enumerate(spec):
        d = f.create_dataset("d%d" % k, shape=(s["n"], s["width"]), dtype=s["dtype"], chunks=(s["per"], s["width"]),
                             compression="gzip", compression_opts=s["level"], shuffle=s["shuffle"])
        for i, mask in enumerate(s["masks"]):
            d.id.write_direct_chunk((i * s["per"], 0), open(folder + "/%d-%d" % (k, i), "rb").read(), filter_mask=mask)
with h5py.File(folder + "/x.h5") as f:
    for k in range(len(spec)):
        open(folder + "/back-%d" % k, "wb").write(f["d%d" % k][()].tobytes())
`

type assembled struct {
	N       int      `json:"n"`
	Width   int      `json:"width"`
	Per     int      `json:"per"`
	DType   string   `json:"dtype"`
	Level   int      `json:"level"`
	Shuffle bool     `json:"shuffle"`
	Masks   []uint32 `json:"masks"`
	data    []byte
}

// h5py must read from our chunks what went in, and so must package chunk.
func TestEncodeAgainstH5py(t *testing.T) {
	dir := t.TempDir()
	noise := make([]byte, 1<<16)
	for i, x := 0, uint64(1); i < len(noise); i++ {
		x = x*6364136223846793005 + 1442695040888963407
		noise[i] = byte(x >> 56)
	}
	list := []assembled{
		{N: 16, Width: 1000, Per: 1, DType: "<f4", Level: 6, Shuffle: true, data: smooth(16000)},
		{N: 16, Width: 1000, Per: 5, DType: "<f4", Level: 9, data: pixels(16000)},
		{N: 64, Width: 1024, Per: 10, DType: "u1", Level: 1, data: h5test.Values(1, 1<<16)},
		{N: 64, Width: 512, Per: 3, DType: "<u2", Level: 6, Shuffle: true, data: noise},
		{N: 64, Width: 1024, Per: 64, DType: "u1", Level: 6, data: noise},
	}
	for k := range list {
		list[k].write(t, dir, k)
	}
	spec, err := json.Marshal(list)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "spec.json"), spec, 0o600))
	h5test.Run(t, "-c", assemble, dir)
	file := readFile(t, filepath.Join(dir, "x.h5"))
	for k, a := range list {
		name := strconv.Itoa(k)
		if !bytes.Equal(readFile(t, filepath.Join(dir, "back-"+name)), a.data) {
			t.Errorf("dataset %d: h5py reads other bytes", k)
		}
		if !bytes.Equal(read(t, file, "d"+name), a.data) {
			t.Errorf("dataset %d: package chunk reads other bytes", k)
		}
	}
	if list[3].Masks[0] != 3 || list[4].Masks[0] != 1 || list[0].Masks[0] != 0 {
		t.Errorf("masks %v, %v, %v", list[3].Masks, list[4].Masks, list[0].Masks)
	}
}

// write makes the chunks of a dataset, one a file.
func (a *assembled) write(t *testing.T, dir string, k int) {
	t.Helper()
	record := len(a.data) / a.N
	e, err := NewEncoder(Recipe{Record: record, Elem: record / a.Width, Records: a.Per, Level: a.Level,
		Shuffle: a.Shuffle})
	require.NoError(t, err)
	for i := 0; i*a.Per < a.N; i++ {
		chunk, mask, err := e.Encode(a.data[i*a.Per*record : min(a.N, (i+1)*a.Per)*record])
		require.NoError(t, err)
		a.Masks = append(a.Masks, mask)
		require.NoError(t, os.WriteFile(filepath.Join(dir, strconv.Itoa(k)+"-"+strconv.Itoa(i)), chunk, 0o600))
	}
}
