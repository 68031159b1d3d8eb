package zarr

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"hash/adler32"
	"hash/crc32"
	"testing"

	"github.com/penstock/penstock/internal/testkit/require"
	"github.com/penstock/penstock/tensor"
)

// decoded returns the bytes that a pipeline of codecs decodes from stored ones.
func decoded(t *testing.T, stored []byte, chunk []int64, codecs ...codec) ([]byte, error) {
	t.Helper()
	p, err := newPipeline(codecs, number{dtype: tensor.Uint8, parts: 1}, chunk)
	require.NoError(t, err)
	out := make([]byte, p.size)
	var spare [2][]byte
	return out, p.decode(out, stored, &spare)
}

// crc32 and adler32 of numcodecs precede the bytes, and crc32c follows them, unless their location says otherwise.
func TestChecksumLocations(t *testing.T) {
	data := []byte("some bytes")
	sums := map[string]uint32{
		"crc32": crc32.ChecksumIEEE(data), "adler32": adler32.Checksum(data), "crc32c": crc32.Checksum(data, crc32.MakeTable(crc32.Castagnoli)),
	}
	for _, c := range []struct {
		name, location string
		start          bool
	}{
		{"crc32", "", true}, {"adler32", "", true}, {"crc32c", "", false},
		{"crc32", "end", false}, {"adler32", "end", false}, {"crc32c", "end", false},
		{"crc32", "start", true}, {"adler32", "start", true}, {"crc32c", "start", true},
	} {
		sum := binary.LittleEndian.AppendUint32(nil, sums[c.name])
		right, wrong := append(bytes.Clone(data), sum...), append(bytes.Clone(sum), data...)
		if c.start {
			right, wrong = wrong, right
		}
		conf, err := json.Marshal(map[string]string{"location": c.location})
		if err != nil || c.location == "" {
			conf = nil
		}
		codecs := []codec{{"bytes", nil}, {"numcodecs." + c.name, conf}}
		if got, err := decoded(t, right, []int64{10}, codecs...); err != nil || !bytes.Equal(got, data) {
			t.Errorf("%+v: %q, %v", c, got, err)
		}
		if _, err := decoded(t, wrong, []int64{10}, codecs...); err == nil {
			t.Errorf("%+v: no error where the checksum is elsewhere", c)
		}
	}
}

// With two codecs transpose, the second works on the output of the first.
func TestTransposeTwice(t *testing.T) {
	const a, b, c = 2, 3, 4
	for _, orders := range [][2][3]int{{{1, 2, 0}, {0, 2, 1}}, {{0, 2, 1}, {1, 2, 0}}, {{2, 0, 1}, {2, 0, 1}}, {{1, 2, 0}, {2, 0, 1}}, {{0, 1, 2}, {2, 1, 0}}} {
		var want []byte
		stored := make([]byte, a*b*c)
		shape := [3]int{a, b, c}
		var once, twice [3]int // of which axis of the chunk each axis is
		for i := range 3 {
			once[i] = orders[0][i]
		}
		for i := range 3 {
			twice[i] = once[orders[1][i]]
		}
		for i := range a * b * c {
			want = append(want, byte(i))
			at := [3]int{i / (b * c), i / c % b, i % c}
			to := 0
			for _, axis := range twice {
				to = to*shape[axis] + at[axis]
			}
			stored[to] = byte(i)
		}
		var codecs []codec
		for _, order := range orders {
			conf, err := json.Marshal(map[string]any{"order": order})
			require.NoError(t, err)
			codecs = append(codecs, codec{"transpose", conf})
		}
		if got, err := decoded(t, stored, []int64{a, b, c}, append(codecs, codec{"bytes", nil})...); err != nil || !bytes.Equal(got, want) {
			t.Errorf("orders %v: %v, %v", orders, got, err)
		}
	}
}
