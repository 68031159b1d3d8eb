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

// Slot carries a sample from the source through a worker to its commit. Slot and record are reused for other
// samples.
type Slot struct {
	number int64 // of the sample, in the order of the source
	Sample source.Sample
	Record *store.Record
	Size   int64          // bytes of the sample's values
	CRC    uint32         // CRC32C of these bytes
	Digest samples.Digest // of the sample's content, if Job.Digest is set
	Stored samples.Digest // of the record's content, if Job.Stored is set
	Err    error          // a field.SampleError concerns the sample, any other error the run; Record is then undefined
	Block  *Block         // the result, in place of all above, if Sample was made by BlockOf
}

// NameSum returns the CRC32C of the sample's name and a zero byte, which ends it.
func (s *Slot) NameSum() uint32 { return kernel.CRC32C(0, append([]byte(s.Sample.Name), 0)) }

// Print returns the part of a fingerprint that stands for the sample: the CRC32C of its name, a zero byte, its size
// in 8 bytes and the CRC32C of its values in 4 bytes, little endian.
func (s *Slot) Print() uint32 {
	return kernel.CRC32C(s.NameSum(), appendState(nil, s.Size, s.CRC))
}

// appendState appends what a Print covers after the name.
func appendState(b []byte, size int64, crc uint32) []byte {
	return binary.LittleEndian.AppendUint32(binary.LittleEndian.AppendUint64(b, uint64(size)), crc)
}

// fatal returns the error if it ends the run, and nil for none or a SampleError.
func (s *Slot) fatal() error {
	var bad *field.SampleError
	if errors.As(s.Err, &bad) {
		return nil
	}
	return s.Err
}

// bytes returns the memory that a filled slot takes.
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

// trim drops the sample, and the memory of ragged values that have more than most bytes: a single large value would
// otherwise stay in each slot.
func (s *Slot) trim(schema store.Schema, most int64) {
	s.Sample = source.Sample{}
	if s.Record == nil {
		return
	}
	for i, v := range s.Record.Values {
		// Values of a fixed size have the same memory for all samples.
		if schema.Fields[i].Ragged && int64(cap(v)) > most {
			s.Record.Values[i] = nil
		}
	}
}
