package cuda

import (
	"context"
	"errors"
	"fmt"
	"unsafe"

	"github.com/penstock/penstock/loader"
)

// load queues everything that brings b to the device. If it fails, it waits for what was queued:
// nothing reads b's memory afterwards.
func (s *slot) load(ctx context.Context, b loader.Batch) error {
	err := s.queue(ctx, b)
	if err != nil {
		return errors.Join(err, s.drain())
	}
	return nil
}

func (s *slot) queue(ctx context.Context, b loader.Batch) error {
	if err := s.p.setPlan(b); err != nil {
		return err
	}
	s.indices = append(s.indices[:0], b.Indices()...)
	s.valid = append(s.valid[:0], b.Mask()...)
	s.epoch, s.step, s.borrows = b.Epoch(), b.Step(), false
	if err := s.measure(b); err != nil {
		return err
	}
	if s.inUse {
		if err := s.dev.order(s.stream, s.used); err != nil {
			return err
		}
		s.inUse = false
	}
	for i, f := range s.p.plan {
		if err := s.copyField(ctx, i, f); err != nil {
			return err
		}
	}
	return s.dev.record(s.copied, s.stream)
}

// copyField queues the copy of a field, and its normalization.
func (s *slot) copyField(ctx context.Context, i int, f *field) error {
	var err error
	if f.direct != nil {
		err = s.copyDirect(ctx, i, f)
	} else {
		err = s.copyHost(i)
	}
	if err != nil || f.norm == nil {
		return err
	}
	at := s.regions[i]
	total := at.rows * f.out.Shape.Elems()
	if total == 0 {
		return nil
	}
	s.p.count(func(st *Stats) { st.Normalized += int64(total) })
	return s.dev.normalize(f.norm, s.mem+at.out, s.mem+at.raw, total, s.stream)
}

// copyHost queues the copy of a field that the Loader made: from the Loader's memory if that is
// page-locked, otherwise from a page-locked copy.
func (s *slot) copyHost(i int) error {
	src := s.src[i]
	if locked.holds(src) {
		s.p.count(func(st *Stats) { st.PinnedBytes += int64(len(src)) })
		s.borrows = true
		return s.copy(s.mem+s.regions[i].raw, src)
	}
	stage, err := s.staging(i, len(src))
	if err != nil {
		return err
	}
	copy(stage, src)
	return s.copyStaged(i, stage)
}

// copyDirect queues the copies of a field from the dataset's own memory, one per run of records. If
// the runs are too short, the records are gathered on the host instead.
func (s *slot) copyDirect(ctx context.Context, i int, f *field) error {
	size := f.in.RecordBytes()
	total := len(s.indices) * size
	if n := countRuns(s.indices); f.direct.pieces == nil || n > 1 && total/n < minRun {
		stage, err := s.staging(i, total)
		if err != nil {
			return err
		}
		if err := s.p.opts.Direct.Source.Gather(ctx, f.in.Name, s.indices, stage); err != nil {
			return fmt.Errorf("cuda: batch %d: field %q: %w", s.step, f.in.Name, err)
		}
		return s.copyStaged(i, stage)
	}
	s.p.count(func(st *Stats) { st.DirectBytes += int64(total) })
	return f.direct.runs(s.indices, func(at int, src []byte) error {
		return s.copy(s.mem+s.regions[i].raw+uint64(at*size), src)
	})
}

// copyStaged queues the copy of bytes in the slot's own page-locked memory.
func (s *slot) copyStaged(i int, stage []byte) error {
	s.p.count(func(st *Stats) { st.StagedBytes += int64(len(stage)) })
	return s.copy(s.mem+s.regions[i].raw, stage)
}

// copy queues a copy from page-locked memory.
func (s *slot) copy(dst uint64, src []byte) error {
	if len(src) == 0 {
		return nil
	}
	s.p.count(func(st *Stats) { st.Copies++ })
	return s.dev.do("cuMemcpyHtoDAsync", func() Result {
		return s.dev.drv.MemcpyHtoDAsync(dst, unsafe.Pointer(unsafe.SliceData(src)), uintptr(len(src)), s.stream)
	})
}

// staging returns n bytes of the slot's page-locked memory, after waiting for the copy that still
// reads it.
func (s *slot) staging(i, n int) ([]byte, error) {
	if s.stage[i] == nil {
		b, err := s.dev.pin(s.regions[i].room * s.p.plan[i].in.RecordBytes())
		if err != nil {
			return nil, err
		}
		s.stage[i] = b
	} else if err := s.settle(s.copied); err != nil {
		return nil, err
	}
	return s.stage[i][:n:n], nil
}
