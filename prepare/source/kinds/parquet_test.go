package kinds

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"math/bits"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/compress"
	"github.com/parquet-go/parquet-go/deprecated"
	"github.com/parquet-go/parquet-go/encoding"
	"github.com/parquet-go/parquet-go/encoding/thrift"
	"github.com/penstock/penstock/internal/testkit/pythontest"
	"github.com/penstock/penstock/internal/testkit/require"
	"github.com/penstock/penstock/prepare/source"
)

// parquetRow has a column of every kind that makes a field.
type parquetRow struct {
	Image struct {
		Bytes []byte `parquet:"bytes"`
		Path  string `parquet:"path"`
	} `parquet:"image"`
	Label string    `parquet:"label,dict"`
	X     float32   `parquet:"x"`
	N     *int16    `parquet:"n,optional"`
	Ids   []int32   `parquet:"ids,list"`
	Pair  []float64 `parquet:"pair,list"`
}

func parquetRows(n int) (rows []parquetRow) {
	for i := range n {
		r := parquetRow{Label: []string{"dog", "cat", "ant"}[i%3], X: float32(i), Pair: []float64{float64(i), -1}}
		r.Image.Bytes, r.Image.Path = []byte{'P', byte(i)}, "x.png"
		if i%2 == 0 {
			r.N = new(int16(i))
		}
		for k := range i % 4 {
			r.Ids = append(r.Ids, int32(k))
		}
		rows = append(rows, r)
	}
	return rows
}

func parquetBytes(t testing.TB, codec compress.Codec, perGroup int64) []byte {
	t.Helper()
	var b bytes.Buffer
	w := parquet.NewGenericWriter[parquetRow](&b, parquet.Compression(codec), parquet.MaxRowsPerRowGroup(perGroup))
	if _, err := w.Write(parquetRows(10)); err != nil {
		t.Fatal(err)
	}
	require.NoError(t, w.Close())
	return b.Bytes()
}

// Lists of one length are arrays, words of a column called label classes.
func TestParquetFields(t *testing.T) {
	path := write(t, "x.parquet", parquetBytes(t, &parquet.Snappy, 3))
	fields, samples, err := describe(t, path, source.Options{})
	require.NoError(t, err)
	want := "images uint8()* image|labels int64()|x float32()|n int16()|ids int32()*|pair float64(2,)"
	if got := strings.Join(fields, "|"); got != want {
		t.Errorf("fields %s, want %s", got, want)
	}
	if len(samples) != 10 || samples[1] != "1: column n: it is missing" || !strings.HasPrefix(samples[2], "2 5002 0000000000000000 00000040 0200 ") {
		t.Errorf("samples %q", samples)
	}
	if _, samples, err = describe(t, path, source.Options{Fields: "pair:float64[*],label:text,ids:int32[3]"}); err != nil {
		t.Fatal(err)
	}
	if samples[2] != "2: column ids: a list of 2 numbers where int32[3] is expected" {
		t.Errorf("samples %q", samples)
	}
}

// Rows of several files have the file's name in theirs.
func TestParquetNames(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"a.parquet", "b.parquet"} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), parquetBytes(t, &parquet.Zstd, 100), 0o666))
	}
	s, err := Open(t.Context(), dir, source.Options{})
	require.NoError(t, err)
	defer s.Close()
	var names []string
	for sample, err := range s.Samples() {
		require.NoError(t, err)
		names = append(names, strings.TrimPrefix(sample.Name, filepath.ToSlash(dir)+"/"))
	}
	if len(names) != 20 || names[0] != "a.parquet:0" || names[9] != "a.parquet:9" || names[10] != "b.parquet:0" {
		t.Errorf("names %q", names)
	}
}

// Files named as the Hub names those of a dataset are its splits.
func TestSplitsOfParquet(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"test-00000-of-00001", "train-00000-of-00002", "train-00001-of-00002"} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name+".parquet"), parquetBytes(t, &parquet.Snappy, 2), 0o666))
	}
	s := mustOpen(t, dir, source.Options{})
	defer s.Close()
	splits, samples := splitsAndNames(t, s)
	var of []string
	for _, sample := range samples {
		split, _, _ := strings.Cut(sample, " ")
		of = append(of, split)
	}
	runs := slices.Compact(slices.Clone(of))
	if got := strings.Join(runs, " "); got != "test train" || 3*slices.Index(of, "train") != len(of) || strings.Join(splits, " ") != "train test" {
		t.Errorf("splits %q, of samples %q", splits, of)
	}
}

// A row without a label is a bad sample, and not one of the first class.
func TestParquetNullLabels(t *testing.T) {
	zebra, cat, dog := "zebra", "cat", "dog"
	plain := []struct {
		C *string `parquet:"c,optional"`
	}{{&zebra}, {nil}, {&cat}, {nil}, {&dog}}
	dictionary := []struct {
		C *string `parquet:"c,optional,dict"`
	}{{&zebra}, {nil}, {&cat}, {nil}, {&dog}}
	for name, file := range map[string]func(io.Writer) error{
		"plain":      func(w io.Writer) error { return parquet.Write(w, plain) },
		"dictionary": func(w io.Writer) error { return parquet.Write(w, dictionary) },
	} {
		var b bytes.Buffer
		require.NoError(t, file(&b))
		_, samples, err := describe(t, write(t, "x.parquet", b.Bytes()), source.Options{Fields: "c:label"})
		want := []string{"0 0200000000000000", "1: column c: it is missing", "2 0000000000000000", "3: column c: it is missing", "4 0100000000000000"}
		if err != nil || !slices.Equal(samples, want) {
			t.Errorf("%s: samples %q, %v, want %q", name, samples, err, want)
		}
	}
}

// Decimals are divided by their power of ten, also in columns that are joined, and also if that is 1.
func TestParquetDecimalsJoined(t *testing.T) {
	type row struct {
		A int32 `parquet:"a,decimal(0:5)"`
		B int32 `parquet:"b,decimal(2:5)"`
	}
	var b bytes.Buffer
	require.NoError(t, parquet.Write(&b, []row{{7, 150}, {-3, 25}}))
	path := write(t, "x.parquet", b.Bytes())
	for fields, want := range map[string]string{
		"a":     "0 0000000000001c40, 1 00000000000008c0",
		"b":     "0 000000000000f83f, 1 000000000000d03f",
		"a+b=x": "0 0000000000001c40000000000000f83f, 1 00000000000008c0000000000000d03f",
	} {
		if _, samples, err := describe(t, path, source.Options{Fields: fields}); err != nil || strings.Join(samples, ", ") != want {
			t.Errorf("%s: samples %q, %v, want %s", fields, samples, err, want)
		}
	}
}

// A time of type INT96, as Spark writes it, becomes nanoseconds since 1970, as pyarrow has it.
func TestParquetInt96(t *testing.T) {
	type row struct {
		T deprecated.Int96 `parquet:"t"`
	}
	at := func(day uint32, ns uint64) row { return row{deprecated.Int96{uint32(ns), uint32(ns >> 32), day}} }
	for _, c := range []struct {
		row  row
		want int64 // 0 for an error
	}{
		{at(2440588, 1), 1},
		{at(2440587, 0), -86400e9},
		{at(2459200, 43_200e9+7), 1608120000e9 + 7},
		{at(2547338, 0), 9223200000e9},
		{at(2547339, 86400e9-1), 0}, // beyond int64 in that day
		{at(2440588, 86400e9+1), 0},
		{at(0, 0), 0},
		{at(1<<32-1, 1<<64-1), 0},
	} {
		var b bytes.Buffer
		require.NoError(t, parquet.Write(&b, []row{c.row, at(2440588, 2)}))
		path := write(t, "x.parquet", b.Bytes())
		want := fmt.Sprintf("0 %016x", bits.ReverseBytes64(uint64(c.want)))
		_, samples, err := describe(t, path, source.Options{})
		switch {
		case err != nil || len(samples) != 2 || samples[1] != "1 0200000000000000":
			t.Errorf("%v: samples %q, %v", c.row, samples, err)
		case c.want == 0 && !strings.Contains(samples[0], "nanoseconds since 1970 in 64 bits do not have"), c.want != 0 && samples[0] != want:
			t.Errorf("%v: samples %q, want %s", c.row, samples, want)
		}
	}
}

// Codecs whose pages would come out wrong are refused, not read.
func TestParquetCodecs(t *testing.T) {
	for _, codec := range []compress.Codec{&parquet.Uncompressed, &parquet.Snappy, &parquet.Zstd, &parquet.Gzip, &parquet.Brotli} {
		if _, samples, err := describe(t, write(t, "x.parquet", parquetBytes(t, codec, 4)), source.Options{}); err != nil || len(samples) != 10 {
			t.Errorf("%v: %d samples, %v", codec, len(samples), err)
		}
	}
	_, _, err := describe(t, write(t, "x.parquet", parquetBytes(t, &parquet.Lz4Raw, 4)), source.Options{})
	if err == nil || !strings.Contains(err.Error(), "compressed with LZ4_RAW, which is not read; rewrite the file, such as with pyarrow.parquet.write_table(") {
		t.Errorf("error %v", err)
	}
}

// Booleans in runs come out of the library as others, so they are refused; plain ones are not,
// nor are the columns next to them.
func TestParquetBooleans(t *testing.T) {
	for encoding, want := range map[encoding.Encoding]string{&parquet.RLE: "column b: its booleans are encoded in runs", &parquet.Plain: ""} {
		schema := parquet.NewSchema("rows", parquet.Group{
			"b": parquet.Encoded(parquet.Leaf(parquet.BooleanType), encoding), "n": parquet.Leaf(parquet.Int64Type),
		})
		var b bytes.Buffer
		w := parquet.NewWriter(&b, schema)
		for i := range 20 {
			if _, err := w.WriteRows([]parquet.Row{{parquet.BooleanValue(i > 3).Level(0, 0, 0), parquet.Int64Value(int64(i)).Level(0, 0, 1)}}); err != nil {
				t.Fatal(err)
			}
		}
		require.NoError(t, w.Close())
		path := write(t, "x.parquet", b.Bytes())
		_, samples, err := describe(t, path, source.Options{})
		switch {
		case want != "" && (err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "leave them out: --fields n")):
			t.Errorf("error %v, want %s", err, want)
		case want == "" && (err != nil || len(samples) != 20 || !strings.HasPrefix(samples[3], "3 00") || !strings.HasPrefix(samples[4], "4 01")):
			t.Errorf("samples %q, %v", samples, err)
		}
		if _, samples, err := describe(t, path, source.Options{Fields: "n"}); err != nil || len(samples) != 20 {
			t.Errorf("samples %q, %v", samples, err)
		}
	}
}

// The error distinguishes a truncated file from one that is not Parquet, before anything is allocated.
func TestParquetCorruption(t *testing.T) {
	whole := parquetBytes(t, &parquet.Snappy, 3)
	huge := bytes.Clone(whole)
	copy(huge[len(huge)-8:], "\xff\xff\xff\xff")
	for want, data := range map[string][]byte{
		"is not a Parquet file: it is too short": whole[:11],
		"is cut short":                           whole[:len(whole)-1],
		"is not a Parquet file":                  append([]byte("PAR9"), whole[4:]...),
		"a footer of 4294967295 bytes":           huge,
	} {
		path := write(t, "x.parquet", data)
		if _, err := Open(t.Context(), path, source.Options{Kind: "parquet"}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}

// A row group with fewer rows than the footer says is an error, not a short dataset.
func TestParquetGroupsCutShort(t *testing.T) {
	whole := parquetBytes(t, &parquet.Snappy, 5)
	p, err := parquet.OpenFile(bytes.NewReader(whole), int64(len(whole)))
	require.NoError(t, err)
	footer := *p.Metadata()
	footer.NumRows += 2
	footer.RowGroups[1].NumRows += 2
	end, err := thrift.Marshal(new(thrift.CompactProtocol), &footer)
	require.NoError(t, err)
	pages := whole[:len(whole)-8-int(binary.LittleEndian.Uint32(whole[len(whole)-8:]))]
	data := binary.LittleEndian.AppendUint32(append(slices.Clone(pages), end...), uint32(len(end)))
	_, err = Open(t.Context(), write(t, "x.parquet", append(data, "PAR1"...)), source.Options{Kind: "parquet"})
	if want := "a row group of 7 rows has pages of 5"; err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("%v; want %s", err, want)
	}
}

// Whatever a file holds, reading it ends, with samples or an error.
func FuzzParquet(f *testing.F) {
	for _, codec := range []compress.Codec{&parquet.Uncompressed, &parquet.Snappy, &parquet.Zstd, &parquet.Gzip} {
		f.Add(parquetBytes(f, codec, 4))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		path := write(t, "x.parquet", data)
		s, err := Open(t.Context(), path, source.Options{Kind: "parquet"})
		if err != nil {
			return
		}
		defer s.Close()
		values := source.NewValues(len(s.Info().Fields))
		n := 0
		for sample, err := range s.Samples() {
			if n++; err != nil || n > 10000 {
				return
			}
			_ = sample.Data.Read(values)
		}
	})
}

// decimalsScript writes decimals in all Parquet types for them, and lists of strings; it prints the output of
// describe.
const decimalsScript = `
import decimal, json, struct, sys
import pyarrow as pa, pyarrow.parquet as pq
D = decimal.Decimal
values = [D("0.00"), D("-12345.67"), D("99999.99"), D("0.01"), D("-0.07"), D("31415.92")]
wide = [D("-1234567890123456789012345678.1234567891"), D("0.1000000000"), D("7e20"), D("-1e-10"), D("2"), D("123456789.987654321")]
texts = [["a", "b"], [], ["\u00fc"], None, ["one, two", '"quoted"'], [""]]
table = pa.table({"d9": pa.array(values, pa.decimal128(9, 2)), "d18": pa.array(values, pa.decimal128(18, 4)),
    "d38": pa.array(wide, pa.decimal128(38, 10)), "d76": pa.array(wide, pa.decimal256(76, 30)), "texts": pa.array(texts, pa.list_(pa.string()))})
pq.write_table(table, sys.argv[1], store_decimal_as_integer=True, **json.loads(sys.argv[2]))
for i, (v, w, t) in enumerate(zip(values, wide, texts)):
    row = [struct.pack("<d", float(v)).hex()] * 2 + [struct.pack("<d", float(w)).hex()] * 2
    print(i, *row, json.dumps(t or [], ensure_ascii=False, separators=(",", ":")).encode().hex())
`

// Decimals are the nearest float64, and lists of strings are JSON.
func TestParquetDecimals(t *testing.T) {
	for _, options := range []string{"{}", `{"use_dictionary": false, "data_page_version": "2.0", "compression": "zstd"}`} {
		path := filepath.Join(t.TempDir(), "x.parquet")
		want := strings.Split(strings.TrimSpace(string(pythontest.Run(t, "import pyarrow.parquet", "-c", decimalsScript, path, options))), "\n")
		fields, samples, err := describe(t, path, source.Options{})
		require.NoError(t, err)
		if got := strings.Join(fields, "|"); got != "d9 float64()|d18 float64()|d38 float64()|d76 float64()|texts uint8()* utf-8" {
			t.Error(got)
		}
		if !slices.Equal(samples, want) {
			t.Errorf("%s: samples\n%s\nwant\n%s", options, strings.Join(samples, "\n"), strings.Join(want, "\n"))
		}
	}
}
