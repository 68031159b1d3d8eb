package zarr

import (
	"encoding/json"
	"errors"
	"math"
	"strconv"
)

// parseArray3 reads the metadata of an array of version 3.
func parseArray3(text []byte) *Array {
	a := new(Array)
	var m struct {
		Shape        []int64         `json:"shape"`
		DataType     json.RawMessage `json:"data_type"`
		ChunkGrid    codec           `json:"chunk_grid"`
		KeyEncoding  codec           `json:"chunk_key_encoding"`
		FillValue    json.RawMessage `json:"fill_value"`
		Codecs       []codec         `json:"codecs"`
		Attributes   Attributes      `json:"attributes"`
		Dimensions   []*string       `json:"dimension_names"`
		Transformers []codec         `json:"storage_transformers"`
	}
	if err := json.Unmarshal(text, &m); err != nil {
		a.Err = corrupt("metadata: %v", err)
		return a
	}
	a.Shape, a.Attributes = m.Shape, m.Attributes
	for _, name := range m.Dimensions {
		if name != nil {
			a.Dimensions = append(a.Dimensions, *name)
		} else {
			a.Dimensions = append(a.Dimensions, "")
		}
	}
	var grid struct {
		Shape []int64 `json:"chunk_shape"`
	}
	err := json.Unmarshal(m.ChunkGrid.Config, &grid)
	switch {
	case m.ChunkGrid.Name != "regular":
		a.Err = unsupported("chunk grid %q", m.ChunkGrid.Name)
	case err != nil:
		a.Err = corrupt("chunk grid: %v", err)
	case len(m.Transformers) > 0:
		a.Err = unsupported("storage transformer %q", m.Transformers[0].Name)
	default:
		a.Chunks = grid.Shape
		scalar := a.Scalar() && len(a.Chunks) == 0
		if scalar {
			a.Shape, a.Chunks = []int64{1}, []int64{1}
		}
		a.Err = a.setUp(m.DataType, m.FillValue, m.Codecs, keyEncoding3(m.KeyEncoding))
		a.Err = a.settleText(m.DataType, m.FillValue)
		if scalar {
			if m.KeyEncoding.Name == "default" {
				a.key = func([]int64) string { return "c" }
			}
			a.asScalar()
		}
	}
	return a
}

// setUp fills in the fields that follow from the metadata of version 3.
func (a *Array) setUp(dtype, fill json.RawMessage, codecs []codec, sep func() (func([]int64) string, error)) (
	err error) {
	sharded := len(codecs) == 1 && codecs[0].Name == "sharding_indexed"
	most := int64(mostElements)
	if sharded {
		most = math.MaxInt64 / 64
	}
	if err := a.checkShape(most); err != nil {
		return err
	}
	if a.key, err = sep(); err != nil {
		return err
	}
	if a.number, err = number3(dtype); err == nil && !a.number.isText() {
		a.fill, err = a.number.fillValue(fill)
	}
	if err != nil {
		return err
	}
	if sharded {
		return a.setUpShards(codecs[0])
	}
	a.coding, err = newPipeline(codecs, a.number, a.Chunks)
	return err
}

// mostElements is how many elements a chunk has at most. With the limit, the sizes of chunks in bytes cannot overflow.
const mostElements = math.MaxInt32 * 16

// checkShape makes sure that shape and chunks are possible, and that a chunk has no more than most elements: later code
// multiplies their lengths.
func (a *Array) checkShape(most int64) error {
	if len(a.Shape) == 0 {
		return unsupported("a scalar has no records")
	}
	if len(a.Chunks) != len(a.Shape) || len(a.Shape) > 32 {
		return corrupt("shape %v in chunks of %v", a.Shape, a.Chunks)
	}
	elements := int64(1)
	for i, n := range a.Chunks {
		if n < 1 || a.Shape[i] < 0 || n > most/elements {
			return corrupt("shape %v in chunks of %v", a.Shape, a.Chunks)
		}
		elements *= n
	}
	return nil
}

// keyEncoding3 returns the function that names the files of chunks.
func keyEncoding3(c codec) func() (func([]int64) string, error) {
	return func() (func([]int64) string, error) {
		var conf struct {
			Separator string `json:"separator"`
		}
		if len(c.Config) > 0 {
			if err := json.Unmarshal(c.Config, &conf); err != nil {
				return nil, corrupt("chunk key encoding: %v", err)
			}
		}
		switch c.Name {
		case "default":
			sep := or(conf.Separator, "/")
			return func(coord []int64) string { return "c" + sep + joined(coord, sep) }, checkSeparator(sep)
		case "v2":
			sep := or(conf.Separator, ".")
			return func(coord []int64) string { return joined(coord, sep) }, checkSeparator(sep)
		}
		return nil, unsupported("chunk key encoding %q", c.Name)
	}
}

func or(s, otherwise string) string {
	if s == "" {
		return otherwise
	}
	return s
}

func checkSeparator(sep string) error {
	if sep != "/" && sep != "." {
		return corrupt("separator %q", sep)
	}
	return nil
}

func joined(coord []int64, sep string) string {
	var b []byte
	for i, x := range coord {
		if i > 0 {
			b = append(b, sep...)
		}
		b = strconv.AppendInt(b, x, 10)
	}
	return string(b)
}

// parseArray2 reads the metadata of an array of version 2.
func parseArray2(text, attributes []byte) *Array {
	a := new(Array)
	var m struct {
		ZarrFormat int               `json:"zarr_format"`
		Shape      []int64           `json:"shape"`
		Chunks     []int64           `json:"chunks"`
		DType      json.RawMessage   `json:"dtype"`
		Compressor json.RawMessage   `json:"compressor"`
		FillValue  json.RawMessage   `json:"fill_value"`
		Order      string            `json:"order"`
		Filters    []json.RawMessage `json:"filters"`
		Separator  string            `json:"dimension_separator"`
	}
	if err := json.Unmarshal(text, &m); err != nil {
		a.Err = corrupt("metadata: %v", err)
		return a
	}
	_ = json.Unmarshal(attributes, &a.Attributes) // notes of people, which need not be right
	_ = json.Unmarshal(a.Attributes["_ARRAY_DIMENSIONS"], &a.Dimensions)
	a.Shape, a.Chunks = m.Shape, m.Chunks
	if m.ZarrFormat != 2 {
		a.Err = unsupported("version %d", m.ZarrFormat)
		return a
	}
	if a.Scalar() && len(a.Chunks) == 0 {
		a.Shape, a.Chunks = []int64{1}, []int64{1}
		defer a.asScalar()
	}
	codecs, err := codecs2(m.Order, len(a.Shape), append(m.Filters, m.Compressor))
	if err == nil {
		err = a.checkShape(mostElements)
	}
	if err == nil {
		a.number, err = number2(m.DType)
	}
	sep := or(m.Separator, ".")
	a.key = func(coord []int64) string { return joined(coord, sep) }
	if err == nil && !a.number.isText() {
		a.fill, err = a.number.fillValue(m.FillValue)
	}
	if err == nil {
		a.coding, err = newPipeline(codecs, a.number, a.Chunks)
	}
	a.Err = errors.Join(err, checkSeparator(sep))
	a.Err = a.settleText(m.DType, m.FillValue)
	return a
}

// codecs2 returns the filters and the compressor of version 2 as codecs of version 3, so that the rest of the package
// knows one form.
func codecs2(order string, axes int, filters []json.RawMessage) (codecs []codec, err error) {
	if order == "F" {
		turned := make([]int, axes)
		for i := range turned {
			turned[i] = axes - 1 - i
		}
		text, err := json.Marshal(map[string]any{"order": turned})
		if err != nil {
			return nil, err
		}
		codecs = append(codecs, codec{"transpose", text})
	} else if order != "C" {
		return nil, corrupt("order %q", order)
	}
	codecs = append(codecs, codec{Name: nativeBytes})
	for _, text := range filters {
		var id struct {
			ID string `json:"id"`
		}
		if len(text) == 0 || string(text) == "null" {
			continue
		}
		if err := json.Unmarshal(text, &id); err != nil {
			return nil, corrupt("filter: %v", err)
		}
		codecs = append(codecs, codec{"numcodecs." + id.ID, text})
	}
	return codecs, nil
}

// setUpShards makes the chunks inside of shards the chunks of the array, so that a read decodes these and not whole
// shards.
func (a *Array) setUpShards(c codec) error {
	var conf struct {
		Shape         []int64 `json:"chunk_shape"`
		Codecs        []codec `json:"codecs"`
		IndexCodecs   []codec `json:"index_codecs"`
		IndexLocation string  `json:"index_location"`
	}
	if err := json.Unmarshal(c.Config, &conf); err != nil {
		return corrupt("codec %s: %v", c.Name, err)
	}
	a.Shards, a.Chunks = a.Chunks, conf.Shape
	if err := a.checkShape(mostElements); err != nil {
		return err
	}
	s := &sharding{chunks: 1, indexes: make(map[string]index)}
	for i, n := range a.Chunks {
		if a.Shards[i]%n != 0 || a.Shards[i]/n > int64(mostChunks/s.chunks) {
			return corrupt("shards of %v in chunks of %v", a.Shards, a.Chunks)
		}
		s.per = append(s.per, a.Shards[i]/n)
		s.chunks *= int(a.Shards[i] / n)
	}
	switch conf.IndexLocation {
	case "start":
		s.atStart = true
	case "end", "":
	default:
		return corrupt("codec %s: index location %q", c.Name, conf.IndexLocation)
	}
	a.shard = s
	if err := s.indexCodecs(conf.IndexCodecs); err != nil {
		return err
	}
	var err error
	a.coding, err = newPipeline(conf.Codecs, a.number, a.Chunks)
	return err
}
