package execute

import (
	"encoding/binary"
	"errors"

	"github.com/penstock/penstock/internal/kernel"
	"github.com/penstock/penstock/prepare/internal/execute/field"
	"github.com/penstock/penstock/prepare/internal/samples"
	"github.com/penstock/penstock/prepare/source"
	"github.com/penstock/penstock/store"
)

// Slot carries one sample from the source through a worker to its commit. Its record is
// reused for other samples.
type Slot struct {
	number int64 // of the sample, in the order of the source
	Sample source.Sample
	Record *store.Record
	Size   int64          // bytes of the sample
	CRC    uint32         // of these bytes
	Digest samples.Digest // of the content, if the job asks for it
	Stored samples.Digest // of the record's content, likewise
	Err    error          // of the sample or, unless it is a field.SampleError, of the run; then Record holds nothing
	Block  *Block         // in place of all that, where Sample was made by BlockOf
}

// NameSum returns the CRC32C of the sample's name and a zero byte.
func (s *Slot) NameSum() uint32 { return kernel.CRC32C(0, append([]byte(s.Sample.Name), 0)) }

// Print returns what a fingerprint has of the sample: the CRC32C of its name, a zero byte, its size as 8 and the CRC32C
// of its bytes as 4 bytes, little endian.
func (s *Slot) Print() uint32 {
	return kernel.CRC32C(s.NameSum(), appendState(nil, s.Size, s.CRC))
}

// appendState appends what a Print has of a sample next to its name.
func appendState(b []byte, size int64, crc uint32) []byte {
	return binary.LittleEndian.AppendUint32(binary.LittleEndian.AppendUint64(b, uint64(size)), crc)
}

// fatal returns why the run cannot continue, if so.
func (s *Slot) fatal() error {
	var bad *field.SampleError
	if errors.As(s.Err, &bad) {
		return nil
	}
	return s.Err
}

// bytes returns what a slot that is filled takes.
func (s *Slot) bytes() int64 {
	n := s.Size
	if s.Block != nil {
		n += s.Block.bytes()
	}
	if s.Record != nil {
		for _, v := range s.Record.Values {
			n += int64(len(v))
		}
	}
	return n
}

// trim lets go of the sample, and of values of any length that take more than most bytes.
func (s *Slot) trim(schema store.Schema, most int64) {
	s.Sample = source.Sample{}
	if s.Record == nil {
		return
	}
	for i, v := range s.Record.Values {
		if schema.Fields[i].Ragged && int64(cap(v)) > most {
			s.Record.Values[i] = nil
		}
	}
}
