package imagefile

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/penstock/penstock/internal/imagefile/format"
	"github.com/penstock/penstock/internal/imagefile/jpeg"
	"github.com/penstock/penstock/internal/testkit/require"
)

func readKind(t testing.TB, name string) []byte {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(kindsDir, name))
	require.NoError(t, err)
	return data
}

// scanStart returns where the entropy-coded data of the last scan begins.
func scanStart(t testing.TB, file []byte) int {
	t.Helper()
	i := bytes.LastIndex(file, []byte{0xFF, jpeg.SOS})
	if i < 0 {
		t.Fatal("no scan")
	}
	return i + 2 + int(file[i+2])<<8 + int(file[i+3])
}

func splice(parts ...[]byte) []byte { return bytes.Join(parts, nil) }

// The error of a corrupt JPEG, with either back end.
func TestCorruptJPEG(t *testing.T) {
	base, progressive := readKind(t, "420.jpg"), readKind(t, "420-progressive.jpg")
	restart := readKind(t, "restart.jpg")
	scan := scanStart(t, base)
	part := func(percent int) []byte { return base[:scan+(len(base)-scan)*percent/100] }
	rst := bytes.Index(restart, []byte{0xFF, jpeg.RST0 + 1})
	lossless := bytes.Replace(base, []byte{0xFF, jpeg.SOF0}, []byte{0xFF, 0xC3}, 1)
	eoi := []byte{0xFF, jpeg.EOI}
	for name, c := range map[string]struct {
		data []byte
		kind error
		text string
	}{
		"truncated at 50 %":          {part(50), format.ErrCorrupt, "of scan 1: the file ends before the image does"},
		"truncated at 90 %":          {part(90), format.ErrCorrupt, "of scan 1: the file ends before the image does"},
		"without end marker":         {base[:len(base)-2], format.ErrCorrupt, "of scan 1: the file ends before the image does"},
		"end marker in the scan":     {splice(part(50), eoi), format.ErrCorrupt, "corrupt near row"},
		"end marker late in it":      {splice(part(97), eoi), format.ErrCorrupt, "corrupt near row"},
		"next marker at 70 %":        {splice(part(70), []byte{0xFF, jpeg.DRI, 0, 4, 0, 0}, eoi), format.ErrCorrupt, "corrupt near row"},
		"progressive, truncated":     {progressive[:len(progressive)*3/4], format.ErrCorrupt, "truncated at byte"},
		"progressive, early end":     {splice(progressive[:scanStart(t, progressive)+9], eoi), format.ErrCorrupt, "corrupt near row"},
		"restart marker missing":     {splice(restart[:rst], restart[rst+2:]), format.ErrCorrupt, "corrupt near row"},
		"restart marker of another":  {splice(restart[:rst], []byte{0xFF, jpeg.RST0 + 5}, restart[rst+2:]), format.ErrCorrupt, "corrupt near row"},
		"size of another image":      {patchFrame(patchFrame(base, 1, 20), 3, 20), format.ErrCorrupt, "bytes cannot hold 5165x5157 pixels"},
		"hundreds of scans":          {splice(progressive[:len(progressive)-2], bytes.Repeat(lastScan(t, progressive), 300), eoi), format.ErrCorrupt, "more than 200 scans"},
		"no scan":                    {splice(base[:bytes.Index(base, []byte{0xFF, jpeg.SOS})], eoi), format.ErrCorrupt, "holds no image"},
		"segment too long":           {splice(base[:2], []byte{0xFF, 0xE5, 0xFF, 0xFF}, base[2:]), format.ErrCorrupt, "ends in the segment"},
		"segment of length 1":        {splice(base[:2], []byte{0xFF, 0xE5, 0, 1}, base[2:]), format.ErrCorrupt, "has length 1"},
		"two frames":                 {twice(base, jpeg.SOF0), format.ErrCorrupt, "two frame headers"},
		"two images in one":          {splice(part(50), base), format.ErrCorrupt, "a second image starts"},
		"second frame after a scan":  {splice(progressive[:len(progressive)-2], frame(progressive, jpeg.SOF2), lastScan(t, progressive), eoi), format.ErrCorrupt, "two frame headers"},
		"start marker twice":         {splice(base[:2], base), format.ErrCorrupt, "a second image starts"},
		"a marker of extensions":     {splice(base[:2], []byte{0xFF, 0xF7, 0, 3, 9}, base[2:]), format.ErrCorrupt, "reserved marker fff7"},
		"frame header too long":      {longer(base, jpeg.SOF0), format.ErrCorrupt, "frame header of 16 bytes for 3 components"},
		"scan header too long":       {longer(base, jpeg.SOS), format.ErrCorrupt, "scan header at byte"},
		"restart interval too long":  {longer(restart, jpeg.DRI), format.ErrCorrupt, "restart interval segment of 3 bytes"},
		"units of 18 blocks":         {patchFrame(base, 7, 0x44), format.ErrCorrupt, "ampling factors"},
		"a code of ones alone":       {patchTable(base, 1, 2), format.ErrCorrupt, "Huffman table"},
		"a difference of 17 bits":    {patchTable(base, 17, 17), format.ErrCorrupt, "Huffman table"},
		"bit 1 after bit 3":          {patchScan(progressive, 0x31), format.ErrCorrupt, ""},
		"no Huffman table 2":         {bytes.Replace(base, []byte{1, 0, 2, 0x11}, []byte{1, 0, 2, 0x12}, 1), format.ErrCorrupt, ""},
		"no quantisation tables":     {without(base, jpeg.DQT), format.ErrCorrupt, ""},
		"arithmetic-coded":           {bytes.Replace(base, []byte{0xFF, jpeg.SOF0}, []byte{0xFF, jpeg.SOF9}, 1), format.ErrUnsupported, "arithmetic-coded frames are not supported (marker ffc9); recode it"},
		"arithmetic-coded, lossless": {bytes.Replace(base, []byte{0xFF, jpeg.SOF0}, []byte{0xFF, 0xCB}, 1), format.ErrUnsupported, "lossless"},
		"lossless":                   {lossless, format.ErrUnsupported, "lossless"},
		"12 bits":                    {patchFrame(base, 0, 12), format.ErrUnsupported, "12-bit samples"},
		"two components":             {patchFrame(base, 5, 2), format.ErrUnsupported, "2 components"},
		"sampling factor 0":          {patchFrame(base, 7, 0x02), format.ErrCorrupt, "sampling factors"},
	} {
		d := New(Options{})
		_, err := openAll(t, d, c.data)
		if !errors.Is(err, c.kind) {
			t.Errorf("%s: %v, want kind %q", name, err, c.kind)
		} else if !strings.Contains(err.Error(), c.text) || !strings.HasPrefix(err.Error(), "jpeg: ") {
			t.Errorf("%s: %q, want %q in it", name, err, c.text)
		}
	}
}

// A file without Huffman tables means the standard's.
func TestStandardTables(t *testing.T) {
	base := readKind(t, "420.jpg")
	d := New(Options{})
	want, err := openAll(t, d, base)
	require.NoError(t, err)
	got, err := openAll(t, d, without(base, jpeg.DHT))
	if err != nil || !bytes.Equal(got.pix, want.pix) {
		t.Errorf("without tables: %v, or other pixels", err)
	}
}

// The tables of a file serve no other.
func TestTablesOfTheFileBefore(t *testing.T) {
	base, progressive := readKind(t, "420.jpg"), readKind(t, "420-progressive.jpg")
	d := New(Options{})
	for name, bad := range map[string][]byte{
		"no quantisation tables": without(base, jpeg.DQT),
		"none, progressive":      without(progressive, jpeg.DQT),
		"no Huffman tables":      without(progressive, jpeg.DHT),
	} {
		for _, good := range [][]byte{base, progressive} {
			if _, err := openAll(t, d, good); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := openAll(t, d, bad); !errors.Is(err, format.ErrCorrupt) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Of four components all of Adobe's transforms but 0 are YCCK, as in libjpeg.
func TestAdobeTransforms(t *testing.T) {
	base := readKind(t, "ycck.jpg")
	d := New(Options{})
	want, err := openAll(t, d, base)
	require.NoError(t, err)
	at := bytes.Index(base, []byte("Adobe")) + 11
	for transform, same := range map[byte]bool{0: false, 1: true, 2: true, 77: true} {
		base[at] = transform
		got, err := openAll(t, d, base)
		if err != nil || bytes.Equal(got.pix, want.pix) != same {
			t.Errorf("transform %d: %v, or wrong pixels", transform, err)
		}
	}
}

// frame returns the segment with that marker.
func frame(data []byte, code byte) []byte {
	at := segments(data, code)[0]
	return data[at[0]:at[1]]
}

// longer adds a byte to the first segment with that marker, SOS too.
func longer(data []byte, code byte) []byte {
	at := bytes.Index(data, []byte{0xFF, code})
	n := int(data[at+3])
	data = splice(data[:at+2+n], []byte{0}, data[at+2+n:])
	data[at+3]++
	return data
}

// patchTable changes byte i of the first Huffman table's payload.
func patchTable(data []byte, i int, v byte) []byte {
	data = bytes.Clone(data)
	data[segments(data, jpeg.DHT)[0][0]+4+i] = v
	return data
}

// patchScan changes what the header of the last scan says of bits.
func patchScan(data []byte, bits byte) []byte {
	data = bytes.Clone(data)
	at := bytes.LastIndex(data, []byte{0xFF, jpeg.SOS})
	data[at+1+int(data[at+3])] = bits
	return data
}

// lastScan returns the last scan with its header, without the end marker.
func lastScan(t *testing.T, data []byte) []byte {
	return data[bytes.LastIndex(data, []byte{0xFF, jpeg.SOS}) : len(data)-2]
}

// segments returns where the segments with that marker lie.
func segments(data []byte, code byte) (at [][2]int) {
	for pos := 2; ; {
		m, next, ok := jpeg.NextSegment(data, pos)
		if !ok || m == jpeg.SOS {
			return at
		}
		_, end, err := jpeg.Segment(data, m, next)
		if err != nil {
			return at
		}
		if m == code {
			at = append(at, [2]int{next - 2, end})
		}
		pos = end
	}
}

func without(data []byte, code byte) []byte {
	at := segments(data, code)
	for i := len(at) - 1; i >= 0; i-- {
		data = splice(data[:at[i][0]], data[at[i][1]:])
	}
	return data
}

func twice(data []byte, code byte) []byte {
	at := segments(data, code)[0]
	return splice(data[:at[1]], data[at[0]:])
}

// patchFrame changes byte i of the frame header's payload.
func patchFrame(data []byte, i int, v byte) []byte {
	data = bytes.Clone(data)
	data[segments(data, jpeg.SOF0)[0][0]+4+i] = v
	return data
}

// An animation's frame that is larger than its canvas is refused before it is decoded.
func TestFrameLeavesCanvas(t *testing.T) {
	data := bytes.Clone(readKind(t, "animated-partial.webp"))
	at := bytes.Index(data, []byte("VP8X")) + 12
	copy(data[at:], []byte{9, 0, 0, 9, 0, 0})
	_, err := ReadConfig(data)
	if !errors.Is(err, format.ErrCorrupt) || !strings.Contains(err.Error(), "leaves the canvas of 10x10") {
		t.Errorf("%v", err)
	}
}

// A WebP that ends before its container says is refused, also where its first frame is whole.
func TestTruncatedAnimation(t *testing.T) {
	data := readKind(t, "animated.webp")
	_, err := ReadConfig(data[:len(data)-4])
	if !errors.Is(err, format.ErrCorrupt) || !strings.Contains(err.Error(), "webp: truncated at byte") {
		t.Errorf("%v", err)
	}
}

// Bytes changed at random give an error or an image of the size in the header, nothing
// else, and what is opened next is as it should be.
func TestMutatedFiles(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	d := New(Options{MaxPixels: 1 << 16})
	good := readKind(t, "420.jpg")
	want, err := openAll(t, d, good)
	require.NoError(t, err)
	refused, n := 0, 30
	if testing.Short() {
		n = 3
	}
	kinds(t, func(name string, data []byte) {
		for range n {
			bad := mutated(rng, data)
			c, cerr := ReadConfig(bad)
			m, err := openAll(t, d, bad)
			if err != nil {
				refused++
				continue
			}
			if w, h := c.Opened(false); cerr != nil || m.w != w || m.h != h {
				t.Errorf("%s: opened as %dx%d, header says %+v, %v", name, m.w, m.h, c, cerr)
			}
		}
	})
	if refused == 0 {
		t.Error("no corruption was found")
	}
	if got, err := openAll(t, d, good); err != nil || !bytes.Equal(got.pix, want.pix) {
		t.Errorf("a good file after bad ones: %v, or other pixels", err)
	}
}

func mutated(rng *rand.Rand, data []byte) []byte {
	data = bytes.Clone(data)
	switch rng.IntN(4) {
	case 0:
		return data[:rng.IntN(len(data))]
	case 1:
		i := rng.IntN(len(data))
		clear(data[i:min(i+64, len(data))])
	default:
		for range 1 + rng.IntN(5) {
			data[rng.IntN(len(data))] = byte(rng.UintN(256))
		}
	}
	return data
}

// A GIF's screen is as large as its first frame needs it.
func TestFrameLeavesScreen(t *testing.T) {
	data := readKind(t, "L.gif")
	d := New(Options{})
	want, err := openAll(t, d, data)
	require.NoError(t, err)
	for _, size := range [][]byte{{5, 0, 5, 0}, {0, 0, 0, 0}, {45, 0, 1, 0}} {
		small := bytes.Clone(data)
		copy(small[6:], size)
		if got, err := openAll(t, d, small); err != nil || got.w != want.w || got.h != want.h ||
			!bytes.Equal(got.pix, want.pix) {
			t.Errorf("screen %v: %dx%d, %v, or other pixels", size, got.w, got.h, err)
		}
	}
}

// No memory is taken for an image that the file is too small for.
func TestSizeOfAnotherPNG(t *testing.T) {
	data := bytes.Clone(readKind(t, "RGB.png"))
	copy(data[16:], []byte{0, 0, 0x30, 0, 0, 0, 0x30, 0})
	_, err := New(Options{}).Open(data)
	if !errors.Is(err, format.ErrCorrupt) || !strings.Contains(err.Error(), "bytes cannot hold 12288x12288 pixels") {
		t.Error(err)
	}
}
