package write

// ChunkEncoder encodes rows as chunks, one at a time.
type ChunkEncoder interface {
	// Encode returns the encoded chunk of rows; the last chunk may have fewer rows than the others. The bytes are valid
	// until the next call. mask says which filters of HDF5 were skipped for this chunk.
	Encode(rows []byte) (chunk []byte, mask uint32, err error)
}

// ChunkWriter takes the chunks of an array, in order.
type ChunkWriter interface {
	// Write stores the chunk that begins at a row. mask is the mask that Encode returned with the chunk.
	Write(row int64, chunk []byte, mask uint32) error
	Close() error
}

// ChunkPipeline writes the rows of one array in chunks. Several goroutines encode chunks; the goroutine that calls
// Append writes them, in the order of their rows. Once every slot of the ring is in use, Append waits for the oldest
// chunk, so memory is bounded by the number of slots.
type ChunkPipeline struct {
	records  int64 // of a chunk
	to       ChunkWriter
	jobs     chan *slot
	slots    []*slot // a ring: those from oldest on are being encoded, the next one is filled
	oldest   int
	busy     int
	row      int64 // first of the chunk that is written next
	stored   int64 // bytes of chunks
	reported func(n int64) error
}

// slot is a chunk between Append and the ChunkWriter. Each slot has an encoder of its own, because an encoded chunk is
// valid only until the next call of its encoder, and has to wait until all earlier chunks are written.
type slot struct {
	encoder ChunkEncoder
	rows    []byte
	chunk   []byte
	mask    uint32
	err     error
	done    chan struct{}
}

// packBytes is about how much memory the slots of a ChunkPipeline may take together. A slot counts as four times the
// rows of a chunk and 1 MiB. There is at least one slot, even if a chunk is larger than the limit.
const packBytes = 512 << 20

// ChunkPipelineOptions configures NewChunkPipeline.
type ChunkPipelineOptions struct {
	Records, RowBytes int                          // records of a chunk, bytes of a row
	First             int64                        // the row that the first chunk begins at
	Workers           int                          // goroutines that encode
	Encoder           func() (ChunkEncoder, error) // makes the encoder of a slot; there is one slot more than Workers
	Reported          func(n int64) error          // called with n more bytes of rows written; may be nil
}

// NewChunkPipeline begins an array whose chunks go to a ChunkWriter. Closing the pipeline closes the ChunkWriter, too.
// After an error the caller has to close it.
func NewChunkPipeline(to ChunkWriter, opts ChunkPipelineOptions) (*ChunkPipeline, error) {
	p := &ChunkPipeline{records: int64(opts.Records), row: opts.First, to: to, reported: opts.Reported}
	bytes := opts.Records * opts.RowBytes
	for range min(opts.Workers+1, max(1, packBytes/(4*bytes+1<<20))) {
		e, err := opts.Encoder()
		if err != nil {
			return nil, err
		}
		p.slots = append(p.slots, &slot{encoder: e, rows: make([]byte, 0, bytes), done: make(chan struct{}, 1)})
	}
	p.jobs = make(chan *slot, len(p.slots))
	for range min(opts.Workers, len(p.slots)) {
		go encode(p.jobs)
	}
	return p, nil
}

// encode encodes the chunks of jobs until the channel is closed.
func encode(jobs <-chan *slot) {
	for s := range jobs {
		s.chunk, s.mask, s.err = s.encoder.Encode(s.rows)
		s.done <- struct{}{}
	}
}

// Stored returns the bytes of the chunks that were written.
func (p *ChunkPipeline) Stored() int64 { return p.stored }

// Append adds rows, and submits each chunk that they fill.
func (p *ChunkPipeline) Append(b []byte) error {
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

// submit sends a slot to the encoders, and waits until another slot can be filled.
func (p *ChunkPipeline) submit(s *slot) error {
	p.busy++
	p.jobs <- s
	if p.busy < len(p.slots) {
		return nil
	}
	return p.drain()
}

// drain waits for the oldest chunk and writes it. Later chunks wait for it even if they are encoded already, since a
// ChunkWriter takes chunks in order.
func (p *ChunkPipeline) drain() error {
	s := p.slots[p.oldest]
	<-s.done
	p.oldest, p.busy = (p.oldest+1)%len(p.slots), p.busy-1
	n := len(s.rows)
	s.rows = s.rows[:0]
	if s.err != nil {
		return s.err
	}
	return p.Write(s.chunk, s.mask, n)
}

// Write writes an encoded chunk after the chunks that were written before. The chunk encodes n bytes of rows.
func (p *ChunkPipeline) Write(chunk []byte, mask uint32, n int) error {
	err := p.to.Write(p.row, chunk, mask)
	p.row += p.records
	p.stored += int64(len(chunk))
	if err == nil && p.reported != nil {
		err = p.reported(int64(n))
	}
	return err
}

// Flush writes the rows that do not yet fill a chunk. The last chunk may have fewer rows than the others.
func (p *ChunkPipeline) Flush() error {
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

// Close ends the goroutines and closes the ChunkWriter. Chunks that were submitted and not written are dropped: Flush
// writes them.
func (p *ChunkPipeline) Close() error {
	close(p.jobs)
	for ; p.busy > 0; p.busy-- {
		<-p.slots[p.oldest].done
		p.oldest = (p.oldest + 1) % len(p.slots)
	}
	return p.to.Close()
}
