package zarr

import (
	"encoding/binary"
	"encoding/json"
	"hash/crc32"
	"math"
	"sync"
)

// sharding is the codec sharding_indexed: each file is a shard with many chunks, and an index that says where they are.
type sharding struct {
	per     []int64 // chunks of a shard, by axis
	chunks  int     // of a shard
	atStart bool    // of the file is the index, not at the end
	big     bool    // the index is big endian
	sum     bool    // a CRC32C follows the index

	mu      sync.Mutex
	indexes map[string]index // by name of the shard
	entries int              // in all of them
}

// index has offset and length of each chunk of a shard. It is nil if the shard was never written.
type index []uint64

// missing is the offset and the length in the index of a chunk that was never written.
const missing = math.MaxUint64

// mostEntries limits how many entries of indexes are kept in memory: 64 MiB.
const mostEntries = 4 << 20

// mostChunks limits how many chunks a shard has. Its index is read as a whole, and metadata can claim any number.
const mostChunks = 1 << 27

// indexCodecs reads the codecs of a shard's index. The specification allows any codecs that keep its size, but every
// writer uses bytes and crc32c, so all other codecs are refused.
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
		return corrupt("no codec turns the index of shards into bytes")
	}
	return nil
}

// indexBytes returns the size of an index in a file.
func (s *sharding) indexBytes() int64 {
	n := 16 * int64(s.chunks)
	if s.sum {
		n += 4
	}
	return n
}

// find returns the index of the shard in a file of size bytes. Indexes that were read are kept, up to a limit.
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
