package zarr

import (
	"encoding/binary"
	"encoding/json"
	"hash/crc32"
	"math"
	"strings"

	"github.com/klauspost/compress/zstd"

	"github.com/penstock/penstock/tensor"
)

// Grid is how the rows of an array that this module writes are in files: chunks of whole rows, in shards of whole
// chunks. A shard begins with its index, which is padded to whole pages, so that uncompressed chunks can be mapped.
type Grid struct {
	Chunk int64 // rows of a chunk
	Shard int64 // rows of a shard: a multiple of Chunk; 0: chunks are files, and not in shards
	Zstd  int   // level of compression; 0 stores chunks as they are
}

// page is the alignment to which shards are padded.
const page = 4096

// Head returns the number of bytes before the chunks of a shard.
func (g Grid) Head() int64 { return (16*(g.Shard/g.Chunk) + 4 + page - 1) / page * page }

// Index says where the chunks of a shard are in its file. An empty chunk has no place.
type Index []uint64

// NewIndex returns the index of a shard without chunks.
func (g Grid) NewIndex() Index {
	x := make(Index, 2*(g.Shard/g.Chunk))
	for i := range x {
		x[i] = missing
	}
	return x
}

// Set enters the place of chunk number i.
func (x Index) Set(i, offset, n int64) { x[2*i], x[2*i+1] = uint64(offset), uint64(n) }

// Encode returns the bytes of the index in a file, padded to Grid.Head bytes.
func (x Index) Encode(g Grid) []byte {
	b := make([]byte, 0, g.Head())
	for _, n := range x {
		b = binary.LittleEndian.AppendUint64(b, n)
	}
	b = binary.LittleEndian.AppendUint32(b, crc32.Checksum(b, castagnoli))
	return b[:cap(b)]
}

// named is a codec, chunk grid or the like, in the form in which JSON has it.
type named struct {
	Name   string `json:"name"`
	Config any    `json:"configuration,omitempty"`
}

type object = map[string]any // whose keys are written in order

// arrayNode is the metadata of an array, in the form in which JSON has it.
type arrayNode struct {
	ZarrFormat  int       `json:"zarr_format"`
	NodeType    string    `json:"node_type"`
	Shape       []int64   `json:"shape"`
	DataType    string    `json:"data_type"`
	ChunkGrid   named     `json:"chunk_grid"`
	KeyEncoding named     `json:"chunk_key_encoding"`
	FillValue   any       `json:"fill_value"`
	Codecs      []named   `json:"codecs"`
	Attributes  any       `json:"attributes"`
	Dimensions  []*string `json:"dimension_names,omitempty"`
}

// EncodeArray returns the metadata of an array of that many rows: zarr.json. A bfloat16 is written as its bits, which
// are a uint16. dims are the names of its dimensions.
func EncodeArray(row tensor.Spec, rows int64, g Grid, dims []string, attributes any) ([]byte, error) {
	along := func(n int64) []int64 {
		shape := []int64{n}
		for _, x := range row.Shape {
			shape = append(shape, int64(x))
		}
		return shape
	}
	little := named{"bytes", object{"endian": "little"}}
	n := arrayNode{
		ZarrFormat: 3, NodeType: "array", Shape: along(rows), DataType: row.DType.String(), FillValue: 0,
		ChunkGrid:   named{"regular", object{"chunk_shape": along(max(g.Chunk, g.Shard))}},
		KeyEncoding: named{"default", object{"separator": "."}},
		Codecs:      []named{little}, Attributes: attributes,
	}
	for i := range dims {
		n.Dimensions = append(n.Dimensions, &dims[i])
	}
	n.bits(row.DType)
	sum := named{Name: "crc32c"}
	if g.Zstd > 0 {
		n.Codecs = append(n.Codecs, named{"zstd", object{"level": g.Zstd, "checksum": false}}, sum)
	}
	if g.Shard > 0 {
		n.Codecs = []named{{"sharding_indexed", object{
			"chunk_shape": along(g.Chunk), "codecs": n.Codecs, "index_codecs": []named{little, sum}, "index_location": "start",
		}}}
	}
	return encodeNode(n)
}

// EncodeTiles returns the metadata of an array in chunks of any shape, each a file that is compressed by zstd. dims are
// the names of its dimensions; the name "" means that a dimension has no name.
func EncodeTiles(dtype tensor.DType, shape, chunk []int, level int, dims []string, attributes any) ([]byte, error) {
	n := arrayNode{
		ZarrFormat: 3, NodeType: "array", Shape: int64s(shape), DataType: dtype.String(), FillValue: 0,
		ChunkGrid:   named{"regular", object{"chunk_shape": int64s(chunk)}},
		KeyEncoding: named{"default", object{"separator": "."}},
		Codecs: []named{{"bytes", object{"endian": "little"}}, {"zstd", object{"level": level, "checksum": false}},
			{Name: "crc32c"}},
		Attributes: attributes,
	}
	if strings.Join(dims, "") != "" {
		for _, name := range dims {
			if name == "" {
				n.Dimensions = append(n.Dimensions, nil)
			} else {
				n.Dimensions = append(n.Dimensions, &name)
			}
		}
	}
	n.bits(dtype)
	return encodeNode(n)
}

func int64s(list []int) (out []int64) {
	for _, x := range list {
		out = append(out, int64(x))
	}
	return out
}

// bits sets the data type and fill value of an array. Some types are written as another type, or have a zero of another
// form.
func (n *arrayNode) bits(dtype tensor.DType) {
	switch dtype {
	case tensor.BFloat16:
		n.DataType = tensor.Uint16.String()
	case tensor.Bool:
		n.FillValue = false
	}
}

// EncodeGroup returns the metadata of a group: zarr.json. If there are nodes, by their paths in it,
// it has their metadata, too, so that readers need no other file: xarray looks for that.
func EncodeGroup(attributes any, nodes map[string]json.RawMessage) ([]byte, error) {
	type consolidated struct {
		Kind       string                     `json:"kind"`
		Understand bool                       `json:"must_understand"`
		Metadata   map[string]json.RawMessage `json:"metadata"`
	}
	group := struct {
		ZarrFormat   int           `json:"zarr_format"`
		NodeType     string        `json:"node_type"`
		Attributes   any           `json:"attributes"`
		Consolidated *consolidated `json:"consolidated_metadata,omitempty"`
	}{3, "group", attributes, nil}
	if nodes != nil {
		group.Consolidated = &consolidated{"inline", false, nodes}
	}
	return encodeNode(group)
}

func encodeNode(node any) ([]byte, error) {
	text, err := json.MarshalIndent(node, "", "  ")
	return append(text, '\n'), err
}

// Encoder encodes rows as chunks, one at a time.
type Encoder struct {
	size int // bytes of a chunk
	zstd *zstd.Encoder
	pad  []byte
	out  []byte
}

// NewEncoder returns an encoder of the chunks of a grid.
func NewEncoder(g Grid, rowBytes int) (*Encoder, error) {
	if g.Chunk > math.MaxInt32/int64(rowBytes) {
		return nil, unsupported("chunks of %d rows of %d bytes", g.Chunk, rowBytes)
	}
	e := &Encoder{size: int(g.Chunk) * rowBytes}
	if g.Zstd == 0 {
		return e, nil
	}
	var err error
	e.zstd, err = zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.EncoderLevelFromZstd(g.Zstd)),
		zstd.WithEncoderConcurrency(1), zstd.WithEncoderCRC(false))
	return e, err
}

// Encode makes a chunk of whole rows: fewer, which the last chunk of an array may have, are followed by zeros. The
// chunk is valid until the next call, and may be the rows themselves. The mask is 0.
func (e *Encoder) Encode(rows []byte) (chunk []byte, mask uint32, err error) {
	if len(rows) < e.size {
		if e.pad == nil {
			e.pad = make([]byte, e.size)
		}
		clear(e.pad[copy(e.pad, rows):])
		rows = e.pad
	}
	if e.zstd == nil {
		return rows, 0, nil
	}
	e.out = e.zstd.EncodeAll(rows, e.out[:0])
	e.out = binary.LittleEndian.AppendUint32(e.out, crc32.Checksum(e.out, castagnoli))
	return e.out, 0, nil
}
