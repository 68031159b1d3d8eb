package prepare

import (
	"encoding/binary"
	"errors"
	"iter"
	"slices"

	"github.com/penstock/penstock/internal/digest"
	"github.com/penstock/penstock/internal/kernel"
	"github.com/penstock/penstock/prepare/internal/execute/field"
	"github.com/penstock/penstock/prepare/source"
	"github.com/penstock/penstock/store"
)

// manySamples is a block of samples on its way from the source through a worker to its commit: the Data of one slot.
// It is handled like its samples one by one.
type manySamples struct{ source.Block }

// Read implements source.Data. Nobody reads a block as one sample.
func (manySamples) Read(*source.Values) error { return errors.ErrUnsupported }

// filled is what a worker has made of a block.
type filled struct {
	rows   *source.Rows
	block  *digest.Block // the records: samples of rows that are not odd
	odd    []slot        // the others; each is bad
	prints []byte        // what each sample adds to the fingerprint, see runLog.enter
	names  []byte        // and to the hash of the names
	sizes  int64         // bytes of all samples
}

// blocks returns the samples of the source in blocks, where records are what the source has: all fields have a
// fixed size and stay as they are, and nothing is asked of a sample beside its values.
func (r *run) blocks(j *job) (iter.Seq2[source.Sample, error], bool) {
	src, ok := r.src.(source.Blocked)
	_, dataset := r.commits.(datasetCommitter)
	if !ok || j.digest || j.stored || j.named || !dataset || len(j.fields) != len(j.source) {
		return nil, false
	}
	for i, f := range j.fields {
		if !field.Copies(f) || j.source[i].Ragged || j.source[i].Derived {
			return nil, false
		}
	}
	blocks := src.Blocks()
	if blocks == nil {
		return nil, false
	}
	return func(yield func(source.Sample, error) bool) {
		for b, err := range blocks {
			if !yield(source.Sample{Data: manySamples{b}}, err) {
				return
			}
		}
	}, true
}

// doBlock makes the records of a block.
func (w *worker) doBlock(b source.Block, s *slot) {
	if s.many == nil {
		s.many = &filled{rows: source.NewRows(len(w.job.source)), block: digest.NewBlock(w.job.schema.Specs())}
	}
	f := s.many
	f.rows.Clear()
	if s.fatal = b.Read(f.rows); s.fatal != nil {
		return
	}
	f.odd = slices.Grow(f.odd[:0], len(f.rows.Odd))[:len(f.rows.Odd)]
	for i, o := range f.rows.Odd {
		f.odd[i] = slot{record: s.record, sample: source.Sample{Name: string(f.rows.Name(o.At)), Split: f.rows.Split, Data: o.Data}}
		if w.do(&f.odd[i]); f.odd[i].fatal != nil {
			s.fatal = f.odd[i].fatal
			return
		}
		if f.odd[i].bad == nil {
			panic("preprocess: a sample that its block refused can be read")
		}
	}
	f.block.N, f.block.Split = f.rows.N-len(f.odd), f.rows.Split
	copy(f.block.Values, f.rows.Values)
	f.block.Summarize()
	f.sum(w.job.schema)
}

// sum computes the prints of all samples.
func (f *filled) sum(s store.Schema) {
	size := s.RecordBytes()
	f.prints, f.names, f.sizes = f.prints[:0], f.names[:0], 0
	odd, good := f.odd, 0
	for i := range f.rows.N {
		n, crc := int64(size), uint32(0)
		if len(odd) > 0 && f.rows.Odd[len(f.odd)-len(odd)].At == i {
			n, crc, odd = odd[0].size, odd[0].crc, odd[1:]
		} else {
			crc = f.crc(s, good)
			good++
		}
		name := f.rows.Name(i)
		f.names = append(append(f.names, name...), 0)
		f.prints = append(append(f.prints, name...), 0)
		f.prints = binary.LittleEndian.AppendUint64(f.prints, uint64(n))
		f.prints = binary.LittleEndian.AppendUint32(f.prints, crc)
		f.sizes += n
	}
}

// crc returns the checksum of the values of a record, one behind the other.
func (f *filled) crc(s store.Schema, record int) uint32 {
	crc := f.block.CRC32Cs(0)[record]
	for i := 1; i < len(s.Fields); i++ {
		size := s.Fields[i].RecordBytes()
		crc = kernel.CRC32C(crc, f.block.Values[i][record*size:(record+1)*size])
	}
	return crc
}

// commitBlock enters the samples of a block in the order of the source, and gives the records to add.
func (r *run) commitBlock(s *slot, add func(*slot) error) error {
	f := s.many
	r.progress.Add(int64(f.rows.N))
	before := r.log.samples
	for i := range f.odd { // an error says how many samples there were
		r.log.samples = before + int64(f.rows.Odd[i].At) + 1
		if err := r.leaveOut(&f.odd[i]); err != nil {
			return err
		}
	}
	r.log.enterBlock(before, f)
	return add(s)
}

// enterBlock adds the samples of a block, behind before earlier ones, to the fingerprint.
func (l *runLog) enterBlock(before int64, f *filled) {
	l.samples = before + int64(f.rows.N)
	l.bytes += f.sizes
	l.names.Write(f.names)
	l.print.Write(f.prints)
}

// bytes returns what a block takes.
func (f *filled) bytes() (n int64) {
	for _, v := range f.rows.Values {
		n += int64(len(v))
	}
	return n + int64(len(f.prints)+len(f.names))
}
