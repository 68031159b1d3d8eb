// Package fill makes one batch of record numbers from a Source into buffers, and measures the cost. The
// package does not know who asks for which batch, or when: a [Filler] serves one goroutine, takes no lock
// that another goroutine holds while it reads, and has no scheduler.
//
// A batch is made in four steps: [Filler.Choose] its records, [Filler.View] those fields that can be memory
// of the Source, [Filler.Fill] all others, or a range of places of them, and [Filler.Seal] it.
package fill

import (
	"context"
	"slices"
	"time"

	"github.com/penstock/penstock/loader/internal/memory"
	"github.com/penstock/penstock/tensor"
)

// Source is the source of records: a loader.Source with its optional interfaces, resolved once. An
// optional interface that the Source lacks is nil. A type assertion for each record would cost more
// than a small record.
type Source struct {
	Records Records
	Ragged  Ragged
	Chunked Chunked
	Mapped  Mapped
	Fault   Fault
}

// Records has the methods of a loader.Source that batches need.
type Records interface {
	Len() int
	Slice(field string, a, b int) (tensor.View, error)
	Gather(ctx context.Context, field string, indices []int, dst []byte) error
	Prefetch(field string, a, b int) error
	Retain() error
	Release()
}

// Ragged has the methods of a loader.RaggedSource that filling needs.
type Ragged interface {
	SliceRagged(field string, a, b int, offsets []int64) (tensor.View, error)
	Lengths(ctx context.Context, field string, indices []int, offsets []int64) error
	GatherRagged(ctx context.Context, field string, indices []int, offsets []int64, dst []byte) ([]byte, error)
}

// Chunked has the methods of a loader.ChunkedSource that filling needs.
type Chunked interface {
	Contiguous(field string, a, b int) bool
}

// Mapped has the methods of a loader.MappedSource that filling needs.
type Mapped interface {
	Warm(field string, a, b int) error
	IsWarm(field string, a, b int) bool
}

// Fault has the methods of a loader.FaultSource that filling needs.
type Fault interface {
	Fault(addr uintptr) error
}

// Field is one field of a batch.
type Field struct {
	In       tensor.Spec // as the Source has it; no name if Collate makes the field
	Out      tensor.Spec // as batches have it
	Size     int         // bytes per record in a batch; 0 if Ragged
	Stored   int         // bytes of a record in the Source, or of one row if records have variable length there
	Converts bool        // a function of the Filler converts the field; otherwise it is copied
	Edited   bool        // Collate writes to the field
	Ragged   bool        // batches have the field's rows with offsets
	Leads    []int       // fields that the field's function makes as well; only if it Converts
	Led      bool        // another field's function makes the field
	Padding  *Padding    // of a Ragged field whose records have sizes of their own, not lengths; nil for none
}

// Made reports whether the loader computes the field, so that the Source does not have it.
func (f *Field) Made() bool { return f.In.Name == "" }

// Grown reports whether a JointFunc makes the field's records, of lengths that only it knows.
func (f *Field) Grown() bool { return f.Ragged && (f.Led || f.Leads != nil) }

// Viewable reports whether the field may be a view of the Source. Fields that are converted or
// edited are written to, and the memory of the Source must not be.
func (f *Field) Viewable() bool { return !f.Made() && !f.Converts && !f.Edited }

// Policy says how a record that cannot be read is handled; loader.OnError describes each.
type Policy int

// The policies.
const (
	Fail Policy = iota
	Backfill
	Blank
)

// Plan is the configuration of all batches. After Init a Plan never changes, so that every
// goroutine reads it without a lock. Only spare changes, under its own mutex.
type Plan struct {
	Source Source
	Fields []Field
	Batch  int    // most records per batch
	Seed   uint64 // seed of the records that Backfill draws
	Clock  func() time.Duration

	Policy Policy
	Report func(ctx context.Context, b *Batch, e *Error) // is called for every record that the Policy passes over

	Ring     *memory.Ring
	Views    bool                   // fields may be views of the Source
	Shows    func(view []byte) bool // whether a view may be handed out, else it is copied; nil if each may
	RingRows bool                   // rows of variable length are in the Ring
	Budget   int                    // the most bytes that buffers may take; 0 is any number
	Slots    int                    // batches that share Budget
	Stage    int                    // bytes of cold records that each Filler may gather before it converts them
	Workers  int                    // Fillers that make batches by turns: the largest number of them
	OneByOne bool                   // records are read one by one, so that Progress says which one hangs

	settled
	spare spare // memory of records before they are padded
}

// settled holds what Init derives from the exported fields of a Plan.
type settled struct {
	places   map[string]int // of fields, by their names in batches
	viewable bool           // all fields may be views
	ragged   bool           // at least one field has records of different lengths
	allValid []bool         // of a batch in which all records count
}

// Init derives the settled values. New calls Init once, before any goroutine uses the Plan.
func (p *Plan) Init() {
	p.viewable, p.allValid = true, slices.Repeat([]bool{true}, p.Batch)
	p.places = make(map[string]int, len(p.Fields))
	for i := range p.Fields {
		p.places[p.Fields[i].Out.Name] = i
		p.viewable = p.viewable && p.Fields[i].Viewable()
		p.ragged = p.ragged || p.Fields[i].In.Ragged || p.Fields[i].Ragged
	}
}

// Viewable reports whether whole batches may be views of memory that the Source says is warm. Only
// then does a loop build batches inline.
func (p *Plan) Viewable() bool { return p.Source.Mapped != nil && p.Views && p.viewable }

// shows reports whether the Allocator lets a view be handed out.
func (p *Plan) shows(view []byte) bool { return p.Shows == nil || p.Shows(view) }

// Ragged reports whether at least one field has records of different lengths.
func (p *Plan) Ragged() bool { return p.ragged }

// Stored returns the bytes that the Source reads for a full batch. A ragged field counts as one row
// per record, since its lengths are not known in advance.
func (p *Plan) Stored() (bytes int64) {
	for i := range p.Fields {
		if f := &p.Fields[i]; !f.Made() {
			bytes += int64(f.Stored) * int64(p.Batch)
		}
	}
	return bytes
}
