package hdf5

import (
	"encoding/binary"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/penstock/penstock/internal/layout"
	"github.com/penstock/penstock/store"
	"github.com/penstock/penstock/tensor"
)

// sample is a dataset that both containers write.
type sample struct {
	name string
	numbered
	n    int
	opts Options
	more int // records that are appended in a second run
}

// samples are datasets of all kinds.
func samples() (list []sample) {
	add := func(name string, of numbered, n int, opts Options) { list = append(list, sample{name, of, n, opts, 0}) }
	normal := imageSchema(9, 9)
	normal.Fields[0].Normalization = &store.Normalization{Scale: 255, Mean: []float64{.1, .2, .3}, Std: []float64{1, 2, 3}}
	many := imageSchema(4, 4)
	for i := range 5000 {
		many.Fields[1].Classes = append(many.Fields[1].Classes, fmt.Sprintf("class number %d", i))
	}
	wide := store.Schema{}
	for i := range 40 {
		wide.Fields = append(wide.Fields, store.NewField(fmt.Sprintf("column-%d", i), tensor.DType(int(tensor.Bool)+i%13)))
	}
	add("types", filled(everyType()), 60, Options{Records: 60})
	add("types, fewer", filled(everyType()), 41, Options{Records: 3000})
	add("images", filled(imageSchema(40, 40)), 30, Options{Records: 30})
	add("normalized images", filled(normal), 30, Options{})
	add("many classes", filled(many), 10, Options{Records: 10})
	add("many fields", filled(wide), 20, Options{})
	add("one record", filled(imageSchema(1, 1)), 1, Options{Records: 1})
	add("ragged", raggedNumbered(noSplit), 90, Options{})
	add("ragged, one record", raggedNumbered(noSplit), 1, Options{})
	add("ragged in splits", raggedNumbered(trainOrVal), 90, Options{Splits: trainVal})
	add("texts", textNumbered(), 70, Options{})
	packed := numbered{packedSchema(), func(r *store.Record, i int) { fillPacked(packedSchema(), r, i) }}
	for name, c := range compressions {
		add("packed "+name, packed, 40, Options{Compress: &c})
	}
	add("many chunks", filled(imageSchema(4, 4)), 9000, Options{Compress: &Compression{Level: 1, ChunkRecords: 1}})
	add("one axis", filled(store.Schema{Fields: []store.Field{store.NewField("x", tensor.Int16)}}), 9000, Options{Compress: &Compression{Level: 1, ChunkRecords: 7, Shuffle: ShuffleOn}})
	add("many axes", filled(store.Schema{Fields: []store.Field{store.NewField("x", tensor.Float32, 1, 2, 1, 3, 1, 2, 2)}}), 200, Options{Compress: &Compression{ChunkRecords: 3}})
	for _, s := range []sample{list[0], list[9], list[11], list[12]} {
		s.name, s.more, s.opts.Records = s.name+", appended", 33, 0
		list = append(list, s)
	}
	return list
}

func (s *sample) build(t *testing.T, by container) (path string, m *store.Manifest) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "x.h5")
	opts := s.opts
	opts.by = []container{by}
	m = s.write(t, path, 0, s.n, opts, store.Info{})
	if s.more > 0 {
		opts.Append, opts.Compress = true, nil
		m = s.write(t, path, s.n, s.n+s.more, opts, store.Info{})
	}
	return path, m
}

// textNumbered are records with a text, the name of a file and a label.
func textNumbered() numbered {
	caption, names, label := store.NewRagged("caption", tensor.Uint8), store.NewRagged(layout.SourceNameField, tensor.Uint8), store.NewField("labels", tensor.Int64)
	caption.Content, names.Content, label.Classes = tensor.Text, tensor.SourceName, []string{"Kätzchen", "dog"}
	return numbered{store.Schema{Fields: []store.Field{caption, label, names}}, func(r *store.Record, i int) {
		r.Values[0] = append(r.Values[0][:0], strings.Repeat("žluť ", i%9)...)
		r.Values[1] = binary.LittleEndian.AppendUint64(r.Values[1][:0], uint64(i%2))
		r.Values[2] = fmt.Appendf(r.Values[2][:0], "folder/%d.jpg", i)
	}}
}
