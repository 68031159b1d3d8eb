package kinds

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/parquet-go/parquet-go"

	"github.com/penstock/penstock/internal/testkit/require"
	"github.com/penstock/penstock/prepare/source"
)

// oneByOne lists every sample of a source, with its values or its error.
func oneByOne(t *testing.T, s source.Source) (list []string) {
	t.Helper()
	v := source.NewValues(len(s.Info().Fields))
	for sample, err := range s.Samples() {
		require.NoError(t, err)
		list = append(list, wordsOf(sample, v))
	}
	return list
}

func wordsOf(s source.Sample, v *source.Values) string {
	v.Clear()
	err := s.Data.Read(v)
	text := fmt.Sprintf("%s %q %v", s.Name, s.Split, err)
	for i := range v.Len() {
		text += fmt.Sprintf(" %x", v.Get(i))
	}
	return text
}

// inBlocks is oneByOne by blocks, and how many these are.
func inBlocks(t *testing.T, s source.Source) (list []string, blocks int) {
	t.Helper()
	rows, v := source.NewRows(len(s.Info().Fields)), source.NewValues(len(s.Info().Fields))
	for b, err := range s.(source.Blocked).Blocks() {
		require.NoError(t, err)
		blocks++
		rows.Clear()
		require.NoError(t, b.Read(rows))
		odd, good := rows.Odd, 0
		for i := range rows.N {
			name := string(rows.AppendName(nil, i))
			if len(odd) > 0 && odd[0].At == i {
				text := wordsOf(source.Sample{Name: name, Split: rows.Split, Data: odd[0].Data}, v)
				if strings.Contains(text, "<nil>") {
					t.Errorf("%s: odd, but good", text)
				}
				list, odd = append(list, text), odd[1:]
				continue
			}
			text := fmt.Sprintf("%s %q %v", name, rows.Split, error(nil))
			for k, f := range s.Info().Fields {
				begin, end := good*f.RecordBytes(), (good+1)*f.RecordBytes()
				if f.Ragged {
					begin, end = append([]int{0}, rows.Ends[k]...)[good], rows.Ends[k][good]
				}
				text += fmt.Sprintf(" %x", rows.Values[k][begin:end])
			}
			list, good = append(list, text), good+1
		}
		for k, f := range s.Info().Fields {
			if n := len(rows.Values[k]); !f.Ragged && n != good*f.RecordBytes() ||
				f.Ragged && (len(rows.Ends[k]) != good || good > 0 && rows.Ends[k][good-1] != n) {
				t.Fatalf("%d bytes of %d rows of %s", len(rows.Values[k]), good, f.Name)
			}
		}
	}
	return list, blocks
}

// A table gives the same samples in blocks as one by one: names, splits, values and errors.
func TestBlocksAreTheSamples(t *testing.T) {
	long := strings.Builder{}
	long.WriteString("x1,x2,label\n")
	for i := range 30000 {
		fmt.Fprintf(&long, "%d.5,%d,%d\n", i, -i, i%3)
	}
	type row struct {
		A float32   `parquet:"a"`
		B *float64  `parquet:"b,optional"`
		C int8      `parquet:"c"`
		D uint32    `parquet:"d,dict"`
		F bool      `parquet:"f"`
		L []float32 `parquet:"l,list"`
		W string    `parquet:"label,dict"`
	}
	pq := func(n, nulls int) []byte {
		var b bytes.Buffer
		w := parquet.NewGenericWriter[row](&b, parquet.PageBufferSize(900), parquet.MaxRowsPerRowGroup(1700))
		for i := range n {
			r := row{A: float32(i) / 3, C: int8(i), D: uint32(i%5) << 30, F: i%3 == 0, L: []float32{float32(i), 2}, W: []string{"cat", "dog"}[i%2]}
			if x := float64(i) / 7; nulls == 0 || i%nulls != 0 {
				r.B = &x
			}
			if _, err := w.Write([]row{r}); err != nil {
				t.Fatal(err)
			}
		}
		require.NoError(t, w.Close())
		return b.Bytes()
	}
	cases := []struct {
		name, fields string
		files        map[string]string
		blocks       int // at least
	}{
		{"csv", "", map[string]string{"a.csv": long.String()}, 3},
		{"concat", "x*=x:float32,label:int64", map[string]string{"a.csv": long.String()}, 3},
		{"odd cells", "a:float32,b:int64", map[string]string{"a.csv": "\xef\xbb\xbfa,b,c\r\n1,2,\"x\ny\"\r\n\r\n3,,z\r\nx,4,z\r\n\"5\",6,q\r\n7,8\r\n9,10,last"}, 1},
		{"texts", "", map[string]string{"a.csv": "a,t,label,u\n1,\"x\ny\",cat,\n2,,dog,é\n3,ÿ,dog,v\nno,z,cat,w\n5,\"\"\"q\"\"\",cat,last"}, 1},
		{"texts of jsonl", "", map[string]string{"a.jsonl": "{\"a\":1,\"t\":\"x\\ny\"}\n{\"a\":2,\"t\":null}\n{\"a\":\"no\",\"t\":\"\"}\n{\"a\":3,\"t\":\"é\"}\n"}, 1},
		{"concat of odd cells", "a+b=x:float32", map[string]string{"a.csv": "a,b,c\n1,2,3\n,5,6\n7,y,8\n9,1,\n"}, 1},
		{"folders", "x:int64,t,k", map[string]string{"k=a/1.csv": "x,t\n1,\"u\"\nno,v\n2,w\n", "k=b/1.csv": "x,t\n3,u\n"}, 2},
		{"splits", "", map[string]string{"train-1.csv": "x,label\n1,cat\n2,dog\n", "test.csv": "x,label\n3,dog\n"}, 2},
		{"long last line", "a:float32", map[string]string{"a.csv": "a,b\n1,x\n2," + strings.Repeat("y", 3<<20)}, 1},
		{"jsonl", "a:float32,v:float32[2]", map[string]string{"a.jsonl": "{\"a\":1,\"v\":[1,2]}\n\n{\"v\":[3,4],\"a\":2}\n{\"a\":\"x\",\"v\":[1,2]}\n{\"a\":null,\"v\":[1,2]}\n{\"a\":3,\"v\":[1,2,3]}\n{broken\n{\"a\":5,\"v\":[\"\\u0031\",2]}\n{\"a\":6,\"v\":[7,8]}"}, 1},
		{"parquet", "", map[string]string{"a.parquet": string(pq(5000, 0))}, 3},
		{"parquet with nulls", "", map[string]string{"a.parquet": string(pq(5000, 9))}, 3},
		{"parquet of columns", "b,d=n,l:float32[2],f", map[string]string{"train-0.parquet": string(pq(2500, 0)), "test-0.parquet": string(pq(10, 3))}, 0},
		{"parquet joined", "a=x,b+b=y,label", map[string]string{"a.parquet": string(pq(3000, 100))}, 3},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			dir, kind, path := t.TempDir(), "", ""
			for name, text := range c.files {
				require.NoError(t, errors.Join(os.MkdirAll(filepath.Join(dir, filepath.Dir(name)), 0o777),
					os.WriteFile(filepath.Join(dir, name), []byte(text), 0o666)))
				kind = filepath.Ext(name)[1:]
				if path = filepath.Join(dir, "*."+kind); strings.Contains(name, "/") {
					path = dir
				}
			}
			s, err := Open(t.Context(), path, source.Options{Kind: kind, Fields: c.fields})
			require.NoError(t, err)
			defer s.Close()
			if c.blocks == 0 {
				if s.(source.Blocked).Blocks() != nil {
					t.Fatal("there are blocks")
				}
				return
			}
			want := oneByOne(t, s)
			got, blocks := inBlocks(t, s)
			if len(got) != len(want) || blocks < c.blocks {
				t.Fatalf("%d samples in %d blocks, and %d one by one", len(got), blocks, len(want))
			}
			for i := range want {
				if got[i] != want[i] {
					t.Fatalf("sample %d is\n%s in a block, and\n%s on its own", i, got[i], want[i])
				}
			}
		})
	}
}
