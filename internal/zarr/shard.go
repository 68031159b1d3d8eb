package zarr

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"hash/crc32"
	"math"
	"sync"
)

// sharding is the codec sharding_indexed: files with many chunks, and an index of them.
type sharding struct {
	per     []int64 // chunks of a shard, by axis
	chunks  int     // of a shard
	atStart bool    // of the file is the index, not at the end
	big     bool    // the index is big endian
	sum     bool    // a CRC32C is behind the index

	mu      sync.Mutex
	indexes map[string]index // by name of the shard
	entries int              // in all of them
}

// index is where the chunks of a shard are: offset and bytes of each; nil if the shard was never written.
type index []uint64

// missing is offset and bytes of a chunk that was never written.
const missing = math.MaxUint64

// mostEntries is how many entries of indexes are kept: 64 MiB.
const mostEntries = 4 << 20

// mostChunks is how many chunks a shard has at most.
const mostChunks = 1 << 27

// setUpShards takes the chunks of shards for those that are read.
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

func (s *sharding) indexCodecs(codecs []codec) error {
	for i, c := range codecs {
		switch {
		case i == 0 && c.Name == "bytes":
			var conf struct {
				Endian string `json:"endian"`
			}
			if err := json.Unmarshal(c.Config, &conf); err != nil {
				return corrupt("codec bytes of an index: %v", err)
			}
			s.big = conf.Endian == "big"
		case i == 1 && c.Name == "crc32c":
			s.sum = true
		default:
			return unsupported("codec %q of an index of shards", c.Name)
		}
	}
	if len(codecs) == 0 {
		return corrupt("no codec makes bytes of the index of shards")
	}
	return nil
}

// indexBytes returns the bytes of an index in a file.
func (s *sharding) indexBytes() int64 {
	n := 16 * int64(s.chunks)
	if s.sum {
		n += 4
	}
	return n
}

// find returns the index of a shard, which is in that file of size bytes.
func (s *sharding) find(name string, f File, size int64) (index, error) {
	s.mu.Lock()
	x, ok := s.indexes[name]
	s.mu.Unlock()
	if ok {
		return x, nil
	}
	x, err := s.read(f, size)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for other, x := range s.indexes {
		if s.entries+s.chunks <= mostEntries {
			break
		}
		delete(s.indexes, other)
		s.entries -= len(x) / 2
	}
	if _, ok := s.indexes[name]; !ok {
		s.indexes[name] = x
		s.entries += len(x) / 2
	}
	return x, nil
}

// read reads an index.
func (s *sharding) read(f File, size int64) (index, error) {
	n := s.indexBytes()
	if n > size {
		return nil, corrupt("a shard of %d bytes with an index of %d", size, n)
	}
	b := make([]byte, n)
	at := size - n
	if s.atStart {
		at = 0
	}
	if err := readFull(f, b, at); err != nil {
		return nil, err
	}
	if s.sum {
		sum := binary.LittleEndian.Uint32(b[n-4:])
		if b = b[:n-4]; crc32.Checksum(b, castagnoli) != sum {
			return nil, corrupt("the index of the shard is not what its checksum says")
		}
	}
	var order binary.ByteOrder = binary.LittleEndian
	if s.big {
		order = binary.BigEndian
	}
	x := make(index, 2*s.chunks)
	for i := range x {
		x[i] = order.Uint64(b[8*i:])
	}
	return x, nil
}

// extent returns where a chunk is in a shard of size bytes; ok is false if it was never written.
func (x index) extent(i int, size int64) (offset, n int64, ok bool, err error) {
	at, bytes := x[2*i], x[2*i+1]
	if at == missing && bytes == missing {
		return 0, 0, false, nil
	}
	if at > uint64(size) || bytes > uint64(size)-at {
		return 0, 0, false, corrupt("chunk %d of the shard is at bytes [%d, +%d) of %d", i, at, bytes, size)
	}
	return int64(at), int64(bytes), true, nil
}

// place is where a chunk is: the name of a file in the folder of the array and, of a shard, the number of the chunk.
type place struct {
	name  string
	inner int
}

// placeOf returns where a chunk is that has this number in the grid, row by row.
func (a *Array) placeOf(number int64) (p place) {
	var buf [32]int64
	coord := buf[:len(a.Shape)]
	for i := len(coord) - 1; i >= 0; i-- {
		n := chunksOn(a.Shape[i], a.Chunks[i])
		coord[i] = number % n
		number /= n
	}
	if a.shard != nil {
		for i, n := range a.shard.per {
			p.inner = p.inner*int(n) + int(coord[i]%n)
			coord[i] /= n
		}
	}
	p.name = a.key(coord)
	if a.Path != "" {
		p.name = a.Path + "/" + p.name
	}
	return p
}

func chunksOn(length, n int64) int64 { return length/n + min(length%n, 1) }

// chunks implements chunk.Chunks.
type chunks struct{ *Array }

// Load implements chunk.Chunks.
func (c chunks) Load(ctx context.Context, number int64, buf *[]byte) ([]byte, error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	p := c.placeOf(number)
	f, size, err := c.open(p.name)
	if f == nil || err != nil {
		return nil, err
	}
	defer f.Close()
	offset, n := int64(0), size
	if c.shard != nil {
		x, err := c.shard.find(p.name, f, size)
		if err != nil {
			return nil, err
		}
		var ok bool
		if offset, n, ok, err = x.extent(p.inner, size); err != nil || !ok {
			return nil, err
		}
	}
	if int64(cap(*buf)) < n || *buf == nil {
		*buf = make([]byte, n)
	}
	b := (*buf)[:n]
	return b, readFull(f, b, offset)
}

// Possible implements chunk.Chunks.
func (c chunks) Possible(stored int) bool { return c.coding.possible(stored) }

// Decode implements chunk.Chunks.
func (c chunks) Decode(dst, stored []byte, spare *[2][]byte) error {
	return c.coding.decode(dst, stored, spare)
}

// Name implements chunk.Chunks.
func (c chunks) Name(number int64) string {
	if p := c.placeOf(number); c.shard != nil {
		return fmt.Sprintf("%s: chunk %d", p.name, p.inner)
	} else {
		return p.name
	}
}
