package array

// blockCursor gives out values of one size that are read a block at a time.
type blockCursor struct {
	blockReader
	rest []byte // read and not given out yet
	size int    // bytes of a value
}

// blockReader reads values of one size.
type blockReader interface {
	// read returns the next values, one or more, and the size of each; io.EOF is the end. Each
	// block is separate memory, as its values are used independently.
	read() (block []byte, size int, err error)
	Close() error
}

func (c *blockCursor) Next() (value []byte, err error) {
	if len(c.rest) == 0 {
		if c.rest, c.size, err = c.read(); err != nil {
			return nil, err
		}
	}
	value, c.rest = c.rest[:c.size:c.size], c.rest[c.size:]
	return value, nil
}
