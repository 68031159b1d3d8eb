package hdf5

import (
	"github.com/penstock/penstock/internal/hdf5/encode"
)

// packing writes the rows of one compressed dataset: it cuts them into chunks, has several
// goroutines deflate these, and writes them in their order.
type packing struct {
	recipe   encode.Recipe
	to       chunkWriter
	jobs     chan *slot
	slots    []*slot // a ring: those from oldest on are being deflated, the next one is filled
	oldest   int
	busy     int
	row      int64 // first of the chunk that is written next
	stored   int64 // bytes of chunks
	reported func(n int64) error
}

// slot is a chunk on its way.
type slot struct {
	encoder *encode.Encoder
	rows    []byte
	chunk   []byte
	mask    uint32
	err     error
	done    chan struct{}
}

// packBytes is about how much memory the chunks of a packing may take, unless one takes more.
const packBytes = 512 << 20

// newPacking opens the dataset o of a file for chunks, which up to that many workers make.
func newPacking(with container, path string, o *encode.Object, workers int, reported func(n int64) error) (p *packing, err error) {
	p = &packing{recipe: o.Chunked.Recipe, reported: reported}
	each := 4*p.recipe.Bytes() + 1<<20
	for range min(workers+1, max(1, packBytes/each)) {
		e, err := encode.NewEncoder(p.recipe)
		if err != nil {
			return nil, err
		}
		p.slots = append(p.slots, &slot{encoder: e, rows: make([]byte, 0, p.recipe.Bytes()), done: make(chan struct{}, 1)})
	}
	if p.to, err = with.chunks(path, o); err != nil {
		return nil, err
	}
	p.jobs = make(chan *slot, len(p.slots))
	for range min(workers, len(p.slots)) {
		go deflate(p.jobs)
	}
	return p, nil
}

// deflate makes the chunks of jobs until there are no more.
func deflate(jobs <-chan *slot) {
	for s := range jobs {
		s.chunk, s.mask, s.err = s.encoder.Encode(s.rows)
		s.done <- struct{}{}
	}
}

// append adds rows.
func (p *packing) append(b []byte) error {
	for len(b) > 0 {
		s := p.slots[(p.oldest+p.busy)%len(p.slots)]
		n := min(len(b), cap(s.rows)-len(s.rows))
		s.rows, b = append(s.rows, b[:n]...), b[n:]
		if len(s.rows) < cap(s.rows) {
			return nil
		}
		if err := p.submit(s); err != nil {
			return err
		}
	}
	return nil
}

// submit has a slot deflated, and makes sure that there is one to fill.
func (p *packing) submit(s *slot) error {
	p.busy++
	p.jobs <- s
	if p.busy < len(p.slots) {
		return nil
	}
	return p.drain()
}

// drain writes the oldest chunk.
func (p *packing) drain() error {
	s := p.slots[p.oldest]
	<-s.done
	p.oldest, p.busy = (p.oldest+1)%len(p.slots), p.busy-1
	n := len(s.rows)
	s.rows = s.rows[:0]
	if s.err != nil {
		return s.err
	}
	return p.write(s.chunk, s.mask, n)
}

// write writes the next chunk, which was made of n bytes of rows.
func (p *packing) write(chunk []byte, mask uint32, n int) error {
	err := p.to.write(p.row, chunk, mask)
	p.row += int64(p.recipe.Records)
	p.stored += int64(len(chunk))
	if err == nil && p.reported != nil {
		err = p.reported(int64(n))
	}
	return err
}

// flush writes all that is left; the last chunk may have fewer rows than the others.
func (p *packing) flush() error {
	if s := p.slots[(p.oldest+p.busy)%len(p.slots)]; len(s.rows) > 0 {
		p.busy++
		p.jobs <- s
	}
	for p.busy > 0 {
		if err := p.drain(); err != nil {
			return err
		}
	}
	return nil
}

// close ends the goroutines and lets go of the file.
func (p *packing) close() error {
	close(p.jobs)
	for ; p.busy > 0; p.busy-- {
		<-p.slots[p.oldest].done
		p.oldest = (p.oldest + 1) % len(p.slots)
	}
	return p.to.close()
}
