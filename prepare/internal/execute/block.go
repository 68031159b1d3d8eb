package execute

import (
	"encoding/binary"
	"errors"
	"slices"

	"github.com/penstock/penstock/internal/digest"
	"github.com/penstock/penstock/internal/kernel"
	"github.com/penstock/penstock/prepare/source"
	"github.com/penstock/penstock/store"
)

// BlockOf returns a sample that stands for a whole block, so that blocks go through the ring in slots like samples.
func BlockOf(b source.Block) source.Sample { return source.Sample{Data: blockData{b}} }

// blockData is a block of samples on its way from the source to a worker.
type blockData struct{ source.Block }

// Read implements source.Data. A worker reads a block through source.Block, and never as one sample.
func (blockData) Read(*source.Values) error { return errors.ErrUnsupported }

// Block is the result of a worker for a block of samples.
type Block struct {
	rows    *source.Rows
	Records *digest.Block // the samples that are not odd
	Odd     []Slot        // the odd samples; each has a field.SampleError
	Prints  []byte        // Print of each sample, little endian
	Names   []byte        // NameSum of each sample, little endian
	Size    int64         // bytes of all samples

	sums []uint32 // CRC32C of each of Records
	word []byte
}

// Samples returns the number of samples, including odd ones.
func (f *Block) Samples() int { return f.rows.N }

// OddAt returns the position of odd sample i among all samples.
func (f *Block) OddAt(i int) int { return f.rows.Odd[i].At }

// doBlock makes the records of a block. The odd samples go through Do one by one, which must fail with a
// SampleError: the block could not read these samples either.
func (w *Worker) doBlock(b source.Block, s *Slot) {
	if s.Block == nil {
		s.Block = &Block{rows: source.NewRows(len(w.job.Source)), Records: digest.NewBlock(w.job.Schema.Specs())}
	}
	f := s.Block
	f.rows.Clear()
	if s.Err = b.Read(f.rows); s.Err != nil {
		return
	}
	// The Slots keep no memory of their own: they share s.Record, which a SampleError leaves undefined.
	f.Odd = slices.Grow(f.Odd[:0], len(f.rows.Odd))[:len(f.rows.Odd)]
	for i, o := range f.rows.Odd {
		name := string(f.rows.AppendName(nil, o.At))
		f.Odd[i] = Slot{Record: s.Record, Sample: source.Sample{Name: name, Split: f.rows.Split, Data: o.Data}}
		w.Do(&f.Odd[i])
		if s.Err = f.Odd[i].fatal(); s.Err != nil {
			return
		}
		if f.Odd[i].Err == nil {
			// A source whose block and Data disagree would make records that depend on the way of reading.
			panic("prepare: a sample that its block refused can be read")
		}
	}
	f.Records.N, f.Records.Split = f.rows.N-len(f.Odd), f.rows.Split
	copy(f.Records.Values, f.rows.Values)
	copy(f.Records.Ends, f.rows.Ends)
	f.Records.Summarize()
	f.sum(w.job.Schema)
}

// sum computes Prints, Names and Size, exactly as Slot does for a single sample, so that the fingerprint of a
// source does not depend on how it was read.
func (f *Block) sum(s store.Schema) {
	size, texts := sizes(s)
	f.sums = f.Records.RecordCRC32Cs(f.sums[:0])
	f.Prints, f.Names, f.Size = f.Prints[:0], f.Names[:0], 0
	// The checksum of the common prefix is computed once, and continued for each name.
	prefix := kernel.CRC32C(0, []byte(f.rows.Prefix))
	odd, good := f.Odd, 0
	for i := range f.rows.N {
		n, crc := size, uint32(0)
		if len(odd) > 0 && f.rows.Odd[len(f.Odd)-len(odd)].At == i {
			n, crc, odd = odd[0].Size, odd[0].CRC, odd[1:]
		} else {
			crc = f.sums[good]
			for _, k := range texts {
				n += int64(len(f.Records.Slice(k, good, good+1)))
			}
			good++
		}
		f.word = append(f.rows.AppendNumber(f.word[:0], i), 0)
		name := kernel.CRC32C(prefix, f.word)
		f.Names = binary.LittleEndian.AppendUint32(f.Names, name)
		f.word = appendState(f.word[:0], n, crc)
		f.Prints = binary.LittleEndian.AppendUint32(f.Prints, kernel.CRC32C(name, f.word))
		f.Size += n
	}
}

// sizes returns the bytes of all fields with a fixed size in a record, and the positions of the other fields.
func sizes(s store.Schema) (fixed int64, texts []int) {
	for k, f := range s.Fields {
		if f.Ragged {
			texts = append(texts, k)
		} else {
			fixed += int64(f.RecordBytes())
		}
	}
	return fixed, texts
}

// bytes returns the memory that a block takes.
func (f *Block) bytes() (n int64) {
	for i, v := range f.rows.Values {
		n += int64(len(v) + 8*len(f.rows.Ends[i]))
	}
	return n + int64(len(f.Prints)+len(f.Names))
}
