package loader

import (
	"fmt"

	"github.com/penstock/penstock/tensor"
)

// plan chooses the fields that can be views: if the records are one run of the Source, and
// nobody wants them in memory of his own.
func (w *worker) plan(s *slot) {
	ld, n, a := w.ld, len(s.indices), s.indices[0]
	if s.own != nil || !ld.mayView || ld.opts.OnError != Fail && !ld.viewable || s.run < n {
		return
	}
	for f := range ld.fields {
		fd := &ld.fields[f]
		s.viewing[f] = fd.viewable() && ld.can.Contiguous(fd.in.Name, a, a+n)
	}
}

// viewAll makes the views of s, and has room for the rest.
func (w *worker) viewAll(p *pass, s *slot) error {
	if err := w.views(p, s); err != nil {
		return err
	}
	return s.room()
}

func (w *worker) views(p *pass, s *slot) error {
	if !s.anyView() {
		return nil
	}
	a, n, bytes := s.indices[0], len(s.indices), 0
	w.begin()
	for f, viewing := range s.viewing {
		if !viewing {
			continue
		}
		if err := w.view(s, f, a, a+n); err != nil {
			if w.ld.opts.OnError == Fail {
				return w.locate(p, s, f, 0, n, err)
			}
			clear(s.viewing) // mend gathers what is well
			return nil
		}
		bytes += len(s.views[f].Bytes())
	}
	w.read(w.lap(), s.indices[:1], bytes) // of one run
	return nil
}

// view makes field f of s a view of records [a, b) of the Source.
func (w *worker) view(s *slot, f, a, b int) (err error) {
	defer w.catch(&err)
	w.mark(s, f, a)
	s.views[f], err = w.show(&w.ld.fields[f], a, b, s.offsets[f])
	return err
}

// show returns records [a, b) as memory of the Source that is warm, and the offsets of a
// ragged field.
func (w *worker) show(fd *field, a, b int, offsets []int64) (v tensor.View, err error) {
	ld, name := w.ld, fd.in.Name
	if ld.can.Mapped != nil {
		if err := ld.can.Mapped.Warm(name, a, b); err != nil {
			return v, err
		}
	}
	if fd.in.Ragged {
		return ld.can.Ragged.SliceRagged(name, a, b, offsets[:b-a+1])
	}
	v, err = ld.src.Slice(name, a, b)
	if err == nil && v.Len() != b-a {
		err = fmt.Errorf("the Source's Slice returned %d records, not %d", v.Len(), b-a)
	}
	return v, err
}

// viewOnly reports whether nothing is left to fill.
func (s *slot) viewOnly() bool {
	for f := range s.viewing {
		if !s.viewing[f] {
			return false
		}
	}
	return true
}

// anyView reports whether a field is memory of the Source.
func (s *slot) anyView() bool {
	for _, v := range s.viewing {
		if v {
			return true
		}
	}
	return false
}
