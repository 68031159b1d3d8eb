package combine

import (
	"context"
	"fmt"
)

// Fault asks the Source whose memory contains addr why a read there failed.
func (w *Windows) Fault(addr uintptr) error {
	_, err := w.fault(addr)
	return unnumbered(err)
}

// Intact asks every Source whether its files are whole.
func (w *Windows) Intact() error {
	_, err := w.intact()
	return unnumbered(err)
}

// unnumbered hides the record number of an error: it is a number in a Source, and windows have
// numbers of their own.
func unnumbered(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("window: %v", err)
}

// LookaheadBytes returns the largest lookahead of the Sources, or the lookahead for decoding chunks
// in advance if that is larger.
func (w *Windows) LookaheadBytes() int64 {
	bytes := w.cutter.LookaheadBytes()
	if k := w.retention.Load(); k != nil {
		bytes = max(bytes, k.bytes)
	}
	return bytes
}

// Fetch announces to a Source the records that windows touch, and decodes chunks in advance: see
// KeepChunks. Records of a bucket are announced so long before they are read that decoded chunks
// would not be kept until then, so that chunks of such records are not decoded in advance.
func (w *Windows) Fetch(ctx context.Context, field string, indices []int) error {
	f, err := w.field(field)
	if err == nil && f.part.can.Remote != nil {
		err = w.fetch(ctx, f, indices)
	}
	if k := w.retention.Load(); err == nil && k != nil && w.cutter.LookaheadBytes() <= k.bytes {
		err = k.ahead(ctx, &w.cutter, f, indices)
	}
	return err
}

func (w *Windows) fetch(ctx context.Context, f *windowed, indices []int) error {
	s := w.borrow()
	defer w.scratch.Put(s)
	var records []int
	seen := make(map[int]bool)
	for _, i := range indices {
		w.origins.of(i, &s.place)
		w.span(f, 0, s)
		for k := range s.spans[0].n {
			if at := s.spans[0].at(k); at >= 0 && !seen[at] {
				seen[at] = true
				records = append(records, at)
			}
		}
	}
	return f.part.can.Remote.Fetch(ctx, f.in.Name, records)
}

// Location returns where the window of a record begins.
func (w *Windows) Location(_ string, record int) string {
	origin := make([]int, len(w.axes))
	w.Origin(record, origin)
	return fmt.Sprintf("at %v of the axes %v", origin, w.Axes())
}

// DescribeReads returns how the Source reads the field that windows are cut from.
func (w *Windows) DescribeReads(field string) (how, why string, resident float64) {
	f, err := w.field(field)
	if err != nil || f.part.can.Described == nil {
		return "", "", -1
	}
	how, why, resident = f.part.describeReads(f.in.Name)
	return "windows, " + how, why, resident
}

// Classes returns the class names of the field that windows are cut from.
func (w *Windows) Classes(field string) []string {
	f, err := w.field(field)
	if err != nil {
		return nil
	}
	return f.part.classes(f.in.Name)
}
